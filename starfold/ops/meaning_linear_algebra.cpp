// Shared-only linear algebra by LAPACK. Signs that LAPACK leaves open are fixed, so that the same
// matrix gives the same factors on every machine up to rounding.
#include <fmt/format.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "starfold/base/error.h"
#include "starfold/ops/lapack_call.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/portable_linear_algebra.h"
#include "starfold/tensor/gather.h"
#include "starfold/tensor/portable.h"

namespace starfold::meaning {
namespace {

constexpr int kRowMajor = LAPACK_ROW_MAJOR;

bool all_finite(const Tensor& t) {
  return std::all_of(t.data.begin(), t.data.end(), [](double x) { return std::isfinite(x); });
}

lapack_int to_int(std::int64_t extent) {
  if (extent < 1 || extent > std::numeric_limits<lapack_int>::max()) {
    throw RunError("linear algebra: a matrix has no rows or columns, or too many");
  }
  return static_cast<lapack_int>(extent);
}

// LAPACK calls a wrong argument a negative status.
void require_ours_right(lapack_int info, const char* routine) {
  if (info < 0) throw Bug(fmt::format("{}: argument {}", routine, -info));
}

const Tensor& finite_matrix(const Application& a, const char* op) {
  const Tensor& m = a.arg(0);
  if (m.rank() != 2) throw Bug(fmt::format("{}: the operand is not a matrix", op));
  if (!all_finite(m)) throw RunError(fmt::format("{}: the matrix has non-finite entries", op));
  return m;
}

const Tensor& square_matrix(const Application& a, const char* op) {
  const Tensor& m = finite_matrix(a, op);
  if (m.shape[0] != m.shape[1]) throw Bug(fmt::format("{}: the matrix is not square", op));
  return m;
}

double largest_magnitude(const Tensor& t) {
  double top = 0;
  for (const double x : t.data) top = std::max(top, std::fabs(x));
  return top;
}

// The mean of the matrix and its transpose; RunError when they differ by more than rounding.
Tensor symmetric_matrix(const Application& a, const char* op) {
  const Tensor& m = square_matrix(a, op);
  const double tolerance = 1e-8 * largest_magnitude(m);
  const std::int64_t n = m.shape[0];
  Tensor result = m;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      const double lower = m.data[i * n + j];
      const double upper = m.data[j * n + i];
      if (std::fabs(lower - upper) > tolerance) {
        throw RunError(fmt::format(
            "{} needs a symmetric matrix (entries [{}, {}] and [{}, {}] are {:.6g} and {:.6g})", op,
            i + 1, j + 1, j + 1, i + 1, lower, upper));
      }
      result.data[i * n + j] = result.data[j * n + i] = lower / 2 + upper / 2;
    }
  }
  return result;
}

bool exactly_symmetric(const Tensor& m) {
  const std::int64_t n = m.shape[0];
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      if (m.data[i * n + j] != m.data[j * n + i]) return false;
    }
  }
  return true;
}

Tensor transposed(const Tensor& m) { return permuted(m, {1, 0}); }

// --- linear systems

// What an expert driver of LAPACK finds: it scales rows and columns first, so that units of
// measurement do not count as ill-conditioning, and refines the solution afterwards.
struct Solved {
  lapack_int info = 0;
  double rcond = 0;
  Tensor x;
};

// The same where every machine must give the same bits, in LAPACK's words.
Solved solved_portably(portable::Solution found, lapack_int n) {
  const bool near_singular = found.solved && !(found.rcond > 0x1p-53);
  return {found.solved ? (near_singular ? n + 1 : 0) : 1, found.rcond, std::move(found.x)};
}

