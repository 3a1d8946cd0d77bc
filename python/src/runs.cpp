// Runs: a program over clients whose data lies here or in files.
#include <algorithm>
#include <mutex>
#include <set>

#include "runs.h"
#include "starfold/page/entries.h"
#include "starfold/page/pages.h"
#include "starfold/study/options.h"
#include "starfold/study/output/folder.h"
#include "starfold/study/output/results.h"
#include "starfold/study/output/seal.h"
#include "starfold/study/program.h"

namespace starfold::python {
namespace {

std::map<std::string, nb::object> objects_of(const nb::dict& dict) {
  std::map<std::string, nb::object> objects;
  for (const auto& [name, value] : dict)
    objects.emplace(nb::cast<std::string>(name), nb::borrow(value));
  return objects;
}

StudyClient client_of(const std::string& name, const nb::handle& data, GivenByName& given) {
  StudyClient client;
  client.name = name;
  if (nb::isinstance<nb::str>(data)) {
    client.data.path = nb::cast<std::string>(data);
  } else if (nb::isinstance<nb::dict>(data)) {  // a query, perhaps over a file
    for (const auto& [key, value] : nb::cast<nb::dict>(data)) {
      const auto word = nb::cast<std::string>(key);
      (word == "query" ? client.data.query : client.data.path) = nb::cast<std::string>(value);
    }
  } else {
    given[name] = nb::cast<const Given&>(data).data();
  }
  return client;
}

Study read_study(const Program& program, const nb::list& clients, const Names& columns,
                 const nb::dict& values, const Names& levels, const nb::dict& options,
                 GivenByName& given) {
  Study study;
  study.program = program.compiled->text.name;
  for (const nb::handle pair : clients)
    study.clients.push_back(client_of(nb::cast<std::string>(pair[0]), pair[1], given));
  for (const auto& [input, names] : columns) {
    const bool rest = names.size() == 1 && names.front() == "*";
    study.bindings[input] = {rest ? std::vector<std::string>{} : names, rest};
  }
  for (const auto& [name, value] : objects_of(values))
    study.values.emplace(name, tensor_of(nb::cast<Array>(value)));
  for (const auto& [column, names] : levels) {
    auto categorical = std::make_shared<Categorical>();
    categorical->levels = names;
    study.categoricals[column] = std::move(categorical);
  }
  for (const auto& [name, value] : objects_of(options)) {
    if (name == "missing") study.missing = parse_missing(nb::cast<std::string>(value));
    if (name == "threads") study.threads = nb::cast<int>(value);
    if (name == "memory") study.memory = parse_memory(nb::cast<std::string>(value));
    if (name == "formula") study.formula = nb::cast<std::string>(value);
    if (name == "exact") study.exact = nb::cast<bool>(value);
    if (name == "out") study.out = nb::cast<std::string>(value);
    if (name == "sample") study.federation.sample.clients = nb::cast<std::int64_t>(value);
    if (name == "sample_seed") study.federation.sample.seed = nb::cast<double>(value);
    if (name == "client_details") study.client_details = nb::cast<bool>(value);
  }
  return study;
}

// What the watcher of a run saw last, for who shows it.
class Watched {
 public:
  void operator()(const Progress& progress) {
    const std::lock_guard lock(mutex_);
    rounds_ = progress.rounds;
    seconds_ = progress.seconds;
    round_seconds_ = progress.round_seconds;
    traces_.clear();
    for (const auto& [name, values] : progress.results->traces) {
      if (!values.empty()) traces_[name] = values.back();
    }
    fresh_ = true;
  }
  // Calls show(rounds, {trace: last}, seconds, seconds of the last round) if anything is new.
  void show(const nb::object& show) {
    nb::dict traces;
    std::unique_lock lock(mutex_);
    if (!fresh_) return;
    fresh_ = false;
    const auto [rounds, seconds, last] = std::tuple(rounds_, seconds_, round_seconds_);
    for (const auto& [name, value] : traces_) traces[name.c_str()] = value;
    lock.unlock();
    show(rounds, traces, seconds, last);
  }

