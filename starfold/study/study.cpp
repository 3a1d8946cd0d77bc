#include "starfold/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/suggest.h"
#include "starfold/base/utf8.h"
#include "starfold/data/memory.h"
#include "starfold/data/text/dialect_toml.h"
#include "starfold/toml/reader.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

class Reader : TomlReader {
 public:
  explicit Reader(const std::string& file) : TomlReader(file, "a study") {}

  Study read(const toml::table& root) {
    study_.file = file();
    only(root, "",
         {"title", "program", "inputs", "sizes", "client", "categorical", "options", "federation",
          "privacy", "secure_aggregation"});
    if (const toml::node* title = root.get("title")) study_.title = string(*title, "title");
    const toml::node* program = root.get("program");
    if (program == nullptr)
      fail(root, "program is missing: a path, or the name of a library program");
    study_.program = program_path(string(*program, "program"));
    if (const toml::node* inputs = root.get("inputs")) read_inputs(table(*inputs, "inputs"));
    if (const toml::node* sizes = root.get("sizes")) read_sizes(table(*sizes, "sizes"));
    if (const toml::node* declared = root.get("categorical"))
      read_categoricals(table(*declared, "categorical"));
    if (const toml::node* options = root.get("options")) read_options(table(*options, "options"));
    read_clients(root);
    read_federation(root);
    if (const toml::node* section = root.get("privacy")) read_privacy(table(*section, "privacy"));
    if (const toml::node* section = root.get("secure_aggregation"))
      read_secure_aggregation(table(*section, "secure_aggregation"));
    return std::move(study_);
  }

 private:
  // A file beside the study, or else a name for the library.
  std::string program_path(const std::string& written) const {
    std::error_code ignored;
    const bool file = fs::exists(path(written), ignored) || fs::path(written).has_extension() ||
                      fs::path(written).has_parent_path();
    return file ? path(written) : written;
  }

  // --- [inputs] and [sizes]

  void read_inputs(const toml::table& inputs) {
    for (const auto& [key, node] : inputs) {
      const std::string name(key.str());
      if (name == "formula" && node.is_string()) {
        study_.formula = node.as_string()->get();
        if (study_.formula.empty()) fail(node, "inputs.formula is empty");
        continue;
      }
      study_.lines[name] = key.source().begin.line;
      if (node.is_string() && !node.as_string()->get().starts_with("@")) {
        const std::string column = node.as_string()->get();
        if (column.empty()) fail(node, fmt::format("inputs.{} names no column", name));
        study_.bindings[name] = {column == "*" ? std::vector<std::string>{} : std::vector{column},
                                 column == "*"};
      } else if (node.is_string()) {
        study_.value_files.emplace(name, path(node.as_string()->get().substr(1)));
      } else if (is_columns(node)) {
        study_.bindings[name] = {columns(*node.as_array(), name), false};
      } else {
        study_.values.emplace(name, value(node, name));
      }
    }
  }

  static bool is_columns(const toml::node& node) {
    return node.is_array() && !node.as_array()->empty() && node.as_array()->front().is_string();
  }

  std::vector<std::string> columns(const toml::array& list, const std::string& name) const {
    std::vector<std::string> result;
    std::set<std::string> seen;
    for (const toml::node& entry : list) {
      result.push_back(string(entry, fmt::format("each column of inputs.{}", name)));
      if (!seen.insert(result.back()).second) {
        fail(entry, fmt::format("inputs.{} names column {} twice", name, printable(result.back())));
      }
    }
    return result;
  }

  Tensor value(const toml::node& node, const std::string& name) {
    if (const auto number = node.value<double>(); number && !node.is_boolean())
      return Tensor::scalar(*number);
    if (!node.is_array() || node.as_array()->empty()) {
      fail(node, fmt::format("inputs.{} must be columns (\"age\", [\"age\", \"bmi\"], \"*\") or a "
                             "value (a number, an array, "
                             "\"@file.npy\"), not {}",
                             name, node.is_array() ? "an empty array" : type_name(node)));
    }
    Tensor whole;
    whole.data.clear();
    bool first = true;
    for (const toml::node& entry : *node.as_array()) {
      if (entry.is_string()) fail(entry, fmt::format("inputs.{} mixes numbers and strings", name));
      const Tensor part = value(entry, name);
      if (!first && part.shape != whole.shape)
        fail(entry, fmt::format("inputs.{}: the rows of the array differ in length", name));
      whole.shape = part.shape;
      whole.data.insert(whole.data.end(), part.data.begin(), part.data.end());
      first = false;
    }
    whole.shape.insert(whole.shape.begin(), static_cast<std::int64_t>(node.as_array()->size()));
    return whole;
  }

