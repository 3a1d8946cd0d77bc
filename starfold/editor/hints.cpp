#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "starfold/editor/features.h"

namespace starfold::editor {
namespace {

using nlohmann::json;

bool has_written_type(std::string_view text, std::uint32_t after) {
  const std::size_t next = text.find_first_not_of(" \t", after);
  return next != std::string_view::npos && text[next] == ':';
}

json place_of(const Text& text, std::uint32_t offset, Encoding encoding) {
  const Place place = text.place(offset, encoding);
  return {{"line", place.line}, {"character", place.character}};
}

// "round 2, in every iteration: [p] by sum, [p, p] by sum"
std::string lens_text(const std::vector<const Exposure*>& exposures) {
  std::map<int, std::string> rounds;
  for (const Exposure* exposure : exposures) {
    std::string& text = rounds[exposure->round];
    text += text.empty() ? fmt::format("round {}{}: ", exposure->round,
                                       exposure->repeated ? ", in every iteration" : "")
                         : ", ";
    text += fmt::format("{} by {}", exposure->shape, exposure->merge);
  }
  std::string text = "leaves each client in ";
  bool first = true;
  for (const auto& [round, part] : rounds) {
    text += (first ? "" : "; ") + part;
    first = false;
  }
  return text;
}

}  // namespace

json inlays(const View& view) {
  const bool old = !view.now.names.complete && view.read != nullptr;
  const Analysis& known = old ? *view.read : view.now;
  const Change change(known.text(), view.text.bytes());
  json hints = json::array();
  for (const Definition& definition : known.names.definitions) {
    if (definition.kind != Definition::Kind::let || definition.types.empty()) continue;
    if (has_written_type(known.text(), definition.span.end)) continue;
    const std::optional<Span> here = change.forward(definition.span);
    if (!here) continue;
    hints.push_back({{"position", place_of(view.text, here->end, view.encoding)},
                     {"label", " : " + definition.types[0].to_string()},
                     {"kind", 1}});
  }
  return hints;
}

json lenses(const View& view) {
  json list = json::array();
  if (view.planned == nullptr) return list;
  const Change change(view.planned->text(), view.text.bytes());
  std::map<std::uint32_t, std::vector<const Exposure*>> lines;
  for (const Exposure& exposure : view.planned->exposures) {
    const std::optional<std::uint32_t> here = change.forward(exposure.span.begin);
    if (exposure.span.file != 0 || !here) continue;
    lines[view.text.place(*here, view.encoding).line].push_back(&exposure);
  }
  for (const auto& [line, exposures] : lines) {
    const json place = {{"line", line}, {"character", 0}};
    list.push_back({{"range", {{"start", place}, {"end", place}}},
                    {"command", {{"title", lens_text(exposures)}, {"command", ""}}}});
  }
  return list;
}

}  // namespace starfold::editor
