// The exact rows: what the rows of merge/monoid.h compute, without rounding until the end. Their states are integers, so
// that merging is associative and commutative to the bit: no split of the records and no order of clients shows.
//
// A sum of doubles is an integer times 2^-1074, one of products of two doubles an integer times 2^-2148. Above it, in the
// same integer, stand how often nan, inf and -inf were added: these have no place among the others.
#pragma once

#include "starfold/merge/integers.h"

namespace starfold::exact {

// How a sum lies in its words.
struct Format {
  std::size_t value = 0;  // words of the finite sum, with its sign and room for 2^53 terms
  int lowest = 0;         // the exponent of its last bit
  constexpr std::size_t words() const { return value + 3; }
};
inline constexpr Format sums{34, -1074};
inline constexpr Format products{67, -2148};

// sum += x, for either format.
void add(std::span<wide::Word> sum, const Format& format, double x);
// sum += a * b, without rounding the product.
void add_product(std::span<wide::Word> sum, double a, double b);

// What a sum holds.
struct Sum {
  wide::Whole value;
  wide::Word nans = 0;
  wide::Word positive = 0;  // infinities
  wide::Word negative = 0;
  bool finite() const { return nans == 0 && positive == 0 && negative == 0; }
  double special() const;  // the sum where it is not finite
};
Sum read(std::span<const wide::Word> sum, const Format& format);

// The sum, rounded once.
double rounded(std::span<const wide::Word> sum, const Format& format);

// Of sums of doubles; of sums of products of two; the others as the rows of the same names.
namespace rows {
extern const Monoid sum, product_sum, count, moments, comoments, cross_comoments, norm, logsumexp,
    prod;
}

// The row that computes exactly what this one does; the row itself where it never rounds. `of_products` where what is
// summed are products of two numbers.
const Monoid& form_of(const Monoid& row, bool of_products);

// Every exact row.
std::span<const Monoid* const> all();

}  // namespace starfold::exact