  void read_sizes(const toml::table& sizes) {
    for (const auto& [key, node] : sizes) {
      const std::string name(key.str());
      study_.lines[name] = key.source().begin.line;
      const auto size = static_cast<double>(integer(node, "sizes." + name, 1));
      if (study_.value_files.contains(name) ||
          !study_.values.emplace(name, Tensor::scalar(size)).second)
        fail(node, fmt::format("{} has a value in [inputs] already", name));
    }
  }

  // --- [categorical.NAME]

  void read_categoricals(const toml::table& declared) {
    for (const auto& [key, node] : declared) {
      const std::string name(key.str());
      const std::string where = "categorical." + name;
      const toml::table& section = table(node, where);
      only(section, where, {"levels", "coding", "reference"});
      auto result = std::make_shared<Categorical>();
      result->levels = levels(section, where);
      if (const toml::node* coding = section.get("coding")) {
        const std::string word = string(*coding, where + ".coding");
        if (word != "onehot" && word != "codes")
          fail(*coding, fmt::format("{}.coding must be \"onehot\" or \"codes\"", where));
        if (word == "codes") result->coding = Categorical::Coding::codes;
      }
      if (const toml::node* reference = section.get("reference"))
        read_reference(*reference, where, *result);
      if (result->width() == 0)
        fail(section, fmt::format("{} has only its reference level", where));
      study_.categoricals.emplace(name, std::move(result));
    }
  }

  std::vector<std::string> levels(const toml::table& section, const std::string& where) const {
    const toml::node* list = section.get("levels");
    if (list == nullptr)
      fail(section, fmt::format("[{}] needs levels, for example levels = [\"f\", \"m\"]", where));
    if (!list->is_array() || list->as_array()->empty())
      fail(*list, fmt::format("{}.levels must be an array of strings or integers", where));
    std::vector<std::string> result;
    std::set<std::string> seen;
    for (const toml::node& entry : *list->as_array()) {
      result.push_back(level(entry, where + ".levels"));
      if (!seen.insert(result.back()).second)
        fail(entry, fmt::format("{}.levels names a level twice", where));
    }
    return result;
  }

  std::string level(const toml::node& node, const std::string& name) const {
    if (node.is_string()) return node.as_string()->get();
    if (node.is_integer()) return std::to_string(node.as_integer()->get());
    if (node.is_boolean()) return node.as_boolean()->get() ? "true" : "false";
    fail(node, fmt::format("{} must hold strings or integers, not {}", name, type_name(node)));
  }

  void read_reference(const toml::node& node, const std::string& where,
                      Categorical& categorical) const {
    if (categorical.coding == Categorical::Coding::codes)
      fail(node, fmt::format("{}.reference is for coding = \"onehot\"", where));
    if (node.is_boolean() && !node.as_boolean()->get()) {
      categorical.reference = categorical.levels.size();
      return;
    }
    const auto found = std::find(categorical.levels.begin(), categorical.levels.end(),
                                 level(node, where + ".reference"));
    if (found == categorical.levels.end())
      fail(node, fmt::format("{}.reference is none of its levels", where));
    categorical.reference = static_cast<std::size_t>(found - categorical.levels.begin());
  }

  // --- [[client]]

  void read_clients(const toml::table& root) {
    const toml::node* list = root.get("client");
    if (list == nullptr) return;
    if (!list->is_array() || !list->as_array()->is_homogeneous<toml::table>()) {
      fail(*list, "clients are written as sections [[client]], each with a name and data");
    }
    std::set<std::string> seen;
    for (const toml::node& node : *list->as_array()) {
      StudyClient client = read_client(*node.as_table());
      if (!seen.insert(client.name).second)
        fail(node, fmt::format("two clients are named {}", printable(client.name)));
      study_.clients.push_back(std::move(client));
    }
  }