Solved solve_positive_definite(Tensor a, Tensor b) {
  if (portable::Scope::on())
    return solved_portably(portable::solve_positive_definite(a, b), to_int(a.shape[0]));
  const lapack_int n = to_int(a.shape[0]);
  const lapack_int m = to_int(b.shape[1]);
  const LapackCall call;
  Solved result{0, 0, Tensor(b.shape)};
  std::vector<double> factor(a.data.size()), scale(n), forward(m), backward(m);
  char scaled = 'N';
  result.info = LAPACKE_dposvx(kRowMajor, 'E', 'L', n, m, a.data.data(), n, factor.data(), n,
                               &scaled, scale.data(), b.data.data(), m, result.x.data.data(), m,
                               &result.rcond, forward.data(), backward.data());
  require_ours_right(result.info, "dposvx");
  return result;
}

Solved solve_general(Tensor a, Tensor b) {
  if (portable::Scope::on())
    return solved_portably(portable::solve_general(a, b), to_int(a.shape[0]));
  const lapack_int n = to_int(a.shape[0]);
  const lapack_int m = to_int(b.shape[1]);
  const LapackCall call;
  Solved result{0, 0, Tensor(b.shape)};
  std::vector<double> factor(a.data.size()), rows(n), columns(n), forward(m), backward(m);
  std::vector<lapack_int> pivots(n);
  char scaled = 'N';
  double growth = 0;
  result.info =
      LAPACKE_dgesvx(kRowMajor, 'E', 'N', n, m, a.data.data(), n, factor.data(), n, pivots.data(),
                     &scaled, rows.data(), columns.data(), b.data.data(), m, result.x.data.data(),
                     m, &result.rcond, forward.data(), backward.data(), &growth);
  require_ours_right(result.info, "dgesvx");
  return result;
}

// b is a matrix. Status n + 1 says that the reciprocal condition is below machine epsilon.
Tensor solve_system(const Tensor& a, const Tensor& b, const char* op) {
  const lapack_int n = to_int(a.shape[0]);
  Solved solved;
  bool definite = false;
  if (exactly_symmetric(a)) {
    solved = solve_positive_definite(a, b);
    definite = solved.info == 0 || solved.info > n;
  }
  if (!definite) solved = solve_general(a, b);
  if (solved.info != 0) {
    const double rcond = solved.info > n ? solved.rcond : 0.0;
    throw RunError(
        fmt::format("{}: the matrix is singular to working precision (reciprocal condition {:.2g})",
                    op, rcond));
  }
  return std::move(solved.x);
}

// --- determinants

// The diagonal of U in P L U, and whether the rows were exchanged an odd number of times.
struct Pivots {
  std::vector<double> diagonal;
  bool odd = false;
};

Pivots pivots_of(const Tensor& matrix) {
  if (portable::Scope::on()) {
    Pivots found;
    found.odd = portable::lu_diagonal(matrix, found.diagonal);
    return found;
  }
  const LapackCall call;
  Tensor lu = matrix;
  const lapack_int n = to_int(lu.shape[0]);
  std::vector<lapack_int> exchanged(n);
  // A positive status means an exact zero on the diagonal, which is an answer, not an error.
  require_ours_right(LAPACKE_dgetrf(kRowMajor, n, n, lu.data.data(), n, exchanged.data()),
                     "dgetrf");
  Pivots result;
  for (lapack_int i = 0; i < n; ++i) {
    result.diagonal.push_back(lu.data[static_cast<std::size_t>(i) * (n + 1)]);
    if (exchanged[i] != i + 1) result.odd = !result.odd;
  }
  return result;
}

// --- signs

// The first row whose entry of this column is largest in magnitude. Entries that differ by
// rounding only count as ties, or two machines would disagree about the sign.
std::int64_t leading_row(const Tensor& m, std::int64_t column) {
  double top = 0;
  for (std::int64_t i = 0; i < m.shape[0]; ++i) {
    top = std::max(top, std::fabs(m.data[i * m.shape[1] + column]));
  }
  std::int64_t row = 0;
  while (std::fabs(m.data[row * m.shape[1] + column]) < top * (1 - 1e-8)) ++row;
  return row;
}

void negate_column(Tensor& m, std::int64_t column) {
  for (std::int64_t i = 0; i < m.shape[0]; ++i) m.data[i * m.shape[1] + column] *= -1;
}

