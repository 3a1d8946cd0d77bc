#include "starfold/data/table_error.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "starfold/base/utf8.h"

namespace starfold {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// The number after these words, which stand at `at`.
std::optional<std::int64_t> number_at(const std::string& text, std::size_t at,
                                      std::string_view words) {
  if (at == std::string::npos) return std::nullopt;
  std::int64_t value = 0;
  const char* begin = text.data() + at + words.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> number_after(const std::string& text, std::string_view words) {
  return number_at(text, text.find(words), words);
}

// The last one: what a record holds comes before it.
std::optional<std::int64_t> number_after_last(const std::string& text, std::string_view words) {
  return number_at(text, text.rfind(words), words);
}

// What DuckDB says about a line of a CSV file begins like this; the line itself follows and is not ours to
// show. A header may hold anything, so columns are known by their positions, c0, c1, ...
std::string csv_line_error(const std::string& message, std::int64_t line,
                           const std::vector<ColumnInfo>& columns) {
  const auto expected = number_after_last(message, "\nExpected Number of Columns: ");
  const auto found = number_after_last(message, " Found: ");
  if (expected && found) {
    return fmt::format("line {} has {} fields, but the header names {}", line, *found, *expected);
  }
  const auto column = number_after_last(message, "\nError when converting column \"c");
  if (column && *column < static_cast<std::int64_t>(columns.size())) {
    const ColumnInfo& info = columns[static_cast<std::size_t>(*column)];
    return fmt::format("line {}: column {} holds something that is {}", line, printable(info.name),
                       info.type == "true/false"       ? "neither true nor false"
                       : info.kind == ColumnKind::date ? "not a " + info.type
                                                       : "not a number");
  }
  if (contains(message, "Invalid unicode")) return fmt::format("line {} is not UTF-8 text", line);
  if (contains(message, "unterminated quote"))
    return fmt::format("line {}: a quotation mark is not closed or stands inside a field", line);
  if (contains(message, "Maximum line size")) return fmt::format("line {} is too long", line);
  return fmt::format("line {} cannot be read", line);
}

struct Sentence {
  std::string_view sign;
  std::string_view meaning;
};

// What else goes wrong with files. Only fixed sentences: the rest of DuckDB's message may quote values.
constexpr Sentence file_sentences[] = {
    {"Permission denied", "cannot be opened: permission denied"},
    {"Conflicting lock", "is in use by another program that writes to it"},
    {"Could not set lock", "is in use by another program that writes to it"},
    {"not a valid DuckDB database", "is not a DuckDB database"},
    {"file is not a database", "is not an SQLite database"},
    {"version number", "was written by another version of DuckDB that this one cannot read"},
    {"No magic bytes", "is not a Parquet file, or is cut short"},
    {"too small to be a Parquet", "is not a Parquet file, or is cut short"},
    {"Out of Memory", "cannot be read within the memory given; raise --memory"},
    {"state machine reached an invalid state",
     "is not a proper CSV file: line ends or quotation marks are mixed up"},
    {"not utf-8", "is not UTF-8 text"},
    {"decompress", "is damaged: a compressed part cannot be read"},
    {"malformed", "is damaged"},
    {"Conversion Error", "holds a value that cannot become a number"},
};

}  // namespace

RunError file_error(const std::string& message, const std::string& where,
                    const std::vector<ColumnInfo>& columns) {
  if (const auto line = number_after(message, "CSV Error on Line: ")) {
    return RunError(fmt::format("{}, {}", where, csv_line_error(message, *line, columns)));
  }
  if (contains(message, "JSON")) {
    const auto line = number_after(message, "in line ");
    if (contains(message, "Malformed JSON") ||
        contains(message, "unexpected")) {  // DuckDB may be a line off
      return RunError(
          fmt::format("{} is not JSON{}", where, line ? fmt::format(" near line {}", *line) : ""));
    }
    return RunError(fmt::format("{}{}: a value does not fit the type of its column", where,
                                line ? fmt::format(", line {}", *line) : ""));
  }
  for (const Sentence& sentence : file_sentences) {
    if (contains(message, sentence.sign))
      return RunError(fmt::format("{} {}", where, sentence.meaning));
  }
  return RunError(
      fmt::format("{} cannot be read: it is damaged or of another kind than its name says", where));
}

RunError query_error(const std::string& message) {
  // These come up before any record is read. What follows the first sentence may list names from a file.
  for (const char* kind : {"Parser Error: ", "Binder Error: ", "Catalog Error: "}) {
    const std::size_t at = message.find(kind);
    if (at == std::string::npos || contains(message, "CSV") || contains(message, "JSON")) continue;
    std::string reason = message.substr(at + std::string_view(kind).size());
    reason = reason.substr(0, reason.find('\n'));
    reason = reason.substr(0, reason.find(" Candidate"));
    return RunError(fmt::format("the query is wrong: {}", printable(reason)));
  }
  if (contains(message, "Out of Memory"))
    return RunError("the query needs more memory than it is given; raise --memory");
  const std::string where = "a file that the query reads";
  if (const auto line = number_after(message, "CSV Error on Line: ")) {
    return RunError(fmt::format("{}, {}", where, csv_line_error(message, *line, {})));
  }
  if (contains(message, "No files found"))
    return RunError("a file that the query reads does not exist");
  if (contains(message, "Conversion Error"))
    return RunError("the query fails: a value cannot be converted to the type it asks for");
  if (contains(message, "Out of Range"))
    return RunError("the query fails: a value is out of range");
  for (const Sentence& sentence : file_sentences) {
    if (contains(message, sentence.sign))
      return RunError(fmt::format("{} {}", where, sentence.meaning));
  }
  return RunError("the query fails while it runs");
}

}  // namespace starfold
