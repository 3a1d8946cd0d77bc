#include "starfold/formula/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "starfold/formula/compute.h"

namespace starfold::formula {

using Piece = DesignColumn::Piece;

// Makes the columns of a design, variable by variable and term by term.
class DesignBuilder {
 public:
  DesignBuilder(const Formula& formula, const FindVariable& find, Design& design)
      : formula_(formula), find_(find), design_(design), terms_(expand(formula)) {}

  void build(bool wants_offset) {
    design_.intercept_ = terms_.intercept;
    for (const Expr& variable : terms_.variables) add_variable(variable);
    if (formula_.response) add_response(*formula_.response);
    if (formula_.group) add_group(*formula_.group);
    for (const Expr& offset : terms_.offsets) add_offset(offset);
    if (wants_offset || !terms_.offsets.empty())
      add_column(
          {terms_.offsets.size() == 1 ? to_text(terms_.offsets[0]) : "offset", Role::offset, {}});
    find_codings();
    find_references();
    for (std::size_t t = 0; t < terms_.terms.size(); ++t) add_term(t);
  }

 private:
  [[noreturn]] void fail(const Expr& at, const std::string& what) const {
    throw FormulaError(formula_, at, what);
  }

  std::size_t add_variable(const Expr& expr) {
    const std::string text = to_text(expr);
    const auto known = std::find(texts_.begin(), texts_.end(), text);
    if (known != texts_.end()) return static_cast<std::size_t>(known - texts_.begin());
    design_.computations_.push_back(compile(formula_, expr, find_, design_.sources_));
    const Variable& type = design_.computations_.back().type;
    if (type.kind == Variable::Kind::factor && !type.codes && type.levels.empty())
      fail(expr, "it has no level: no client has a value of it");
    design_.variables_.push_back(name_of(expr));
    texts_.push_back(text);
    return texts_.size() - 1;
  }

  // What a variable is called: poly(x, 2), whatever the numbers of its polynomials.
  static std::string name_of(Expr expr) {
    if (expr.is_call("poly"))
      std::erase_if(expr.args, [](const Expr& arg) {
        return arg.kind == Expr::Kind::named && arg.text == "coefs";
      });
    return to_text(expr);
  }

  void add_column(DesignColumn column) {
    if (design_.columns_.size() >= most_columns)
      fail(formula_.right, fmt::format("this makes more than {} columns", most_columns));
    design_.columns_.push_back(std::move(column));
  }

  // --- the left side

  void add_response(const Expr& expr) {
    if (expr.is_call("cbind")) {
      for (const Expr& arg : expr.args) add_response_column(arg, Role::response);
    } else if (expr.is_call("Surv")) {
      if (expr.args.size() != 2) fail(expr, "Surv takes a time and whether it ended in an event");
      add_response_column(expr.args[0], Role::time);
      add_response_column(expr.args[1], Role::event);
    } else {
      add_response_column(expr, Role::response);
    }
  }

  // A factor of two levels is 1 where it is not the reference, as in R's glm; of more, it is the number of its level.
  void add_response_column(const Expr& expr, Role role) {
    if (expr.kind == Expr::Kind::named) fail(expr, "arguments have no names here");
    const std::size_t variable = add_variable(expr);
    const Computation& computation = design_.computations_[variable];
    if (computation.width > 1) fail(expr, "a response has one column");
    Piece piece{variable, 0, false, 0};
    const Variable& type = computation.type;
    if (type.kind == Variable::Kind::factor && type.levels.size() == 2)
      piece = {variable, 0, true, type.reference == 0 ? 2.0 : 1.0};
    if (piece.indicator) design_.references_[to_text(expr)] = type.levels[type.reference];
    add_column({to_text(expr), role, {piece}});
  }

  // The number of the level, or of the group where it is a number already.
  void add_group(const Expr& expr) {
    const std::size_t variable = add_variable(expr);
    if (design_.computations_[variable].width > 1) fail(expr, "a group has one column");
    add_column({to_text(expr), Role::group, {{variable, 0, false, 0}}});
  }

  void add_offset(const Expr& expr) {
    const std::size_t variable = add_variable(expr);
    const Computation& computation = design_.computations_[variable];
    if (computation.width > 1 || computation.type.kind == Variable::Kind::factor)
      fail(expr, "an offset is a number for each record");
    design_.offsets_.push_back(variable);
  }

  // --- the right side

  static bool has_levels(const Variable& type) { return type.kind != Variable::Kind::number; }
  const Variable& type_of(std::size_t variable) const {
    return design_.computations_[variable].type;
  }

  // A factor has a column for each level but one where what the term is without it is in the model already, and
  // one for each level otherwise: the rule of R, which looks among the terms before.
  void find_codings() {
    for (std::size_t t = 0; t < terms_.terms.size(); ++t) {
      const Term& term = terms_.terms[t];
      whole_.emplace_back();
      for (const std::size_t variable : term) {
        Term rest = term;
        std::erase(rest, variable);
        const auto holds = [&](const Term& other) {
          return std::includes(other.begin(), other.end(), rest.begin(), rest.end());
        };
        const auto end = terms_.terms.begin() + static_cast<std::ptrdiff_t>(t);
        whole_.back().push_back(!rest.empty() && std::none_of(terms_.terms.begin(), end, holds));
      }
    }
    if (terms_.intercept) return;
    // The first factor stands for the intercept as well.
    for (std::size_t t = 0; t < terms_.terms.size(); ++t) {
      for (std::size_t v = 0; v < terms_.terms[t].size(); ++v) {
        if (!has_levels(type_of(terms_.terms[t][v]))) continue;
        whole_[t][v] = true;
        return;
      }
    }
  }

