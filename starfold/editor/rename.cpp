#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "starfold/editor/features.h"
#include "starfold/ops/standard.h"
#include "starfold/syntax/characters.h"
#include "starfold/syntax/token.h"

namespace starfold::editor {
namespace {

using nlohmann::json;

// Which use is of which definition, both by their number in the text: what a name must not change.
std::vector<std::size_t> meaning_of(const NameIndex& names) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> definitions;
  for (const Definition& definition : names.definitions)
    definitions.emplace_back(definition.span.file, definition.span.begin);
  std::sort(definitions.begin(), definitions.end());
  std::vector<std::size_t> meaning = {definitions.size()};
  for (const Use& use : names.uses) {
    const auto at = std::lower_bound(definitions.begin(), definitions.end(),
                                     std::pair(use.definition.file, use.definition.begin));
    meaning.push_back(static_cast<std::size_t>(at - definitions.begin()));
  }
  return meaning;
}

bool is_name(const std::string& text) {
  return !text.empty() && is_letter(text[0]) && keyword(text) == TokenKind::name &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

}  // namespace

std::optional<Renamed> renamable(const View& view, std::uint32_t offset, std::string& why_not) {
  if (!view.now.names.complete) {
    why_not = "the program cannot be read as it stands; mend it first";
    return std::nullopt;
  }
  Renamed renamed;
  const Definition* definition = definition_of(view.now, offset, renamed.here);
  if (definition == nullptr) {
    why_not = "there is no name here that the program defines";
    return std::nullopt;
  }
  if (definition->span.file != 0 || definition->kind == Definition::Kind::module) {
    why_not = fmt::format("`{}` is defined in {}, which other programs may use", definition->name,
                          view.now.compilation.sources[definition->span.file].name());
    return std::nullopt;
  }
  renamed.name = definition->name;
  renamed.places.push_back(definition->span);
  for (const Use& use : view.now.names.uses) {
    if (use.definition == definition->span) renamed.places.push_back(use.span);
  }
  std::sort(renamed.places.begin(), renamed.places.end(),
            [](Span a, Span b) { return a.begin < b.begin; });
  return renamed;
}

json rename(const View& view, std::uint32_t offset, const std::string& to, const ModuleLoader& load,
            std::string& why_not) {
  const std::optional<Renamed> renamed = renamable(view, offset, why_not);
  if (!renamed) return nullptr;
  if (!is_name(to)) {
    why_not = fmt::format("`{}` is not a name: letters, digits and _, and no word of the language",
                          on_one_line(to));
    return nullptr;
  }
  if (const Op* op = standard_signature().find(to)) {
    why_not = fmt::format("`{}` is a built-in operation: {}", to, op->surface);
    return nullptr;
  }
  std::string text = view.text.bytes();
  json edits = json::array();
  for (auto place = renamed->places.rbegin(); place != renamed->places.rend(); ++place) {
    text.replace(place->begin, place->end - place->begin, to);
    edits.push_back({{"range", range_of(view.text, *place, view.encoding)}, {"newText", to}});
  }
  // Whether every name still means what it meant is for the checker to say.
  const Analysis after = analyze(view.now.compilation.sources[0].name(), std::move(text), load);
  const bool same =
      meaning_of(after.names) == meaning_of(view.now.names) &&
      after.compilation.diagnostics.error_count() == view.now.compilation.diagnostics.error_count();
  if (same) return edits;
  why_not = fmt::format("`{}` has another meaning in this program already", to);
  return nullptr;
}

}  // namespace starfold::editor