 private:
  std::mutex mutex_;
  bool fresh_ = false;
  std::int64_t rounds_ = 0;
  double seconds_ = 0;
  double round_seconds_ = 0;
  std::map<std::string, double> traces_;
};

Run carry_out(Study study, const std::shared_ptr<const CompiledProgram>& program, bool reference,
              bool resume, const nb::object& progress, GivenByName given = {}) {
  std::atomic<bool> stop = false;
  Watched watched;
  std::optional<StudyRun> run;
  RunControl control;
  control.reference = reference;
  control.resume = resume;
  control.given = std::move(given);
  control.stop = &stop;
  if (!nb::isinstance<nb::bool_>(progress)) control.watch = [&](const Progress& p) { watched(p); };
  std::function<void()> look;
  if (!nb::isinstance<nb::bool_>(progress)) look = [&] { watched.show(progress); };
  work_aside(
      [&] {
        if (!study.out.empty()) check_results_folder(study, *program);
        run = run_study(std::move(study), program, control);
        if (!run->study.out.empty()) write_results(*run);
      },
      stop, look, program.get());
  return {std::move(*run)};
}

Run run_program(const Program& program, const nb::list& clients, const Names& columns,
                const nb::dict& values, const Names& levels, const nb::dict& options,
                bool reference, const nb::object& progress) {
  GivenByName given;
  Study study = study_of(program, clients, columns, values, levels, options, given);
  const std::shared_ptr<const CompiledProgram> compiled = following(program, study, given);
  return carry_out(std::move(study), compiled, reference, false, progress, std::move(given));
}

// A study file, as `starfold run` takes it.
std::pair<Program, nb::object> open_study(const std::string& file) {
  try {
    auto study = std::make_shared<Study>(make_study({.file = file}));
    return {Program{open_program(*study)}, nb::cast(study)};
  } catch (const nb::python_error&) {
    throw;
  } catch (...) {
    raise_trouble(nullptr);
  }
}

nb::list clients_of(const Run& run) {
  nb::list clients;
  for (const ClientReport& client : run.run.report.clients) {
    nb::dict one;
    one["name"] = client.name;
    one["records"] = client.records == unknown_records ? nb::none() : nb::cast(client.records);
    one["bytes_sent"] = client.bytes_sent;
    one["bytes_received"] = client.bytes_received;
    one["numbers_sent"] = client.numbers_sent;
    one["dropped"] = client.dropped;
    clients.append(one);
  }
  return clients;
}

// The outputs in the groups in which a summary prints them, each with the names along its axes.
nb::list groups(const Run& run) {
  const ir::Program& program = run.run.program->compilation.program;
  const RunReport& report = run.run.report;
  const page::OutputLabels labels = page::output_labels(program, report.columns, report.sizes);
  nb::list all;
  for (const page::Group& group : page::groups_of(program, report.results.outputs, labels)) {
    nb::list entries;
    for (const page::Entry& entry : group) {
      nb::dict one;
      one["name"] = entry.name;
      one["rows"] = entry.rows;
      one["columns"] = entry.columns;
      entries.append(one);
    }
    all.append(entries);
  }
  return all;
}

template <typename Work>
auto without_lock(const Work& work, const CompiledProgram* program) {
  try {
    const nb::gil_scoped_release released;
    return work();
  } catch (...) {
    raise_trouble(program);
  }
}

}  // namespace

Study study_of(const Program& program, const nb::list& clients, const Names& columns,
               const nb::dict& values, const Names& levels, const nb::dict& options,
               GivenByName& given) {
  try {
    return read_study(program, clients, columns, values, levels, options, given);
  } catch (const nb::python_error&) {
    throw;
  } catch (const nb::cast_error&) {
    throw;
  } catch (const std::runtime_error&) {
    raise_trouble(program.compiled.get());
  }
}

std::shared_ptr<const CompiledProgram> following(const Program& program, const Study& study,
                                                 const GivenByName& given) {
  try {
    const bool intercept = study.formula.empty() || has_intercept(study.formula);
    const auto& inputs = program.compiled->compilation.program.inputs;
    const auto is_input = [&](const std::string& name) {
      return std::any_of(inputs.begin(), inputs.end(),
                         [&](const auto& input) { return input.name == name; });
    };
    const bool known = std::all_of(study.bindings.begin(), study.bindings.end(),
                                   [&](const auto& binding) { return is_input(binding.first); });
    const bool offset = !study.formula.empty() && has_offset(study.formula);
    std::set<std::string> arrays;  // that are inputs which may be left out
    for (const auto& [client, table] : given) {
      const auto* const own = dynamic_cast<const GivenArrays*>(table.get());
      if (own == nullptr) continue;
      for (const auto& [name, array] : own->arrays()) {
        if (!is_input(name) && has_optional_input(program.compiled->text.text, name))
          arrays.insert(name);
      }
    }
    if (intercept && !study.exact && known && !offset && arrays.empty()) return program.compiled;
    return open_program(study, program.compiled->text, arrays);
  } catch (...) {
    raise_trouble(program.compiled.get());
  }
}

void bind_runs(nb::module_& module) {
  nb::class_<Study>(module, "Study");
  nb::class_<Run>(module, "Run")
      .def("results", [](const Run& r) { return as_dict(r.run.report.results); })
      .def_prop_ro("rounds", [](const Run& r) { return r.run.report.rounds; })
      .def_prop_ro("seconds", [](const Run& r) { return r.run.report.seconds; })
      .def_prop_ro("columns", [](const Run& r) { return r.run.report.columns; })
      .def_prop_ro("sizes",
                   [](const Run& r) {
                     nb::dict sizes;
                     for (const auto& [name, value] : r.run.report.sizes)
                       sizes[std::string(name).c_str()] = value;
                     return sizes;
                   })
      .def("clients", &clients_of)
      .def("groups", &groups)
      .def("json", [](const Run& r) { return run_json(r.run); })
      .def("text", [](const Run& r) { return report_text(r.run.report, *r.run.program); })
      .def("page", [](const Run& r) { return report_html(r.run.report, *r.run.program); })
      .def("write_page",
           [](const Run& r, const std::string& path) {
             without_lock([&] { write_page(path, report_html(r.run.report, *r.run.program)); },
                          r.run.program.get());
           })
      .def("save", [](const Run& r, const std::string& folder) {
        StudyRun copy = r.run;
        copy.study.out = folder;
        without_lock(
            [&] {
              check_results_folder(copy.study, *copy.program);
              write_results(copy);
            },
            r.run.program.get());
      });
  module.def("run", &run_program);
  module.def("open_study", &open_study);
  module.def("run_study", [](const Program& program, const std::shared_ptr<Study>& study,
                             bool reference, bool resume, const nb::object& progress) {
    return carry_out(*study, program.compiled, reference, resume, progress);
  });
}

}  // namespace starfold::python
