#include "starfold/merge/exact.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "starfold/base/error.h"
#include "starfold/merge/comoments.h"
#include "starfold/merge/exact_prod.h"
#include "starfold/merge/scale.h"
#include "starfold/tensor/axis_view.h"
#include "starfold/tensor/portable.h"
#include "starfold/tensor/samples.h"

namespace starfold::exact {

using wide::Whole;
using wide::Word;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// One more of what is not finite.
void count_special(std::span<Word> sum, const Format& format, double x) {
  const std::size_t which = std::isnan(x) ? 0 : x > 0 ? 1 : 2;
  wide::add(sum, 1, 64 * (format.value + which), false);
}

}  // namespace

void add(std::span<Word> sum, const Format& format, double x) {
  if (!std::isfinite(x)) return count_special(sum, format, x);
  const wide::Parts parts = wide::parts_of(x);
  if (parts.magnitude == 0) return;
  wide::add(sum, parts.magnitude, static_cast<std::size_t>(parts.exponent - format.lowest),
            parts.negative);
}

void add_product(std::span<Word> sum, double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return count_special(sum, products, a * b);
  const wide::Parts x = wide::parts_of(a);
  const wide::Parts y = wide::parts_of(b);
  if (x.magnitude == 0 || y.magnitude == 0) return;
  wide::add(sum, wide::Word2{x.magnitude} * y.magnitude,
            static_cast<std::size_t>(x.exponent + y.exponent - products.lowest),
            x.negative != y.negative);
}

double Sum::special() const {
  if (nans > 0 || (positive > 0 && negative > 0)) return nan;
  return positive > 0 ? inf : -inf;
}

Sum read(std::span<const Word> words, const Format& format) {
  Sum sum;
  sum.value = wide::whole(words.first(format.value));
  std::vector<Word> counts(words.begin() + static_cast<std::ptrdiff_t>(format.value), words.end());
  // A negative value has borrowed one from what stands above it.
  if (sum.value.negative) wide::add(counts, 1, 0, false);
  sum.nans = counts[0];
  sum.positive = counts[1];
  sum.negative = counts[2];
  return sum;
}

double rounded(std::span<const Word> words, const Format& format) {
  const Sum sum = read(words, format);
  return sum.finite() ? wide::nearest(sum.value, format.lowest) : sum.special();
}

