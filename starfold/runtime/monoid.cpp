#include "starfold/runtime/monoid.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "starfold/base/error.h"

namespace starfold {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double zero_of(Monoid monoid) {
  switch (monoid) {
    case Monoid::prod:
    case Monoid::all:
      return 1;
    case Monoid::min:
      return inf;
    case Monoid::max:
      return -inf;
    default:
      return 0;
  }
}

// Of two zeros the negative one is smaller, so that the order of operands never shows.
double smaller(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return nan;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return nan;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

double merge_numbers(Monoid monoid, double a, double b) {
  switch (monoid) {
    case Monoid::sum:
    case Monoid::count:
      return a + b;
    case Monoid::prod:
      return a * b;
    case Monoid::min:
      return smaller(a, b);
    case Monoid::max:
      return larger(a, b);
    case Monoid::any:
      return a != 0 || b != 0 ? 1 : 0;
    case Monoid::all:
      return a != 0 && b != 0 ? 1 : 0;
    default:
      throw Bug("a merge of single numbers was asked for");
  }
}

// Means and squared deviations of two groups together (Chan, Golub, LeVeque): no cancellation, and
// symmetric in the two groups.
void merge_moments(MergeState& into, const MergeState& from) {
  const double n_a = into[0].item();
  const double n_b = from[0].item();
  if (n_b == 0) return;
  if (n_a == 0) {
    into = from;
    return;
  }
  const double n = n_a + n_b;
  for (std::size_t i = 0; i < into[1].data.size(); ++i) {
    const double delta = from[1].data[i] - into[1].data[i];
    const double mean_a = into[1].data[i];
    const double mean_b = from[1].data[i];
    into[1].data[i] = n_a >= n_b ? mean_a + delta * (n_b / n) : mean_b - delta * (n_a / n);
    into[2].data[i] += from[2].data[i] + delta * delta * (n_a * n_b / n);
  }
  into[0].data[0] = n;
}

// Each state stands for log(scaled) + maximum; the larger maximum becomes the common scale.
void merge_logsumexp(MergeState& into, const MergeState& from) {
  for (std::size_t i = 0; i < into[0].data.size(); ++i) {
    double& max_a = into[0].data[i];
    double& sum_a = into[1].data[i];
    const double max_b = from[0].data[i];
    const double sum_b = from[1].data[i];
    const double top = larger(max_a, max_b);
    const auto scaled = [top](double sum, double max) {
      return max == top ? sum : sum * std::exp(max - top);
    };
    sum_a = scaled(sum_a, max_a) + scaled(sum_b, max_b);
    max_a = top;
  }
}

}  // namespace

std::vector<Shape> state_shapes(Monoid monoid, const Shape& result) {
  if (monoid == Monoid::moments) return {Shape{}, result, result};
  if (monoid == Monoid::logsumexp) return {result, result};
  return {result};
}

MergeState zero(Monoid monoid, const Shape& result) {
  if (monoid == Monoid::moments) return {Tensor(), Tensor(result), Tensor(result)};
  if (monoid == Monoid::logsumexp) return {Tensor(result, -inf), Tensor(result)};
  return {Tensor(result, zero_of(monoid))};
}

void merge(Monoid monoid, MergeState& into, const MergeState& from) {
  if (monoid == Monoid::moments) return merge_moments(into, from);
  if (monoid == Monoid::logsumexp) return merge_logsumexp(into, from);
  std::vector<double>& a = into[0].data;
  const std::vector<double>& b = from[0].data;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = merge_numbers(monoid, a[i], b[i]);
}

Tensor finish(Monoid monoid, const MergeState& state) {
  if (monoid == Monoid::moments) {
    Tensor variance = state[2];
    const double n = state[0].item();
    for (double& value : variance.data) value = n < 2 ? nan : value / (n - 1);
    return variance;
  }
  if (monoid == Monoid::logsumexp) {
    Tensor result = state[0];
    for (std::size_t i = 0; i < result.data.size(); ++i) {
      const double top = result.data[i];
      // An infinite maximum is the answer itself; scaling by it would give nan.
      if (!std::isinf(top)) result.data[i] = top + std::log(state[1].data[i]);
    }
    return result;
  }
  return state[0];
}

std::string invalid_state(Monoid monoid, const MergeState& state, const Shape& result) {
  const std::vector<Shape> shapes = state_shapes(monoid, result);
  if (state.size() != shapes.size()) return "it has the wrong number of parts";
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (state[i].shape != shapes[i]) return "a part has the wrong shape";
  }
  const auto whole = [](double value) {
    return value >= 0 && value <= 9007199254740992.0 && value == std::floor(value);
  };
  const auto truth = [](double value) { return value == 0 || value == 1; };
  const auto every = [&](const Tensor& tensor, const auto& test) {
    return std::all_of(tensor.data.begin(), tensor.data.end(), test);
  };
  if ((monoid == Monoid::count || monoid == Monoid::moments) && !every(state[0], whole))
    return "a count is not a whole number";
  if ((monoid == Monoid::any || monoid == Monoid::all) && !every(state[0], truth))
    return "a truth value is neither 0 nor 1";
  if (monoid == Monoid::moments && !every(state[2], [](double value) { return !(value < 0); }))
    return "a sum of squares is negative";
  if (monoid == Monoid::logsumexp && !every(state[1], [](double value) { return !(value < 0); }))
    return "a sum of exponentials is negative";
  return {};
}

}  // namespace starfold
