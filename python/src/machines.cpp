// Coordinator and node as machines: bytes in, bytes out. Any transport can carry a run between them.
#include "module.h"
#include "starfold/base/error.h"
#include "starfold/data/binding_text.h"
#include "starfold/federation/coordinator.h"
#include "starfold/federation/node.h"

namespace starfold::python {
namespace {

nb::bytes bytes_of(const Bytes& bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view_of_bytes(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

class CoordinatorMachine {
 public:
  CoordinatorMachine(const Program& program, std::vector<std::string> clients,
                     const nb::dict& shared, std::map<std::string, std::int64_t> sizes,
                     const std::string& run, const std::string& bindings)
      : program_(program.compiled), clients_(std::move(clients)) {
    for (const auto& [name, value] : shared)
      settings_.shared.emplace(nb::cast<std::string>(name), tensor_of(nb::cast<Array>(value)));
    for (auto& [name, value] : sizes) settings_.sizes[name] = value;
    identity_.run = run;
    identity_.bindings = bindings;
    guarded([&] {
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
  const std::string& trouble() const { return trouble_; }
  std::int64_t records() const { return node_ ? records_ : -1; }

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
      Bindings sent = parse_bindings(bindings);
      plan = std::move(sent.columns);
      missing = sent.missing;
    } else if (!brings_inputs(program, source, bindings_)) {
      plan = plan_columns(program, {source}, bindings_, levels_);
    }
    LoadedClient loaded =
        load_client(program, source, plan, {missing, engine_.threads}, tables_.room());
    records_ = reported(program, loaded.client);
    node_.emplace(std::move(loaded.client), cache_, engine_);
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
  std::string trouble_;
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
  } catch (const UsageError&) {
    raise_trouble(nullptr);
  } catch (const RunError&) {
    raise_trouble(nullptr);
  }
}

}  // namespace

void bind_machines(nb::module_& module) {
  nb::class_<CoordinatorMachine>(module, "Coordinator")
      .def(nb::init<const Program&, std::vector<std::string>, const nb::dict&,
                    std::map<std::string, std::int64_t>, const std::string&, const std::string&>())
      .def("resume", &CoordinatorMachine::resume)
      .def("save", [](const CoordinatorMachine& c) { return bytes_of(c.machine().save()); })
      .def("request", &CoordinatorMachine::request)
      .def("absorb", &CoordinatorMachine::absorb)
      .def("leave", &CoordinatorMachine::leave)
      .def_prop_ro("done", [](const CoordinatorMachine& c) { return c.machine().done(); })
      .def("awaits",
           [](const CoordinatorMachine& c, std::size_t client) { return c.machine().awaits(client); })
      .def_prop_ro("rounds",
                   [](const CoordinatorMachine& c) { return c.machine().rounds_run(); })
      .def("results",
           [](const CoordinatorMachine& c) { return as_dict(c.machine().results()); });
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
      .def_prop_ro("trouble", &NodeMachine::trouble)
      .def_prop_ro("records", &NodeMachine::records);
  module.def("describe_request",
             [] { return bytes_of(encode_message(DescribeMessage{})); });
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