  void find_references() {
    for (std::size_t t = 0; t < terms_.terms.size(); ++t) {
      for (std::size_t v = 0; v < terms_.terms[t].size(); ++v) {
        const std::size_t variable = terms_.terms[t][v];
        const Variable& type = type_of(variable);
        if (type.kind != Variable::Kind::factor || type.codes) continue;
        std::string& level = design_.references_[design_.variables_[variable]];
        if (!whole_[t][v]) level = type.levels[type.reference];
      }
    }
  }

  // What a variable becomes in a term: names and pieces.
  std::vector<std::pair<std::string, Piece>> parts_of(std::size_t variable, bool whole) const {
    const std::string& name = design_.variables_[variable];
    const Computation& computation = design_.computations_[variable];
    std::vector<std::pair<std::string, Piece>> parts;
    if (!has_levels(computation.type)) {
      for (std::size_t i = 0; i < computation.width; ++i)
        parts.emplace_back(computation.width == 1 ? name : name + std::to_string(i + 1),
                           Piece{variable, i, false, 0});
      return parts;
    }
    const bool truth = computation.type.kind == Variable::Kind::truth;
    const std::vector<std::string> levels =
        truth ? std::vector<std::string>{"FALSE", "TRUE"} : computation.type.levels;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      if (!whole && i == computation.type.reference) continue;
      const auto value = static_cast<double>(i + (truth ? 0 : 1));
      const bool first = computation.type.reference_first && i == computation.type.reference;
      parts.emplace(first ? parts.begin() : parts.end(), name + levels[i],
                    Piece{variable, 0, true, value});
    }
    return parts;
  }

  // All products, those of the first variable next to each other.
  void add_term(std::size_t t) {
    std::vector<DesignColumn> columns = {{"", Role::predictor, {}}};
    for (std::size_t v = 0; v < terms_.terms[t].size(); ++v) {
      std::vector<DesignColumn> next;
      const auto parts = parts_of(terms_.terms[t][v], whole_[t][v]);
      if (parts.size() * columns.size() > most_columns)
        fail(formula_.right, fmt::format("this makes more than {} columns", most_columns));
      for (const auto& [name, piece] : parts) {
        for (DesignColumn column : columns) {
          column.name += (v == 0 ? "" : ":") + name;
          column.pieces.push_back(piece);
          next.push_back(std::move(column));
        }
      }
      columns = std::move(next);
    }
    for (DesignColumn& column : columns) add_column(std::move(column));
  }

  const Formula& formula_;
  const FindVariable& find_;
  Design& design_;
  Terms terms_;
  std::vector<std::string> texts_;  // by variable, as it is written
  std::vector<std::vector<bool>>
      whole_;  // by term and its variables: whether every level has a column
};

Design::Design(const Formula& formula, const FindVariable& find, bool offset) {
  DesignBuilder(formula, find, *this).build(offset);
}
Design::~Design() = default;
Design::Design(Design&&) noexcept = default;

namespace {

void multiply(const Piece& piece, const double* values, std::size_t count, bool first, double* to) {
  constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < count; ++i) {
    const double value = !piece.indicator           ? values[i]
                         : values[i] != values[i]   ? nan_value
                         : values[i] == piece.level ? 1.0
                                                    : 0.0;
    to[i] = first ? value : to[i] * value;
  }
}

}  // namespace

void Design::compute(std::span<const double* const> sources, std::size_t count, const char* skipped,
                     std::span<double* const> to, DesignFlaws& flaws, char* undefined) const {
  constexpr std::size_t at_once = 1024;  // records: what is made on the way stays in the cache
  Stores stores(computations_.size());
  std::vector<const double*> from(sources.size());
  std::vector<double*> into(to.size());
  for (std::size_t first = 0; first < count; first += at_once) {
    for (std::size_t s = 0; s < from.size(); ++s) from[s] = sources[s] + first;
    for (std::size_t c = 0; c < into.size(); ++c) into[c] = to[c] + first;
    compute_some(from, std::min(at_once, count - first),
                 skipped == nullptr ? nullptr : skipped + first, into, flaws,
                 undefined == nullptr ? nullptr : undefined + first, stores);
  }
}

void Design::compute_some(std::span<const double* const> sources, std::size_t count,
                          const char* skipped, std::span<double* const> to, DesignFlaws& flaws,
                          char* undefined, Stores& stores) const {
  std::vector<std::vector<const double*>> values(computations_.size());
  for (std::size_t v = 0; v < computations_.size(); ++v) {
    values[v] = computations_[v].run(sources, count, stores[v]);
    for (const double* column : values[v]) {
      for (std::size_t i = 0; i < count; ++i) {
        if (std::isfinite(column[i]) || (skipped != nullptr && skipped[i] != 0)) continue;
        // What comes of a missing value is no flaw of the formula.
        bool missing = false;
        for (std::size_t s = 0; s < sources.size(); ++s)
          missing = missing || (sources[s][i] != sources[s][i] && computations_[v].uses(s));
        if (missing) continue;
        const bool none = column[i] != column[i];
        ++(none ? flaws.undefined : flaws.infinite)[v];
        if (none && undefined != nullptr) undefined[i] = 1;
      }
    }
  }
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const std::vector<Piece>& pieces = columns_[c].pieces;
    for (std::size_t p = 0; p < pieces.size(); ++p)
      multiply(pieces[p], values[pieces[p].variable][pieces[p].place], count, p == 0, to[c]);
    if (columns_[c].role != Role::offset) continue;
    std::fill_n(to[c], count, 0.0);
    for (const std::size_t offset : offsets_) {
      for (std::size_t i = 0; i < count; ++i) to[c][i] += values[offset][0][i];
    }
  }
}

}  // namespace starfold::formula
