#include "starfold/study/nodes/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "starfold/base/utf8.h"
#include "starfold/federation/coordinator.h"
#include "starfold/node/description.h"
#include "starfold/privacy/noise/shares.h"
#include "starfold/study/nodes/node_table.h"

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

// Who would mask with this node. Keys that the study does not pin stand for whatever those nodes will say.
secure::Group group_of_trial(const Study& study) {
  secure::Group group{study.secure->threshold, study.secure->minimum_clients, {}};
  for (const StudyClient& client : study.clients) {
    const std::optional<secure::Key> pinned = secure::parse_key(client.key);
    group.members.push_back({client.name, pinned ? *pinned : secure::sha256(client.name)});
  }
  return group;
}

bool pins_all_keys(const Study& study) {
  return std::none_of(study.clients.begin(), study.clients.end(),
                      [](const StudyClient& client) { return client.key.empty(); });
}

}  // namespace

Trial try_study(const NodeConfig& config, const Study& study,
                const std::shared_ptr<const CompiledProgram>& program, const Settings& settings,
                const std::atomic<bool>* stop) {
  Trial trial;
  trial.source = source_for(config, study);
  DeskOptions options;
  options.dry = true;
  NodeConfig tried = config;
  if (study.secure) {
    options.group = group_of_trial(study);
    trial.unknown_peers = !config.policy.peers.empty() && !pins_all_keys(study);
    if (trial.unknown_peers) tried.policy.peers.clear();
  }
  Desk desk(std::move(tried), options);
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
    if (options.group) identity.terms->shares = privacy::sure_shares(*options.group);
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
    if (config.policy.programs == Policy::Programs::approved)
      text += "  Unless you have approved it already, it first waits for that.\n";
    if (trial.unknown_peers)
      text +=
          "  The study does not pin the keys of all nodes: whether they are your `peers` shows "
          "when it runs.\n";
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
