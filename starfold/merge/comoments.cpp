#include "starfold/merge/comoments.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "starfold/merge/scale.h"
#include "starfold/tensor/axis_view.h"
#include "starfold/tensor/compensated_sum.h"

namespace starfold {
namespace {

// The columns of a matrix whose records lie along one axis.
std::vector<std::vector<double>> columns_of(const Tensor& tensor, std::size_t record_axis) {
  const AxisView view(tensor.shape, record_axis);
  std::vector<std::vector<double>> columns(view.cells());
  for (std::size_t cell = 0; cell < columns.size(); ++cell) {
    for (std::size_t at = 0; at < view.length; ++at)
      columns[cell].push_back(tensor.data[view.place(at, cell)]);
  }
  return columns;
}

// A state has the means and scales of the rows, those of the columns (the same ones where one value is folded), and
// products of deviations, each relative to the scales of its row and column.
struct Places {
  std::size_t sides;
  explicit Places(const MergeState& state) : sides((state.size() - 2) / 2) {}
  std::size_t means(std::size_t side) const { return 1 + side; }
  std::size_t scales(std::size_t side) const { return 1 + sides + side; }
};

// How far two numbers lie apart, relative to a scale that also holds where the difference overflows.
struct Difference {
  double scale = 0;
  double from = 0;
  double to = 0;

  Difference(double a, double b) : from(a), to(b) {
    const double plain = b - a;
    if (plain == 0) return;
    const bool overflows = std::isinf(plain) && std::isfinite(a) && std::isfinite(b);
    scale = square_scale(overflows ? std::numeric_limits<double>::max() : std::fabs(plain));
  }
  // Relative to a scale that is no smaller.
  double relative(double scale_of_all) const {
    if (scale == 0) return 0;
    const double plain = to - from;
    return std::isfinite(plain) ? plain / scale_of_all : to / scale_of_all - from / scale_of_all;
  }
};

// The means of the columns, and the scales of the deviations from them, which the columns become.
void center(std::vector<std::vector<double>>& columns, std::vector<double>& means,
            std::vector<double>& scales) {
  means.clear();
  scales.clear();
  for (std::vector<double>& column : columns) {
    const double mean = stable_mean(column);
    double scale = 0;
    for (const double x : column) scale = std::max(scale, Difference(mean, x).scale);
    for (double& x : column) x = Difference(mean, x).relative(scale);
    means.push_back(mean);
    scales.push_back(scale);
  }
}

void fold(const FoldedRecords& records, MergeState& into) {
  const Places places(into);
  std::vector<std::vector<double>> rows = columns_of(*records.operands[0], records.record_axes[0]);
  std::vector<std::vector<double>> columns =
      columns_of(*records.operands.back(), records.record_axes.back());
  const std::size_t n = rows.empty() ? 0 : rows[0].size();
  if (n == 0) return;
  into[0].data[0] = static_cast<double>(n);
  const std::size_t last = places.sides - 1;
  center(columns, into[places.means(last)].data, into[places.scales(last)].data);
  center(rows, into[places.means(0)].data, into[places.scales(0)].data);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      CompensatedSum products;
      for (std::size_t r = 0; r < n; ++r) products.add(rows[i][r] * columns[j][r]);
      into.back().data[i * columns.size() + j] = products.value();
    }
  }
}

// What merging does to the rows or columns of two states: the common scale of each, by what the products of
// either are multiplied to be relative to it, and how far the means lie apart.
struct Side {
  std::vector<double> scales;
  std::vector<double> of_into;
  std::vector<double> of_from;
  std::vector<double> deltas;

  Side(const MergeState& into, const MergeState& from, const Places& places, std::size_t side) {
    for (std::size_t i = 0; i < into[places.means(side)].data.size(); ++i) {
      const double a = into[places.scales(side)].data[i];
      const double b = from[places.scales(side)].data[i];
      const Difference delta(into[places.means(side)].data[i], from[places.means(side)].data[i]);
      const double scale = std::max({a, b, delta.scale});
      scales.push_back(scale);
      of_into.push_back(scale == 0 ? 1 : a / scale);
      of_from.push_back(scale == 0 ? 1 : b / scale);
      deltas.push_back(delta.relative(scale));
    }
  }
};

