// The owner's dry run: what a study would get from his node, and by which rule it would be stopped.
#pragma once

#include "starfold/node/desk/desk.h"
#include "starfold/study/study.h"

namespace starfold {

struct Trial {
  std::string source;               // of the node, that the study uses
  std::int64_t rounds = 0;          // answered
  std::int64_t numbers = 0;         // that would have left in them
  std::optional<Decision> refused;  // none: the study would run to its end
  bool unknown_peers = false;       // the study does not say all keys that the policy asks about
};

// Runs a study over this node alone, as far as its policy and what its ledger says was spent allow. Nothing is recorded and nothing
// leaves. StudyError when the study has nothing to do with this node, RunError when it cannot run for reasons of its own.
Trial try_study(const NodeConfig& config, const Study& study,
                const std::shared_ptr<const CompiledProgram>& program, const Settings& settings,
                const std::atomic<bool>* stop = nullptr);

// In words, after the exposure table.
std::string trial_text(const NodeConfig& config, const Trial& trial);

}  // namespace starfold