namespace {

// --- what rows share ------------------------------------------------------------------------------

using Extent = Part::Extent;
using Sample = std::span<const double>;

Part integers(std::string_view name, Extent extent, std::size_t words) {
  return {name, extent, 0, nullptr, {}, words};
}

// Adds up all integers of all parts.
template <const Monoid& row>
void merge_all(MergeState& into, const MergeState& from) {
  for (std::size_t i = 0; i < into.size(); ++i)
    merge_integers(into[i], from[i], row.parts[i].words);
}

// The entries of a part, each made a double.
template <typename Function>
Tensor each_entry(const Tensor& part, std::size_t words, Function function) {
  Tensor result(Shape(part.shape.begin(), part.shape.end() - 1));
  for (std::size_t i = 0; i < result.data.size(); ++i)
    result.data[i] = function(integer(part, i, words));
  return result;
}

template <const Format& format>
Tensor finish_sum(const MergeState& state) {
  return each_entry(state[0], format.words(),
                    [](const std::vector<Word>& sum) { return rounded(sum, format); });
}

MergeState as_value(Tensor value) { return {std::move(value)}; }

template <Tensor (*finish)(const MergeState&)>
MergeState plain_value(const MergeState& state) {
  return as_value(finish(state));
}

// Each sample of the folded records, into its integer of a part.
template <typename Function>
void add_samples(const FoldedRecords& records, Tensor& part, std::size_t words, Function add_one) {
  const Samples all = samples(*records.operands[0], records.axes);
  for (std::size_t i = 0; i < all.count(); ++i) {
    std::vector<Word> value = integer(part, i, words);
    for (const double x : all[i]) add_one(value, x);
    set_integer(part, i, value);
  }
}

void add_to_sum(std::vector<Word>& sum, double x) { add(sum, sums, x); }
void add_square(std::vector<Word>& sum, double x) { add_product(sum, x, x); }

void fold_sum(const FoldedRecords& records, MergeState& into) {
  add_samples(records, into[0], sums.words(), add_to_sum);
}

// The plain row may not be made yet: only its address is taken.
Monoid exact_row(const Monoid& plain, std::string_view name, std::string_view words,
                 std::vector<Part> parts) {
  Monoid row;
  row.name = name;
  row.words = words;
  row.parts = std::move(parts);
  row.integers = true;
  row.exact = true;
  row.plain = &plain;
  return row;
}

// --- products -------------------------------------------------------------------------------------

// [.., i, *] @ [*, j], or the sum of single numbers.
void fold_products(const FoldedRecords& records, MergeState& into) {
  if (records.operands.size() == 1) {
    return add_samples(records, into[0], products.words(),
                       [](std::vector<Word>& sum, double x) { add(sum, products, x); });
  }
  const AxisView left(records.operands[0]->shape, records.record_axes[0]);
  const AxisView right(records.operands[1]->shape, records.record_axes[1]);
  if (left.inner != 1 || right.outer != 1) throw Bug("products of other than matrices");
  for (std::size_t i = 0; i < left.cells(); ++i) {
    for (std::size_t j = 0; j < right.cells(); ++j) {
      std::vector<Word> sum(products.words());
      for (std::size_t r = 0; r < left.length; ++r)
        add_product(sum, records.operands[0]->data[left.place(r, i)],
                    records.operands[1]->data[right.place(r, j)]);
      set_integer(into[0], i * right.cells() + j, sum);
    }
  }
}

// --- counts ---------------------------------------------------------------------------------------

Tensor finish_count(const MergeState& state) {
  return each_entry(state[0], 1,
                    [](const std::vector<Word>& count) { return static_cast<double>(count[0]); });
}

void fold_count(const FoldedRecords& records, MergeState& into) {
  MergeState plain = {Tensor(Shape(into[0].shape.begin(), into[0].shape.end() - 1))};
  monoids::count.fold(records, plain);
  for (std::size_t i = 0; i < plain[0].data.size(); ++i) {
    const Word count[] = {static_cast<Word>(plain[0].data[i])};
    set_integer(into[0], i, count);
  }
}

Word count_in(const MergeState& state) { return integer(state[0], 0, 1)[0]; }

void set_count(MergeState& state, std::size_t n) {
  const Word count[] = {static_cast<Word>(n)};
  set_integer(state[0], 0, count);
}

// --- moments and comoments ------------------------------------------------------------------------

// (n sum(ab) - sum(a) sum(b)) / (n (n - 1)), rounded once; nan where something was not finite.
double covariance(Word n, const Sum& a, const Sum& b, const Sum& ab) {
  if (n < 2 || !a.finite() || !b.finite() || !ab.finite()) return nan;
  const Whole count = {{n}, false};
  const Whole deviations =
      wide::difference(wide::product(count, ab.value), wide::product(a.value, b.value));
  const Word divisors[] = {n, n - 1};
  return wide::nearest_quotient(deviations, products.lowest, divisors);
}

double mean_of(Word n, const Sum& sum) {
  if (n == 0) return 0;
  if (!sum.finite()) return sum.special();
  const Word divisors[] = {n};
  return wide::nearest_quotient(sum.value, sums.lowest, divisors);
}

Sum sum_in(const Tensor& part, std::size_t at) {
  return read(integer(part, at, sums.words()), sums);
}
Sum products_in(const Tensor& part, std::size_t at) {
  return read(integer(part, at, products.words()), products);
}

Tensor means_of(Word n, const Tensor& part) {
  return each_entry(part, sums.words(),
                    [n](const std::vector<Word>& sum) { return mean_of(n, read(sum, sums)); });
}

Tensor finish_moments(const MergeState& state) {
  Tensor result(Shape(state[1].shape.begin(), state[1].shape.end() - 1));
  for (std::size_t i = 0; i < result.data.size(); ++i) {
    const Sum sum = sum_in(state[1], i);
    result.data[i] = covariance(count_in(state), sum, sum, products_in(state[2], i));
  }
  return result;
}

MergeState plain_moments(const MergeState& state) {
  const Word n = count_in(state);
  const auto count = static_cast<double>(n);
  Tensor squares = finish_moments(state);
  for (double& x : squares.data) x = n < 2 ? 0 : x * (count - 1);
  return {Tensor::scalar(count), means_of(n, state[1]), std::move(squares)};
}

void fold_moments(const FoldedRecords& records, MergeState& into) {
  set_count(into, samples(*records.operands[0], records.axes).length);
  add_samples(records, into[1], sums.words(), add_to_sum);
  add_samples(records, into[2], products.words(), add_square);
}

// A state has counts, sums of the rows, those of the columns where they are others, and products.
const Tensor& column_sums(const MergeState& state) { return state[state.size() - 2]; }

Tensor finish_comoments(const MergeState& state) {
  const auto rows = static_cast<std::size_t>(state.back().shape[0]);
  const auto columns = static_cast<std::size_t>(state.back().shape[1]);
  Tensor result(Shape(state.back().shape.begin(), state.back().shape.end() - 1));
  for (std::size_t i = 0; i < rows; ++i) {
    const Sum of_row = sum_in(state[1], i);
    for (std::size_t j = 0; j < columns; ++j)
      result.data[i * columns + j] =
          covariance(count_in(state), of_row, sum_in(column_sums(state), j),
                     products_in(state.back(), i * columns + j));
  }
  return result;
}

MergeState plain_comoments(const MergeState& state) {
  const Word n = count_in(state);
  const auto count = static_cast<double>(n);
  Tensor deviations = finish_comoments(state);
  for (double& x : deviations.data) x = n < 2 ? 0 : x * (count - 1);
  MergeState plain = {Tensor::scalar(count)};
  for (std::size_t side = 1; side + 1 < state.size(); ++side)
    plain.push_back(means_of(n, state[side]));
  for (std::size_t side = 1; side + 1 < state.size(); ++side)
    plain.emplace_back(plain[side].shape, n == 0 ? 0.0 : 1.0);
  plain.push_back(std::move(deviations));
  return plain;
}

void fold_comoments(const FoldedRecords& records, MergeState& into) {
  std::vector<AxisView> views;
  for (std::size_t side = 0; side < records.operands.size(); ++side) {
    views.emplace_back(records.operands[side]->shape, records.record_axes[side]);
    Tensor& part = into[1 + side];
    for (std::size_t i = 0; i < views[side].cells(); ++i) {
      std::vector<Word> sum(sums.words());
      for (std::size_t r = 0; r < views[side].length; ++r)
        add(sum, sums, records.operands[side]->data[views[side].place(r, i)]);
      set_integer(part, i, sum);
    }
  }
  set_count(into, views[0].length);
  for (std::size_t i = 0; i < views.front().cells(); ++i) {
    for (std::size_t j = 0; j < views.back().cells(); ++j) {
      std::vector<Word> sum(products.words());
      for (std::size_t r = 0; r < views[0].length; ++r)
        add_product(sum, records.operands.front()->data[views.front().place(r, i)],
                    records.operands.back()->data[views.back().place(r, j)]);
      set_integer(into.back(), i * views.back().cells() + j, sum);
    }
  }
}

// --- norm -----------------------------------------------------------------------------------------

Tensor finish_norm(const MergeState& state) {
  return each_entry(state[0], products.words(), [](const std::vector<Word>& words) {
    const Sum sum = read(words, products);
    return sum.finite() ? wide::nearest_root(sum.value, products.lowest) : sum.special();
  });
}

MergeState plain_norm(const MergeState& state) {
  Tensor squares = finish_norm(state);
  Tensor scales(squares.shape);
  for (std::size_t i = 0; i < squares.data.size(); ++i) {
    double& x = squares.data[i];
    scales.data[i] = x == 0 ? 0 : square_scale(x);
    if (x != 0) x = (x / scales.data[i]) * (x / scales.data[i]);
  }
  return {std::move(scales), std::move(squares)};
}

void fold_norm(const FoldedRecords& records, MergeState& into) {
  add_samples(records, into[0], products.words(), add_square);
}

// --- logsumexp: bins of 64 bits at fixed places, of which the three highest are kept ---------------

// exp(x) = mantissa * 2^k has its bits in at most two neighbouring bins. Of bins so far above that they cannot be seen
// nothing is kept: which those are depends on the largest number alone, and a bin that is kept holds the bits of all.
constexpr std::size_t bins = 3;
constexpr std::size_t bin_words = 2;  // room for 2^53 terms

struct Binned {
  double top = -inf;  // the number of the highest bin; nan or inf where that is the answer
  std::array<Word, bins * bin_words> sums{};  // from the highest down

