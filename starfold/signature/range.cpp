#include "starfold/signature/range.h"

#include <algorithm>
#include <cmath>

namespace starfold {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// What is no number says nothing.
Interval known(double lo, double hi) {
  return {std::isnan(lo) ? -inf : lo, std::isnan(hi) ? inf : hi};
}

// 0 * inf is 0 here: an entry that is always 0 stays 0 beside any finite one.
double scaled(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

}  // namespace

bool Interval::bounded() const { return std::isfinite(lo) && std::isfinite(hi); }
double Interval::size() const { return std::max(std::fabs(lo), std::fabs(hi)); }

namespace range {

Interval outward(Interval x) {
  constexpr double part = 16 * std::numeric_limits<double>::epsilon();
  constexpr double least = std::numeric_limits<double>::min();
  if (std::isfinite(x.lo) && x.lo != 0) x.lo -= std::fabs(x.lo) * part + least;
  if (std::isfinite(x.hi) && x.hi != 0) x.hi += std::fabs(x.hi) * part + least;
  return x;
}

Interval hull(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Interval plus(Interval a, Interval b) { return outward(known(a.lo + b.lo, a.hi + b.hi)); }

Interval times(Interval a, Interval b) {
  const double corners[] = {scaled(a.lo, b.lo), scaled(a.lo, b.hi), scaled(a.hi, b.lo),
                            scaled(a.hi, b.hi)};
  return outward(
      {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)});
}

Interval over(Interval a, Interval b) {
  if (b.lo <= 0 && b.hi >= 0) return {};
  return times(a, {1 / b.hi, 1 / b.lo});
}

// Rounding may add up over the elements.
Interval sum(Interval a, double count) {
  const double rounding = 1 + count * std::numeric_limits<double>::epsilon();
  return outward({scaled(std::min(a.lo, 0.0), count * rounding),
                  scaled(std::max(a.hi, 0.0), count * rounding)});
}

Interval increasing(Interval x, double (*map)(double)) {
  return outward(known(map(x.lo), map(x.hi)));
}

Interval negative(Interval x, double (* /*map*/)(double)) { return {-x.hi, -x.lo}; }

Interval magnitude(Interval x, double (* /*map*/)(double)) {
  const bool crosses = x.lo <= 0 && x.hi >= 0;
  return {crosses ? 0 : std::min(std::fabs(x.lo), std::fabs(x.hi)), x.size()};
}

Interval square(Interval x, double (*map)(double)) {
  const Interval size = magnitude(x, map);
  return outward({size.lo * size.lo, size.hi * size.hi});
}

Interval reciprocal(Interval x, double (* /*map*/)(double)) { return over({1, 1}, x); }

Interval unknown(Interval /*x*/, double (* /*map*/)(double)) { return {}; }

Interval any_operand(std::span<const Interval> operands, double /*folded*/) {
  Interval all = operands[0];
  for (const Interval& operand : operands) all = hull(all, operand);
  return all;
}

Interval first_operand(std::span<const Interval> operands, double /*folded*/) {
  return operands[0];
}

Interval unit(std::span<const Interval> /*operands*/, double /*folded*/) { return {0, 1}; }

Interval product(std::span<const Interval> operands, double folded) {
  return sum(times(operands[0], operands[1]), folded);
}

RangeRule filled(double value) {
  return [value](std::span<const Interval>, double) { return Interval{value, value}; };
}

}  // namespace range
}  // namespace starfold
