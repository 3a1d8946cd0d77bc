// Any bytes between brackets as a JSON file of records, read as nlohmann's parser reads it, or refused by both.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "starfold/base/error.h"
#include "starfold/data/text/json_reader.h"
#include "starfold/data/text/text_table.h"
#include "tests/support/pieces.h"

namespace {

using nlohmann::json;

enum class Verdict { records, refused, open };

// Open where the two may differ: keys that come twice, deep values, numbers beyond doubles, zero bytes.
Verdict judge(const std::string& text, json& parsed) {
  bool twice = false;
  bool deep = false;
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    deep = deep || depth > 900;
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      twice = true;
    return true;
  };
  try {
    parsed = json::parse(text, watch);
  } catch (const json::out_of_range&) {
    return Verdict::open;
  } catch (const json::parse_error&) {
    return Verdict::refused;
  }
  if (twice || deep || text.find('\0') != std::string::npos) return Verdict::open;
  for (const json& record : parsed) {
    if (!record.is_object()) return Verdict::refused;
  }
  return Verdict::records;
}

void compare(const starfold::JsonReader& reader, const json& record) {
  std::size_t there = 0;
  for (std::size_t c = 0; c < reader.fields().size(); ++c) {
    const starfold::Field& field = reader.fields()[c];
    const auto found = record.find(reader.keys()[c]);
    if (field.form == starfold::Field::Form::missing) {
      if (found != record.end() && !found->is_null()) std::abort();
      continue;
    }
    ++there;
    if (found == record.end()) std::abort();
    if (field.form == starfold::Field::Form::text) {
      if (!found->is_string() || found->get<std::string>() != field.written) std::abort();
    } else if (json::parse(field.written) != *found) {
      std::abort();
    }
  }
  for (const json& value : record) there -= value.is_null() ? 0 : 1;
  if (there != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text =
      "[" + std::string(reinterpret_cast<const char*>(data) + 1, size - 1) + "]";
  starfold::TextFile file;
  file.path = "fuzz.json";
  const std::size_t piece = data[0] + std::size_t{1};
  file.open = [&] { return std::make_unique<starfold::Pieces>(text, piece); };
  json parsed;
  const Verdict verdict = judge(text, parsed);
  std::size_t records = 0;
  try {
    starfold::JsonReader reader(file, {});
    while (reader.next()) {
      if (verdict == Verdict::records) compare(reader, parsed[records]);
      ++records;
    }
    if (verdict == Verdict::refused) std::abort();
    if (verdict == Verdict::records && records != parsed.size()) std::abort();
  } catch (const starfold::RunError&) {
    if (verdict == Verdict::records) std::abort();
  }
  // One object after the other instead, and as a table: a message at worst.
  const std::string lines = text.substr(1, text.size() - 2);
  file.open = [&] { return std::make_unique<starfold::Pieces>(lines, piece); };
  try {
    const auto table = starfold::text_table(starfold::open_json(file));
    std::vector<starfold::ColumnUse> uses;
    for (std::size_t c = 0; c < table->columns().size(); ++c) uses.push_back({c, nullptr});
    const auto scan = table->scan(uses);
    while (scan->next()) {
    }
  } catch (const starfold::RunError&) {
  }
  return 0;
}