  StudyClient read_client(const toml::table& section) const {
    only(section, "client",
         with_dialect_keys(
             {"name", "data", "query", "columns", "node", "source", "public_key", "key"}));
    StudyClient client;
    client.data.dialect = dialect_;
    read_dialect(*this, section, "client", client.data.dialect);
    client.data.folder = folder().empty() ? "." : folder().string();
    const toml::node* name = section.get("name");
    if (name == nullptr) fail(section, "a client needs a name");
    client.name = string(*name, "client.name");
    if (client.name.empty()) fail(*name, "client.name is empty");
    if (const toml::node* data = section.get("data"))
      client.data.path = path(string(*data, "client.data"));
    if (const toml::node* query = section.get("query"))
      client.data.query = string(*query, "client.query");
    if (const toml::node* node = section.get("node")) {
      client.node = path(string(*node, "client.node"));
      constexpr std::size_t longest = 107;  // what the system takes
      if (client.node.size() > longest)
        fail(*node, fmt::format("the path of the socket, {}, has {} bytes; sockets may have at "
                                "most {}",
                                printable(client.node), client.node.size(), longest));
    }
    if (const toml::node* source = section.get("source"))
      client.source = string(*source, "client.source");
    if (const toml::node* key = section.get("public_key"))
      client.public_key = path(string(*key, "client.public_key"));
    if (const toml::node* key = section.get("key")) {
      client.key = string(*key, "client.key");
      if (!secure::parse_key(client.key))
        fail(
            *key,
            "client.key is the key of a node: 64 digits from 0 to f, as `starfold node key` prints "
            "it");
    }
    const bool here = !client.data.path.empty() || !client.data.query.empty();
    const bool away = !client.node.empty() || !client.source.empty() || !client.public_key.empty();
    if (here == away) {
      fail(section,
           fmt::format("client {} needs data (a file) or a query{}", printable(client.name),
                       here ? ", or it is a node with a source, but not both"
                            : ", or the source of a node"));
    }
    if (away && client.source.empty())
      fail(section, fmt::format("client {} needs the source of its node: the name of a table there",
                                printable(client.name)));
    if (const toml::node* columns = section.get("columns")) {
      for (const auto& [key, node] : table(*columns, "client.columns")) {
        client.data.columns.emplace(std::string(key.str()),
                                    string(node, fmt::format("client.columns.{}", key.str())));
      }
    }
    return client;
  }

  // --- [privacy]

  void read_privacy(const toml::table& section) {
    only(section, "privacy", {"unit", "neighbours", "epsilon", "delta", "at", "seed"});
    privacy::Promise promise;
    if (const toml::node* node = section.get("unit");
        node != nullptr && word(*node, "privacy.unit", {"record", "client"}) == "client")
      promise.unit = privacy::Unit::client;
    if (const toml::node* node = section.get("neighbours");
        node != nullptr &&
        word(*node, "privacy.neighbours", {"add_remove", "replace"}) == "replace")
      promise.neighbours = privacy::Neighbours::replace;
    const toml::node* epsilon = section.get("epsilon");
    if (epsilon == nullptr) fail(section, "privacy.epsilon is missing, for example epsilon = 1.0");
    promise.epsilon = number(*epsilon, "privacy.epsilon");
    if (const toml::node* node = section.get("delta"))
      promise.delta = number(*node, "privacy.delta");
    if (const toml::node* node = section.get("at")) {
      using privacy::At;
      const std::string where =
          word(*node, "privacy.at", {"server", "client", "output", "distributed"});
      for (const At at : {At::server, At::client, At::output, At::distributed})
        if (where == to_string(at)) promise.at = at;
    }
    if (const toml::node* node = section.get("seed")) {
      const double seed = number(*node, "privacy.seed");
      if (!(seed >= 0) || seed != std::floor(seed) || seed > 0x1p53)
        fail(*node, "privacy.seed must be a whole number");
      promise.seed = static_cast<std::uint64_t>(seed);
    }
    if (const std::string wrong = wrong_with(promise); !wrong.empty())
      fail(section, fmt::format("privacy: {}", wrong));
    study_.privacy = promise;
  }

  // --- [federation]

  void read_federation(const toml::table& root) {
    const auto away = [](const StudyClient& client) { return !client.source.empty(); };
    const std::size_t nodes =
        static_cast<std::size_t>(std::count_if(study_.clients.begin(), study_.clients.end(), away));
    Federation& federation = study_.federation;
    if (nodes > 0) federation.via = Federation::Via::sockets;
    if (nodes > 0 && nodes < study_.clients.size())
      fail(*root.get("client"), "some clients are nodes and some are files: all must be the same");
    const toml::node* section = root.get("federation");
    if (section != nullptr) {
      // A sample is drawn from clients of any kind.
      const toml::table& keys = table(*section, "federation");
      for (const auto& [key, value] : keys) {
        if (nodes == 0 && key.str() != "sample" && key.str() != "sample_seed")
          fail(*section, "[federation] is about clients that are nodes: there is none");
      }
      read_federation_keys(keys);
    }
    for (const StudyClient& client : study_.clients) {
      if (federation.via == Federation::Via::sockets && client.node.empty())
        fail(*root.get("client"),
             fmt::format("client {} needs node: the path of its socket", printable(client.name)));
    }
    if (federation.via == Federation::Via::flower && federation.superlink.empty())
      fail(*section, "federation.superlink is missing: the address of the SuperLink");
  }

