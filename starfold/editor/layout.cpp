#include <nlohmann/json.hpp>

#include "starfold/editor/features.h"
#include "starfold/syntax/format.h"
#include "starfold/syntax/parser.h"

namespace starfold::editor {

using nlohmann::json;

json layout(const View& view) {
  SourceMap sources;
  Diagnostics diagnostics;
  const std::string& text = view.text.bytes();
  const ast::File parsed = parse(sources, sources.add("", text), diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  const std::string formatted = format(sources, parsed);
  if (formatted == text) return json::array();
  // From the first line that differs to the last, so that what an editor keeps for the others stays.
  std::size_t same = 0;
  for (std::size_t i = 0; i < std::min(text.size(), formatted.size()) && text[i] == formatted[i];
       ++i) {
    if (text[i] == '\n') same = i + 1;
  }
  std::size_t rest = 0;
  const std::size_t shorter = std::min(text.size(), formatted.size()) - same;
  for (std::size_t i = 0; i < shorter; ++i) {
    const char c = text[text.size() - 1 - i];
    if (c != formatted[formatted.size() - 1 - i]) break;
    if (c == '\n') rest = i;  // behind the end of a line
  }
  const Span span{0, static_cast<std::uint32_t>(same),
                  static_cast<std::uint32_t>(text.size() - rest)};
  return json::array({{{"range", range_of(view.text, span, view.encoding)},
                       {"newText", formatted.substr(same, formatted.size() - rest - same)}}});
}

}  // namespace starfold::editor
