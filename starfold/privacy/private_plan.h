// A plan whose releases are private: what clients send is whole numbers on grids that follow from the bounds of the program, and noise
// is calibrated to what one unit of privacy can change in them. Everyone who knows plan, sizes and terms arrives at the same.
//
// With at most 2^30 records in all, every sum stays below 2^52: sums of doubles are then sums of integers, exact in any order. Noise
// is at most 64 deviations of at most 2^27 (or 2001 scales), from at most so many clients that it stays below 2^52 as well.
#pragma once

#include <memory>
#include <vector>

#include "starfold/merge/monoid.h"
#include "starfold/privacy/noise/accountant.h"
#include "starfold/privacy/noise/sampler.h"
#include "starfold/privacy/terms.h"

namespace starfold::privacy {

// Noise for one number, on the integers.
struct Noise {
  enum class Kind { none, laplace, gaussian };
  Kind kind = Kind::none;
  Ratio parameter = {};  // the scale, or the variance
  std::int64_t draw(RandomBits& random) const;
};

// One merged value and what is done to it. All of its numbers have the same grid and noise.
struct PrivateMerge {
  std::int64_t numbers = 0;
  double grid = 1;         // what one unit of a client's sum stands for
  unsigned shift = 0;      // noise is on a grid 2^shift times finer
  Noise noise;             // that is added once, or by every client, or a client's share
  double sensitivity = 0;  // in the norm of the mechanism, with rounding
  double scale = 0;        // of the noise in the result: a deviation, or a scale of Laplace
  double cost = 0;         // of releasing it once: mu^2, or epsilon
  double most = 0;         // the largest number of units that clients can add up to

  // The grid that noise lies on, and with it what is released.
  double noise_grid() const;
};

struct PrivateRound {
  std::vector<PrivateMerge> merges;
  std::int64_t runs = 0;   // how often it runs at most
  double sensitivity = 0;  // of all of it together
  double scale = 0;  // what has the same ratio to that as the noise of the merges has to theirs
  double cost = 0;
};

class PrivatePlan {
 public:
  // For a plan that was made with Planning::additive, and all its sizes. NotPrivate when it cannot be.
  PrivatePlan(std::shared_ptr<const Plan> plan, const SizeValues& sizes, Terms terms);

  const Terms& terms() const { return terms_; }
  const Promise& promise() const { return terms_.promise; }
  // The same rounds with encoders that put what records add on the grids.
  const std::shared_ptr<const Plan>& encoders() const { return encoders_; }
  const std::vector<PrivateRound>& rounds() const { return rounds_; }
  // How many records a client may have: no sum can then leave its integers.
  std::int64_t most_records() const;

  // Adds noise to the states of a round as clients make them. They are units of the finer grid then. With `times`, as
  // often: for so many clients.
  void add_noise(std::vector<MergeState>& states, std::size_t round, RandomBits& random,
                 std::int64_t times = 1) const;
  // States with noise as the numbers they stand for.
  void to_values(std::vector<MergeState>& states, std::size_t round) const;
  // at = "output": adds noise to outputs that were computed without.
  void add_noise(std::map<std::string, Tensor>& outputs, RandomBits& random) const;
  // What noise is added to when a round is released: its merged values, or the outputs.
  const PrivateRound& released(std::size_t round) const {
    return outputs_.merges.empty() ? rounds_[round] : outputs_;
  }
  // An empty string, or why a client's state cannot be whole numbers of its units, in these shapes.
  static std::string wrong_with(const MergeState& state, const std::vector<Shape>& shapes);

  // The epsilon spent, at the promise's delta, after each round ran so often. What was planned costs what was promised.
  double spent(const std::vector<std::int64_t>& runs) const;
  // The epsilon spent once this round ran after rounds that spent so much.
  double spent_with(double before, std::size_t round) const;

 private:
  void share_budget(const Sensitivities& all, const SizeValues& sizes);
  void choose_noise(const Sensitivities& all, const Bounds& bounds, const SizeValues& sizes);
  void set_noise(PrivateMerge& merge, double units, Span where) const;
  bool folds_clients(ir::NodeId fold) const;
  void noise_outputs(const Sensitivities& all, const SizeValues& sizes);
  void require_shares() const;
  SharedNoise shares_of(const PrivateMerge& merge, double times) const;

  std::shared_ptr<const Plan> plan_;
  Terms terms_;
  std::shared_ptr<const Plan> encoders_;
  std::vector<PrivateRound> rounds_;
  PrivateRound outputs_;  // at = "output": in place of the merged values
  std::vector<std::string> output_names_;
};

}  // namespace starfold::privacy
