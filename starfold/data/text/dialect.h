// How a file of text is written, where it is not as docs/data.md says of all of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starfold {

struct Dialect {
  enum class Encoding { utf8, latin1, windows1252 };
  std::vector<std::string> na = {};  // what stands for a missing value, beside the usual words
  char delimiter = '\0';             // none given: by the name of the file
  bool decimal_comma = false;
  Encoding encoding = Encoding::utf8;
  std::string dates = {};  // "%d.%m.%Y"; none given: 2020-12-31
  std::string sheet = {};  // of an Excel file; none given: the first

  bool is_missing(std::string_view text) const;
  bool operator==(const Dialect&) const = default;
};

// What may be said of a dialect, by the names that studies, node files and options use.
inline constexpr const char* dialect_keys[] = {"na",       "delimiter", "decimal",
                                               "encoding", "dates",     "sheet"};

// Sets what a key says; UsageError when it cannot be. "na" takes one more word each time.
void set_dialect(Dialect& dialect, std::string_view key, const std::string& value);

// The dialect on one line, for hashes; empty when it says nothing.
std::string dialect_text(const Dialect& dialect);

// What is commonly written where a value is missing, and may therefore be shown: ?, ., -, none.
bool is_common_mark(std::string_view text);

// A text of one byte per character as UTF-8.
void append_utf8(Dialect::Encoding encoding, std::string_view bytes, std::string& to);

}  // namespace starfold
