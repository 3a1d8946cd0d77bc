// JSON as text. Writing and reading it is most of what nlohmann/json takes to compile, so that is done in one file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starfold {

// On one line with an end, or indented. Names come from outside and need not be text: bytes that are none are replaced.
std::string json_line(const nlohmann::json& json);
std::string json_pretty(const nlohmann::json& json);
// One object on one line with an end, its keys in this order: the contract's, for people who look at it.
std::string json_ordered_line(const std::vector<std::pair<std::string, nlohmann::json>>& members);

// What a text says; discarded where it is no JSON, or nests deeper than that.
nlohmann::json parse_json(std::string_view text, int deepest = 100);

}  // namespace starfold
