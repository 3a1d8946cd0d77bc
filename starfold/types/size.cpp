#include "starfold/types/size.h"

#include <algorithm>

namespace starfold {
namespace {

constexpr int max_degree = 16;
constexpr std::size_t max_terms = 64;

int degree(const Size::Monomial& monomial) {
  int total = 0;
  for (const auto& [name, power] : monomial) total += power;
  return total;
}

Size::Monomial multiply_monomials(const Size::Monomial& a, const Size::Monomial& b) {
  Size::Monomial product;
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() || j != b.end()) {
    if (j == b.end() || (i != a.end() && i->first < j->first)) {
      product.push_back(*i++);
    } else if (i == a.end() || j->first < i->first) {
      product.push_back(*j++);
    } else {
      product.emplace_back(i->first, i->second + j->second);
      ++i;
      ++j;
    }
  }
  return product;
}

}  // namespace

bool Size::MonomialOrder::operator()(const Monomial& a, const Monomial& b) const {
  const int degree_a = degree(a);
  const int degree_b = degree(b);
  return degree_a != degree_b ? degree_a > degree_b : a < b;
}

Size::Size(std::int64_t constant) {
  if (constant != 0) terms_.emplace(Monomial{}, constant);
}

Size Size::variable(std::string name) {
  Size size;
  size.terms_.emplace(Monomial{{std::move(name), 1}}, 1);
  return size;
}

std::optional<Size> add(const Size& a, const Size& b) {
  Size sum = a;
  for (const auto& [monomial, coefficient] : b.terms_) {
    std::int64_t& slot = sum.terms_[monomial];
    if (__builtin_add_overflow(slot, coefficient, &slot)) return std::nullopt;
    if (slot == 0) sum.terms_.erase(monomial);
  }
  if (sum.terms_.size() > max_terms) return std::nullopt;
  return sum;
}

std::optional<Size> subtract(const Size& a, const Size& b) {
  const std::optional<Size> negated = multiply(b, Size(-1));
  return negated ? add(a, *negated) : std::nullopt;
}

std::optional<Size> multiply(const Size& a, const Size& b) {
  Size product;
  for (const auto& [monomial_a, coefficient_a] : a.terms_) {
    for (const auto& [monomial_b, coefficient_b] : b.terms_) {
      Size::Monomial monomial = multiply_monomials(monomial_a, monomial_b);
      if (degree(monomial) > max_degree || product.terms_.size() > max_terms) return std::nullopt;
      std::int64_t coefficient = 0;
      if (__builtin_mul_overflow(coefficient_a, coefficient_b, &coefficient)) return std::nullopt;
      std::int64_t& slot = product.terms_[monomial];
      if (__builtin_add_overflow(slot, coefficient, &slot)) return std::nullopt;
      if (slot == 0) product.terms_.erase(monomial);
    }
  }
  return product;
}

std::optional<std::string_view> Size::as_variable() const {
  if (terms_.size() != 1) return std::nullopt;
  const auto& [monomial, coefficient] = *terms_.begin();
  if (coefficient != 1 || monomial.size() != 1 || monomial[0].second != 1) return std::nullopt;
  return monomial[0].first;
}

std::vector<std::string> Size::variables() const {
  std::vector<std::string> names;
  for (const auto& [monomial, coefficient] : terms_) {
    for (const auto& [name, power] : monomial) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::optional<Size> Size::substitute(const std::map<std::string, Size, std::less<>>& values) const {
  Size result;
  for (const auto& [monomial, coefficient] : terms_) {
    std::optional<Size> term = Size(coefficient);
    for (const auto& [name, power] : monomial) {
      const auto found = values.find(name);
      const Size factor = found == values.end() ? Size::variable(name) : found->second;
      for (int i = 0; i < power && term; ++i) term = multiply(*term, factor);
    }
    if (!term) return std::nullopt;
    const std::optional<Size> sum = add(result, *term);
    if (!sum) return std::nullopt;
    result = *sum;
  }
  return result;
}

std::optional<std::int64_t> Size::evaluate(const SizeValues& values) const {
  std::int64_t total = 0;
  for (const auto& [monomial, coefficient] : terms_) {
    std::int64_t term = coefficient;
    for (const auto& [name, power] : monomial) {
      const auto found = values.find(name);
      if (found == values.end()) return std::nullopt;
      for (int i = 0; i < power; ++i) {
        if (__builtin_mul_overflow(term, found->second, &term)) return std::nullopt;
      }
    }
    if (__builtin_add_overflow(total, term, &total)) return std::nullopt;
  }
  return total;
}

std::optional<std::int64_t> Size::solve_for(std::string_view variable, const SizeValues& known,
                                            std::int64_t target) const {
  // The polynomial is slope * variable + offset once the known values are put in.
  SizeValues at = known;
  const std::string name(variable);
  for (const auto& [monomial, coefficient] : terms_) {
    for (const auto& [factor, power] : monomial) {
      if (factor == name && power != 1) return std::nullopt;
    }
  }
  at[name] = 0;
  const std::optional<std::int64_t> offset = evaluate(at);
  at[name] = 1;
  const std::optional<std::int64_t> at_one = evaluate(at);
  std::int64_t slope = 0;
  std::int64_t rest = 0;
  if (!offset || !at_one || __builtin_sub_overflow(*at_one, *offset, &slope) ||
      __builtin_sub_overflow(target, *offset, &rest)) {
    return std::nullopt;
  }
  if (slope == 0 || slope == -1 || rest % slope != 0) {
    return slope == -1 ? std::optional(-rest) : std::nullopt;
  }
  return rest / slope;
}

std::string Size::to_string() const {
  if (terms_.empty()) return "0";
  std::string text;
  for (const auto& [monomial, coefficient] : terms_) {
    const bool negative = coefficient < 0;
    if (text.empty()) {
      if (negative) text += "-";
    } else {
      text += negative ? " - " : " + ";
    }
    // The magnitude as unsigned, so that the smallest integer prints too.
    const std::uint64_t magnitude =
        negative ? 0 - static_cast<std::uint64_t>(coefficient) : static_cast<std::uint64_t>(coefficient);
    std::string term;
    if (magnitude != 1 || monomial.empty()) term = std::to_string(magnitude);
    for (const auto& [name, power] : monomial) {
      for (int i = 0; i < power; ++i) {
        if (!term.empty()) term += "*";
        term += name;
      }
    }
    text += term;
  }
  return text;
}

}  // namespace starfold
