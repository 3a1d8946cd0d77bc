// Tight loops over columns, in the form that suits the processor the program runs on.
//
// A column holds n numbers, starts at a multiple of kPad numbers and has room for whole groups of
// kPad: kernels read and write the last group whole, and what lies beyond n never counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace starfold::kernels {

inline constexpr std::size_t kPad = 8;

constexpr std::size_t padded(std::size_t n) { return (n + kPad - 1) / kPad * kPad; }

// out = map(x); `out` may be x. Kernels that know their map only call it for entries at the edges
// of its domain (nan, infinities, overflow), so that these are exactly as in its row.
using Unary = void (*)(double (*map)(double), const double* x, double* out, std::size_t n);
// A loop that calls `map` for operations without a kernel. A portable one gives the same bits on every processor.
Unary unary(std::string_view op, bool portable = false);

// out = map(a, b), where either side may be a single number; `out` may be an operand. Columns may start anywhere, as shared
// values do.
struct Binary {
  using Map = double (*)(double, double);
  void (*columns)(Map map, const double* a, const double* b, double* out, std::size_t n);
  void (*number_left)(Map map, double a, const double* b, double* out, std::size_t n);
  void (*number_right)(Map map, const double* a, double b, double* out, std::size_t n);
};
Binary binary(std::string_view op);

// out = map(a, b, c): `where` or `clip`; null for any other.
using Ternary = void (*)(const double* a, const double* b, const double* c, double* out,
                         std::size_t n);
Ternary ternary(std::string_view op);

// Folds of one column. Sums run in several partial sums, so their error hardly grows with n.
struct Folds {
  double (*sum)(const double* x, std::size_t n);
  double (*prod)(const double* x, std::size_t n);
  double (*min)(const double* x, std::size_t n);  // nan if any is; inf for none
  double (*max)(const double* x, std::size_t n);
  bool (*any)(const double* x, std::size_t n);  // an entry is not 0
  bool (*all)(const double* x, std::size_t n);
  // first = sum of (x - center), second = sum of their squares.
  void (*deviations)(const double* x, double center, std::size_t n, double* first, double* second);
  // out = x - center, and the sum of it.
  double (*center)(const double* x, double center, double* out, std::size_t n);
  double (*sum_exp)(const double* x, double top, std::size_t n);  // of exp(x - top), top finite
  double (*dot)(const double* a, const double* b, std::size_t n);
};
const Folds& folds();

// out = the number, from 1, of the largest of the columns, or of the smallest; the first of equal ones, and the
// first nan before all others.
struct Extremes {
  void (*largest)(const double* const* columns, std::size_t count, double* out, std::size_t n);
  void (*smallest)(const double* const* columns, std::size_t count, double* out, std::size_t n);
};
const Extremes& extremes();

// Numbers that will be read soon. They need not be there.
struct Ahead {
  const double* begin = nullptr;
  const double* end = nullptr;
};
// What comes after columns in memory, where so many follow each other that they come from memory: mostly those of the next
// block.
Ahead after(const double* const* columns, std::size_t count, std::size_t n);

// So few records that sums over them end before they are worth their beginning: batches, and small clients.
inline constexpr std::size_t kFew = 64;

// Sums of products.
struct Products {
  // out_j = sum over k of weights_j[k * stride] * columns_k, for j < outputs <= 4.
  void (*combine)(const double* const* columns, std::size_t count, const double* const* weights,
                  std::size_t stride, double* const* out, std::size_t outputs, std::size_t n);
  // out_j = sum over k of (columns_k - points_j[k * stride])^2, for j < outputs.
  void (*distances)(const double* const* columns, std::size_t count, const double* const* points,
                    std::size_t stride, double* const* out, std::size_t outputs, std::size_t n);
  // out = sum over k of a_k * b_k, entry by entry.
  void (*pair_sum)(const double* const* a, const double* const* b, std::size_t count, double* out,
                   std::size_t n);
  // out[i * columns_b + j] += dot(a_i, b_j); with `upper`, only where i <= j. Meanwhile `next`, if it is not empty, is brought
  // into the second cache.
  void (*gram)(const double* const* a, std::size_t columns_a, const double* const* b,
               std::size_t columns_b, bool upper, double* out, std::size_t n, Ahead next);
  // The same for n <= kFew records, summed in their order; without `add` what is in `out` is replaced.
  void (*gram_few)(const double* const* a, std::size_t columns_a, const double* const* b,
                   std::size_t columns_b, double* out, std::size_t n, bool add);
};
// Portable ones round every product and every sum, in one order: the same bits on every processor (not `gram`).
const Products& products(bool portable = false);

