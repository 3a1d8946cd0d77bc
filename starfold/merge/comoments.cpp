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

// The means of the columns; the columns become deviations from them.
std::vector<double> center(std::vector<std::vector<double>>& columns) {
  std::vector<double> means;
  for (std::vector<double>& column : columns) {
    means.push_back(stable_mean(column));
    for (double& x : column) x -= means.back();
  }
  return means;
}

void fold(const FoldedRecords& records, MergeState& into) {
  std::vector<std::vector<double>> rows = columns_of(*records.operands[0], records.record_axes[0]);
  std::vector<std::vector<double>> columns =
      columns_of(*records.operands.back(), records.record_axes.back());
  const std::size_t n = rows.empty() ? 0 : rows[0].size();
  if (n == 0) return;
  into[0].data[0] = static_cast<double>(n);
  into[1].data = center(rows);
  const std::vector<double> means = center(columns);
  if (into.size() == 4) into[2].data = means;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      CompensatedSum products;
      for (std::size_t r = 0; r < n; ++r) products.add(rows[i][r] * columns[j][r]);
      into.back().data[i * columns.size() + j] = products.value();
    }
  }
}

// As moments merge, for every pair of columns.
void merge(MergeState& into, const MergeState& from) {
  const double n_a = into[0].item();
  const double n_b = from[0].item();
  if (n_b == 0) return;
  if (n_a == 0) {
    into = from;
    return;
  }
  const double weight = n_a * n_b / (n_a + n_b);
  // The means of rows are the second part, those of columns the one before the last.
  const auto delta = [&](std::size_t part, std::size_t i) {
    return from[part].data[i] - into[part].data[i];
  };
  const std::size_t of_columns = into.size() - 2;
  const std::size_t columns = into[of_columns].data.size();
  for (std::size_t i = 0; i < into[1].data.size(); ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      into.back().data[i * columns + j] +=
          from.back().data[i * columns + j] + delta(1, i) * delta(of_columns, j) * weight;
    }
  }
  for (std::size_t part = 1; part <= of_columns; ++part) {
    for (std::size_t i = 0; i < into[part].data.size(); ++i)
      into[part].data[i] = merged_mean(n_a, into[part].data[i], n_b, from[part].data[i]);
  }
  into[0].data[0] = n_a + n_b;
}

Tensor finish(const MergeState& state) {
  Tensor covariance = state.back();
  const double n = state[0].item();
  for (double& value : covariance.data)
    value = n < 2 ? std::numeric_limits<double>::quiet_NaN() : value / (n - 1);
  return covariance;
}

std::string_view invalid(const MergeState& state) {
  if (state[0].item() != 0) return {};
  for (std::size_t part = 1; part < state.size(); ++part) {
    if (std::any_of(state[part].data.begin(), state[part].data.end(),
                    [](double x) { return x != 0; }))
      return "it holds moments of no records";
  }
  return {};
}

bool is_whole(double x) { return x >= 0 && x <= 9007199254740992.0 && x == std::floor(x); }

Monoid row(std::string_view name, std::vector<Part> means) {
  using Extent = Part::Extent;
  Monoid row;
  row.name = name;
  row.words = "counts, means and products of deviations combined";
  row.parts = {{"count", Extent::one, 0, is_whole, "a count is not a whole number"}};
  row.parts.insert(row.parts.end(), means.begin(), means.end());
  row.parts.push_back({"products of deviations"});
  row.merge = merge;
  row.finish = finish;
  row.invalid = invalid;
  row.fold = fold;
  return row;
}

}  // namespace

namespace monoids {
const Monoid comoments = row("comoments", {{"means", Part::Extent::first_axis}});
const Monoid cross_comoments =
    row("cross_comoments",
        {{"means", Part::Extent::first_axis}, {"means of the second", Part::Extent::last_axis}});
}  // namespace monoids

}  // namespace starfold
