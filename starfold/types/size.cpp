#include "starfold/types/size.h"

#include <algorithm>
#include <functional>
#include <limits>

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

// a / b, when every power of b is in a.
std::optional<Size::Monomial> divide_monomials(const Size::Monomial& a, const Size::Monomial& b) {
  Size::Monomial quotient;
  auto j = b.begin();
  for (const auto& [name, power] : a) {
    const int taken = j != b.end() && j->first == name ? (j++)->second : 0;
    if (taken > power) return std::nullopt;
    if (taken < power) quotient.emplace_back(name, power - taken);
  }
  if (j != b.end()) return std::nullopt;
  return quotient;
}

}  // namespace

bool Size::MonomialOrder::operator()(const Monomial& a, const Monomial& b) const {
  const int degree_a = degree(a);
  const int degree_b = degree(b);
  return degree_a != degree_b ? degree_a > degree_b : a < b;
}

Size::Size(std::int64_t constant) : constant_(constant) {}

Size Size::variable(std::string name) {
  Size size;
  size.terms_ = std::make_shared<const Terms>(Terms{{Monomial{{std::move(name), 1}}, 1}});
  return size;
}

Size::Terms Size::terms() const {
  if (terms_) return *terms_;
  return constant_ == 0 ? Terms{} : Terms{{Monomial{}, constant_}};
}

std::optional<Size> Size::from(Terms terms) {
  if (terms.size() > max_terms) return std::nullopt;
  if (terms.empty()) return Size(0);
  if (terms.size() == 1 && terms.begin()->first.empty()) return Size(terms.begin()->second);
  Size size;
  size.terms_ = std::make_shared<const Terms>(std::move(terms));
  return size;
}

bool operator==(const Size& a, const Size& b) {
  if (a.terms_ == b.terms_) return a.is_constant() ? a.constant_ == b.constant_ : true;
  return a.terms_ && b.terms_ && *a.terms_ == *b.terms_;
}

std::strong_ordering operator<=>(const Size& a, const Size& b) {
  if (a.is_constant() || b.is_constant()) {
    if (a.is_constant() != b.is_constant()) return b.is_constant() <=> a.is_constant();
    return a.constant_ <=> b.constant_;
  }
  return *a.terms_ <=> *b.terms_;
}

std::size_t Size::hash() const {
  std::size_t hash = static_cast<std::size_t>(constant_);
  const auto mix = [&](std::size_t value) { hash = (hash ^ value) * 0x100000001B3ULL; };
  if (!terms_) return hash;
  for (const auto& [monomial, coefficient] : *terms_) {
    mix(static_cast<std::size_t>(coefficient));
    for (const auto& [name, power] : monomial) {
      mix(std::hash<std::string_view>{}(name));
      mix(static_cast<std::size_t>(power));
    }
  }
  return hash;
}

std::optional<Size> add(const Size& a, const Size& b) {
  if (a.is_constant() && b.is_constant()) {
    Size sum;
    if (__builtin_add_overflow(a.constant_, b.constant_, &sum.constant_)) return std::nullopt;
    return sum;
  }
  Size::Terms sum = a.terms();
  for (const auto& [monomial, coefficient] : b.terms()) {
    std::int64_t& slot = sum[monomial];
    if (__builtin_add_overflow(slot, coefficient, &slot)) return std::nullopt;
    if (slot == 0) sum.erase(monomial);
  }
  return Size::from(std::move(sum));
}

std::optional<Size> subtract(const Size& a, const Size& b) {
  const std::optional<Size> negated = multiply(b, Size(-1));
  return negated ? add(a, *negated) : std::nullopt;
}

