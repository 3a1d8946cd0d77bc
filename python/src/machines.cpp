// Coordinator and node as machines: bytes in, bytes out. Any transport can carry a run between them.
#include <fmt/format.h>

#include <algorithm>

#include "runs.h"
#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/binding/binding_text.h"
#include "starfold/federation/coordinator.h"
#include "starfold/federation/node.h"
#include "starfold/study/study.h"

namespace starfold::python {
namespace {

nb::bytes bytes_of(const Bytes& bytes) { return nb::bytes(bytes.data(), bytes.size()); }
std::string_view view_of_bytes(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

class CoordinatorMachine {
 public:
  CoordinatorMachine(const Program& program, std::vector<std::string> clients,
                     const nb::dict& values, const Names& columns, RunIdentity identity, bool exact)
      : clients_(std::move(clients)), identity_(std::move(identity)) {
    Study study;
    study.exact = exact;
    for (const auto& [input, names] : columns) study.bindings[input] = {names, false};
    program_ = following(program, study);
    for (const auto& [name, value] : values)
      study.values.emplace(nb::cast<std::string>(name), tensor_of(nb::cast<Array>(value)));
    guarded([&] {
      check_columns(columns);
      check_study(study, program_->compilation.program);
      settings_ = study_settings(study, program_->compilation.program);
      machine_.emplace(program_, settings_, clients_, nullptr, identity_);
    });
  }

  void resume(const nb::bytes& saved) {
    guarded([&] {
      machine_.emplace(Coordinator::resume(program_, settings_, clients_, view_of_bytes(saved),
                                           nullptr, identity_));
    });
  }
  nb::bytes request(std::size_t client) const { return bytes_of(machine_->request(client)); }
  std::int64_t absorb(std::size_t client, const nb::bytes& answer) {
    std::int64_t numbers = 0;
    const std::string_view bytes = view_of_bytes(answer);
    guarded([&] {
      const nb::gil_scoped_release released;
      numbers = machine_->absorb(client, bytes);
    });
    return numbers;
  }
  const Coordinator& machine() const { return *machine_; }
  void leave(std::size_t client) {
    guarded([&] { machine_->leave(client); });
  }

 private:
  template <typename Work>
  void guarded(const Work& work) const {
    try {
      work();
    } catch (const nb::python_error&) {
      throw;
    } catch (...) {
      raise_trouble(program_.get());
    }
  }

  void check_columns(const Names& columns) const {
    const auto& inputs = program_->compilation.program.inputs;
    for (const auto& [name, bound] : columns) {
      if (std::none_of(inputs.begin(), inputs.end(), [&, &name = name](const ir::Input& input) {
            return input.type.federated() && input.name == name;
          }))
        throw StudyError(
            fmt::format("bind: the program has no federated input {}", printable(name)));
    }
  }

  std::shared_ptr<const CompiledProgram> program_;
  std::vector<std::string> clients_;
  Settings settings_;
  RunIdentity identity_;
  std::optional<Coordinator> machine_;
};

// A client with its data. Which columns become which input is known when the program comes: with its greeting.
class NodeMachine {
 public:
  NodeMachine(std::string name, nb::handle data, ColumnBindings bindings, Categoricals levels,
              Missing missing, int threads)
      : name_(std::move(name)),
        bindings_(std::move(bindings)),
        levels_(std::move(levels)),
        missing_(missing),
        tables_(TableLimits{}) {
    engine_.threads = threads;
    if (nb::isinstance<nb::str>(data)) {
      location_.path = nb::cast<std::string>(data);
    } else {
      given_ = nb::cast<const Given&>(data).data();
    }
  }

  Bytes handle(std::string_view request) {
    trouble_.clear();
    if (const std::optional<Refusal> refusal = prepare(request))
      return encode_message(RefuseMessage{*refusal});
    Bytes answer = node_->handle(request);
    if (node_->trouble()) trouble_ = node_->trouble()->what();
    return answer;
  }
  // The next request has this number: for a node that was made in the middle of a run.
  void go_on(std::uint64_t sequence) {
    if (node_) node_->go_on(sequence);
  }
  const std::string& trouble() const { return trouble_; }
  std::int64_t records() const { return node_ ? records_ : -1; }
  std::int64_t dropped() const { return dropped_; }

 private:
  // Binds the data to the program of a greeting.
  std::optional<Refusal> prepare(std::string_view request) {
    std::optional<StartMessage> start;
    try {
      Message message = decode_message(request);
      if (auto* found = std::get_if<StartMessage>(&message)) start = std::move(*found);
    } catch (const RunError& error) {
      if (node_) return std::nullopt;  // it says so itself
      trouble_ = error.what();
      return Refusal::unreadable;
    }
    if (!start) {
      if (node_) return std::nullopt;
      trouble_ = "no program was started";
      return Refusal::not_started;
    }
    const auto program = cache_.get(start->program, start->planning);
    if (!program->plan) {
      trouble_ = "the program has errors";
      return Refusal::program_errors;
    }
    try {
      bind(program->plan->program, start->bindings);
    } catch (const RunError& error) {
      trouble_ = error.what();
      return Refusal::data_misfit;
    }
    return std::nullopt;
  }

  void bind(const ir::Program& program, const std::string& bindings) {
    const DataSource source =
        given_ ? given_source(name_, given_) : open_source(program, name_, location_, tables_);
    ColumnPlan plan;
    Missing missing = missing_;
    if (!bindings.empty()) {
      const Bindings sent = parse_bindings(bindings);
      missing = sent.missing;
      if (!brings_inputs(program, source, bindings_)) plan = planned(program, source, sent);
    } else if (!brings_inputs(program, source, bindings_)) {
      plan = plan_columns(program, {source}, bindings_, levels_);
    }
    LoadedClient loaded =
        load_client(program, source, plan, {missing, engine_.threads}, tables_.room());
    records_ = reported(program, loaded.client);
    dropped_ = loaded.dropped;
    node_.emplace(std::move(loaded.client), cache_, engine_);
  }

  // What the coordinator says of columns, over those that are here.
  static ColumnPlan planned(const ir::Program& program, const DataSource& source,
                            const Bindings& sent) {
    ColumnBindings choices;
    Categoricals levels = sent.factors;
    for (const auto& [input, columns] : sent.columns) {
      for (const BoundColumn& column : columns) {
        choices[input].columns.push_back(column.name);
        if (column.categorical) levels[column.name] = column.categorical;
      }
    }
    try {
      return plan_columns(program, {source}, choices, levels, sent.formula);
    } catch (const formula::FormulaError& error) {
      throw RunError(error.what());
    }
  }

  static std::int64_t reported(const ir::Program& program, const Client& client) {
    const auto counts = record_counts(program, client);
    return counts.empty() ? 0 : counts.begin()->second;
  }

  std::string name_;
  std::shared_ptr<const Table> given_;
  TableLocation location_;
  ColumnBindings bindings_;
  Categoricals levels_;
  Missing missing_;
  Tables tables_;
  EngineOptions engine_;
  ProgramCache cache_;
  std::optional<Node> node_;
  std::int64_t records_ = 0;
  std::int64_t dropped_ = 0;
  std::string trouble_;
};

// Which columns become which input, for nodes that read their own tables; empty when nothing is bound.
Bindings bindings_of(const std::map<std::string, std::vector<std::string>>& columns,
                     const std::map<std::string, std::vector<std::string>>& levels,
                     const std::string& missing) {
  Bindings bindings;
  bindings.missing = parse_missing(missing);
  for (const auto& [input, names] : columns) {
    for (const std::string& name : names) {
      BoundColumn column{name, nullptr};
      if (const auto found = levels.find(name); found != levels.end()) {
        auto categorical = std::make_shared<Categorical>();
        categorical->levels = found->second;
        column.categorical = std::move(categorical);
      }
      bindings.columns[input].push_back(std::move(column));
    }
  }
  return bindings;
}

void make_coordinator(CoordinatorMachine* self, const Program& program,
                      std::vector<std::string> clients, const nb::dict& values,
                      const std::map<std::string, std::vector<std::string>>& columns,
                      const std::map<std::string, std::vector<std::string>>& levels,
                      const std::string& missing, const std::string& run, const std::string& study,
                      std::vector<std::string> sources, bool exact) {
  RunIdentity identity;
  identity.run = run;
  identity.study = study;
  identity.sources = std::move(sources);
  try {
    if (!columns.empty()) identity.bindings = binding_text(bindings_of(columns, levels, missing));
    new (self) CoordinatorMachine(program, std::move(clients), values, columns, std::move(identity),
                                  exact);
  } catch (const nb::python_error&) {
    throw;
  } catch (const std::runtime_error&) {
    raise_trouble(program.compiled.get());
  }
}

// Merges the answers of parts of one client into one answer: what the parts hold together is what the client holds.
class Merger {
 public:
  explicit Merger(std::string_view greeting) {
    const Message message = decode_message(greeting);
    const auto* start = std::get_if<StartMessage>(&message);
    if (start == nullptr) throw RunError("no program was started");
    program_ = cache_.get(start->program, start->planning);
    if (!program_->plan) throw RunError("the program has errors");
    rounds_ = rounds_of(*program_->plan);
  }

  Bytes merge(std::string_view a, std::string_view b) const {
    Message left = decode_message(a);
    const Message right = decode_message(b);
    if (const auto* hello = std::get_if<HelloMessage>(&left)) {
      const auto* other = std::get_if<HelloMessage>(&right);
      if (other == nullptr || other->agreement != hello->agreement || other->sizes != hello->sizes)
        throw RunError("the parts of a client disagree on their columns");
      return Bytes(a);
    }
    auto* state = std::get_if<StateMessage>(&left);
    const auto* other = std::get_if<StateMessage>(&right);
    if (state == nullptr || other == nullptr || state->round != other->round ||
        state->sequence != other->sequence || state->agreement != other->agreement ||
        state->round >= rounds_.size())
      throw RunError("the parts of a client answer different questions");
    const std::vector<Merge>& merges = rounds_[state->round]->merges;
    if (state->states.size() != merges.size() || other->states.size() != merges.size())
      throw RunError("the parts of a client answer different questions");
    for (std::size_t i = 0; i < merges.size(); ++i)
      merges[i].monoid->merge(state->states[i], other->states[i]);
    return encode_message(left);
  }

 private:
  ProgramCache cache_;
  std::shared_ptr<const CompiledProgram> program_;
  std::vector<const Round*> rounds_;
};

void make_node(NodeMachine* self, const std::string& name, nb::object data,
               const std::map<std::string, std::vector<std::string>>& columns,
               const std::map<std::string, std::vector<std::string>>& levels,
               const std::string& missing, int threads) {
  ColumnBindings bindings;
  for (const auto& [input, names] : columns) {
    const bool rest = names.size() == 1 && names.front() == "*";
    bindings[input] = {rest ? std::vector<std::string>{} : names, rest};
  }
  Categoricals categoricals;
  for (const auto& [column, names] : levels) {
    auto categorical = std::make_shared<Categorical>();
    categorical->levels = names;
    categoricals[column] = std::move(categorical);
  }
  try {
    new (self) NodeMachine(name, data, std::move(bindings), std::move(categoricals),
                           parse_missing(missing), threads);
  } catch (const std::runtime_error&) {
    raise_trouble(nullptr);
  }
}

}  // namespace

void bind_machines(nb::module_& module) {
  nb::class_<CoordinatorMachine>(module, "Coordinator")
      .def("__init__", &make_coordinator)
      .def("resume", &CoordinatorMachine::resume)
      .def("save", [](const CoordinatorMachine& c) { return bytes_of(c.machine().save()); })
      .def("request", &CoordinatorMachine::request)
      .def("absorb", &CoordinatorMachine::absorb)
      .def("leave", &CoordinatorMachine::leave)
      .def_prop_ro("done", [](const CoordinatorMachine& c) { return c.machine().done(); })
      .def("awaits", [](const CoordinatorMachine& c,
                        std::size_t client) { return c.machine().awaits(client); })
      .def_prop_ro("rounds", [](const CoordinatorMachine& c) { return c.machine().rounds_run(); })
      .def("results", [](const CoordinatorMachine& c) { return as_dict(c.machine().results()); });
  nb::class_<NodeMachine>(module, "Node")
      .def("__init__", &make_node)
      .def("handle",
           [](NodeMachine& node, const nb::bytes& request) {
             const std::string_view bytes = view_of_bytes(request);
             Bytes answer;
             {
               const nb::gil_scoped_release released;
               answer = node.handle(bytes);
             }
             return bytes_of(answer);
           })
      .def("go_on", &NodeMachine::go_on)
      .def_prop_ro("trouble", &NodeMachine::trouble)
      .def_prop_ro("records", &NodeMachine::records)
      .def_prop_ro("dropped", &NodeMachine::dropped);
  nb::class_<Merger>(module, "Merger")
      .def("__init__",
           [](Merger* self, const nb::bytes& greeting) {
             try {
               new (self) Merger(view_of_bytes(greeting));
             } catch (const RunError&) {
               raise_trouble(nullptr);
             }
           })
      .def("merge", [](const Merger& merger, const nb::bytes& a, const nb::bytes& b) {
        try {
          return bytes_of(merger.merge(view_of_bytes(a), view_of_bytes(b)));
        } catch (const RunError&) {
          raise_trouble(nullptr);
        }
      });
  module.def("describe_request", [] { return bytes_of(encode_message(DescribeMessage{})); });
  module.def("message_kind", [](const nb::bytes& bytes) -> std::string {
    try {
      const Message message = decode_message(view_of_bytes(bytes));
      if (const auto* refused = std::get_if<RefuseMessage>(&message))
        return "refuse: " + std::string(sentence(refused->reason));
      if (const auto* description = std::get_if<DescriptionMessage>(&message))
        return "description: " + description->text;
      constexpr const char* names[] = {"start", "hello", "encode", "state"};
      return message.index() < 4 ? names[message.index()] : "describe";
    } catch (const RunError&) {
      return "unreadable";
    }
  });
}

}  // namespace starfold::python
