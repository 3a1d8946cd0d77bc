// Ranges: where the entries of a result can lie when those of the operands are known. Privacy bounds what a record
// contributes with them; the generator of the laws keeps its programs in sane magnitudes by them.
//
// A range speaks of entries that are numbers: nan may always occur. It may be too wide, never too narrow, also for
// results that are rounded. -inf and inf say that nothing is known.
#pragma once

#include <functional>
#include <limits>
#include <span>

namespace starfold {

struct Interval {
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();

  bool bounded() const;
  // The largest magnitude.
  double size() const;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// The range of an entry of the result, from those of the operands' entries and the number of elements that are
// folded into one entry (1 where nothing is folded; inf where nobody knows how many).
using RangeRule = std::function<Interval(std::span<const Interval> operands, double folded)>;

namespace range {

// A little wider, by more than any kernel rounds.
Interval outward(Interval x);
// Both may occur.
Interval hull(Interval a, Interval b);
Interval plus(Interval a, Interval b);
Interval times(Interval a, Interval b);
Interval over(Interval a, Interval b);
// The sum of up to so many.
Interval sum(Interval a, double count);

// Of a map that never falls, or never rises.
Interval increasing(Interval x, double (*map)(double));
Interval negative(Interval x, double (*map)(double));
Interval magnitude(Interval x, double (*map)(double));
Interval square(Interval x, double (*map)(double));
Interval reciprocal(Interval x, double (*map)(double));
template <int lo, int hi>
Interval between(Interval, double (*)(double)) {
  return {lo, hi};
}
Interval unknown(Interval x, double (*map)(double));

// Rules of operations whose entries are entries of their operands, or of the first.
Interval any_operand(std::span<const Interval> operands, double folded);
Interval first_operand(std::span<const Interval> operands, double folded);
// Rules of operations whose entries lie between 0 and 1, or are products.
Interval unit(std::span<const Interval> operands, double folded);
Interval product(std::span<const Interval> operands, double folded);
// The rule of an operation whose entries are all this number.
RangeRule filled(double value);

}  // namespace range
}  // namespace starfold
