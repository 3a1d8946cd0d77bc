// Client-local extensions: what happens within each record.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "starfold/base/error.h"
#include "starfold/ops/meaning.h"
#include "starfold/tensor/compensated_sum.h"
#include "starfold/tensor/gather.h"
#include "starfold/tensor/portable.h"

namespace starfold::meaning {
namespace {

// The original, of that norm, scaled to norm c.
void scale_to(std::span<double> cell, std::span<const double> original, double norm, double c) {
  for (std::size_t i = 0; i < cell.size(); ++i) cell[i] = original[i] / norm * c;
}

// Rounding may leave the norm an ulp above c, and a privacy bound has no ulp to spare: aim lower,
// by steps that double so that even denormal numbers come to an end.
void clip_cell(std::span<double> cell, double c) {
  const double norm = fold_norm(cell);
  if (!(norm > c)) return;  // zero and nan stay
  const std::vector<double> original(cell.begin(), cell.end());
  double target = c;
  scale_to(cell, original, norm, target);
  for (double step = std::numeric_limits<double>::epsilon(); fold_norm(cell) > c; step *= 2) {
    target = step < 1 ? c * (1 - step) : 0;
    scale_to(cell, original, norm, target);
  }
}

// A vector operand of `outer` as [records, p]; a shared one has a single row.
Tensor vectors_of(const Application& a, std::size_t i) {
  const auto star = a.record_axes[i];
  if (a.arg(i).rank() != (star ? 2 : 1)) throw Bug("outer: an operand is not a vector");
  if (star) return axis_first(a.arg(i), *star);
  return Tensor({1, a.arg(i).shape[0]}, a.arg(i).data);
}

double choose(double c, double a, double b) { return c != 0 ? a : b; }

// min(max(e, lo), hi), nan if any is.
double clip_entry(double e, double lo, double hi) {
  if (std::isnan(e) || std::isnan(lo) || std::isnan(hi)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::min(std::max(e, lo), hi);
}

void log_softmax_line(std::span<double> line) {
  const double top = fold_max(line);
  CompensatedSum sum;
  for (double& x : line) {
    x -= top;
    sum.add(maths::exp(x));
  }
  const double log_sum = maths::log(sum.value());
  for (double& x : line) x -= log_sum;
}

void softmax_line(std::span<double> line) {
  const double top = fold_max(line);
  CompensatedSum sum;
  for (double& x : line) {
    x = maths::exp(x - top);
    sum.add(x);
  }
  for (double& x : line) x /= sum.value();
}

}  // namespace

Results zeros_like(const Application& a) { return {Tensor(a.arg(0).shape, 0.0)}; }

Results ones_like(const Application& a) { return {Tensor(a.arg(0).shape, 1.0)}; }

Results outer(const Application& a) {
  const Tensor left = vectors_of(a, 0);
  const Tensor right = vectors_of(a, 1);
  const std::int64_t p = left.shape[1];
  const std::int64_t q = right.shape[1];
  const std::int64_t records = broadcast_shapes({left.shape[0]}, {right.shape[0]})[0];
  Tensor result({records, p, q}, std::vector<double>{});
  for (std::int64_t n = 0; n < records; ++n) {
    const double* x = left.data.data() + (left.shape[0] == 1 ? 0 : n * p);
    const double* y = right.data.data() + (right.shape[0] == 1 ? 0 : n * q);
    for (std::int64_t i = 0; i < p; ++i) {
      for (std::int64_t j = 0; j < q; ++j) result.data.push_back(x[i] * y[j]);
    }
  }
  if (!a.federated()) result.shape = {p, q};
  return {std::move(result)};
}

Results where(const Application& a) { return map_ternary(choose, a); }

Results clip(const Application& a) { return map_ternary(clip_entry, a); }

Results clip_norm(const Application& a) {
  const double c = a.arg(1).item();
  if (!(c >= 0)) throw RunError("clip_norm: the bound must be a number that is not negative");
  Tensor result = a.arg(0);
  const auto star = a.record_axes.at(0);
  if (!star) {
    clip_cell(result.data, c);
    return {std::move(result)};
  }
  // The entries of a record lie at the places of its first entry's neighbours.
  const Strides strides = row_major(result.shape);
  Shape cell_shape = result.shape;
  cell_shape[*star] = 1;
  const auto cell_places = places(cell_shape, strides);
  std::vector<double> cell(cell_places.size());
  for (std::int64_t n = 0; n < result.shape[*star]; ++n) {
    double* first = result.data.data() + n * strides[*star];
    for (std::size_t i = 0; i < cell.size(); ++i) cell[i] = first[cell_places[i]];
    clip_cell(cell, c);
    for (std::size_t i = 0; i < cell.size(); ++i) first[cell_places[i]] = cell[i];
  }
  return {std::move(result)};
}

RunError labels_outside(std::int64_t outside, std::int64_t k) {
  return RunError(
      outside == 1
          ? fmt::format("one_hot: 1 label is not a whole number from 1 to {}", k)
          : fmt::format("one_hot: {} labels are not whole numbers from 1 to {}", outside, k));
}

Results one_hot(const Application& a) {
  const std::int64_t k = a.sizes.at(0);
  Shape shape = a.arg(0).shape;
  shape.push_back(k);
  require_reasonable(shape, "one_hot");
  const std::vector<double>& labels = a.arg(0).data;
  const auto outside = std::count_if(labels.begin(), labels.end(), [&](double label) {
    return !std::isnan(label) && !picks_one_of(label, k);
  });
  if (outside > 0) throw labels_outside(outside, k);
  Tensor result(shape);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (std::isnan(labels[i])) continue;
    result.data[i * static_cast<std::size_t>(k) + static_cast<std::size_t>(labels[i]) - 1] = 1;
  }
  return {std::move(result)};
}

Results softmax(const Application& a) {
  Tensor result = a.arg(0);
  for_each_line(result, static_cast<std::size_t>(a.axes.at(0)), softmax_line);
  return {std::move(result)};
}

Results log_softmax(const Application& a) {
  Tensor result = a.arg(0);
  for_each_line(result, static_cast<std::size_t>(a.axes.at(0)), log_softmax_line);
  return {std::move(result)};
}

}  // namespace starfold::meaning