  void raise(double bin) {
    if (!(bin > top)) return;
    const double steps = bin - top;
    std::array<Word, bins * bin_words> moved{};
    for (std::size_t from = 0; from < bins; ++from) {
      const double to = static_cast<double>(from) + steps;
      if (to < bins)
        std::copy_n(&sums[from * bin_words], bin_words,
                    &moved[static_cast<std::size_t>(to) * bin_words]);
    }
    sums = moved;
    top = bin;
  }
  void add_bits(double bin, Word value) {
    const double at = top - bin;
    if (value != 0 && at < bins)
      wide::add(std::span(&sums[static_cast<std::size_t>(at) * bin_words], bin_words), value, 0,
                false);
  }
  void add(double x) {
    if (std::isnan(top) || x == -inf) return;
    if (std::isnan(x)) top = nan;
    if (x == inf) top = inf;
    if (!std::isfinite(x)) sums = {};
    if (!std::isfinite(x) || top == inf) return;
    const portable::Scaled e = portable::scaled_exp(x);
    const wide::Parts parts = wide::parts_of(e.mantissa);
    const double lowest = e.exponent + parts.exponent;
    const double bin = std::floor(lowest / 64);
    const auto shift = static_cast<unsigned>(lowest - 64 * bin);
    const wide::Word2 placed = wide::Word2{parts.magnitude} << shift;
    const auto high = static_cast<Word>(placed >> 64U);
    raise(high != 0 ? bin + 1 : bin);
    add_bits(bin + 1, high);
    add_bits(bin, static_cast<Word>(placed));
  }
  void merge(const Binned& other) {
    if (std::isnan(top) || std::isnan(other.top) || top == inf || other.top == inf) {
      top = std::isnan(top) || std::isnan(other.top) ? nan : inf;
      sums = {};
      return;
    }
    if (other.top == -inf) return;
    raise(other.top);
    Binned theirs = other;
    theirs.raise(top);
    for (std::size_t i = 0; i < bins; ++i)
      wide::add(std::span(&sums[i * bin_words], bin_words),
                std::span<const Word>(&theirs.sums[i * bin_words], bin_words));
  }
  double value() const {
    if (!std::isfinite(top)) return top;
    // The sum as an integer times 2^(64 (top - 2)), then as mantissa and exponent.
    std::vector<Word> total(bins + bin_words);
    for (std::size_t i = 0; i < bins; ++i) {
      const wide::Word2 sum = (wide::Word2{sums[i * bin_words + 1]} << 64U) | sums[i * bin_words];
      wide::add(total, sum, 64 * (bins - 1 - i), false);
    }
    const Whole whole = wide::whole(total);
    if (whole.is_zero()) return -inf;
    const double mantissa = wide::nearest(whole, -64 * static_cast<int>(bins));
    int exponent = 0;
    double m = std::frexp(mantissa, &exponent);
    if (m < 0.7) {
      m *= 2;
      --exponent;
    }
    // What rounding took from the mantissa counts where the logarithm is small.
    const Whole rest = wide::difference(
        whole, {wide::whole(integer_of(std::ldexp(m, exponent + 64 * static_cast<int>(bins))))});
    const double lost = std::ldexp(wide::nearest(rest, -64 * static_cast<int>(bins)), -exponent);
    const double twos = static_cast<double>(exponent) + 64 * (top + 1);
    // ln 2 in two parts, the first so short that its product is mostly exact.
    return twos * 0x1.62e42fefap-1 + (twos * 0x1.cf79abc9e3b3ap-40 + (portable::log(m) + lost / m));
  }

