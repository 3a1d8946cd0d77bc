#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "starfold/base/embedded_lib.h"
#include "starfold/editor/features.h"
#include "starfold/ops/standard.h"
#include "starfold/syntax/characters.h"
#include "starfold/syntax/token.h"

namespace starfold::editor {
namespace {

using nlohmann::json;

// Kinds of the protocol, which editors show as pictures.
enum class Picture : int { function = 3, variable = 6, module = 9, keyword = 14, constant = 21 };

// What comes first in the list.
enum class Rank : int { in_scope, of_file, operation, word };

// Words of the language that are not tokens of their own, and words for numbers.
constexpr std::string_view other_words[] = {"each client", "private state", "keep", "batches",
                                            "inf",         "nan",           "pi"};

class List {
 public:
  void add(const std::string& label, Picture picture, Rank rank, std::string detail,
           std::string documentation = {}) {
    json item = {{"label", label},
                 {"kind", static_cast<int>(picture)},
                 {"sortText", fmt::format("{}{}", static_cast<int>(rank), label)}};
    if (!detail.empty()) item["detail"] = std::move(detail);
    if (!documentation.empty()) item["documentation"] = std::move(documentation);
    items_.emplace(label, std::move(item));  // the first of a name is the one that is meant
  }
  json finish() const {
    json list = json::array();
    for (const auto& [label, item] : items_) list.push_back(item);
    return list;
  }

