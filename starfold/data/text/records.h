// Records of a file of text, before their values mean anything. Private to starfold/data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/data/text/input.h"

namespace starfold {

// A value as it is written. In CSV files only `written` says what it may be; JSON tells. Those of CSV files lie in the text
// that was read, behind which there is room.
struct Field {
  enum class Form : unsigned char { plain, missing, number, truth, text, list, object };
  std::string_view written;
  Form form = Form::missing;
};

class TextRecords {
 public:
  explicit TextRecords(const TextFile& file) : input_(file) {}
  virtual ~TextRecords() = default;
  // Moves to the next record; false at the end.
  virtual bool next() = 0;
  // Its values by column; they last until the next call of next().
  std::span<const Field> fields() const { return fields_; }
  // Where it begins in the file.
  std::int64_t line() const { return line_; }
  // RunError about this record: "FILE, line 7" and what.
  [[noreturn]] void fail(std::string_view what) const { input_.fail(line_, what); }

  TextRecords(const TextRecords&) = delete;
  TextRecords& operator=(const TextRecords&) = delete;

 protected:
  TextInput input_;
  std::span<const Field> fields_;
  std::int64_t line_ = 1;  // where the record begins
};

}  // namespace starfold