 private:
  static std::vector<Word> integer_of(double x) {
    const wide::Parts parts = wide::parts_of(x);
    std::vector<Word> words(bins + bin_words);
    if (parts.exponent >= 0)
      wide::add(words, parts.magnitude, static_cast<std::size_t>(parts.exponent), false);
    else
      wide::add(words, parts.magnitude >> static_cast<unsigned>(-parts.exponent), 0, false);
    return words;
  }
};

constexpr std::size_t binned_words = bins * bin_words;

Binned binned(const MergeState& state, std::size_t entry) {
  Binned result;
  result.top = state[0].data[entry];
  const std::vector<Word> words = integer(state[1], entry, binned_words);
  std::copy(words.begin(), words.end(), result.sums.begin());
  return result;
}

void set_binned(MergeState& state, std::size_t entry, const Binned& value) {
  state[0].data[entry] = value.top;
  set_integer(state[1], entry, value.sums);
}

void merge_logsumexp(MergeState& into, const MergeState& from) {
  for (std::size_t i = 0; i < into[0].data.size(); ++i) {
    Binned sum = binned(into, i);
    sum.merge(binned(from, i));
    set_binned(into, i, sum);
  }
}

Tensor finish_logsumexp(const MergeState& state) {
  Tensor result = state[0];
  for (std::size_t i = 0; i < result.data.size(); ++i) result.data[i] = binned(state, i).value();
  return result;
}

void fold_logsumexp(const FoldedRecords& records, MergeState& into) {
  const Samples all = samples(*records.operands[0], records.axes);
  for (std::size_t i = 0; i < all.count(); ++i) {
    Binned sum = binned(into, i);
    for (const double x : all[i]) sum.add(x);
    set_binned(into, i, sum);
  }
}

// The number of a bin, or what stands for none. Any nan is the one nan, so that states compare.
bool is_bin(double x) {
  if (std::isnan(x)) return std::bit_cast<Word>(x) == std::bit_cast<Word>(nan);
  return std::isinf(x) || x == std::floor(x);
}

std::string_view invalid_logsumexp(const MergeState& state) {
  for (std::size_t i = 0; i < state[0].data.size(); ++i) {
    const std::vector<Word> words = integer(state[1], i, binned_words);
    if (!std::isfinite(state[0].data[i]) &&
        std::any_of(words.begin(), words.end(), [](Word word) { return word != 0; }))
      return "it holds sums of no exponentials";
  }
  return {};
}

// --- the rows -------------------------------------------------------------------------------------

constexpr std::string_view added = "added up exactly";
constexpr std::string_view adds_all = "it adds up all records, each with the same weight";

Monoid sum_row() {
  Monoid row =
      exact_row(monoids::sum, "sum", added, {integers("sums", Extent::result, sums.words())});
  row.total = adds_all;
  row.merge = merge_all<rows::sum>;
  row.finish = finish_sum<sums>;
  row.to_plain = plain_value<finish_sum<sums>>;
  row.fold = fold_sum;
  return row;
}

Monoid product_sum_row() {
  Monoid row = exact_row(monoids::sum, "sum", added,
                         {integers("sums of products", Extent::result, products.words())});
  row.total = adds_all;
  row.merge = merge_all<rows::product_sum>;
  row.finish = finish_sum<products>;
  row.to_plain = plain_value<finish_sum<products>>;
  row.fold = fold_products;
  return row;
}

Monoid count_row() {
  Monoid row = exact_row(monoids::count, "count", "counts added up",
                         {integers("counts", Extent::result, 1)});
  row.total = "it is the number of records";
  row.merge = merge_all<rows::count>;
  row.finish = finish_count;
  row.to_plain = plain_value<finish_count>;
  row.fold = fold_count;
  return row;
}

Monoid moments_row() {
  Monoid row =
      exact_row(monoids::moments, "moments", "counts, sums and sums of squares added up exactly",
                {integers("count", Extent::one, 1), integers("sums", Extent::result, sums.words()),
                 integers("sums of squares", Extent::result, products.words())});
  row.total = "count, mean and spread of all records, each with the same weight";
  row.merge = merge_all<rows::moments>;
  row.finish = finish_moments;
  row.to_plain = plain_moments;
  row.fold = fold_moments;
  return row;
}

Monoid comoments_row(const Monoid& plain, std::string_view name, std::vector<Part> of_sides) {
  std::vector<Part> parts = {integers("count", Extent::one, 1)};
  parts.insert(parts.end(), of_sides.begin(), of_sides.end());
  parts.push_back(integers("sums of products", Extent::result, products.words()));
  Monoid row = exact_row(plain, name, "counts, sums and sums of products added up exactly",
                         std::move(parts));
  row.total = "count, means and covariances of all records, each with the same weight";
  row.finish = finish_comoments;
  row.to_plain = plain_comoments;
  row.fold = fold_comoments;
  return row;
}

Monoid comoments_of_one() {
  Monoid row = comoments_row(monoids::comoments, "comoments",
                             {integers("sums", Extent::first_axis, sums.words())});
  row.merge = merge_all<rows::comoments>;
  return row;
}

Monoid comoments_of_two() {
  Monoid row = comoments_row(monoids::cross_comoments, "cross_comoments",
                             {integers("sums", Extent::first_axis, sums.words()),
                              integers("sums of the second", Extent::last_axis, sums.words())});
  row.merge = merge_all<rows::cross_comoments>;
  return row;
}

Monoid norm_row() {
  Monoid row = exact_row(monoids::norm, "norm", "squares added up exactly",
                         {integers("sums of squares", Extent::result, products.words())});
  row.merge = merge_all<rows::norm>;
  row.finish = finish_norm;
  row.to_plain = plain_norm;
  row.fold = fold_norm;
  return row;
}

Monoid logsumexp_row() {
  Monoid row = exact_row(monoids::logsumexp, "logsumexp", "their exponentials added up exactly",
                         {{"sizes of sums", Extent::result, -inf, is_bin, "a bin has no number"},
                          integers("sums of exponentials", Extent::result, binned_words)});
  row.integers = false;
  row.merge = merge_logsumexp;
  row.finish = finish_logsumexp;
  row.to_plain = plain_value<finish_logsumexp>;
  row.invalid = invalid_logsumexp;
  row.fold = fold_logsumexp;
  return row;
}

void fold_prod(const FoldedRecords& records, MergeState& into) {
  add_samples(records, into[0], factors_words,
              [](std::vector<Word>& factors, double x) { multiply(factors, x); });
}

Tensor finish_prod(const MergeState& state) {
  return each_entry(state[0], factors_words,
                    [](const std::vector<Word>& factors) { return multiplied(factors); });
}

Monoid prod_row() {
  Monoid row = exact_row(monoids::prod, "prod", "logarithms added up",
                         {integers("logarithms of products", Extent::result, factors_words)});
  row.joins = "multiplies";
  row.merge = merge_all<rows::prod>;
  row.finish = finish_prod;
  row.to_plain = plain_value<finish_prod>;
  row.fold = fold_prod;
  return row;
}

}  // namespace

namespace rows {
const Monoid sum = sum_row(), product_sum = product_sum_row(), count = count_row(),
             moments = moments_row(), comoments = comoments_of_one(),
             cross_comoments = comoments_of_two(), norm = norm_row(), logsumexp = logsumexp_row(),
             prod = prod_row();
}

std::span<const Monoid* const> all() {
  using namespace rows;
  static constexpr const Monoid* every[] = {
      &sum, &product_sum, &count, &moments, &comoments, &cross_comoments, &norm, &logsumexp, &prod};
  return every;
}

const Monoid& form_of(const Monoid& row, bool of_products) {
  if (of_products && &row == &monoids::sum) return rows::product_sum;
  for (const Monoid* form : all()) {
    if (form->plain == &row) return *form;
  }
  return row;
}

}  // namespace starfold::exact
