// starfold init: a commented study file for a program and data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/commands.h"
#include "cli/load.h"
#include "starfold/base/utf8.h"
#include "starfold/data/study.h"

namespace starfold::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string program;
  std::vector<std::string> data;
  std::string out;
};

std::string toml_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      quoted += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// A key, in quotes only where it needs them.
std::string toml_key(const std::string& text) {
  const bool bare = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  return bare ? text : toml_text(text);
}

std::string toml_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(toml_text(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

// A column that all clients have.
struct Candidate {
  std::string name;
  ColumnKind kind = ColumnKind::unknown;
};

class Writer {
 public:
  Writer(const Arguments& arguments, const ir::Program& program)
      : arguments_(arguments), program_(program) {
    for (const std::string& text : arguments.data) add_client(text);
    find_candidates();
    choose_columns();
  }

  std::string write() {
    std::string text =
        "# A study: which program runs over whose data. Run it with: starfold run THIS_FILE\n\n";
    text += fmt::format("program = {}\n\n[inputs]\n", toml_text(program_path()));
    for (const ir::Input& input : program_.inputs)
      text += input.type.federated() ? federated(input) : shared(input);
    text += sizes();
    text += categoricals();
    for (const StudyClient& client : clients_) {
      text += fmt::format("\n[[client]]\nname = {}\ndata = {}\n", toml_text(client.name),
                          toml_text(relative(client.data.path)));
      if (&client == &clients_.front() && !candidates_.empty()) text += client_help();
    }
    text +=
        "\n[options]\n"
        "# missing = \"error\"  # records with a missing value: \"error\", \"drop\" or \"nan\"\n"
        "# memory = \"2GB\"     # larger tables are read again in every round\n"
        "# threads = 2\n"
        "# out = \"results\"    # a folder for results\n";
    return text;
  }

 private:
  // NAME=PATH, or a path whose file name names the client.
  void add_client(const std::string& text) {
    const std::size_t at = text.find('=');
    std::error_code ignored;
    StudyClient client;
    const bool named = at != std::string::npos && at > 0 && !fs::exists(text, ignored);
    client.data.path = named ? text.substr(at + 1) : text;
    client.name = named ? text.substr(0, at) : fs::path(text).stem().string();
    for (const StudyClient& other : clients_) {
      if (other.name == client.name)
        throw StudyError(fmt::format("two clients are named {}; write NAME=PATH", client.name));
    }
    clients_.push_back(std::move(client));
  }

  void find_candidates() {
    Tables tables({});
    std::vector<DataSource> sources;
    for (const StudyClient& client : clients_)
      sources.push_back(open_source(program_, client.name, client.data, tables));
    for (const DataSource& source : sources) {
      if (source.table && !source.table->names_are_safe())
        throw RunError(
            fmt::format("client {}: the first line may be a record, so its names are not copied",
                        source.client));
    }
    const DataSource& first = sources.front();
    for (std::size_t i = 0; i < first.order.size(); ++i) {
      const std::string& name = first.order[i];
      const auto has = [&](const DataSource& source) { return source.has_column(name); };
      if (name.empty() || !std::all_of(sources.begin(), sources.end(), has)) continue;
      candidates_.push_back(
          {name, first.table ? first.table->columns()[i].kind : ColumnKind::number});
    }
    for (const auto& [name, array] : first.arrays) arrays_.push_back(name);
  }

  bool is_candidate(const std::string& name) const {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [&](const Candidate& c) { return c.name == name; });
  }

  bool is_array(const std::string& name) const {
    return std::find(arrays_.begin(), arrays_.end(), name) != arrays_.end();
  }

  // Inputs of rank 1 take the column of their name. Where there is none, the last column of numbers that is
  // left is a guess: a response is often written last.
  void choose_columns() {
    std::vector<const ir::Input*> without;
    for (const ir::Input& input : program_.inputs) {
      if (!input.type.federated() || input.type.rank() != 1 || is_array(input.name)) continue;
      if (is_candidate(input.name)) {
        chosen_[input.name] = input.name;
      } else {
        without.push_back(&input);
      }
    }
    for (const ir::Input* input : without) {
      const auto last = std::find_if(candidates_.rbegin(), candidates_.rend(), [&](const auto& c) {
        return c.kind == ColumnKind::number && !is_chosen(c.name);
      });
      if (last != candidates_.rend()) chosen_[input->name] = last->name;
    }
  }

  bool is_chosen(const std::string& column) const {
    return std::any_of(chosen_.begin(), chosen_.end(),
                       [&](const auto& entry) { return entry.second == column; });
  }

  std::string federated(const ir::Input& input) {
    const std::string type = input.type.to_string();
    if (is_array(input.name))
      return fmt::format("# {} takes the array of its name  # {}\n", input.name, type);
    if (input.type.rank() == 1) return one_column(input);
    if (input.type.rank() > 2)
      return fmt::format("# {} needs arrays (.npy, .npz)  # {}\n", input.name, type);
    std::vector<std::string> columns;
    std::vector<std::string> dates;
    for (const Candidate& candidate : candidates_) {
      if (is_chosen(candidate.name)) continue;
      if (candidate.kind == ColumnKind::date) dates.push_back(printable(candidate.name));
      if (candidate.kind == ColumnKind::number || candidate.kind == ColumnKind::unknown)
        columns.push_back(candidate.name);
    }
    const Size& width = input.type.dims[1 - *input.type.record_axis()].size;
    if (width.is_constant() && static_cast<std::size_t>(width.constant()) < columns.size())
      columns.resize(static_cast<std::size_t>(width.constant()));
    if (columns.empty()) columns.emplace_back("COLUMN");
    return fmt::format(
               "{} = {}  # {}: columns side by side; \"*\" is every column not used elsewhere\n",
               input.name, toml_list(columns), type) +
           (dates.empty() ? ""
                          : fmt::format("# left out: {}; a date is a number of days since 1970\n",
                                        fmt::join(dates, ", ")));
  }

  std::string one_column(const ir::Input& input) const {
    const auto found = chosen_.find(input.name);
    const std::string column = found == chosen_.end() ? "COLUMN" : found->second;
    const std::string guess =
        column == input.name
            ? ""
            : fmt::format("; none is called {}, so this is a guess: choose one of {}", input.name,
                          fmt::join(candidate_names(), ", "));
    return fmt::format("{} = {}  # {}: one column{}\n", input.name, toml_text(column),
                       input.type.to_string(), guess);
  }

  static std::string client_help() {
    return "# query = \"select * from data where age >= 18\"  # any one SELECT over the data\n"
           "# columns = { age = \"alder\" }  # what this client calls a column that others call "
           "age\n";
  }

  std::vector<std::string> candidate_names() const {
    std::vector<std::string> names;
    for (const Candidate& candidate : candidates_) names.push_back(printable(candidate.name));
    return names;
  }

  static std::string shared(const ir::Input& input) {
    const bool fallback = input.fallback != ir::no_node;
    return fmt::format("# {} = 0  # {}: a number, an array or \"@file.npy\"; {}\n", input.name,
                       input.type.to_string(),
                       fallback ? "the program has a default" : "it needs a value");
  }

  std::string sizes() const {
    std::string text;
    for (const ir::SizeVariable& size : program_.sizes) {
      if (size.value) text += fmt::format("# {} = {}\n", size.name, *size.value);
    }
    return text.empty() ? "" : "\n[sizes]\n" + text;
  }

  // Levels are values of records: they are for people to write.
  std::string categoricals() const {
    std::string text;
    for (const Candidate& candidate : candidates_) {
      if (candidate.kind != ColumnKind::text) continue;
      text += fmt::format(
          "\n# {} is text. To use it, add it to the columns of an input and name its levels:\n"
          "# [categorical.{}]\n# levels = [\"a\", \"b\"]\n# coding = \"onehot\"  # or \"codes\": "
          "1, 2, ...\n"
          "# reference = \"a\"   # the level without a column of its own\n",
          printable(candidate.name), toml_key(candidate.name));
    }
    return text;
  }

  // As the study will have to say it.
  std::string relative(const std::string& path) const {
    if (arguments_.out.empty() || fs::path(path).is_absolute()) return path;
    return fs::proximate(fs::absolute(path), fs::absolute(arguments_.out).parent_path()).string();
  }
  std::string program_path() const {
    std::error_code ignored;
    return fs::exists(arguments_.program, ignored) ? relative(arguments_.program)
                                                   : arguments_.program;
  }

  const Arguments& arguments_;
  const ir::Program& program_;
  std::vector<StudyClient> clients_;
  std::vector<Candidate> candidates_;
  std::vector<std::string> arrays_;
  std::map<std::string, std::string> chosen_;  // columns by input of rank 1
};

void write_new_file(const std::string& path, const std::string& text) {
  std::error_code ignored;
  if (fs::exists(path, ignored))
    throw StudyError(fmt::format("{} exists already and is not overwritten", path));
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.flush();
  if (!out) throw RunError(fmt::format("{} cannot be written", path));
}

int init(const Arguments& arguments) {
  const std::shared_ptr<const CompiledProgram> program = load_program(arguments.program, false);
  if (!program) return exit_usage;
  if (!program->plan) return exit_refused;
  try {
    const std::string text = Writer(arguments, program->compilation.program).write();
    if (arguments.out.empty()) {
      fmt::print("{}", text);
    } else {
      write_new_file(arguments.out, text);
    }
    return exit_done;
  } catch (const StudyError& error) {
    fmt::print(stderr, "error: {}\n", printable_lines(error.what()));
    return exit_usage;
  } catch (const RunError& error) {
    print_run_error(error, program->compilation.sources, false);
    return exit_failed;
  }
}

}  // namespace

void add_init(CLI::App& app, int& status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("init", "write a study file for a program and data");
  command->add_option("PROGRAM", arguments->program, "a program, or the name of a library program")
      ->required();
  command->add_option("DATA", arguments->data, "NAME=PATH or PATH: the data of each client")
      ->required();
  command->add_option("--out", arguments->out, "write to this new file instead of standard output");
  command->callback([arguments, &status] { status = init(*arguments); });
}

}  // namespace starfold::cli
