#include "starfold/study/nodes/over_nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "starfold/base/error.h"
#include "starfold/base/json.h"
#include "starfold/base/utf8.h"
#include "starfold/node/description.h"
#include "starfold/node/disk.h"
#include "starfold/study/nodes/carriers.h"
#include "starfold/study/nodes/checkpoint.h"
#include "starfold/study/nodes/node_table.h"
#include "starfold/study/run.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

std::string new_run() {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) throw RunError("the machine gives no random numbers");
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// --- what nodes have --------------------------------------------------------------------------------

NodeDescription description_of(const StudyClient& client, const Bytes& answer) {
  Message message;
  try {
    message = decode_message(answer);
  } catch (const RunError& error) {
    throw RunError(fmt::format("client {}: {}", client.name, error.what()));
  }
  if (const auto* refusal = std::get_if<RefuseMessage>(&message))
    throw ClientRefused(client.name, refusal->reason);
  const auto* described = std::get_if<DescriptionMessage>(&message);
  if (described == nullptr)
    throw RunError(fmt::format("client {} does not say what it has", client.name));
  NodeDescription description = parse_description(described->text);
  if (description.sources.count(client.source) == 0) {
    std::vector<std::string> names;
    for (const auto& [name, columns] : description.sources) names.push_back(printable(name));
    throw RunError(fmt::format("client {} has no source {}; it has {}", client.name,
                               printable(client.source), fmt::join(names, ", ")));
  }
  return description;
}

// What the clients of a study say they have; nothing of those that the run goes on without.
using Descriptions = std::vector<std::optional<NodeDescription>>;

// Who masks: every client with the key that the study pins, or else with the one that it says it has.
secure::Group group_of(const Study& study, const Descriptions& descriptions) {
  secure::Group group{study.secure->threshold, study.secure->minimum_clients, {}};
  for (std::size_t i = 0; i < descriptions.size(); ++i) {
    const StudyClient& client = study.clients[i];
    std::optional<secure::Key> said;
    if (descriptions[i]) said = descriptions[i]->key;
    const std::optional<secure::Key> key =
        client.key.empty() ? said : secure::parse_key(client.key);
    if (!key)
      throw RunError(fmt::format("client {} has no key for secure aggregation", client.name));
    if (said && *said != *key)
      throw RunError(fmt::format("client {} is not the node that the study names: its key is {}",
                                 client.name, secure::key_text(*said)));
    group.members.push_back({client.name, *key});
  }
  return group;
}

// "*" takes columns in the order of the study's first client: who else answers must not decide it.
void require_order(const Study& study, const Descriptions& descriptions) {
  if (descriptions.front()) return;
  if (!study.formula.empty() && formula::has_dot(formula::parse_formula(study.formula)))
    throw RunError(
        fmt::format("`.` stands for every other column in the order of client {}, which does not "
                    "answer: name the columns in the formula",
                    study.clients.front().name));
  for (const auto& [input, choice] : study.bindings) {
    if (choice.rest)
      throw RunError(
          fmt::format("input {} takes every column in the order of client {}, which does not "
                      "answer: name its columns instead of \"*\"",
                      input, study.clients.front().name));
  }
}

// --- the way there ----------------------------------------------------------------------------------

// What nodes say of themselves. Before a run there is nothing to go on with.
std::vector<std::optional<Bytes>> describe_all(Carrier& carrier,
                                               const std::vector<std::string>& names,
                                               const RemoteOptions& options, bool resumed = false) {
  try {
    return ask_all(carrier, names, encode_message(DescribeMessage{}), options);
  } catch (const ClientsAway& away) {
    if (resumed) throw;
    throw RunError(away.what());
  }
}

// What a file holds, as text: the program that carries may run on another machine, where the file is not.
std::string text_of(const std::string& path, const std::string& what) {
  constexpr std::size_t longest = 1 << 20;
  if (path.empty()) return {};
  try {
    std::string text = read_regular(path, longest);
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
      throw RunError(fmt::format("{} is empty", printable(path)));
    return text;
  } catch (const RunError& error) {
    throw RunError(fmt::format("{}: {}", what, error.what()));
  }
}

std::string flower_setup(const Study& study) {
  nlohmann::json clients = nlohmann::json::array();
  for (const StudyClient& client : study.clients)
    clients.push_back(
        {{"name", client.name},
         {"public_key",
          text_of(client.public_key, fmt::format("the public key of client {}", client.name))}});
  return json_line(
      {{"superlink", study.federation.superlink},
       {"root_certificates", text_of(study.federation.root_certificates, "root_certificates")},
       {"clients", std::move(clients)},
       {"timeout", study.federation.timeout}});
}

// The program that carries messages over Flower: what the environment says, or what comes with the Python package.
std::vector<std::string> flower_command() {
  const char* given = std::getenv("STARFOLD_FLOWER");
  std::istringstream words(given != nullptr && *given != '\0' ? given : "starfold-flower");
  std::vector<std::string> command;
  for (std::string word; words >> word;) command.push_back(word);
  return command;
}