std::optional<Size> multiply(const Size& a, const Size& b) {
  if (a.is_constant() && b.is_constant()) {
    Size product;
    if (__builtin_mul_overflow(a.constant_, b.constant_, &product.constant_)) return std::nullopt;
    return product;
  }
  Size::Terms product;
  const Size::Terms factor = b.terms();
  for (const auto& [monomial_a, coefficient_a] : a.terms()) {
    for (const auto& [monomial_b, coefficient_b] : factor) {
      const Size::Monomial monomial = multiply_monomials(monomial_a, monomial_b);
      if (degree(monomial) > max_degree || product.size() > max_terms) return std::nullopt;
      std::int64_t coefficient = 0;
      if (__builtin_mul_overflow(coefficient_a, coefficient_b, &coefficient)) return std::nullopt;
      std::int64_t& slot = product[monomial];
      if (__builtin_add_overflow(slot, coefficient, &slot)) return std::nullopt;
      if (slot == 0) product.erase(monomial);
    }
  }
  return Size::from(std::move(product));
}

std::optional<Size> divide(const Size& a, const Size& b) {
  const Size::Terms divisor = b.terms();
  if (divisor.size() != 1) return std::nullopt;
  const auto& [by, number] = *divisor.begin();
  Size::Terms quotient;
  for (const auto& [monomial, coefficient] : a.terms()) {
    const std::optional<Size::Monomial> rest = divide_monomials(monomial, by);
    const bool overflows = number == -1 && coefficient == std::numeric_limits<std::int64_t>::min();
    if (!rest || overflows || coefficient % number != 0) return std::nullopt;
    quotient.emplace(*rest, coefficient / number);
  }
  return Size::from(std::move(quotient));
}

std::optional<std::string_view> Size::as_variable() const {
  if (!terms_ || terms_->size() != 1) return std::nullopt;
  const auto& [monomial, coefficient] = *terms_->begin();
  if (coefficient != 1 || monomial.size() != 1 || monomial[0].second != 1) return std::nullopt;
  return monomial[0].first;
}

std::vector<std::string> Size::variables() const {
  std::vector<std::string> names;
  if (!terms_) return names;
  for (const auto& [monomial, coefficient] : *terms_) {
    for (const auto& [name, power] : monomial) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::optional<Size> Size::linear_factor(std::string_view variable) const {
  Terms factor;
  const Monomial alone = {{std::string(variable), 1}};
  for (const auto& [monomial, coefficient] : terms()) {
    const auto found = std::find_if(monomial.begin(), monomial.end(),
                                    [&](const auto& part) { return part.first == variable; });
    if (found == monomial.end()) continue;
    if (found->second != 1) return std::nullopt;
    factor.emplace(*divide_monomials(monomial, alone), coefficient);
  }
  if (factor.empty()) return std::nullopt;
  return from(std::move(factor));
}

std::optional<Size> Size::substitute(const std::map<std::string, Size, std::less<>>& values) const {
  Size result;
  for (const auto& [monomial, coefficient] : terms()) {
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
  for (const auto& [monomial, coefficient] : terms()) {
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
  for (const auto& [monomial, coefficient] : terms()) {
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
  if (slope == 0) return std::nullopt;
  const bool overflows = slope == -1 && rest == std::numeric_limits<std::int64_t>::min();
  if (overflows || rest % slope != 0) return std::nullopt;
  return rest / slope;
}

std::string Size::to_string() const {
  if (is_constant()) return std::to_string(constant_);
  // A positive term goes first: p - k, not -k + p.
  std::vector<std::pair<Monomial, std::int64_t>> ordered(terms_->begin(), terms_->end());
  const auto positive = std::find_if(ordered.begin(), ordered.end(),
                                     [](const auto& term) { return term.second > 0; });
  if (positive != ordered.end()) std::rotate(ordered.begin(), positive, positive + 1);
  std::string text;
  for (const auto& [monomial, coefficient] : ordered) {
    const bool negative = coefficient < 0;
    if (text.empty()) {
      if (negative) text += "-";
    } else {
      text += negative ? " - " : " + ";
    }
    // The magnitude as unsigned, so that the smallest integer prints too.
    const std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(coefficient)
                                             : static_cast<std::uint64_t>(coefficient);
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
