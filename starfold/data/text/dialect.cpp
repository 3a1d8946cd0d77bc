#include "starfold/data/text/dialect.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/usage_error.h"
#include "starfold/base/utf8.h"

namespace starfold {
namespace {

// What windows-1252 has where Latin-1 has control characters; 0: nothing.
constexpr char16_t windows_signs[] = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

char parse_delimiter(const std::string& value) {
  if (value == "tab" || value == "\\t") return '\t';
  constexpr std::string_view never = "\"\r\n. -+";
  const bool one = value.size() == 1 && static_cast<unsigned char>(value[0]) < 0x7F &&
                   never.find(value[0]) == std::string_view::npos &&
                   std::isalnum(static_cast<unsigned char>(value[0])) == 0;
  if (!one)
    throw UsageError(
        fmt::format("a delimiter is one sign such as ; or | or \"tab\", not {}", printable(value)));
  return value[0];
}

Dialect::Encoding parse_encoding(const std::string& value) {
  std::string word;
  for (const char c : value) {
    if (c != '-' && c != '_' && c != ' ')
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (word == "utf8") return Dialect::Encoding::utf8;
  if (word == "latin1" || word == "iso88591") return Dialect::Encoding::latin1;
  if (word == "windows1252" || word == "cp1252") return Dialect::Encoding::windows1252;
  throw UsageError(
      fmt::format("an encoding is utf-8, latin1 or windows-1252, not {}", printable(value)));
}

std::string parse_dates(const std::string& value) {
  bool year = false;
  bool month = false;
  bool day = false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '%') continue;
    const char sign = i + 1 < value.size() ? value[++i] : ' ';
    if (std::string_view("YmdHMS").find(sign) == std::string_view::npos)
      throw UsageError(
          fmt::format("a form of dates is made of %Y %m %d %H %M %S and signs between them, not {}",
                      printable(value)));
    year = year || sign == 'Y';
    month = month || sign == 'm';
    day = day || sign == 'd';
  }
  if (!year || !month || !day)
    throw UsageError(
        fmt::format("a form of dates has a day, a month and a year, for example %d.%m.%Y; not {}",
                    printable(value)));
  return value;
}

}  // namespace

bool Dialect::is_missing(std::string_view text) const {
  return std::find(na.begin(), na.end(), text) != na.end();
}

void set_dialect(Dialect& dialect, std::string_view key, const std::string& value) {
  if (key == "na") dialect.na.push_back(value);
  if (key == "delimiter") dialect.delimiter = parse_delimiter(value);
  if (key == "encoding") dialect.encoding = parse_encoding(value);
  if (key == "dates") dialect.dates = parse_dates(value);
  if (key == "sheet") dialect.sheet = value;
  if (key != "decimal") return;
  if (value != "," && value != ".")
    throw UsageError(fmt::format("a decimal sign is , or . and not {}", printable(value)));
  dialect.decimal_comma = value == ",";
}

std::string dialect_text(const Dialect& dialect) {
  if (dialect == Dialect()) return "";
  std::string text =
      fmt::format("{} {} {} {} {}", static_cast<int>(dialect.delimiter), dialect.decimal_comma,
                  static_cast<int>(dialect.encoding), dialect.dates, dialect.sheet);
  for (const std::string& word : dialect.na) text += fmt::format("\n{} {}", word.size(), word);
  return text;
}

bool is_common_mark(std::string_view text) {
  static constexpr std::string_view marks[] = {
      "?",    ".",       "-",       "--",      "*",       "..",   "na",   "n/a",  "n.a.",
      "N.A.", "none",    "None",    "NONE",    "nil",     "null", "Null", "<NA>", "#N/A",
      "#NA",  "missing", "Missing", "unknown", "Unknown", "UNK",  "unk",  "NaT",  "#NULL!"};
  return std::find(std::begin(marks), std::end(marks), text) != std::end(marks);
}

void append_utf8(Dialect::Encoding encoding, std::string_view bytes, std::string& to) {
  for (const char c : bytes) {
    unsigned code = static_cast<unsigned char>(c);
    if (encoding == Dialect::Encoding::windows1252 && code >= 0x80 && code < 0xA0 &&
        windows_signs[code - 0x80] != 0)
      code = windows_signs[code - 0x80];
    if (code < 0x80) {
      to += c;
    } else if (code < 0x800) {
      to += static_cast<char>(0xC0U | code >> 6U);
      to += static_cast<char>(0x80U | (code & 0x3FU));
    } else {
      to += static_cast<char>(0xE0U | code >> 12U);
      to += static_cast<char>(0x80U | (code >> 6U & 0x3FU));
      to += static_cast<char>(0x80U | (code & 0x3FU));
    }
  }
}

}  // namespace starfold