 private:
  std::map<std::string, json> items_;
};

bool of_name(char c) { return is_letter(c) || is_digit(c); }

// What stands before the word that is being typed: `stats` of "stats.co", "import" of "import st", or neither.
struct Before {
  bool comment = false;
  bool import = false;
  std::string module;
};

Before before(std::string_view text, std::uint32_t offset) {
  std::string_view line = text.substr(0, offset);
  line.remove_prefix(line.find_last_of("\n\r") + 1);  // npos + 1 is 0
  Before found;
  found.comment = line.find('#') != std::string_view::npos;
  while (!line.empty() && of_name(line.back())) line.remove_suffix(1);
  if (!line.empty() && line.back() == '.') {
    line.remove_suffix(1);
    std::size_t begin = line.size();
    while (begin > 0 && of_name(line[begin - 1])) --begin;
    found.module = line.substr(begin);
    return found;
  }
  const std::size_t first = line.find_first_not_of(" \t");
  const std::size_t last = line.find_last_not_of(" \t");
  found.import = first != std::string_view::npos &&
                 line.substr(first, last - first + 1) == spelling(TokenKind::kw_import);
  return found;
}

void add_definition(List& list, const Analysis& known, const Definition& definition, Rank rank) {
  const Source& source = known.compilation.sources[definition.span.file];
  const std::string comment = comment_above(source.text(), definition.span.begin);
  switch (definition.kind) {
    case Definition::Kind::function:
      return list.add(definition.name, Picture::function, rank,
                      on_one_line(source.text(definition.says)), comment);
    case Definition::Kind::module:
      return list.add(definition.name, Picture::module, rank, source.name());
    case Definition::Kind::size:
      return list.add(definition.name, Picture::constant, rank, "size");
    default:
      return list.add(definition.name, Picture::variable, rank,
                      definition.types.empty() ? "" : definition.types[0].to_string(), comment);
  }
}

// The functions of a module; false when the program imports none of this name.
bool add_module(List& list, const Analysis& known, const std::string& name) {
  const auto is_it = [&](const Definition& definition) {
    return definition.kind == Definition::Kind::module && definition.name == name;
  };
  const std::vector<Definition>& all = known.names.definitions;
  const auto found = std::find_if(all.begin(), all.end(), is_it);
  if (found == all.end()) return false;
  for (const Definition& definition : all) {
    if (definition.kind == Definition::Kind::function && definition.span.file == found->span.file)
      add_definition(list, known, definition, Rank::in_scope);
  }
  return true;
}

void add_modules(List& list, const std::vector<std::string>& beside) {
  for (const std::string& name : beside)
    list.add(name, Picture::module, Rank::in_scope, name + ".fold");
  for (const EmbeddedModule& embedded : embedded_modules()) {
    if (embedded.name.find('/') == std::string_view::npos)
      list.add(std::string(embedded.name), Picture::module, Rank::of_file, "comes with Starfold",
               comment_above(embedded.text, 0));
  }
}

// A function sees its own names, functions, modules, and the sizes that the program declares.
bool seen_in(Span function, const Analysis& known, const Definition& definition) {
  if (definition.kind == Definition::Kind::function || definition.kind == Definition::Kind::module)
    return true;
  if (definition.span.begin >= function.begin && definition.span.end <= function.end) return true;
  std::string_view before = known.text().substr(0, definition.span.begin);
  before = before.substr(0, before.find_last_not_of(" \t") + 1);
  return definition.kind == Definition::Kind::size &&
         before.ends_with(spelling(TokenKind::kw_size));
}

// Inner definitions hide outer ones: those that are visible from later on come first.
void add_names(List& list, const Analysis& known, std::uint32_t offset) {
  std::vector<const Definition*> visible;
  const auto around = std::find_if(
      known.functions.begin(), known.functions.end(),
      [&](Span function) { return function.begin <= offset && offset <= function.end; });
  for (const Definition& definition : known.names.definitions) {
    const Span where = definition.visible;
    if (where.file != 0 || where.begin > offset || offset > where.end || where.end == 0) continue;
    if (around == known.functions.end() || seen_in(*around, known, definition))
      visible.push_back(&definition);
  }
  std::stable_sort(visible.begin(), visible.end(), [](const Definition* a, const Definition* b) {
    return a->visible.begin > b->visible.begin;
  });
  for (const Definition* definition : visible)
    add_definition(list, known, *definition,
                   definition->kind == Definition::Kind::function ? Rank::of_file : Rank::in_scope);
}

void add_operations(List& list) {
  std::map<std::string, std::pair<std::string, std::string>> rows;  // those of one name together
  for (const auto& op : standard_signature().ops()) {
    const bool word = op->notation == Notation::call || op->notation == Notation::transpose;
    if (!word || !is_letter(op->name.front())) continue;
    auto& [detail, documentation] = rows[op->name];
    detail += (detail.empty() ? "" : " or ") + op->surface;
    documentation += fmt::format("{}{}: {}", documentation.empty() ? "" : "\n", op->rule, op->doc);
  }
  for (const auto& [name, row] : rows)
    list.add(name, Picture::function, Rank::operation, row.first, row.second);
}

void add_words(List& list) {
  for (int kind = static_cast<int>(TokenKind::kw_import);
       kind <= static_cast<int>(TokenKind::kw_new); ++kind)
    list.add(std::string(spelling(static_cast<TokenKind>(kind))), Picture::keyword, Rank::word, "");
  for (const std::string_view other : other_words)
    list.add(std::string(other), Picture::keyword, Rank::word, "");
}

}  // namespace

json completion(const View& view, std::uint32_t offset, const std::vector<std::string>& beside) {
  List list;
  const Before at = before(view.text.bytes(), offset);
  if (at.comment) return list.finish();
  if (at.import) {
    add_modules(list, beside);
    return list.finish();
  }
  if (!at.module.empty()) {
    if (!add_module(list, view.now, at.module) && view.read != nullptr)
      add_module(list, *view.read, at.module);
    return list.finish();
  }
  add_names(list, view.now, offset);
  // What is being typed may have swallowed what comes after it, and with it a name's type or the name.
  if (!view.now.names.complete && view.read != nullptr) {
    const std::optional<std::uint32_t> then =
        Change(view.read->text(), view.text.bytes()).back(offset);
    if (then) add_names(list, *view.read, *then);
  }
  add_operations(list);
  add_words(list);
  return list.finish();
}

}  // namespace starfold::editor
