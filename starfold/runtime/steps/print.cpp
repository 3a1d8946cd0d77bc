#include "starfold/runtime/steps/print.h"

#include <fmt/format.h>

#include <optional>

#include "starfold/base/error.h"
#include "starfold/runtime/engine/engine.h"

namespace starfold {
namespace {

// Declared sizes as declared, the others one after the other from `first` on, so that they can be told
// apart in what is printed.
SizeValues assumed_sizes(const ir::Program& program, std::int64_t first) {
  SizeValues sizes;
  for (const ir::SizeVariable& size : program.sizes) {
    sizes[size.name] = size.value ? *size.value : first++;
  }
  return sizes;
}

std::string print_with(const std::shared_ptr<const Plan>& plan, const SizeValues& sizes) {
  std::string text;
  for (const auto& [name, value] : sizes)
    text += fmt::format("{}{} = {}", text.empty() ? "with " : ", ", name, value);
  if (!text.empty()) text += "\n";
  const Encoders encoders(plan, sizes);
  for (const Round* round : rounds_of(*plan))
    text += fmt::format("round {}\n{}", round->number, encoders.print(*round));
  return text;
}

}  // namespace

std::string print_blocks(const std::shared_ptr<const Plan>& plan) {
  std::optional<RunError> refused;
  // A program may need its sizes to be larger than others: p - 3 is none for p = 2.
  for (const std::int64_t first : {2, 5, 11, 101}) {
    try {
      return print_with(plan, assumed_sizes(plan->program, first));
    } catch (const RunError& error) {
      refused = error;
    }
  }
  throw RunError(*refused);
}

}  // namespace starfold