  void read_federation_keys(const toml::table& section) {
    only(section, "federation",
         {"via", "on_dropout", "timeout", "checkpoint", "superlink", "root_certificates", "sample",
          "sample_seed"});
    Federation& federation = study_.federation;
    const auto text = [&](const char* key) {
      const toml::node* node = section.get(key);
      return node == nullptr ? "" : string(*node, fmt::format("federation.{}", key));
    };
    if (const toml::node* node = section.get("via");
        node != nullptr && word(*node, "federation.via", {"sockets", "flower"}) == "flower")
      federation.via = Federation::Via::flower;
    if (const toml::node* node = section.get("on_dropout")) {
      using Dropout = RemoteOptions::Dropout;
      const std::string what = word(*node, "federation.on_dropout", {"wait", "stop", "continue"});
      federation.on_dropout = what == "stop"       ? Dropout::stop
                              : what == "continue" ? Dropout::go_on
                                                   : Dropout::wait;
    }
    if (const toml::node* node = section.get("timeout"))
      federation.timeout = seconds(*node, "federation.timeout");
    if (const toml::node* node = section.get("sample"))
      federation.sample.clients = integer(*node, "federation.sample", 1);
    if (const toml::node* node = section.get("sample_seed"))
      federation.sample.seed = static_cast<double>(integer(*node, "federation.sample_seed", 0));
    federation.checkpoint = path(text("checkpoint"));
    federation.superlink = text("superlink");
    federation.root_certificates = path(text("root_certificates"));
  }

  // --- [secure_aggregation]

  void read_secure_aggregation(const toml::table& section) {
    only(section, "secure_aggregation", {"threshold", "minimum_clients"});
    RunOptions::Secure secure;
    const auto whole = [&](const char* key, std::int64_t least, std::uint32_t& value) {
      const toml::node* node = section.get(key);
      if (node == nullptr) return;
      const std::int64_t given = integer(*node, fmt::format("secure_aggregation.{}", key), least);
      value = static_cast<std::uint32_t>(std::min<std::int64_t>(given, secure::most_members));
    };
    whole("threshold", 1, secure.threshold);
    whole("minimum_clients", secure::least_members, secure.minimum_clients);
    study_.secure = secure;
  }

