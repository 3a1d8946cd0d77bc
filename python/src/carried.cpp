// A run of which some clients lie in parts elsewhere: what to ask whom, what came back, and in the end the same report as of any other.
#include "runs.h"
#include "starfold/base/data_error.h"
#include "starfold/federation/coordinator.h"
#include "starfold/study/load.h"

namespace starfold::python {
namespace {

nb::bytes bytes_from(const Bytes& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

// Each part answers like a client, and what parts say is merged: so a program may fold records, but not ask of whom they are.
void require_foldable(const ir::Program& program) {
  if (!tells_clients_apart(program)) return;
  throw StudyError(
      "this program computes with clients one by one (each client, client, private state, keep), "
      "which a client in parts cannot do: gather its records into one table");
}

class CarriedRun {
 public:
  CarriedRun(const Program& program, const nb::list& clients, const Names& columns,
             const nb::dict& values, const Names& levels, const nb::dict& options,
             const std::string& identity) {
    GivenByName given;
    run_.study = study_of(program, clients, columns, values, levels, options, given);
    run_.program = following(program, run_.study, given);
    guarded([&] { begin(given, identity); });
  }

  nb::bytes request(std::size_t client) const { return bytes_from(machine_->request(client)); }
  void absorb(std::size_t client, const nb::bytes& answer) {
    guarded([&] {
      ClientReport& report = run_.report.clients.at(client);
      const std::size_t asked = machine_->request(client).size();
      const Round* const round = machine_->round();
      const std::int64_t before = machine_->rounds_run();
      {
        const nb::gil_scoped_release released;
        report.numbers_sent += machine_->absorb(client, {answer.c_str(), answer.size()});
      }
      report.bytes_received += asked;
      report.bytes_sent += answer.size();
      if (round != nullptr && machine_->rounds_run() > before)
        ++run_.report.round_runs[static_cast<std::size_t>(round->number)];
    });
  }
  bool awaits(std::size_t client) const { return machine_->awaits(client); }
  bool done() const { return machine_->done(); }
  std::int64_t rounds() const { return machine_->rounds_run(); }
  // The last value of each trace.
  nb::dict traces() const {
    nb::dict last;
    if (machine_->round() == nullptr && !machine_->done()) return last;
    for (const auto& [name, values] : machine_->results().traces) {
      if (!values.empty()) last[name.c_str()] = values.back();
    }
    return last;
  }
  // The columns of tables that the program needs.
  const std::vector<std::string>& columns() const { return columns_; }
  void tell_records(std::size_t client, std::int64_t records, std::int64_t dropped) {
    ClientReport& report = run_.report.clients.at(client);
    report.records = records;
    report.dropped = dropped;
  }
  // What the run gave, once it is done.
  Run finish(double seconds) {
    RunReport& report = run_.report;
    report.results = machine_->results();
    report.rounds = machine_->rounds_run();
    report.sizes = machine_->sizes();
    report.seconds = seconds;
    report.sample = run_.study.federation.sample;
    complete_report(run_);
    return {run_};
  }

 private:
  void begin(const GivenByName& given, const std::string& identity) {
    const ir::Program& typed = run_.program->compilation.program;
    check_study(run_.study, typed);
    require_foldable(typed);
    const Settings settings = study_settings(run_.study, typed);
    Tables tables(TableLimits{});
    StudySources sources;
    try {
      sources = study_sources(run_.study, typed, given, tables);
    } catch (const RunError& error) {
      throw DataError(error);
    }
    RunIdentity own;
    own.run = identity;
    own.sample = run_.study.federation.sample;
    if (!sources.plan.empty())
      own.bindings = binding_text(bindings_of(sources.plan, run_.study.missing));
    for (const auto& [input, bound] : sources.plan.columns) {
      for (const BoundColumn& column : bound) columns_.push_back(column.name);
    }
    if (sources.plan.formula) {
      const std::vector<std::string> needed = sources.plan.formula->columns();
      columns_.insert(columns_.end(), needed.begin(), needed.end());
    }
    std::vector<std::string> names;
    for (const StudyClient& client : run_.study.clients) names.push_back(client.name);
    run_.report.columns = input_names(sources.plan);
    run_.report.references = reference_levels(sources.plan);
    run_.report.client_details = false;
    run_.report.round_runs.resize(static_cast<std::size_t>(run_.program->plan->rounds));
    for (const std::string& name : names)
      run_.report.clients.push_back({name, unknown_records, 0, 0});
    machine_.emplace(run_.program, settings, names, nullptr, own);
  }

  template <typename Work>
  void guarded(const Work& work) const {
    try {
      work();
    } catch (const nb::python_error&) {
      throw;
    } catch (const Unmet& unmet) {
      try {
        throw named(unmet, run_.program->compilation.program, run_.report.columns);
      } catch (...) {
        raise_trouble(run_.program.get());
      }
    } catch (...) {
      raise_trouble(run_.program.get());
    }
  }

  StudyRun run_;
  std::vector<std::string> columns_;
  std::optional<Coordinator> machine_;
};

}  // namespace

void bind_carried(nb::module_& module) {
  nb::class_<CarriedRun>(module, "CarriedRun")
      .def(nb::init<const Program&, const nb::list&, const Names&, const nb::dict&, const Names&,
                    const nb::dict&, const std::string&>())
      .def("request", &CarriedRun::request)
      .def("absorb", &CarriedRun::absorb)
      .def("awaits", &CarriedRun::awaits)
      .def_prop_ro("done", &CarriedRun::done)
      .def_prop_ro("rounds", &CarriedRun::rounds)
      .def("traces", &CarriedRun::traces)
      .def_prop_ro("columns", &CarriedRun::columns)
      .def("tell_records", &CarriedRun::tell_records)
      .def("finish", &CarriedRun::finish);
}

}  // namespace starfold::python
