#include "starfold/ops/quantize.h"

#include <algorithm>
#include <cmath>

#include "starfold/tensor/gather.h"

namespace starfold {
namespace meaning {

double quantize_factor(double sum, double squares, double l1, double l2) {
  if (sum <= l1 && squares <= l2 * l2) return 1;
  // Smaller than any rounding here makes it, so that what is scaled and cut keeps the bounds.
  constexpr double margin = 1 - 0x1p-40;
  return std::min({1.0, l1 / sum, l2 / std::sqrt(squares)}) * margin;
}

namespace {

std::vector<Tensor> quantize(const Application& a) {
  Tensor result = a.arg(0);
  const double per_unit = a.arg(1).item();
  const Tensor& lo = a.arg(2);
  const Tensor& hi = a.arg(3);
  const double l1 = a.arg(4).item();
  const double l2 = a.arg(5).item();
  const std::size_t star = *a.record_axes.at(0);
  const Strides strides = row_major(result.shape);
  Shape cell_shape = result.shape;
  cell_shape[star] = 1;
  const auto cells = places(cell_shape, strides);
  const auto lows = places(cell_shape, broadcast_strides(lo.shape, cell_shape));
  const auto highs = places(cell_shape, broadcast_strides(hi.shape, cell_shape));
  for (std::int64_t n = 0; n < result.shape[star]; ++n) {
    double* first = result.data.data() + n * strides[star];
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      double& entry = first[cells[i]];
      entry = quantize_entry(entry, per_unit, lo.data[static_cast<std::size_t>(lows[i])],
                             hi.data[static_cast<std::size_t>(highs[i])]);
      sum += std::abs(entry);
      squares += entry * entry;
    }
    const double factor = quantize_factor(sum, squares, l1, l2);
    if (factor == 1) continue;
    for (const auto place : cells) first[place] = std::trunc(first[place] * factor);
  }
  return {std::move(result)};
}

Types quantize_type(TypeQuery& query) { return std::vector<Type>{query.args[0]}; }

Op quantize_row() {
  Op op;
  op.name = "quantize";
  op.family = Family::client_local;
  op.min_args = op.max_args = 6;
  op.surface = "quantize(e, per_unit, lo, hi, l1, l2)";
  op.rule = "T, [], lo, hi, [], [] -> T";
  op.doc = "each record's cell in whole units, within bounds";
  op.type = quantize_type;
  op.meaning = quantize;
  op.kernel = Kernel::general;  // the engine knows it by its row
  op.flat = 1U;
  return op;
}

}  // namespace
}  // namespace meaning

const Op& quantize_op() {
  static const Op row = meaning::quantize_row();
  return row;
}

}  // namespace starfold
