#include "starfold/privacy/private_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starfold/privacy/noise/grid.h"
#include "starfold/privacy/outputs.h"

namespace starfold::privacy {
namespace {

using ir::NodeId;

constexpr double most_runs = 1e9;
constexpr double widest_gaussian = 0x1p27;        // a deviation, in units of its grid
constexpr double widest_laplace = 0x1p30;         // a scale
constexpr double gaussian_reach_factor = 65;      // of deviations: sampler.h
constexpr double laplace_reach_factor = 2002;     // of scales
constexpr std::uint64_t laplace_under = 1 << 16;  // scales are told to a 65536th
constexpr double narrow = 0x1p10;  // deviations below it would pay for rounding_variance

// How often each round runs at most.
class Limits {
 public:
  Limits(const Plan& plan, const Bounds& bounds, std::vector<PrivateRound>& rounds)
      : plan_(plan), bounds_(bounds), rounds_(rounds) {
    walk(plan.body, 1);
  }

 private:
  void walk(const Block& block, double times) {
    for (const Step& step : block.steps) {
      if (const auto* round = std::get_if<Round>(&step.action)) {
        rounds_[static_cast<std::size_t>(round->number)].runs = static_cast<std::int64_t>(times);
      } else {
        const auto& loop = std::get<LoopStep>(step.action);
        const ir::Loop& described = plan_.program.loops[loop.loop];
        const double count = bounds_[described.count].box.hull().hi;
        if (!(count * times <= most_runs))
          throw NotPrivate(
              "the run cannot be private: nobody knows before the run how often this loop runs",
              described.span, "give `repeat` a number, or a size or input with a value");
        walk(loop.body.front(), times * std::max(0.0, std::floor(count)));
      }
    }
  }

