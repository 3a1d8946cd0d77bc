// Shared-only linear algebra: decoders and second-order updates (cor:curvature-block-updates).
#include <fmt/format.h>

#include "starfold/base/error.h"
#include "starfold/ops/derivative.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/row.h"
#include "starfold/ops/standard.h"
#include "starfold/signature/typing.h"

namespace starfold {
namespace {

Op row(std::string name, int arity, std::string surface, std::string rule, std::string doc,
       TypeRule type, Meaning meaning, DerivativeRule derivative) {
  return begin_row(Family::shared_only, arity, arity,
                   {std::move(name), std::move(surface), std::move(rule), std::move(doc)},
                   std::move(type), std::move(meaning), derivative);
}

bool require_square(TypeQuery& query, std::size_t i) {
  return typing::require_shared(query) && typing::require_rank(query, i, 2, "a square matrix") &&
         typing::require_equal(query, query.args[i].dims[0], query.args[i].dims[1],
                               "the matrix must be square");
}

Types solve_type(TypeQuery& query) {
  if (!require_square(query, 0)) return std::nullopt;
  const Type& b = query.args[1];
  if (b.rank() != 1 && b.rank() != 2) {
    typing::require_rank(query, 1, 1, "a vector or a matrix on the right");
    return std::nullopt;
  }
  if (!typing::require_equal(query, query.args[0].dims[0], b.dims[0],
                             "both sides must have the same number of rows")) {
    return std::nullopt;
  }
  return std::vector<Type>{b};
}

Types square_to_square(TypeQuery& query) {
  if (!require_square(query, 0)) return std::nullopt;
  return std::vector<Type>{query.args[0]};
}

Types square_to_scalar(TypeQuery& query) {
  if (!require_square(query, 0)) return std::nullopt;
  return std::vector<Type>{Type::scalar()};
}

Types square_to_vector(TypeQuery& query) {
  if (!require_square(query, 0)) return std::nullopt;
  return std::vector<Type>{without_axis(query.args[0], 0)};
}

Types eigh_type(TypeQuery& query) {
  if (!require_square(query, 0)) return std::nullopt;
  return std::vector<Type>{without_axis(query.args[0], 0), query.args[0]};
}

// svd and qr are the reduced ones of a matrix with at least as many rows as columns.
bool require_tall(TypeQuery& query) {
  if (!typing::require_shared(query) || !typing::require_rank(query, 0, 2, "a matrix"))
    return false;
  const Size& rows = query.args[0].dims[0].size;
  const Size& columns = query.args[0].dims[1].size;
  if (!rows.is_constant() || !columns.is_constant() || rows.constant() >= columns.constant())
    return true;
  query.fail({Code::SizeMismatch,
              fmt::format("`{}` needs at least as many rows as columns, not {}", query.op.name,
                          query.args[0].to_string()),
              {query.arg_spans[0], query.args[0].to_string()},
              {},
              "",
              fmt::format("transpose it: `{}({}')`", query.op.name, query.arg_texts[0])});
  return false;
}

Types svd_type(TypeQuery& query) {
  if (!require_tall(query)) return std::nullopt;
  const Dim columns = query.args[0].dims[1];
  return std::vector<Type>{query.args[0], Type{{columns}}, Type{{columns, columns}}};
}

Types qr_type(TypeQuery& query) {
  if (!require_tall(query)) return std::nullopt;
  const Dim columns = query.args[0].dims[1];
  return std::vector<Type>{query.args[0], Type{{columns, columns}}};
}

// Sizes may be known only when data is bound.
Meaning tall(std::string name, Meaning meaning) {
  return [name = std::move(name), meaning = std::move(meaning)](const Application& a) {
    const Shape& shape = a.arg(0).shape;
    if (shape[0] < shape[1]) {
      throw RunError(fmt::format("{} needs at least as many rows as columns, not {} x {}", name,
                                 shape[0], shape[1]));
    }
    return meaning(a);
  };
}

Types diag_type(TypeQuery& query) {
  if (!typing::require_shared(query)) return std::nullopt;
  const Type& type = query.args[0];
  if (type.rank() == 1) return std::vector<Type>{Type{{type.dims[0], type.dims[0]}}};
  if (!require_square(query, 0)) return std::nullopt;
  return std::vector<Type>{without_axis(type, 0)};
}

// The factors' axes are those of the matrix, or numbered.
Op factors(Op op, std::vector<std::vector<int>> named_as) {
  op.naming = Naming::listed;
  op.named_as = std::move(named_as);
  return op;
}

}  // namespace

std::vector<Op> linear_algebra_ops() {
  constexpr int own = -1;  // an order of its own
  std::vector<Op> ops = {
      row("solve", 2, "solve(a, b)", "[n, n], [n] -> [n]; [n, n], [n, m] -> [n, m]",
          "x with a @ x = b; fails if a is singular", solve_type, meaning::solve,
          derivative::solve),
      row("cholesky", 1, "cholesky(a)", "[n, n] -> [n, n]",
          "lower l with l @ l' = a; fails unless a is positive definite", square_to_square,
          meaning::cholesky, derivative::cholesky),
      row("logdet", 1, "logdet(a)", "[n, n] -> []", "log of the absolute determinant",
          square_to_scalar, meaning::logdet, derivative::logdet),
      row("det", 1, "det(a)", "[n, n] -> []", "the determinant", square_to_scalar, meaning::det,
          derivative::det),
      row("inv", 1, "inv(a)", "[n, n] -> [n, n]", "the inverse; prefer solve", square_to_square,
          meaning::inv, derivative::inv),
      factors(row("eigh", 1, "let (values, vectors) = eigh(a)", "[n, n] -> [n], [n, n]",
                  "eigenvalues of a symmetric matrix, ascending, and eigenvectors in columns",
                  eigh_type, meaning::eigh, derivative::factorization),
              {{own}, {0, own}}),
      factors(row("svd", 1, "let (u, s, v) = svd(a)", "[m, n] -> [m, n], [n], [n, n]",
                  "a = u @ diag(s) @ v', s descending, m >= n", svd_type, tall("svd", meaning::svd),
                  derivative::factorization),
              {{0, own}, {own}, {1, own}}),
      factors(row("qr", 1, "let (q, r) = qr(a)", "[m, n] -> [m, n], [n, n]",
                  "a = q @ r, r upper with a non-negative diagonal, m >= n", qr_type,
                  tall("qr", meaning::qr), derivative::factorization),
              {{0, own}, {own, 1}}),
      factors(
          row("dependent", 1, "dependent(a)", "[n, n] -> [n]",
              "1 where a column of x is a combination of those before it, given a = x' @ x; else 0",
              square_to_vector, meaning::dependent, nullptr),
          {{0}}),
      row("diag", 1, "diag(e)", "[n] -> [n, n]; [n, n] -> [n]",
          "a diagonal matrix, or the diagonal of one", diag_type, meaning::diag, derivative::diag),
      row("trace_of", 1, "trace_of(a)", "[n, n] -> []", "the sum of the diagonal", square_to_scalar,
          meaning::trace_of, derivative::trace_of),
  };
  // A matrix that is singular, too large or not finite.
  for (Op& op : ops) {
    op.refuses = true;
    op.flat = op.derivative == nullptr ? 1U : 0U;
  }
  return ops;
}

}  // namespace starfold
