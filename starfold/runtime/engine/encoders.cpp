#include "starfold/runtime/engine/encoders.h"

#include <fmt/format.h>

namespace starfold {

Encoders::Encoders(std::shared_ptr<const Plan> plan, SizeValues sizes)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(sizes))) {}
Encoders::~Encoders() = default;

std::string Encoders::print(const Round& round) const {
  std::string text;
  for (const engine::SetProgram& set : impl_->program(round).sets) {
    text += fmt::format("block of *{}: {} scratch columns\n{}", set.record_set,
                        set.first.scratch_columns, engine::print(*impl_->plan, set, set.first));
    if (set.kept_columns == 0) continue;
    text += fmt::format("again, with {} kept columns\n{}", set.kept_columns,
                        engine::print(*impl_->plan, set, set.again));
  }
  return text;
}

}  // namespace starfold
