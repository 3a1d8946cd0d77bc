#include "starfold/data/text/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "starfold/base/error.h"
#include "starfold/data/text/values.h"

namespace starfold {
namespace {

constexpr std::string_view quote_fault =
    ": a quotation mark is not closed or stands inside a field";

constexpr std::uint64_t each_byte = 0x0101010101010101U;

// The highest bit of each byte that is `c`; above the lowest of them others may be set, too.
std::uint64_t bytes_equal(std::uint64_t word, char c) {
  const std::uint64_t differs = word ^ (each_byte * static_cast<unsigned char>(c));
  return (differs - each_byte) & ~differs & (each_byte << 7U);
}

// How many bytes from `at` on are neither the delimiter, a line break nor a quotation mark. Eight at a time: most fields are
// shorter, and a loop over their bytes would end where no processor expects it.
std::size_t length_of_plain(const char* at, const char* end, char delimiter) {
  for (const char* from = at; from < end; from += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, 8);
    const std::uint64_t ends = bytes_equal(word, delimiter) | bytes_equal(word, '\n') |
                               bytes_equal(word, '\r') | bytes_equal(word, '"');
    if (ends != 0)
      return static_cast<std::size_t>(std::min(from + std::countr_zero(ends) / 8, end) - at);
  }
  return static_cast<std::size_t>(end - at);
}

}  // namespace

CsvReader::CsvReader(const TextFile& file, char delimiter)
    : TextRecords(file), delimiter_(delimiter) {
  if (!find_record()) input_.fail("is empty: a CSV file begins with a line of column names");
  blank_line_ = 0;  // before the names an empty line means nothing
  for (const Field& field : fields_) names_.emplace_back(trimmed(field.written));
  if (names_.size() == 1 && names_[0].empty())
    input_.fail("is empty: a CSV file begins with a line of column names");
}

bool CsvReader::next() {
  if (!find_record()) return false;
  if (fields_.size() != names_.size()) {
    fail(fmt::format(" has {} fields, but the header names {}", fields_.size(), names_.size()));
  }
  // With one column, an empty line may be meant as a missing value.
  if (blank_line_ > 0 && names_.size() == 1)
    input_.fail(blank_line_, " is empty; a missing value is written NA or \"\"");
  return true;
}

// Moves to the next line that is not empty.
bool CsvReader::find_record() {
  while (true) {
    line_ = next_line_;
    breaks_ = 0;
    Scan found = scan();
    if (found == Scan::cut) {
      if (input_.more()) continue;
      if (input_.at() == input_.end()) return false;
      found = scan();
      if (found == Scan::cut) fail(quote_fault);
    }
    input_.move_to(after_);
    next_line_ = line_ + breaks_ + 1;
    if (found == Scan::blank) {
      blank_line_ = line_;
      continue;
    }
    undouble();
    fields_ = {scanned_.data(), scanned_count_};
    return true;
  }
}

// Cuts the text from at() on into fields; `cut` when more of it is needed.
CsvReader::Scan CsvReader::scan() {
  scanned_count_ = 0;
  doubled_.clear();
  breaks_ = 0;
  char* at = input_.at();
  const char* end = input_.end();
  if (at == end) return Scan::cut;
  if (*at == '\n' || *at == '\r') return end_line(at) == Scan::cut ? Scan::cut : Scan::blank;
  while (true) {
    const Scan field = at < end && *at == '"' ? scan_quoted(at, end) : scan_plain(at, end);
    if (field == Scan::cut) return Scan::cut;
    if (at == end || *at != delimiter_) return end_line(at);
    ++at;
  }
}

// `at` is at a line break, or at the end of the file.
CsvReader::Scan CsvReader::end_line(char* at) {
  const char* end = input_.end();
  if (at < end && *at++ == '\r') {
    if (at == end && !input_.ended()) return Scan::cut;  // does a line feed follow?
    if (at < end && *at == '\n') ++at;
  }
  after_ = at;
  return Scan::record;
}

CsvReader::Scan CsvReader::scan_plain(char*& at, const char* end) {
  char* begin = at;
  at += length_of_plain(at, end, delimiter_);
  if (at < end && *at == '"') fail(quote_fault);
  if (at == end && !input_.ended()) return Scan::cut;
  add(begin, at);
  return Scan::record;
}

CsvReader::Scan CsvReader::scan_quoted(char*& at, const char* end) {
  char* begin = ++at;
  bool doubled = false;
  while (true) {
    auto* close = static_cast<char*>(std::memchr(at, '"', static_cast<std::size_t>(end - at)));
    if (close == nullptr) return Scan::cut;
    at = close + 1;
    if (at == end && !input_.ended()) return Scan::cut;
    if (at < end && *at == '"') {
      doubled = true;
      ++at;
      continue;
    }
    if (at < end && *at != delimiter_ && *at != '\n' && *at != '\r') fail(quote_fault);
    for (const char* c = begin; c < close; ++c) {
      if (*c == '\n' || (*c == '\r' && c[1] != '\n')) ++breaks_;
    }
    if (doubled) doubled_.push_back(scanned_count_);
    add(begin, close);
    return Scan::record;
  }
}

// Two quotation marks inside a quoted field are one. The text is ours, so that they may go where they stand.
void CsvReader::undouble() {
  for (const std::size_t index : doubled_) {
    std::string_view& written = scanned_[index].written;
    char* to = const_cast<char*>(written.data());
    std::size_t size = 0;
    for (std::size_t i = 0; i < written.size(); ++i) {
      to[size++] = written[i];
      if (written[i] == '"') ++i;
    }
    written = {to, size};
  }
}

}  // namespace starfold
