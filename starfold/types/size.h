// Sizes of ordinary axes: integer polynomials in size variables, in normal form.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starfold {

// Values of size variables.
using SizeValues = std::map<std::string, std::int64_t, std::less<>>;

// A polynomial such as 2*p*q + p - 1. Two sizes are equal exactly when their normal forms are.
// A copy is cheap: every type of every node holds sizes, and they share their terms.
class Size {
 public:
  // A product of powers, by variable name; empty for the constant term.
  using Monomial = std::vector<std::pair<std::string, int>>;

  Size() = default;             // zero
  Size(std::int64_t constant);  // NOLINT(google-explicit-constructor): sizes read like numbers
  static Size variable(std::string name);

  // Arithmetic; nullopt when a coefficient leaves the 64-bit range or the degree grows absurd.
  friend std::optional<Size> add(const Size& a, const Size& b);
  friend std::optional<Size> subtract(const Size& a, const Size& b);
  friend std::optional<Size> multiply(const Size& a, const Size& b);
  // The size whose product with b is a; nullopt when there is none, or b is a sum of terms.
  friend std::optional<Size> divide(const Size& a, const Size& b);

  bool is_constant() const { return terms_ == nullptr; }
  // The value of a constant size.
  std::int64_t constant() const { return constant_; }
  bool is_one() const { return is_constant() && constant_ == 1; }
  // The name, when this is a single variable.
  std::optional<std::string_view> as_variable() const;

  // All variables that occur, each once.
  std::vector<std::string> variables() const;
  // The factor of a variable that occurs to the first power only: a in a*p + b; nullopt when it
  // does not occur, or to a higher power.
  std::optional<Size> linear_factor(std::string_view variable) const;
  // The polynomial with some variables replaced; nullopt on overflow.
  std::optional<Size> substitute(const std::map<std::string, Size, std::less<>>& values) const;
  // The number, when all variables have values and nothing overflows.
  std::optional<std::int64_t> evaluate(const SizeValues& values) const;
  // Solves this == target for `variable` if it occurs linearly and alone once the known values are
  // put in; nullopt when there is no integer solution.
  std::optional<std::int64_t> solve_for(std::string_view variable, const SizeValues& known,
                                        std::int64_t target) const;

  // As written in types: p, 3, p + 1, 2*p*q.
  std::string to_string() const;
  std::size_t hash() const;

  friend bool operator==(const Size& a, const Size& b);
  friend std::strong_ordering operator<=>(const Size& a, const Size& b);

 private:
  // Higher degree first, then by name, so that p + 1 prints as people write it.
  struct MonomialOrder {
    bool operator()(const Monomial& a, const Monomial& b) const;
  };
  using Terms = std::map<Monomial, std::int64_t, MonomialOrder>;

  static std::optional<Size> from(Terms terms);
  Terms terms() const;

  std::int64_t constant_ = 0;           // the value, when there are no variables
  std::shared_ptr<const Terms> terms_;  // null for a constant
};

}  // namespace starfold
