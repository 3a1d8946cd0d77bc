#include "starfold/study/look/propose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/study/look/survey.h"
#include "starfold/study/study.h"
#include "starfold/toml/text.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

class Writer {
 public:
  Writer(const StudyProposal& proposal, const ir::Program& program)
      : proposal_(proposal), program_(program) {
    for (const std::string& text : proposal.data) add_client(text);
    survey_ = survey_clients(clients_, program);
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
      text += query_of(client);
      if (&client == &clients_.front() && !survey_.columns.empty()) text += client_help(client);
    }
    text += "\n[options]\n";
    text += missing_ ? "missing = \"drop\"     # some values are missing: such records are left "
                       "out; or \"nan\"\n"
                     : "# missing = \"error\"  # records with a missing value: \"error\", \"drop\" "
                       "or \"nan\"\n";
    text +=
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

  bool is_array(const std::string& name) const { return survey_.arrays.count(name) != 0; }

  // Inputs of rank 1 take the column of their name. Where there is none, the last column of numbers that is
  // left is a guess: a response is often written last.
  void choose_columns() {
    std::vector<const ir::Input*> without;
    for (const ir::Input& input : program_.inputs) {
      if (!input.type.federated() || input.type.rank() != 1 || is_array(input.name)) continue;
      if (survey_.find(input.name) != nullptr) {
        chosen_[input.name] = input.name;
      } else {
        without.push_back(&input);
      }
    }
    for (const ir::Input* input : without) {
      const auto last = std::find_if(survey_.columns.rbegin(), survey_.columns.rend(),
                                     [&](const SurveyColumn& column) {
                                       return column.kind == ColumnKind::number &&
                                              column.objection.empty() && !is_chosen(column.name);
                                     });
      if (last != survey_.columns.rend()) chosen_[input->name] = last->name;
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
    std::string left_out;
    for (const SurveyColumn& column : survey_.columns) {
      if (is_chosen(column.name)) continue;
      const bool date = column.kind == ColumnKind::date;
      const bool number = column.kind == ColumnKind::number || column.kind == ColumnKind::unknown;
      if (number && column.objection.empty()) columns.push_back(column.name);
      if (date || (number && !column.objection.empty()))
        left_out += fmt::format("# left out: {}; it {}\n", printable(column.name),
                                date ? "would be a number of days since 1970" : column.objection);
    }
    const Size& width = input.type.dims[1 - *input.type.record_axis()].size;
    if (width.is_constant() && static_cast<std::size_t>(width.constant()) < columns.size())
      columns.resize(static_cast<std::size_t>(width.constant()));
    if (columns.empty()) columns.emplace_back("COLUMN");
    return fmt::format(
               "{} = {}  # {}: columns side by side; \"*\" is every column not used elsewhere\n",
               input.name, toml_list(used(columns)), type) +
           left_out;
  }

  // Remembers what is used.
  const std::vector<std::string>& used(const std::vector<std::string>& columns) {
    for (const std::string& name : columns) {
      const SurveyColumn* column = survey_.find(name);
      missing_ = missing_ || (column != nullptr && column->missing);
    }
    return columns;
  }

  std::string one_column(const ir::Input& input) {
    const auto found = chosen_.find(input.name);
    const std::string column = found == chosen_.end() ? "COLUMN" : found->second;
    const std::string guess =
        column == input.name
            ? ""
            : fmt::format("; none is called {}, so this is a guess: choose one of {}", input.name,
                          fmt::join(candidate_names(), ", "));
    used({column});
    return fmt::format("{} = {}  # {}: one column{}\n", input.name, toml_text(column),
                       input.type.to_string(), guess);
  }

  // Numbers between which a mark such as ? stands are text unless a query says otherwise.
  std::string query_of(const StudyClient& client) const {
    const auto marked = survey_.marked.find(client.name);
    if (marked == survey_.marked.end()) return "";
    return fmt::format("query = {}  # a mark stands for a missing number\n",
                       toml_text(without_marks(marked->second)));
  }

  std::string client_help(const StudyClient& client) const {
    return std::string(survey_.marked.count(client.name) != 0
                           ? ""
                           : "# query = \"select * from data where age >= 18\"  # any one SELECT "
                             "over the data\n") +
           "# columns = { age = \"alder\" }  # what this client calls a column that others call "
           "age\n";
  }

  std::vector<std::string> candidate_names() const {
    std::vector<std::string> names;
    for (const SurveyColumn& column : survey_.columns) names.push_back(printable(column.name));
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

  std::string categoricals() const {
    std::string text;
    for (const SurveyColumn& candidate : survey_.columns) {
      if (candidate.kind != ColumnKind::text || !candidate.objection.empty()) continue;
      text += fmt::format(
          "\n# {} is text. To use it, add it to the columns of an input, or to a formula, and "
          "name its levels:\n"
          "# [categorical.{}]\n# levels = {}\n# coding = \"onehot\"  # or \"codes\": "
          "1, 2, ...\n"
          "# reference = {}   # the level without a column of its own\n",
          printable(candidate.name), toml_key(candidate.name),
          toml_list(candidate.levels.empty() ? std::vector<std::string>{"a", "b"}
                                             : candidate.levels),
          toml_text(candidate.levels.empty() ? "a" : candidate.levels.front()));
    }
    return text;
  }

  // As the study will have to say it.
  std::string relative(const std::string& path) const {
    if (proposal_.out.empty() || fs::path(path).is_absolute()) return path;
    return fs::proximate(fs::absolute(path), fs::absolute(proposal_.out).parent_path()).string();
  }
  std::string program_path() const {
    std::error_code ignored;
    return fs::exists(proposal_.program, ignored) ? relative(proposal_.program) : proposal_.program;
  }

  const StudyProposal& proposal_;
  const ir::Program& program_;
  std::vector<StudyClient> clients_;
  Survey survey_;
  bool missing_ = false;                       // some column that is used has holes
  std::map<std::string, std::string> chosen_;  // columns by input of rank 1
};

}  // namespace

std::string propose_study(const StudyProposal& proposal, const ir::Program& program) {
  return Writer(proposal, program).write();
}

}  // namespace starfold