// As moments merge, for every pair of columns.
void merge(MergeState& into, const MergeState& from) {
  const double n_a = into[0].item();
  const double n_b = from[0].item();
  if (n_b == 0) return;
  if (n_a == 0) {
    into = from;
    return;
  }
  const Places places(into);
  const double weight = n_a * n_b / (n_a + n_b);
  const Side rows(into, from, places, 0);
  const Side columns(into, from, places, places.sides - 1);
  const std::size_t width = columns.scales.size();
  for (std::size_t i = 0; i < rows.scales.size(); ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      double& product = into.back().data[i * width + j];
      product = product * rows.of_into[i] * columns.of_into[j] +
                from.back().data[i * width + j] * rows.of_from[i] * columns.of_from[j] +
                rows.deltas[i] * columns.deltas[j] * weight;
    }
  }
  for (std::size_t side = 0; side < places.sides; ++side) {
    std::vector<double>& means = into[places.means(side)].data;
    for (std::size_t i = 0; i < means.size(); ++i)
      means[i] = merged_mean(n_a, means[i], n_b, from[places.means(side)].data[i]);
    into[places.scales(side)].data = side == 0 ? rows.scales : columns.scales;
  }
  into[0].data[0] = n_a + n_b;
}

// The power of two that a scale is; of no deviations any would do.
int exponent(double scale) { return scale == 0 ? 0 : std::ilogb(scale); }

Tensor finish(const MergeState& state) {
  const Places places(state);
  Tensor covariance = state.back();
  const double n = state[0].item();
  const std::vector<double>& rows = state[places.scales(0)].data;
  const std::vector<double>& columns = state[places.scales(places.sides - 1)].data;
  for (std::size_t i = 0; i < covariance.data.size(); ++i) {
    const int scale = exponent(rows[i / columns.size()]) + exponent(columns[i % columns.size()]);
    double& value = covariance.data[i];
    value = n < 2 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(value / (n - 1), scale);
  }
  return covariance;
}

std::string_view invalid(const MergeState& state) {
  const Places places(state);
  const std::vector<double>& rows = state[places.scales(0)].data;
  const std::vector<double>& columns = state[places.scales(places.sides - 1)].data;
  for (std::size_t i = 0; i < state.back().data.size(); ++i) {
    // A product with what is no number is none either.
    const bool nothing = state.back().data[i] == 0 || std::isnan(state.back().data[i]);
    if ((rows[i / columns.size()] == 0 || columns[i % columns.size()] == 0) && !nothing)
      return "it holds products of no deviations";
  }
  if (state[0].item() != 0) return {};
  for (std::size_t part = 1; part < state.size(); ++part) {
    if (std::any_of(state[part].data.begin(), state[part].data.end(),
                    [](double x) { return x != 0; }))
      return "it holds moments of no records";
  }
  return {};
}

using Extent = Part::Extent;

Part scales(std::string_view name, Extent extent) {
  return {name, extent, 0, is_square_scale, "a scale is not one of the steps"};
}

Monoid row(std::string_view name, std::vector<Part> of_sides) {
  Monoid row;
  row.name = name;
  row.words = "counts, means and products of deviations combined";
  row.parts = {{"count", Extent::one, 0, is_whole, "a count is not a whole number"}};
  row.parts.insert(row.parts.end(), of_sides.begin(), of_sides.end());
  row.parts.push_back({"products of deviations"});
  row.total = "count, means and covariances of all records, each with the same weight";
  row.merge = merge;
  row.finish = finish;
  row.invalid = invalid;
  row.fold = fold;
  return row;
}

}  // namespace

bool is_whole(double x) { return x >= 0 && x <= 9007199254740992.0 && x == std::floor(x); }

namespace monoids {
const Monoid comoments =
    row("comoments", {{"means", Extent::first_axis}, scales("scales", Extent::first_axis)});
const Monoid cross_comoments =
    row("cross_comoments", {{"means", Extent::first_axis},
                            {"means of the second", Extent::last_axis},
                            scales("scales", Extent::first_axis),
                            scales("scales of the second", Extent::last_axis)});
}  // namespace monoids

}  // namespace starfold
