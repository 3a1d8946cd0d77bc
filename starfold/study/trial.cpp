#include "starfold/study/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "starfold/base/utf8.h"
#include "starfold/federation/coordinator.h"
#include "starfold/node/description.h"
#include "starfold/study/node_table.h"

namespace starfold {
namespace {

const std::string any_run(32, '0');

// The source that the study means: that of the client with the node's name, or the only one there is.
std::string source_for(const NodeConfig& config, const Study& study) {
  for (const StudyClient& client : study.clients) {
    if (client.name == config.name && !client.source.empty()) return client.source;
  }
  for (const StudyClient& client : study.clients) {
    if (config.find(client.source) != nullptr) return client.source;
  }
  if (config.sources.size() == 1) return config.sources.front().name;
  throw StudyError(
      fmt::format("{} names no source of node {}", printable(study.file), printable(config.name)));
}

}  // namespace

Trial try_study(const NodeConfig& config, const Study& study,
                const std::shared_ptr<const CompiledProgram>& program, const Settings& settings,
                const std::atomic<bool>* stop) {
  Trial trial;
  trial.source = source_for(config, study);
  DeskOptions options;
  options.dry = true;
  options.masked = study.secure.has_value();
  Desk desk(config, options);
  RunIdentity identity;
  identity.run = any_run;
  identity.study = std::filesystem::path(study.file).filename().string();
  identity.sources = {trial.source};
  const NodeDescription described = parse_description(describe_node(config));
  const auto columns = described.sources.find(trial.source);
  if (columns == described.sources.end())
    throw StudyError(
        fmt::format("node {} has no source {}", printable(config.name), printable(trial.source)));
  FormulaRequest formula = study_formula(study);
  for (Site& site : formula.sites) {
    if (site.source == trial.source) site.node = config.name;
  }
  identity.bindings = binding_text(bindings_of(
      plan_columns(program->compilation.program, {node_source(config.name, columns->second)},
                   study.bindings, study.categoricals, formula),
      study.missing));
  if (study.privacy) {
    identity.terms.emplace();
    identity.terms->promise = *study.privacy;
    identity.terms->clients = static_cast<std::int64_t>(study.clients.size());
    // Nobody is here to mask with, and nothing leaves: a share of noise is taken as noise of this client's own, under the same rules.
    privacy::At& at = identity.terms->promise.at;
    if (study.secure && at == privacy::At::distributed) at = privacy::At::client;
  }
  Coordinator coordinator(program, settings, {config.name}, stop, identity);
  while (!coordinator.done()) {
    const Answer answer = desk.answer(coordinator.request(0), "the owner");
    if (desk.refused()) {
      trial.refused = desk.refused();
      break;
    }
    trial.numbers += coordinator.absorb(0, answer.bytes);
    trial.rounds = coordinator.rounds_run();
  }
  return trial;
}

std::string trial_text(const NodeConfig& config, const Trial& trial) {
  std::string text = fmt::format("Node {}, source {}:\n", printable(config.name), trial.source);
  if (trial.rounds > 0)
    text += fmt::format("  {} {} answered, {} {} in all\n", trial.rounds,
                        trial.rounds == 1 ? "round would be" : "rounds would be", trial.numbers,
                        trial.numbers == 1 ? "number" : "numbers");
  if (!trial.refused) {
    text += "  The policy lets this study run to its end.\n";
    if (config.policy.budget)
      text +=
          "  What other studies have spent of the budget was not considered: the ledger says what "
          "is left.\n";
    return text;
  }
  const Decision& no = *trial.refused;
  if (no.rule.empty()) return text + fmt::format("  The study cannot run here: {}\n", no.detail);
  text += fmt::format("  Refused by the rule {}: {}\n", no.rule, no.detail);
  if (no.reason == Refusal::policy)
    text += fmt::format("  The server would be told only: {}\n", sentence(no.reason));
  return text;
}

}  // namespace starfold
