#include "starfold/data/duckdb/table_error.h"

#include <fmt/format.h>

#include "starfold/base/utf8.h"
#include "starfold/data/text/sql_function.h"

namespace starfold {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
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
    {"failed before", "cannot be read any more, because reading it has failed"},
    {"decompress", "is damaged: a compressed part cannot be read"},
    {"malformed", "is damaged"},
    {"Conversion Error", "holds a value that cannot become a number"},
};

}  // namespace

RunError file_error(const std::string& message, const std::string& where) {
  for (const Sentence& sentence : file_sentences) {
    if (contains(message, sentence.sign))
      return RunError(fmt::format("{} {}", where, sentence.meaning));
  }
  return RunError(
      fmt::format("{} cannot be read: it is damaged or of another kind than its name says", where));
}

RunError query_error(const std::string& message) {
  // Our own words about a file that the query reads.
  if (const std::size_t at = message.find(text_failure); at != std::string::npos) {
    const std::string own = message.substr(at + text_failure.size());
    return RunError(own.substr(0, own.find('\n')));
  }
  // These come up before any record is read. What follows the first sentence may list names from a file.
  for (const char* kind : {"Parser Error: ", "Binder Error: ", "Catalog Error: "}) {
    const std::size_t at = message.find(kind);
    if (at == std::string::npos) continue;
    std::string reason = message.substr(at + std::string_view(kind).size());
    reason = reason.substr(0, reason.find('\n'));
    reason = reason.substr(0, reason.find(" Candidate"));
    return RunError(fmt::format("the query is wrong: {}", printable(reason)));
  }
  if (contains(message, "Out of Memory"))
    return RunError("the query needs more memory than it is given; raise --memory");
  if (contains(message, "Permission Error"))
    return RunError(
        "the query may read only its data and files beside the study, whose names are written in "
        "quotes");
  if (contains(message, "Conversion Error"))
    return RunError("the query fails: a value cannot be converted to the type it asks for");
  if (contains(message, "Out of Range"))
    return RunError("the query fails: a value is out of range");
  for (const Sentence& sentence : file_sentences) {
    if (contains(message, sentence.sign))
      return RunError(fmt::format("a file that the query reads {}", sentence.meaning));
  }
  return RunError("the query fails while it runs");
}

}  // namespace starfold