std::unique_ptr<Carrier> carrier_of(const Study& study, const RunControl& control) {
  if (study.federation.via == Federation::Via::flower) {
    constexpr double least_patience = 120;  // Flower takes its time to begin
    return process_carrier(flower_command(), flower_setup(study),
                           std::max(least_patience, study.federation.timeout), control.stop);
  }
  std::vector<std::string> sockets;
  for (const StudyClient& client : study.clients) sockets.push_back(client.node);
  return socket_carrier(std::move(sockets));
}

std::string checkpoint_folder(const Study& study) {
  if (!study.federation.checkpoint.empty()) return study.federation.checkpoint;
  return fs::path(study.file).replace_extension(".checkpoint").string();
}

}  // namespace

std::vector<NodeDescription> describe_nodes(const Study& study, const std::atomic<bool>* stop) {
  RunControl control;
  control.stop = stop;
  RemoteOptions options;
  options.on_dropout = RemoteOptions::Dropout::stop;
  options.timeout = study.federation.timeout;
  options.stop = stop;
  std::vector<std::string> names;
  for (const StudyClient& client : study.clients) names.push_back(client.name);
  const std::unique_ptr<Carrier> carrier = carrier_of(study, control);
  const std::vector<std::optional<Bytes>> answers = describe_all(*carrier, names, options);
  std::vector<NodeDescription> described;
  for (std::size_t i = 0; i < answers.size(); ++i)
    described.push_back(description_of(study.clients[i], answers[i].value()));
  return described;
}

RunReport run_over_nodes(const Study& study, const std::shared_ptr<const CompiledProgram>& program,
                         const Settings& settings, const RunControl& control) {
  std::vector<std::string> names;
  RunIdentity identity;
  for (const StudyClient& client : study.clients) {
    names.push_back(client.name);
    identity.sources.push_back(client.source);
  }
  Checkpoint checkpoint(checkpoint_folder(study));
  const std::optional<Bytes> saved = checkpoint.read();
  if (control.resume && !saved)
    throw RunError(
        fmt::format("there is no unfinished run in {}", printable(checkpoint_folder(study))));
  if (!control.resume && saved) checkpoint.put_aside();
  RemoteOptions options;
  options.on_dropout = study.federation.on_dropout;
  options.timeout = study.federation.timeout;
  options.watch = control.watch;
  options.awaited = control.awaited;
  options.stop = control.stop;
  options.checkpoint = [&](const Bytes& state) { checkpoint.write(state); };

  const std::unique_ptr<Carrier> carrier = carrier_of(study, control);
  const std::vector<std::optional<Bytes>> answers =
      describe_all(*carrier, names, options, control.resume);
  std::vector<DataSource> sources;
  FormulaRequest formula{study.formula, {}, {}};
  Descriptions descriptions(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const StudyClient& client = study.clients[i];
    if (answers[i]) descriptions[i] = description_of(client, *answers[i]);
    if (descriptions[i])
      sources.push_back(node_source(client.name, descriptions[i]->sources.at(client.source)));
    formula.sites.push_back(
        {client.name, descriptions[i] ? descriptions[i]->name : client.name, client.source});
  }
  require_order(study, descriptions);
  if (study.secure) identity.group = group_of(study, descriptions);
  const ir::Program& typed = program->compilation.program;
  const ColumnPlan columns =
      plan_columns(typed, sources, study.bindings, study.categoricals, formula);
  identity.run = new_run();
  identity.guarded = true;
  identity.sample = study.federation.sample;
  identity.study = fs::path(study.file).filename().string();
  identity.bindings = binding_text(bindings_of(columns, study.missing));
  if (study.privacy) {
    identity.terms.emplace();
    identity.terms->promise = *study.privacy;
    identity.terms->clients = static_cast<std::int64_t>(names.size());
  }

  Coordinator coordinator =
      control.resume ? Coordinator::resume(program, settings, names, *saved, control.stop, identity)
                     : Coordinator(program, settings, names, control.stop, identity);
  for (std::size_t i = 0; i < descriptions.size(); ++i) {
    if (!descriptions[i] && coordinator.awaits(i)) coordinator.leave(i);
  }
  RunReport report;
  try {
    report = run_remote(std::move(coordinator), *program, names, *carrier, options);
  } catch (const privacy::NotPrivate&) {
    checkpoint.finish();  // nothing was asked that could be gone on with
    throw;
  } catch (const ClientRefused& refused) {
    // What a policy has decided does not become another decision by waiting.
    const bool by_owner =
        refused.reason() == Refusal::pending || refused.reason() == Refusal::max_refusals;
    if (!rule_of(refused.reason()).empty() && !by_owner) checkpoint.finish();
    throw;
  } catch (const Unmet& unmet) {
    checkpoint.finish();
    throw named(unmet, typed, input_names(columns));
  }
  checkpoint.finish();
  report.sample = study.federation.sample;
  for (const StudyClient& client : study.clients) report.pinned_keys += client.key.empty() ? 0 : 1;
  report.columns = input_names(columns);
  report.references = reference_levels(columns);
  return report;
}

}  // namespace starfold
