#include "starfold/base/json.h"

#include <nlohmann/json.hpp>

namespace starfold {
namespace {

std::string text_of(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string json_line(const nlohmann::json& json) { return text_of(json, -1) + "\n"; }

std::string json_pretty(const nlohmann::json& json) { return text_of(json, 2) + "\n"; }

std::string json_ordered_line(const std::vector<std::pair<std::string, nlohmann::json>>& members) {
  std::string line;
  for (const auto& [key, value] : members)
    line += (line.empty() ? "{" : ",") + text_of(key, -1) + ":" + text_of(value, -1);
  return (line.empty() ? "{" : line) + "}\n";
}

nlohmann::json parse_json(std::string_view text, int deepest) {
  bool too_deep = false;
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t /*event*/,
                           nlohmann::json& /*parsed*/) {
    too_deep = too_deep || depth > deepest;
    return !too_deep;
  };
  nlohmann::json json = nlohmann::json::parse(text, shallow, false);
  return too_deep ? nlohmann::json(nlohmann::json::value_t::discarded) : json;
}

}  // namespace starfold
