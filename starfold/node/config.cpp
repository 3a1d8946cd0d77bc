#include "starfold/node/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "starfold/base/error.h"
#include "starfold/base/suggest.h"
#include "starfold/base/usage_error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/text/dialect_toml.h"
#include "starfold/merge/monoid.h"
#include "starfold/node/disk.h"
#include "starfold/secure/protocol.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_text = 1 << 20;
constexpr std::size_t longest_name = 64;
constexpr mode_t writable_by_others = S_IWGRP | S_IWOTH;

// What a node keeps in its folder; nothing else may lie there under these names.
constexpr const char* kept_names[] = {"ledger.head", "replies", "approvals", "pending",
                                      "identity",    "private", "kept"};

bool is_identifier(const std::string& name) {
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  };
  return !name.empty() && name.size() <= longest_name && name.front() != '.' &&
         name.front() != '-' && std::all_of(name.begin(), name.end(), in_name);
}

bool is_plan_hash(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Text on one line, without characters that hide something.
bool is_plain(const std::string& text) { return !text.empty() && printable(text) == text; }

bool lies_in(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

class Reader : TomlReader {
 public:
  Reader(const std::string& file, bool files) : TomlReader(file, "a node's file"), files_(files) {}

  NodeConfig read(const toml::table& root) {
    config_.file = file();
    only(root, "", {"name", "socket", "socket_group", "ledger", "folder", "data", "policy"});
    config_.name = identifier(required(root, "name", "name = \"north\""), "name");
    config_.ledger = own_path(required(root, "ledger", "ledger = \"north.ledger\""), "ledger");
    config_.folder = own_path(required(root, "folder", "folder = \"north\""), "folder");
    read_socket(root);
    const toml::node* data = root.get("data");
    if (data == nullptr) fail(root, "a node needs data: a section [data.NAME] for each source");
    read_sources(table(*data, "data"));
    if (const toml::node* policy = root.get("policy")) read_policy(table(*policy, "policy"));
    check_collisions(root);
    if (files_) {
      check_own_file();
      check_kept(*root.get("ledger"), "ledger", config_.ledger, S_IFREG, "a regular file");
      check_kept(*root.get("folder"), "folder", config_.folder, S_IFDIR, "a folder");
      check_kept(*root.get("socket"), "socket", config_.socket, S_IFSOCK, "a socket");
    }
    return std::move(config_);
  }

 private:
  const toml::node& required(const toml::table& section, const char* key, const char* example) {
    const toml::node* node = section.get(key);
    if (node == nullptr)
      fail(section, fmt::format("a node's file needs {}, for example {}", key, example));
    return *node;
  }

  std::string identifier(const toml::node& node, const std::string& name) const {
    std::string text = string(node, name);
    require_identifier(node, name, text);
    return text;
  }
  void require_identifier(const toml::node& node, const std::string& name,
                          const std::string& text) const {
    if (!is_identifier(text))
      fail(node, fmt::format("{} must be a name of at most {} letters, digits, _, - and ., not {}",
                             name, longest_name, text.empty() ? "''" : printable(text)));
  }
  std::string plain(const toml::node& node, const std::string& name) const {
    std::string text = string(node, name);
    if (!is_plain(text))
      fail(node, fmt::format("{} {}", name,
                             text.empty() ? "is empty" : "has characters that cannot be shown"));
    return text;
  }
  // A path without a slash at its end, which would make it another one.
  std::string own_path(const toml::node& node, const std::string& name) const {
    std::string written = path(plain(node, name));
    while (written.size() > 1 && written.back() == '/') written.pop_back();
    return written;
  }

  void read_socket(const toml::table& root) {
    const toml::node& socket = required(root, "socket", "socket = \"north.sock\"");
    config_.socket = own_path(socket, "socket");
    constexpr std::size_t longest = sizeof(sockaddr_un::sun_path) - 1;
    if (config_.socket.size() > longest)
      fail(socket, fmt::format("the path of the socket, {}, has {} bytes; sockets may have at most "
                               "{}",
                               config_.socket, config_.socket.size(), longest));
    const toml::node* group = root.get("socket_group");
    if (group == nullptr) return;
    config_.socket_group = plain(*group, "socket_group");
    if (files_ && ::getgrnam(config_.socket_group.c_str()) == nullptr)
      fail(*group, fmt::format("there is no group {} on this machine", config_.socket_group));
  }

  // --- [data.NAME]

  void read_sources(const toml::table& sources) {
    for (const auto& [key, node] : sources) {
      const std::string name(key.str());
      require_identifier(node, "the name of a source", name);
      config_.sources.push_back(read_source(name, table(node, "data." + name)));
    }
    if (config_.sources.empty()) fail(sources, "[data] has no source: write [data.NAME]");
  }

  NodeSource read_source(const std::string& name, const toml::table& section) {
    const std::string where = "data." + name;
    only(section, where, with_dialect_keys({"file", "query", "columns", "levels"}));
    NodeSource source;
    source.name = name;
    source.location.folder = folder().empty() ? "." : folder().string();
    read_dialect(*this, section, where, source.location.dialect);
    if (const toml::node* query = section.get("query")) {
      source.location.query = string(*query, where + ".query");
      if (source.location.query.empty()) fail(*query, where + ".query is empty");
      if (source.location.query.find('\0') != std::string::npos)
        fail(*query, where + ".query has a character that cannot be shown");
    }
    if (const toml::node* file = section.get("file")) {
      source.location.path = path(plain(*file, where + ".file"));
      check_kind(*file, where, source.location);
      if (files_) check_data(*file, where, table_file(source.location.path));
    }
    if (source.location.path.empty() && source.location.query.empty())
      fail(section, fmt::format("[{}] needs a file or a query", where));
    const toml::node* columns = section.get("columns");
    if (columns == nullptr)
      fail(section, fmt::format("[{}] needs columns: the names that programs may bind, for example "
                                "columns = [\"age\", \"bmi\"]",
                                where));
    source.columns = strings(*columns, where + ".columns");
    source.line = columns->source().begin.line;
    for (const std::string& column : source.columns) {
      if (!is_plain(column))
        fail(*columns,
             fmt::format("{}.columns has a name that is empty or cannot be shown", where));
    }
    if (const toml::node* levels = section.get("levels")) {
      source.levels = strings(*levels, where + ".levels");
      for (const std::string& column : source.levels) {
        if (std::find(source.columns.begin(), source.columns.end(), column) == source.columns.end())
          fail(*levels, fmt::format("{}.levels names {}, which is not among its columns", where,
                                    printable(column)));
      }
    }
    return source;
  }

  void check_kind(const toml::node& node, const std::string& where,
                  const TableLocation& location) const {
    if (is_table_path(location.path)) return;
    if (location.query.empty() && fs::path(location.path).extension() == ".npz") return;
    fail(node, fmt::format("{}.file must be a table (.csv, .tsv, .parquet, .jsonl, .json, .duckdb, "
                           ".sqlite) or .npz",
                           where));
  }

  // A link is followed; what it leads to must be a regular file.
  void check_data(const toml::node& node, const std::string& where, const std::string& file) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0)
      fail(node, fmt::format("{}.file: {} {}", where, file,
                             errno == ENOENT ? std::string("does not exist")
                                             : fmt::format("cannot be read: {}", system_reason())));
    if (!S_ISREG(info.st_mode))
      fail(node, fmt::format("{}.file: {} is {}, not a regular file", where, file,
                             S_ISDIR(info.st_mode) ? "a folder" : "a pipe or a device"));
    if (::access(file.c_str(), R_OK) != 0)
      fail(node, fmt::format("{}.file: {} cannot be read: {}", where, file, system_reason()));
    if ((info.st_mode & S_IROTH) != 0)
      warn(node, fmt::format("every user of this machine may read {}", file));
    if ((info.st_mode & writable_by_others) != 0)
      warn(node, fmt::format("others than its owner may write to {}", file));
    const struct group* group =
        config_.socket_group.empty() ? nullptr : ::getgrnam(config_.socket_group.c_str());
    if (group != nullptr && info.st_gid == group->gr_gid && (info.st_mode & S_IRGRP) != 0)
      warn(node, fmt::format("the group {}, which carries messages, may read {}",
                             config_.socket_group, file));
  }

  void warn(const toml::node& node, const std::string& what) {
    config_.warnings.push_back(fmt::format("{}:{}: {}", file(), node.source().begin.line, what));
  }

  // --- [policy]

  void read_policy(const toml::table& section) {
    only(section, "policy",
         {"min_records", "min_support", "max_ratio", "max_total_ratio", "merges", "max_numbers",
          "max_rounds", "max_refusals", "programs", "local_blocks", "privacy", "budget",
          "secure_aggregation", "minimum_clients", "peers"});
    Policy& policy = config_.policy;
    const auto whole = [&](const char* key, std::int64_t& value) {
      if (const toml::node* node = section.get(key))
        value = integer(*node, fmt::format("policy.{}", key), 1);
    };
    whole("min_records", policy.min_records);
    whole("max_numbers", policy.max_numbers);
    whole("max_rounds", policy.max_rounds);
    whole("max_refusals", policy.max_refusals);
    if (const toml::node* node = section.get("min_support")) {
      policy.min_support = number(*node, "policy.min_support");
      if (policy.min_support < 1) fail(*node, "policy.min_support must be at least 1");
    }
    if (const toml::node* node = section.get("max_ratio"))
      policy.max_ratio = positive(*node, "policy.max_ratio");
    if (const toml::node* node = section.get("max_total_ratio"))
      policy.max_total_ratio = positive(*node, "policy.max_total_ratio");
    if (const toml::node* node = section.get("merges")) read_merges(*node);
    if (const toml::node* node = section.get("programs")) read_programs(*node);
    if (const toml::node* node = section.get("local_blocks"))
      policy.local_blocks = boolean(*node, "policy.local_blocks");
    const auto demanded = [&](const char* key) {
      const toml::node* node = section.get(key);
      return node != nullptr &&
             word(*node, fmt::format("policy.{}", key), {"optional", "required"}) == "required";
    };
    policy.privacy_required = demanded("privacy");
    policy.secure_aggregation_required = demanded("secure_aggregation");
    if (const toml::node* node = section.get("minimum_clients"))
      policy.minimum_clients = integer(*node, "policy.minimum_clients", secure::least_members);
    if (const toml::node* node = section.get("peers")) read_peers(*node);
    if (policy.secure_aggregation_required && policy.peers.empty())
      warn(*section.get("secure_aggregation"),
           "secure aggregation is required, and no peers are listed: a server that lies could name "
           "keys of its own as those of the other nodes");
    if (const toml::node* node = section.get("budget")) read_budget(table(*node, "policy.budget"));
    if (policy.privacy_required && !policy.budget)
      warn(*section.get("privacy"),
           "privacy is required, and no [policy.budget] limits it over all studies");
  }

  double positive(const toml::node& node, const std::string& name) const {
    const double value = number(node, name);
    if (!(value > 0)) fail(node, fmt::format("{} must be more than 0", name));
    return value;
  }

  void read_merges(const toml::node& node) {
    std::vector<std::string> known;
    for (const Monoid* row : all_monoids()) known.emplace_back(row->name);
    config_.policy.merges = strings(node, "policy.merges");
    for (const std::string& merge : config_.policy.merges) {
      if (std::find(known.begin(), known.end(), merge) != known.end()) continue;
      const std::string suggestion = nearest(merge, known);
      fail(node,
           fmt::format("policy.merges: there is no merge {}; {}", printable(merge),
                       suggestion.empty() ? fmt::format("there are {}", fmt::join(known, ", "))
                                          : fmt::format("did you mean {}?", suggestion)));
    }
  }

  void read_peers(const toml::node& node) {
    config_.policy.peers = strings(node, "policy.peers");
    for (const std::string& peer : config_.policy.peers) {
      if (!secure::parse_key(peer))
        fail(node,
             "policy.peers: the key of a node has 64 digits from 0 to f, as `starfold node key` "
             "prints it");
    }
  }

  void read_programs(const toml::node& node) {
    Policy& policy = config_.policy;
    if (node.is_array()) {
      policy.programs = Policy::Programs::listed;
      policy.plans = strings(node, "policy.programs");
      for (const std::string& plan : policy.plans) {
        if (!is_plan_hash(plan))
          fail(node,
               "policy.programs: the hash of a plan has 64 digits from 0 to f, as `starfold "
               "explain --json` prints it");
      }
      return;
    }
    if (!node.is_string())
      fail(node, fmt::format("policy.programs must be \"any\", \"approved\" or a list of plan "
                             "hashes, not {}",
                             type_name(node)));
    policy.programs = word(node, "policy.programs", {"any", "approved"}) == "any"
                          ? Policy::Programs::any
                          : Policy::Programs::approved;
  }

  void read_budget(const toml::table& section) {
    only(section, "policy.budget", {"epsilon", "delta"});
    const toml::node* epsilon = section.get("epsilon");
    const toml::node* delta = section.get("delta");
    if (epsilon == nullptr || delta == nullptr)
      fail(section, "[policy.budget] needs epsilon and delta");
    Policy::Budget budget{positive(*epsilon, "policy.budget.epsilon"),
                          number(*delta, "policy.budget.delta")};
    if (!(budget.delta >= 0 && budget.delta < 1))
      fail(*delta, "policy.budget.delta must be at least 0 and less than 1");
    config_.policy.budget = budget;
  }

  // --- what stands on the disk

  void check_own_file() const {
    struct stat info {};
    if (::stat(file().c_str(), &info) != 0)
      throw UsageError(fmt::format("{} cannot be read: {}", file(), system_reason()));
    if ((info.st_mode & writable_by_others) != 0)
      throw UsageError(
          fmt::format("{}: others than its owner may write to this file, and so set the policy; "
                      "`chmod go-w` it",
                      file()));
    if (info.st_uid != 0 && info.st_uid != ::geteuid())
      throw UsageError(
          fmt::format("{}: this file belongs to another user, who could set the policy", file()));
    require_safe_folder(file());
  }

  // Who may write into a folder may replace what is in it; not so where it is sticky, like /tmp.
  void require_safe_folder(const std::string& path) const {
    const fs::path parent = fs::path(path).parent_path();
    struct stat info {};
    if (::stat(parent.empty() ? "." : parent.c_str(), &info) != 0) return;
    if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0)
      throw UsageError(
          fmt::format("{}: every user of this machine may write into the folder of {}, "
                      "and so replace it; `chmod o-w` it",
                      file(), path));
  }

  void check_kept(const toml::node& node, const char* key, const std::string& path, mode_t kind,
                  const char* words) {
    require_safe_folder(path);
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
      const fs::path parent = fs::path(path).parent_path();
      std::error_code ignored;
      if (parent.empty() || fs::is_directory(parent, ignored) || parent == config_.folder) return;
      const std::string missing = fmt::format("{}: there is no folder {}", key, parent.string());
      // Where a service makes it, it is gone while the node does not run; its owner may still look at the ledger.
      if (kind != S_IFSOCK) fail(node, missing);
      warn(node, missing);
      return;
    }
    if ((info.st_mode & S_IFMT) != kind)
      fail(node, fmt::format("{}: {} exists and is not {}", key, path, words));
    if (kind != S_IFSOCK && (info.st_mode & writable_by_others) != 0)
      fail(node,
           fmt::format("{}: others than its owner may write to {}; `chmod go-w` it", key, path));
  }

  // No two of the node's paths may be one, by name or by link.
  void check_collisions(const toml::table& root) const {
    std::vector<std::pair<std::string, std::string>> taken = {{file(), "the node's file"}};
    for (const NodeSource& source : config_.sources) {
      if (!source.location.path.empty())
        taken.emplace_back(table_file(source.location.path),
                           fmt::format("the data of {}", source.name));
    }
    for (const char* key : {"ledger", "folder", "socket"}) {
      const std::string& path = std::string_view(key) == "ledger"   ? config_.ledger
                                : std::string_view(key) == "folder" ? config_.folder
                                                                    : config_.socket;
      for (const auto& [other, words] : taken) {
        if (same(path, other))
          fail(*root.get(key), fmt::format("{}: {} is {} already", key, path, words));
      }
      taken.emplace_back(path, fmt::format("the {}", key));
    }
    for (const auto& [path, words] : taken) {
      for (const char* kept : kept_names) {
        if (lies_in(real(path), real(config_.folder) / kept))
          fail(*root.get("folder"),
               fmt::format("{}, {}, lies where the node keeps its {}", words, path, kept));
      }
    }
  }

  fs::path real(const std::string& path) const {
    std::error_code ignored;
    fs::path absolute = fs::absolute(path, ignored).lexically_normal();
    if (!files_) return absolute;
    const fs::path found = fs::weakly_canonical(absolute, ignored);
    return found.empty() ? absolute : found;
  }
  bool same(const std::string& a, const std::string& b) const {
    std::error_code ignored;
    return real(a) == real(b) || (files_ && fs::equivalent(a, b, ignored));
  }

  bool files_;
  NodeConfig config_;
};

}  // namespace

