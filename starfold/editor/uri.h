// Addresses of documents.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace starfold::editor {

// The path that a file: address names; nullopt for other addresses, and for those that name none.
std::optional<std::string> path_of(std::string_view uri);
// The address of an absolute path.
std::string uri_of(std::string_view path);

}  // namespace starfold::editor
