// The parser on any bytes: it ends, its diagnostics can be shown, and what it accepts is formatted
// to a program that is accepted again and stays as it is.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "fuzz/require.h"
#include "starfold/diag/render.h"
#include "starfold/syntax/format.h"
#include "starfold/syntax/parser.h"

using namespace starfold;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  SourceMap sources;
  sources.add("fuzz.fold", std::string(reinterpret_cast<const char*>(data), size));
  Diagnostics diagnostics;
  const ast::File file = parse(sources, 0, diagnostics);
  if (diagnostics.has_errors()) {
    require(!diagnostics.items().empty());
    for (const Diagnostic& d : diagnostics.items()) {
      require(d.primary.span.begin <= d.primary.span.end && d.primary.span.end <= size);
      require(!d.message.empty() && !d.primary.text.empty());
    }
    // One shown stands for all; a hundred would take most of the time.
    require(!render_text(diagnostics.items()[size % diagnostics.items().size()], sources).empty());
    if (size < 64) require(!render_json(diagnostics, sources).dump().empty());
    return 0;
  }
  const std::string once = format(sources, file);
  const std::uint32_t second = sources.add("once.fold", once);
  const ast::File again = parse(sources, second, diagnostics);
  require(!diagnostics.has_errors());
  require(again.items.size() == file.items.size());
  require(again.comments.size() == file.comments.size());
  require(format(sources, again) == once);
  return 0;
}
