// Sums over the records of a client of how large their terms are: the programs that say on how many records numbers rest.
#pragma once

#include <limits>
#include <vector>

#include "starfold/runtime/engine/engine.h"
#include "starfold/support/bounds.h"

namespace starfold::support {

// How the squares of terms are summed: not at all, as they are, or as the root of their sum, which takes longer and
// never leaves the range of numbers.
enum class Squares { none, plain, root };

// The sums of lists of terms, by cell.
struct Sums {
  std::vector<Tensor> sizes;
  std::vector<Tensor> squares;
  Squares how = Squares::plain;

  // Whether the squares are what they should be: small ones may have lost terms, large ones may have overflowed.
  bool sound(const std::vector<bool>& lists) const;
  // The effective number of records: 0 for none, nan where the sums tell nothing.
  double effective(std::size_t terms, std::size_t cell) const;
};

// Sums of those lists of terms that are asked for, over the records of a client or the first of them. Its programs are kept: a
// list that was asked for once is in all later ones.
class Summation {
 public:
  explicit Summation(Squares how, std::int64_t most = std::numeric_limits<std::int64_t>::max())
      : how_(how), most_(most) {}

  // Sums of lists that were not asked for mean nothing.
  Sums run(const SupportProgram& support, const std::vector<bool>& lists, const Settings& settings,
           const SizeValues& sizes, const Engine& engine);

 private:
  Squares how_;
  std::int64_t most_;
  std::vector<bool> lists_;
  std::shared_ptr<const Plan> plan_;
  std::optional<Engine> engine_;
};

// Where the values of each federated input lie: one look at all records.
InputBoxes look_at_inputs(const Plan& plan, const SizeValues& sizes, const Engine& engine);

}  // namespace starfold::support
