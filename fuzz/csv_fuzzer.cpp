// Any bytes as a CSV file: read as a simple reader reads them that has the whole text before it, or refused by both.
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/text/csv_reader.h"
#include "starfold/data/text/text_table.h"
#include "starfold/data/text/values.h"
#include "tests/support/pieces.h"

namespace {

using Rows = std::vector<std::vector<std::string>>;

// One character after the other; nothing when the text breaks a rule of docs/data.md.
std::optional<Rows> read_simply(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (starfold::find_invalid_text(text) != std::string_view::npos) return std::nullopt;
  enum class At { field, plain, quoted, closed } at = At::field;
  Rows rows;
  std::vector<std::string> row;
  std::string field;
  bool blank = false;  // an empty line was seen
  bool ambiguous = false;
  const auto end_field = [&] {
    row.push_back(field);
    field.clear();
    at = At::field;
  };
  const auto end_row = [&] {
    ambiguous = ambiguous || (blank && !rows.empty() && rows[0].size() == 1);
    rows.push_back(row);
    row.clear();
    blank = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (at == At::quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        at = At::closed;
      }
      continue;
    }
    if (c == '"') {
      if (at != At::field) return std::nullopt;
      at = At::quoted;
    } else if (c == ',') {
      end_field();
    } else if (c == '\n' || c == '\r') {
      if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
      if (at == At::field && row.empty()) {
        blank = !rows.empty();
        continue;
      }
      end_field();
      end_row();
    } else {
      if (at == At::closed) return std::nullopt;
      field += c;
      at = At::plain;
    }
  }
  if (at == At::quoted) return std::nullopt;
  if (at != At::field || !row.empty()) {
    end_field();
    end_row();
  }
  if (rows.empty() || ambiguous) return std::nullopt;
  for (std::string& name : rows[0]) name = std::string(starfold::trimmed(name));
  if (rows[0].size() == 1 && rows[0][0].empty()) return std::nullopt;
  for (const auto& other : rows) {
    if (other.size() != rows[0].size()) return std::nullopt;
  }
  return rows;
}

std::optional<Rows> read_really(const starfold::TextFile& file) {
  try {
    starfold::CsvReader reader(file, ',');
    Rows rows = {reader.names()};
    while (reader.next()) {
      rows.emplace_back();
      for (const starfold::Field& field : reader.fields()) rows.back().emplace_back(field.written);
    }
    return rows;
  } catch (const starfold::RunError&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = data[0] + std::size_t{1};
  starfold::TextFile file;
  file.path = "fuzz.csv";
  file.open = [&] { return std::make_unique<starfold::Pieces>(text, piece); };
  const bool packed = text.starts_with("\x1f\x8b");
  if (!packed && read_simply(text) != read_really(file)) std::abort();
  // The same as a table: numbers, or a message.
  try {
    const auto table = starfold::text_table(starfold::open_csv(file, ','));
    std::vector<starfold::ColumnUse> uses;
    for (std::size_t c = 0; c < table->columns().size(); ++c) uses.push_back({c, nullptr});
    const auto scan = table->scan(uses);
    while (scan->next()) {
    }
  } catch (const starfold::RunError&) {
  }
  return 0;
}