// out = the number, from 1, of the point with the smallest of the distances that Products has; as Extremes::smallest.
using Nearest = void (*)(const double* const* columns, std::size_t count,
                         const double* const* points, std::size_t stride, std::size_t number,
                         double* out, std::size_t n);
Nearest nearest(bool portable = false);

// Sums of columns by labels.
struct Groups {
  // The row of each label, from 0: a label is one of 1, ..., count, and anything else has the row `count`. There is room for padded(n)
  // rows. How many are neither a label nor nan.
  std::size_t (*rows)(const double* labels, std::size_t count, std::uint32_t* rows, std::size_t n);
  // sums[rows[i] * stride + k] += columns_k[i], in the order of the records. `sums` and `stride` are multiples of kPad numbers.
  void (*add)(const double* const* columns, std::size_t count, const std::uint32_t* rows,
              double* sums, std::size_t stride, std::size_t n);
};
const Groups& groups();

// Columns in slices: numbers of few bits, the multiples of one power of two, so that sums of them and of their products are
// exact in doubles.
struct Slices {
  // The largest magnitude; nan where some number is not finite.
  double (*top)(const double* x, std::size_t n);
  // slice = x rounded to a multiple of the last place of `shift`, rest = x - slice, which may be x itself. Whether a rest
  // is not 0.
  bool (*split)(const double* x, double shift, double* slice, double* rest, std::size_t n);
  // Three slices of x at once, each a multiple of the last place of its shift, then times its scale; with six levels also
  // the sums of the first and second of these, first and third, second and third; and the rest of x. Bits of the result: 1,
  // 2 and 4 where a slice is not 0 throughout, 8 where a rest is not, or something is not finite. Zeros up to a multiple of
  // kPad.
  unsigned (*cut)(const double* x, const double* shifts, const double* scales,
                  double* const* slices, std::size_t levels, double* rest, double* top,
                  std::size_t n);
  // The sums of two slices of x, and its largest magnitude; whether there is a rest, or something is not finite.
  bool (*sums)(const double* x, double first, double second, double* sums, double* top,
               std::size_t n);
};
const Slices& slices();

// So many products are summed in a double before it becomes an integer.
inline constexpr std::size_t kWholeTerms = 128;

// Sums of products that are exact: kWholeTerms products of two numbers are below 2^53 units. Columns have zeros up to a
// multiple of kPad.
struct WholeProducts {
  // out[i * columns + j] += the sum of a_i * b_j, which are whole numbers, where j >= begin[i], and maybe where it is not.
  // The begins are in order.
  void (*gram)(const double* const* a, std::size_t rows, const double* const* b,
               std::size_t columns, const std::size_t* begin, std::int64_t* out, std::size_t n);
  // out[k] += scales[k] times the sum of slice_i(x) * y_j over all i + j = k, for three slices of each; those of x as
  // Slices::cut has them, without scales. Also the largest magnitude of x and whether it has a rest, or something that is
  // not finite; x needs no zeros.
  // As many numbers from `ahead` on are fetched meanwhile.
  bool (*dot)(const double* x, const double* shifts, const double* const* y, const double* scales,
              std::int64_t* out, double* top, std::size_t n, const double* ahead);
};
const WholeProducts& whole_products();

}  // namespace starfold::kernels
