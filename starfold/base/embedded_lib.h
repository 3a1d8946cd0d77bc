#pragma once

#include <span>
#include <string_view>

namespace starfold {

// A file of lib/, compiled into the library. `name` is its path below lib/ without ".fold", with '/'
// between folders: "stats" for lib/stats.fold.
struct EmbeddedModule {
  std::string_view name;
  std::string_view text;
};

// All of lib/, sorted by name.
std::span<const EmbeddedModule> embedded_modules();

}  // namespace starfold
