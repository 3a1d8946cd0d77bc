// Upper bounds that may depend on sizes nobody has said yet: 10, 2*sqrt(p), sqrt(p + 1), max(3, p).
//
// A bound is a sum of terms; a term is a positive number times powers of atoms; an atom is a size, or a sum or a maximum of
// bounds. It is never negative, and infinite where nothing is known. Everything here may come out too large,
// never too small, but for the rounding of doubles: `evaluate` makes room for that.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starfold/types/size.h"

namespace starfold {

class Bound {
 public:
  Bound() : Bound(std::numeric_limits<double>::infinity()) {}
  Bound(double number);  // NOLINT(google-explicit-constructor): bounds read like numbers
  // A size, which is at least 1; a number where the values are known.
  static Bound of(const Size& size, const SizeValues& values = {});

  bool finite() const;
  bool is_zero() const { return terms_.empty(); }
  // The number, when no size occurs.
  std::optional<double> number() const;
  // The number with these sizes; nullopt when one is missing. Exact but for rounding.
  std::optional<double> value(const SizeValues& sizes) const;
  // The same with room for the rounding of everything that led here, in bounds and in kernels: what noise is made for.
  std::optional<double> evaluate(const SizeValues& sizes) const;
  // As people write it: 10, sqrt(p), 2*sqrt(p + 1), inf. Numbers have twelve digits at most.
  std::string to_string() const;

  friend Bound operator+(const Bound& a, const Bound& b);
  friend Bound operator*(const Bound& a, const Bound& b);
  friend Bound sqrt(const Bound& a);
  friend Bound max(const Bound& a, const Bound& b);
  // One of two bounds of the same thing: the smaller where that can be told, else the simpler.
  friend Bound tighter(const Bound& a, const Bound& b);
  // Whether a <= b for all sizes is plain to see.
  friend bool at_most(const Bound& a, const Bound& b);

 private:
  struct Atom;
  struct Power {
    std::shared_ptr<const Atom> atom;
    double exponent = 1;
  };
  struct Term {
    double factor = 0;
    std::vector<Power> powers;  // in the order of their atoms' texts
  };

  static Bound of_terms(std::vector<Term> terms);
  static Bound of_atom(std::shared_ptr<const Atom> atom, double exponent);
  static Bound bundle(const Bound& a);
  static Term multiply(const Term& a, const Term& b);
  static bool dominated(const Term& a, const Term& b);
  static std::string text(const Term& term);
  std::size_t weight() const;
  // One term that is at least as large.
  Bound single_term() const;
  Bound simple() const;

  std::vector<Term> terms_;  // none: zero
};

}  // namespace starfold