  const Plan& plan_;
  const Bounds& bounds_;
  std::vector<PrivateRound>& rounds_;
};

std::int64_t numbers_of(const Type& type, const SizeValues& sizes) {
  std::int64_t count = 1;
  for (const Dim& dim : type.dims) count *= dim.size.evaluate(sizes).value_or(1);
  return count;
}

double evaluated(const Bound& bound, const SizeValues& sizes) {
  return bound.evaluate(sizes).value_or(HUGE_VAL);
}

}  // namespace

std::int64_t Noise::draw(RandomBits& random) const {
  switch (kind) {
    case Kind::none:
      return 0;
    case Kind::laplace:
      return discrete_laplace(parameter, random);
    case Kind::gaussian:
      return discrete_gaussian(parameter, random);
  }
  return 0;
}

double PrivateMerge::noise_grid() const { return std::ldexp(grid, -static_cast<int>(shift)); }

PrivatePlan::PrivatePlan(std::shared_ptr<const Plan> plan, const SizeValues& sizes, Terms terms)
    : plan_(std::move(plan)), terms_(std::move(terms)) {
  const Known known = with_defaults(plan_->program, {sizes, terms_.inputs});
  require_bounds(*plan_, terms_.promise, known);
  const Bounds bounds(plan_->program, known);
  for (const Round* round : rounds_of(*plan_)) {
    rounds_.emplace_back();
    for (const Merge& merge : round->merges) {
      rounds_.back().merges.emplace_back();
      rounds_.back().merges.back().numbers =
          numbers_of(plan_->program.graph[merge.fold].type(), sizes);
    }
  }
  Limits(*plan_, bounds, rounds_);
  const Sensitivities all =
      sensitivities(*plan_, terms_.promise.unit, terms_.promise.neighbours, known);
  share_budget(all, sizes);
  choose_noise(all, bounds, sizes);
  if (terms_.promise.at == At::output) noise_outputs(all, sizes);
  require_shares();
}

// --- the budget -------------------------------------------------------------------------------------

// Which part of the budget each merged value gets: that for which the squares of all noise, each in units of what one record can
// change, are least in sum. With Gauss's noise d numbers have d / mu^2 of it, and the mu^2 of all releases add up; with Laplace's
// they have d / epsilon^2, and the epsilons do. What nobody's record can change needs none.
void PrivatePlan::share_budget(const Sensitivities& all, const SizeValues& sizes) {
  const Promise& promise = terms_.promise;
  double budget = promise.epsilon;
  if (!promise.pure()) {
    // Shares of noise are accounted by Renyi divergences.
    const double mu = gaussian_mu(promise.epsilon, promise.delta);
    budget = mu * mu;
    if (promise.at == At::distributed)
      budget = 2 * zcdp_rho(promise.epsilon, promise.delta) * (1 - 1e-6);
  }
  const auto weight = [&](std::size_t round, std::size_t merge) {
    const Norms& change = all.rounds[round].merges[merge].change;
    if (evaluated(promise.pure() ? change.l1 : change.l2, sizes) == 0) return 0.0;
    const auto numbers = static_cast<double>(rounds_[round].merges[merge].numbers);
    return promise.pure() ? std::cbrt(numbers) : std::sqrt(numbers);
  };
  double total = 0;
  for (std::size_t r = 0; r < rounds_.size(); ++r) {
    for (std::size_t m = 0; m < rounds_[r].merges.size(); ++m)
      total += weight(r, m) * static_cast<double>(std::max<std::int64_t>(1, rounds_[r].runs));
  }
  for (std::size_t r = 0; r < rounds_.size(); ++r) {
    for (std::size_t m = 0; m < rounds_[r].merges.size(); ++m)
      rounds_[r].merges[m].cost = total > 0 ? budget * weight(r, m) / total : 0;
  }
}

void PrivatePlan::choose_noise(const Sensitivities& all, const Bounds& bounds,
                               const SizeValues& sizes) {
  const Promise& promise = terms_.promise;
  const bool local = promise.at == At::client || promise.at == At::distributed;
  const double adders = local ? static_cast<double>(std::max<std::int64_t>(1, terms_.clients)) : 1;
  const double widest =
      promise.pure()
          ? std::min(widest_laplace, most_units_in_all / (laplace_reach_factor * adders))
          : std::min(widest_gaussian, most_units_in_all / (gaussian_reach_factor * adders));
  std::vector<GriddedFold> folds;
  const std::vector<const Round*> rounds = rounds_of(*plan_);
  for (std::size_t r = 0; r < rounds_.size(); ++r) {
    double ratio = 0;  // of sensitivity to scale: squares, or the plain sum
    double together = 0;
    for (std::size_t m = 0; m < rounds_[r].merges.size(); ++m) {
      PrivateMerge& merge = rounds_[r].merges[m];
      const NodeId id = rounds[r]->merges[m].fold;
      const Norms& change = all.rounds[r].merges[m].change;
      const double real = evaluated(promise.pure() ? change.l1 : change.l2, sizes);
      // The scale of noise for a sensitivity of one.
      const double scale =
          merge.cost == 0 ? 0 : 1 / (promise.pure() ? merge.cost : std::sqrt(merge.cost));
      const GriddedFold fold = choose_grid(*plan_, bounds, id, sizes, real * scale, widest);
      merge.grid = fold.grid;
      merge.most = fold.most * most_records_in_all;
      const bool twice = promise.neighbours == Neighbours::replace || folds_clients(id);
      const double units = real / fold.grid +
                           (twice ? 2 : 1) * (promise.pure() ? fold.rounding_l1 : fold.rounding_l2);
      merge.sensitivity = units * fold.grid;
      if (real > 0) set_noise(merge, units, plan_->program.graph[id].span);
      folds.push_back(fold);
      if (merge.noise.kind == Noise::Kind::none) continue;
      together += promise.pure() ? merge.sensitivity : merge.sensitivity * merge.sensitivity;
      ratio += merge.cost;
      rounds_[r].cost += merge.cost;
    }
    rounds_[r].sensitivity = promise.pure() ? together : std::sqrt(together);
    if (ratio > 0)
      rounds_[r].scale = rounds_[r].sensitivity / (promise.pure() ? ratio : std::sqrt(ratio));
  }
  encoders_ = on_grids(*plan_, folds);
}

bool PrivatePlan::folds_clients(NodeId fold) const {
  for (const NodeId arg : plan_->program.graph[fold].args) {
    const Type& type = plan_->program.graph[arg].type();
    if (type.federated() && type.record_set() == "client") return true;
  }
  return false;
}

// Noise for a sensitivity in units of the sum's grid.
void PrivatePlan::set_noise(PrivateMerge& merge, double units, Span where) const {
  const auto too_wide = [&] {
    throw NotPrivate("the run cannot be private: epsilon is too small for the grid", where);
  };
  if (terms_.promise.pure()) {
    const double scale = units / merge.cost;
    const double over = std::ceil(scale * static_cast<double>(laplace_under));
    if (!(over < 0x1p51)) too_wide();
    merge.noise = {Noise::Kind::laplace, {static_cast<std::uint64_t>(over), laplace_under}};
    merge.scale = over / static_cast<double>(laplace_under) * merge.grid;
    return;
  }
  const bool shared = terms_.promise.at == At::distributed;
  const double shares = shared ? static_cast<double>(std::max<std::int64_t>(1, terms_.shares)) : 1;
  double deviation = units / std::sqrt(merge.cost);
  while (deviation < narrow * std::sqrt(shares) && merge.most * 2 <= most_units_in_all) {
    ++merge.shift;
    merge.most *= 2;
    deviation *= 2;
  }
  const double variance =
      std::ceil(deviation * deviation / shares) + (shared ? 0 : rounding_variance);
  if (!(variance < 0x1p56)) too_wide();
  merge.noise = {Noise::Kind::gaussian, {static_cast<std::uint64_t>(variance), 1}};
  if (!gaussian_fits(merge.noise.parameter)) too_wide();
  merge.scale = std::sqrt(variance * shares) * merge.noise_grid();
}

// Noise at the outputs: what clients send is on its grid, so that sums are exact, and has none. Outputs are put on grids of their
// own, about a millionth of their noise, or coarser where their numbers are larger than that leaves room for.
void PrivatePlan::noise_outputs(const Sensitivities& all, const SizeValues& sizes) {
  const Promise& promise = terms_.promise;
  std::vector<MergedChange> merged;
  for (std::size_t m = 0; !rounds_.empty() && m < rounds_[0].merges.size(); ++m) {
    PrivateMerge& merge = rounds_[0].merges[m];
    const Norms& change = all.rounds[0].merges[m].change;
    // With rounding, as in the norm of the mechanism.
    const double real = evaluated(promise.pure() ? change.l1 : change.l2, sizes);
    const double factor = real > 0 ? merge.sensitivity / real : 1;
    merged.push_back({merge.numbers, evaluated(change.l1, sizes) * factor,
                      evaluated(change.l2, sizes) * factor, merge.most * merge.noise_grid()});
    merge.noise = {};
    merge.shift = 0;
  }
  const std::vector<OutputChange> outputs = output_changes(plan_, sizes, terms_, merged);
  const auto weight = [&](const OutputChange& output) {
    if ((promise.pure() ? output.l1 : output.l2) == 0) return 0.0;
    const auto numbers = static_cast<double>(output.numbers);
    return promise.pure() ? std::cbrt(numbers) : std::sqrt(numbers);
  };
  double total = 0;
  for (const OutputChange& output : outputs) total += weight(output);
  const double budget = rounds_.empty() ? 0 : rounds_[0].cost;
  double together = 0;
  for (const OutputChange& output : outputs) {
    PrivateMerge noised;
    noised.numbers = output.numbers;
    noised.cost = total > 0 ? budget * weight(output) / total : 0;
    const double real = promise.pure() ? output.l1 : output.l2;
    output_names_.push_back(output.name);
    if (real > 0 && noised.cost > 0) {
      const double scale = real / (promise.pure() ? noised.cost : std::sqrt(noised.cost));
      const double finest = std::max(scale / 0x1p20, output.most / (most_units_in_all / 2));
      noised.grid = std::exp2(std::ceil(std::log2(finest)));
      noised.most = most_units_in_all;  // no finer grid
      const auto numbers = static_cast<double>(output.numbers);
      const double units = real / noised.grid + (promise.pure() ? numbers : std::sqrt(numbers));
      noised.sensitivity = units * noised.grid;
      set_noise(noised, units, output.where);
    }
    together += promise.pure() ? noised.sensitivity : noised.sensitivity * noised.sensitivity;
    outputs_.merges.push_back(noised);
  }
  outputs_.runs = 1;
  outputs_.cost = budget;
  outputs_.sensitivity = promise.pure() ? together : std::sqrt(together);
  if (budget > 0)
    outputs_.scale = outputs_.sensitivity / (promise.pure() ? budget : std::sqrt(budget));
}

// Shares of noise are calibrated as if their sum were one discrete Gaussian; that is checked.
void PrivatePlan::require_shares() const {
  if (terms_.promise.at != At::distributed) return;
  std::vector<SharedNoise> all;
  for (const PrivateRound& round : rounds_) {
    for (const PrivateMerge& merge : round.merges) {
      if (merge.noise.kind != Noise::Kind::none)
        all.push_back(shares_of(merge, static_cast<double>(round.runs)));
    }
  }
  if (!all.empty() && shared_noise_epsilon(all, terms_.promise.delta) > terms_.promise.epsilon)
    throw NotPrivate("the run cannot be private: shares of noise would be too small for the grid");
}

// --- what it does -----------------------------------------------------------------------------------

std::int64_t PrivatePlan::most_records() const {
  return static_cast<std::int64_t>(most_records_in_all) / std::max<std::int64_t>(1, terms_.clients);
}

void PrivatePlan::add_noise(std::vector<MergeState>& states, std::size_t round, RandomBits& random,
                            std::int64_t times) const {
  for (std::size_t m = 0; m < states.size(); ++m) {
    const PrivateMerge& merge = rounds_[round].merges[m];
    for (Tensor& part : states[m]) {
      for (double& x : part.data) {
        x = std::ldexp(x, static_cast<int>(merge.shift));
        for (std::int64_t i = 0; i < times; ++i) x += static_cast<double>(merge.noise.draw(random));
      }
    }
  }
}

void PrivatePlan::to_values(std::vector<MergeState>& states, std::size_t round) const {
  for (std::size_t m = 0; m < states.size(); ++m) {
    for (Tensor& part : states[m]) {
      for (double& x : part.data) x *= rounds_[round].merges[m].noise_grid();
    }
  }
}

void PrivatePlan::add_noise(std::map<std::string, Tensor>& outputs, RandomBits& random) const {
  for (std::size_t i = 0; i < output_names_.size(); ++i) {
    const PrivateMerge& noised = outputs_.merges[i];
    if (noised.noise.kind == Noise::Kind::none) continue;
    for (double& x : outputs.at(output_names_[i]).data)
      x = (std::round(x / noised.grid) + static_cast<double>(noised.noise.draw(random))) *
          noised.grid;
  }
}

std::string PrivatePlan::wrong_with(const MergeState& state, const std::vector<Shape>& shapes) {
  if (state.size() != shapes.size()) return "it has the wrong number of values";
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (state[i].shape != shapes[i]) return "it has the wrong shape";
    for (const double x : state[i].data) {
      if (!(std::abs(x) <= 2 * most_units_in_all) || x != std::floor(x))
        return "what it sends is not whole numbers of its units";
    }
  }
  return {};
}

