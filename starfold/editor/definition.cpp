#include <nlohmann/json.hpp>

#include "starfold/editor/features.h"

namespace starfold::editor {

using nlohmann::json;

json definition(const View& view, std::uint32_t offset, const AddressOf& address,
                const std::string& uri) {
  for (const Analysis* known : {&view.now, view.read}) {
    if (known == nullptr) continue;
    const Change change(known->text(), view.text.bytes());
    const std::optional<std::uint32_t> then = change.back(offset);
    Span span;
    const Definition* found = then ? definition_of(*known, *then, span) : nullptr;
    if (found == nullptr) continue;
    if (found->span.file == 0) {
      const std::optional<Span> here = change.forward(found->span);
      if (!here) continue;
      return {{"uri", uri}, {"range", range_of(view.text, *here, view.encoding)}};
    }
    const Source& source = known->compilation.sources[found->span.file];
    const std::string there = address(source.name());
    if (there.empty()) return nullptr;
    const Text text{std::string(source.text())};
    return {{"uri", there}, {"range", range_of(text, found->span, view.encoding)}};
  }
  return nullptr;
}

}  // namespace starfold::editor
