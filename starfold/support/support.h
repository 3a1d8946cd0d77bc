// On how many records each number of a round's message rests, effectively: (sum |e|)^2 / sum e^2 over the terms e that
// records have in it. It is 1 where one record dominates, and their number where all weigh the same. The sums are a program of
// their own, derived from the plan and run over the same blocks of records.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starfold/base/source.h"
#include "starfold/runtime/engine/engine.h"

namespace starfold {

// A number of a message that rests on too few records. For the owner of the data alone.
struct ThinCell {
  std::size_t merge = 0;
  std::size_t part = 0;
  std::int64_t cell = 0;  // of the part, in row-major order
  double effective = 0;   // nan: the terms are not finite
  bool left_out = false;  // too few records are left out by conditions; otherwise too few are in it
  std::vector<ir::NodeId>
      conditions;  // that take these records in or leave them out; of the plan's program
};

// Why a message of this plan cannot be held to its support: an operation without a rule, say. Empty when it can.
std::string unsupported(const Plan& plan);

class Support {
 public:
  // Of a plan that is supported, over the records that an engine of this plan has laid out. Where there are `many`, a few are
  // looked at first, which is mostly enough.
  Support(std::shared_ptr<const Plan> plan, SizeValues sizes, const Engine& engine,
          std::int64_t many = 8192);
  ~Support();
  Support(Support&&) noexcept;
  Support& operator=(Support&&) noexcept;

  // Numbers (at most `limit`) of a round's message that rest on some records, but on fewer than `least`. `received` and
  // `states` are those of Engine::encode; those of a private run are on a grid of their own.
  enum class Scale { plain, grid };
  std::vector<ThinCell> thin(const Round& round, const std::map<ir::NodeId, Tensor>& received,
                             const std::vector<MergeState>& states, double least, std::size_t limit,
                             Scale scale = Scale::plain);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Which number of which value is thin, and why, in one sentence.
std::string describe(const Plan& plan, const Round& round, const SizeValues& sizes,
                     const SourceMap& sources, const ThinCell& cell, double least);

}  // namespace starfold
