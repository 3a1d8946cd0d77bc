// The whole front end on any bytes, as `starfold check` uses it: it ends, says what is wrong with
// something in it that can be shown, and plans what it accepts. What follows a line `#module` is
// what every import finds.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fuzz/require.h"
#include "starfold/diag/render.h"
#include "starfold/federation/program.h"

using namespace starfold;

namespace {

void check_diagnostics(const Compilation& compiled) {
  const auto& items = compiled.diagnostics.items();
  require(compiled.ok() || !items.empty());
  bool error = false;
  for (const Diagnostic& d : items) {
    const Span span = d.primary.span;
    require(span.file < compiled.sources.size());
    require(span.begin <= span.end && span.end <= compiled.sources[span.file].text().size());
    require(!d.message.empty());
    error = error || info(d.code).severity == Severity::error;
  }
  require(error == !compiled.ok());
  // One shown stands for all; a hundred would take most of the time.
  if (!items.empty()) require(!render_text(items[items.size() / 2], compiled.sources).empty());
  if (items.size() < 4)
    require(!render_json(compiled.diagnostics, compiled.sources).dump().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view separator = "\n#module\n";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find(separator);
  ProgramOptions options;
  options.base = size % 4 == 3;
  options.load = [&](std::string_view name) -> std::optional<std::pair<std::string, std::string>> {
    if (cut == std::string_view::npos || name.size() > 2) return std::nullopt;
    return std::make_pair(std::string(name) + ".fold",
                          std::string(text.substr(cut + separator.size())));
  };
  const auto program =
      compile_program({"fuzz.fold", std::string(text.substr(0, cut)), {}}, options);
  check_diagnostics(program->compilation);
  require((program->plan != nullptr) == program->compilation.ok());
  return 0;
}