// What its releases cost as shares of noise. A sum of d numbers has at most sqrt(d) times its L2 norm in L1.
SharedNoise PrivatePlan::shares_of(const PrivateMerge& merge, double times) const {
  const double l2 = merge.sensitivity / merge.noise_grid();
  const auto numbers = static_cast<double>(merge.numbers);
  return {l2 * std::sqrt(numbers),
          l2,
          numbers,
          std::max<std::int64_t>(1, terms_.shares),
          std::sqrt(static_cast<double>(merge.noise.parameter.over)),
          times};
}

double PrivatePlan::spent(const std::vector<std::int64_t>& runs) const {
  const Promise& promise = terms_.promise;
  bool all = true;
  double cost = 0;
  std::vector<SharedNoise> shared;
  for (std::size_t r = 0; r < rounds_.size(); ++r) {
    const auto times = static_cast<double>(runs[r]);
    all = all && runs[r] >= rounds_[r].runs;
    cost += rounds_[r].cost * times;
    if (promise.at != At::distributed) continue;
    for (const PrivateMerge& merge : rounds_[r].merges) {
      if (merge.noise.kind != Noise::Kind::none) shared.push_back(shares_of(merge, times));
    }
  }
  if (cost == 0) return 0;
  if (all) return promise.epsilon;
  if (promise.pure()) return cost;
  const double epsilon = promise.at == At::distributed
                             ? shared_noise_epsilon(shared, promise.delta)
                             : gaussian_epsilon(std::sqrt(cost), promise.delta);
  return std::min(promise.epsilon, epsilon);
}

double PrivatePlan::spent_with(double before, std::size_t round) const {
  const Promise& promise = terms_.promise;
  const double cost = rounds_[round].cost;
  if (cost == 0) return before;
  if (promise.pure()) return std::min(promise.epsilon, before + cost);
  if (promise.at == At::distributed) {
    const double rho = before > 0 ? zcdp_rho(before, promise.delta) : 0;
    return std::min(promise.epsilon, zcdp_epsilon(rho + cost / 2, promise.delta));
  }
  const double mu = before > 0 ? gaussian_mu(before, promise.delta) : 0;
  return std::min(promise.epsilon, gaussian_epsilon(std::sqrt(mu * mu + cost), promise.delta));
}

}  // namespace starfold::privacy