bool leads_negative(const Tensor& m, std::int64_t column) {
  return m.data[leading_row(m, column) * m.shape[1] + column] < 0;
}

// --- A = Q R

void qr_by_reflections(const Tensor& matrix, Tensor& q, Tensor& r) {
  const LapackCall call;
  const lapack_int m = to_int(matrix.shape[0]);
  const lapack_int n = to_int(matrix.shape[1]);
  const lapack_int k = std::min(m, n);
  Tensor factored = matrix;  // R above the diagonal, the reflectors of Q below
  std::vector<double> tau(static_cast<std::size_t>(k));
  require_ours_right(LAPACKE_dgeqrf(kRowMajor, m, n, factored.data.data(), n, tau.data()),
                     "dgeqrf");
  r = Tensor(Shape{k, n});
  q = Tensor(Shape{m, k});
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (i < k && j >= i) r.data[i * n + j] = factored.data[i * n + j];
      if (j < k) q.data[i * k + j] = factored.data[i * n + j];
    }
  }
  require_ours_right(LAPACKE_dorgqr(kRowMajor, m, k, k, q.data.data(), k, tau.data()), "dorgqr");
}

}  // namespace

Results solve(const Application& a) {
  const Tensor& m = square_matrix(a, "solve");
  const Tensor& b = a.arg(1);
  if (!all_finite(b)) throw RunError("solve: the right-hand side has non-finite entries");
  const bool vector = b.rank() == 1;
  if (!(vector || b.rank() == 2) || b.shape[0] != m.shape[0]) {
    throw Bug("solve: " + to_string(m.shape) + " with " + to_string(b.shape));
  }
  const Tensor columns(vector ? Shape{b.shape[0], 1} : b.shape, b.data);
  Tensor x = solve_system(m, columns, "solve");
  x.shape = b.shape;
  return {std::move(x)};
}

Results inv(const Application& a) {
  const Tensor& m = square_matrix(a, "inv");
  const std::int64_t n = m.shape[0];
  Tensor identity(m.shape);
  for (std::int64_t i = 0; i < n; ++i) identity.data[i * n + i] = 1;
  Tensor result = solve_system(m, identity, "inv");
  if (exactly_symmetric(m)) {  // then so is the inverse, but its rounding is not
    const Tensor other = transposed(result);
    for (std::size_t i = 0; i < result.data.size(); ++i) {
      result.data[i] = result.data[i] / 2 + other.data[i] / 2;
    }
  }
  return {std::move(result)};
}

Results cholesky(const Application& a) {
  Tensor l = symmetric_matrix(a, "cholesky");
  const lapack_int n = to_int(l.shape[0]);
  lapack_int info = 0;
  if (portable::Scope::on()) {
    info = static_cast<lapack_int>(portable::cholesky(l));
  } else {
    const LapackCall call;
    info = LAPACKE_dpotrf(kRowMajor, 'L', n, l.data.data(), n);
  }
  require_ours_right(info, "dpotrf");
  if (info > 0) {
    throw RunError(fmt::format(
        "cholesky: the matrix is not positive definite (its leading minor of order {} is not)",
        info));
  }
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i + 1; j < n; ++j) l.data[i * n + j] = 0;
  }
  return {std::move(l)};
}

// Mantissa and exponent apart: the product may leave the range on its way to an answer inside it.
Results det(const Application& a) {
  const Pivots pivots = pivots_of(square_matrix(a, "det"));
  double mantissa = pivots.odd ? -1 : 1;
  int exponent = 0;
  for (const double u : pivots.diagonal) {
    if (u == 0) return {Tensor::scalar(0)};
    int of_u = 0;
    int of_product = 0;
    mantissa = std::frexp(mantissa * std::frexp(u, &of_u), &of_product);
    exponent += of_u + of_product;
  }
  return {Tensor::scalar(std::ldexp(mantissa, exponent))};
}