const NodeSource* NodeConfig::find(std::string_view source) const {
  const auto found = std::find_if(sources.begin(), sources.end(),
                                  [&](const NodeSource& one) { return one.name == source; });
  return found == sources.end() ? nullptr : &*found;
}

NodeConfig read_node_config(const std::string& path) {
  std::string text;
  try {
    text = read_regular(path, most_text);
  } catch (const RunError& error) {
    throw UsageError(error.what());
  }
  return parse_node_config(text, path);
}

NodeConfig parse_node_config(std::string_view text, const std::string& file, bool files) {
  return Reader(file, files).read(parse_toml(text, file));
}

void prepare_folder(const NodeConfig& config) {
  make_private_folder(config.folder);
  for (const char* name : {"replies", "approvals", "pending", "private", "kept"})
    make_private_folder(config.folder + "/" + name);
}

DataSource open_node_source(const NodeConfig& config, const NodeSource& source, Tables& tables) {
  static const ir::Program no_program;
  DataSource opened = open_source(no_program, source.name, source.location, tables);
  opened.node = config.name;
  for (const std::string& column : source.columns) {
    if (std::find(opened.order.begin(), opened.order.end(), column) != opened.order.end()) continue;
    const bool shown = !opened.table || opened.table->names_are_safe();
    const std::string suggestion = shown ? nearest(column, opened.order) : "";
    throw UsageError(fmt::format(
        "{}:{}: data.{} has no column {}{}", config.file, source.line, source.name, column,
        suggestion.empty() ? "" : fmt::format("; did you mean {}?", printable(suggestion))));
  }
  return opened;
}

}  // namespace starfold
