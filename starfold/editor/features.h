// What an editor asks about a document, and the answers in the words of the Language Server Protocol.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "starfold/editor/analysis.h"

namespace starfold::editor {

// A document as its user sees it now, with what is known: about this text, about the last one that could be read whole, and
// about the last one without errors. The latter two are null as long as there was none.
struct View {
  const Text& text;
  const Analysis& now;
  const Analysis* read = nullptr;
  const Analysis* planned = nullptr;
  Encoding encoding = Encoding::utf16;
};

// Where a file of a compilation can be opened: its address. Empty when it cannot.
using AddressOf = std::function<std::string(const std::string& name)>;

// {"start", "end"} of a piece of a text.
nlohmann::json range_of(const Text& text, Span span, Encoding encoding);

// problems.cpp: what is wrong, as you type.
nlohmann::json problems(const View& view, const AddressOf& address);
// hover.cpp: type and exposure of what stands there; null when there is nothing to say.
nlohmann::json hover(const View& view, std::uint32_t offset);
// definition.cpp: where it comes from; null when that is nowhere.
nlohmann::json definition(const View& view, std::uint32_t offset, const AddressOf& address,
                          const std::string& uri);
// completion.cpp: names in scope, functions, operations, words. `beside` are modules that could be imported.
nlohmann::json completion(const View& view, std::uint32_t offset,
                          const std::vector<std::string>& beside);
// hints.cpp: the type after every `let` that has none written; a lens on every line that leaves a client.
nlohmann::json inlays(const View& view);
nlohmann::json lenses(const View& view);
// layout.cpp: the edits that bring the canonical layout; null for a text that cannot be read.
nlohmann::json layout(const View& view);

// rename.cpp: the name there and its span; nullopt with a sentence when it cannot have another.
struct Renamed {
  std::vector<Span> places;  // of the name, in the order of the text
  Span here;
  std::string name;
};
std::optional<Renamed> renamable(const View& view, std::uint32_t offset, std::string& why_not);
// The edits that give it another name; null with a sentence when that would change what the program means.
nlohmann::json rename(const View& view, std::uint32_t offset, const std::string& to,
                      const ModuleLoader& load, std::string& why_not);

}  // namespace starfold::editor