Results logdet(const Application& a) {
  std::vector<double> logs;
  for (const double u : pivots_of(square_matrix(a, "logdet")).diagonal) {
    if (u == 0) return {Tensor::scalar(-std::numeric_limits<double>::infinity())};
    logs.push_back(maths::log(std::fabs(u)));
  }
  return {Tensor::scalar(fold_sum(logs))};
}

// A column is a combination of those before it when nothing but rounding of its length is left without them. What its
// own values are like does not matter: rows and columns are scaled first.
Results dependent(const Application& a) {
  constexpr double rounding = 1e-12;
  Tensor m = symmetric_matrix(a, "dependent");
  const std::int64_t n = m.shape[0];
  Tensor result(Shape{n});
  std::vector<double> length(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) length[i] = std::max(m.data[i * n + i], 0.0);
  for (std::int64_t k = 0; k < n; ++k) {
    const double pivot = m.data[k * n + k];
    if (!(pivot > rounding * length[k])) {
      result.data[k] = 1;
      continue;
    }
    for (std::int64_t i = k + 1; i < n; ++i) {
      const double factor = m.data[i * n + k] / pivot;
      for (std::int64_t j = k + 1; j < n; ++j) m.data[i * n + j] -= factor * m.data[k * n + j];
    }
  }
  return {std::move(result)};
}

Results eigh(const Application& a) {
  Tensor vectors = symmetric_matrix(a, "eigh");
  const lapack_int n = to_int(vectors.shape[0]);
  Tensor values(Shape{n});
  lapack_int info = 0;
  if (portable::Scope::on()) {
    const Tensor matrix = vectors;
    portable::eigh(matrix, values, vectors);
  } else {
    const LapackCall call;
    info = LAPACKE_dsyevd(kRowMajor, 'V', 'L', n, vectors.data.data(), n, values.data.data());
  }
  require_ours_right(info, "dsyevd");
  if (info > 0) throw RunError("eigh: the eigenvalues did not converge");
  for (std::int64_t j = 0; j < n; ++j) {
    if (leads_negative(vectors, j)) negate_column(vectors, j);
  }
  return {std::move(values), std::move(vectors)};
}

Results svd(const Application& a) {
  Tensor work = finite_matrix(a, "svd");
  const lapack_int m = to_int(work.shape[0]);
  const lapack_int n = to_int(work.shape[1]);
  const lapack_int k = std::min(m, n);
  Tensor u(Shape{m, k});
  Tensor s(Shape{k});
  Tensor v;
  if (portable::Scope::on()) {
    portable::svd(work, u, s, v);
  } else {
    const LapackCall call;
    Tensor v_transposed(Shape{k, n});
    std::vector<double> unconverged(static_cast<std::size_t>(k));
    const lapack_int info =
        LAPACKE_dgesvd(kRowMajor, 'S', 'S', m, n, work.data.data(), n, s.data.data(), u.data.data(),
                       k, v_transposed.data.data(), n, unconverged.data());
    require_ours_right(info, "dgesvd");
    if (info > 0) throw RunError("svd: the singular values did not converge");
    v = transposed(v_transposed);
  }
  for (std::int64_t j = 0; j < k; ++j) {
    if (!leads_negative(u, j)) continue;
    negate_column(u, j);
    negate_column(v, j);
  }
  return {std::move(u), std::move(s), std::move(v)};
}

Results qr(const Application& a) {
  const Tensor& matrix = finite_matrix(a, "qr");
  const std::int64_t n = to_int(matrix.shape[1]);
  const std::int64_t k = std::min<std::int64_t>(to_int(matrix.shape[0]), n);
  Tensor q;
  Tensor r;
  if (portable::Scope::on()) {
    portable::qr(matrix, q, r);
  } else {
    qr_by_reflections(matrix, q, r);
  }
  for (std::int64_t i = 0; i < k; ++i) {
    if (!(r.data[i * n + i] < 0)) continue;
    negate_column(q, i);
    for (std::int64_t j = i; j < n; ++j) r.data[i * n + j] *= -1;
  }
  return {std::move(q), std::move(r)};
}

}  // namespace starfold::meaning