  // "60s", "500ms", "2m", "1h".
  double seconds(const toml::node& node, const std::string& name) const {
    const std::string written = string(node, name);
    static const std::map<std::string, double> units = {
        {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    std::size_t used = 0;
    double amount = 0;
    try {
      amount = std::stod(written, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    const auto unit = units.find(written.substr(used));
    if (used == 0 || unit == units.end() || !(amount > 0) || amount > 1e6)
      fail(node, fmt::format("{} is a time like \"60s\" or \"5m\"", name));
    return amount * unit->second;
  }

  // --- [options]

  // Gives the mistakes of a parser their place.
  template <typename Parse>
  auto located(const toml::node& node, Parse parse) const {
    try {
      return parse();
    } catch (const StudyError& error) {
      if (std::string_view(error.what()).starts_with(file())) throw;
      fail(node, error.what());
    }
  }

  void read_options(const toml::table& options) {
    only(options, "options",
         with_dialect_keys(
             {"missing", "threads", "memory", "exact", "out", "simulate", "client_details"}));
    read_dialect(*this, options, "options", dialect_);
    if (const toml::node* node = options.get("missing")) {
      study_.missing =
          located(*node, [&] { return parse_missing(string(*node, "options.missing")); });
    }
    if (const toml::node* node = options.get("memory")) {
      study_.memory =
          node->is_integer()
              ? integer(*node, "options.memory", least_memory)
              : located(*node, [&] { return parse_memory(string(*node, "options.memory")); });
    }
    if (const toml::node* node = options.get("threads")) {
      study_.threads =
          static_cast<int>(std::min<std::int64_t>(integer(*node, "options.threads", 1), 1024));
    }
    if (const toml::node* node = options.get("exact"))
      study_.exact = boolean(*node, "options.exact");
    if (const toml::node* node = options.get("simulate"))
      study_.simulation = string(*node, "options.simulate");
    if (const toml::node* node = options.get("client_details"))
      study_.client_details = boolean(*node, "options.client_details");
    if (const toml::node* node = options.get("out"))
      study_.out = path(string(*node, "options.out"));
  }

  Study study_;
  Dialect dialect_;  // of all clients that do not say otherwise
};

}  // namespace

Study parse_study(std::string_view text, const std::string& file) {
  return Reader(file).read(parse_toml(text, file));
}

void check_study(const Study& study, const ir::Program& program) {
  std::vector<std::string> names;
  for (const ir::Input& input : program.inputs) names.push_back(input.name);
  for (const ir::SizeVariable& size : program.sizes) names.push_back(size.name);
  const auto place = [&](const std::string& name) {
    const auto line = study.lines.find(name);
    return line == study.lines.end() ? "" : fmt::format("{}:{}: ", study.file, line->second);
  };
  for (const auto& [name, line] : study.lines) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string suggestion = nearest(name, names);
    throw StudyError(
        fmt::format("{}the program has no input or size {}{}", place(name), printable(name),
                    suggestion.empty() ? "" : fmt::format("; did you mean {}?", suggestion)));
  }
  // Better now than when all data is read.
  for (const auto& value : study.values) {
    if (std::find(names.begin(), names.end(), value.first) == names.end())
      throw RunError(fmt::format("the program has no shared input or size named {}", value.first));
  }
  for (const ir::Input& input : program.inputs) {
    if (study.lines.count(input.name) == 0) continue;
    if (input.type.federated() && study.values.count(input.name) != 0) {
      throw StudyError(fmt::format("{}input {} is {}: it takes columns of the clients, not a value",
                                   place(input.name), input.name, input.type.to_string()));
    }
    if (!input.type.federated() && study.bindings.count(input.name) != 0) {
      throw StudyError(fmt::format("{}input {} is {}: it takes a value, not columns of the clients",
                                   place(input.name), input.name, input.type.to_string()));
    }
  }
}

std::int64_t size_value(const std::string& name, const Tensor& value) {
  const double number = value.item();
  if (!value.shape.empty() || !(number >= 1 && number <= 1e15) || number != std::floor(number))
    throw StudyError(fmt::format("the value of {}: a size is a positive integer", name));
  return static_cast<std::int64_t>(number);
}

Settings study_settings(const Study& study, const ir::Program& program) {
  Settings settings;
  for (const auto& [name, tensor] : study.values) {
    const auto is_name = [name = name](const auto& declared) { return declared.name == name; };
    if (std::none_of(program.sizes.begin(), program.sizes.end(), is_name)) {
      settings.shared.emplace(name, tensor);
      continue;
    }
    settings.sizes[name] = size_value(name, tensor);
  }
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated() && input.fallback == ir::no_node &&
        study.values.count(input.name) == 0 && study.bindings.count(input.name) == 0)
      throw RunError(fmt::format(
          "shared input {} has no value; give it with {}", input.name,
          study.file.empty() ? fmt::format("--set {}=VALUE", input.name) : "[inputs] or --set"));
  }
  return settings;
}

FormulaRequest study_formula(const Study& study) {
  FormulaRequest request{study.formula, {}, {}};
  for (const StudyClient& client : study.clients)
    request.sites.push_back({client.name, client.name, client.source});
  return request;
}

Missing parse_missing(const std::string& word) {
  if (word == "error") return Missing::error;
  if (word == "drop") return Missing::drop;
  if (word == "nan") return Missing::nan;
  throw StudyError(
      fmt::format("missing values are treated by error, drop or nan, not by {}", printable(word)));
}

std::int64_t parse_memory(const std::string& text) {
  std::size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  std::string unit = text.substr(used);
  unit.erase(0, unit.find_first_not_of(' '));
  static const std::map<std::string, double> units = {{"", 1},
                                                      {"B", 1},
                                                      {"KB", 1e3},
                                                      {"MB", 1e6},
                                                      {"GB", 1e9},
                                                      {"TB", 1e12},
                                                      {"KiB", 1024.0},
                                                      {"MiB", 1048576.0},
                                                      {"GiB", 1073741824.0},
                                                      {"TiB", 1099511627776.0}};
  const auto found = units.find(unit);
  if (used == 0 || found == units.end() || !(number > 0) || number * found->second > 1e18) {
    throw StudyError(
        fmt::format("memory is an amount like 512MB or 2GiB, not {}", printable(text)));
  }
  if (number * found->second < static_cast<double>(least_memory))
    throw StudyError(fmt::format("memory of {} is too little to run anything; give 1MB or more",
                                 printable(text)));
  return static_cast<std::int64_t>(number * found->second);
}

}  // namespace starfold
