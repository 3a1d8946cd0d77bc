// CSV by one dialect, which docs/data.md describes: nothing is guessed. Private to starfold/data.
#pragma once

#include "starfold/data/text/records.h"

namespace starfold {

class CsvReader : public TextRecords {
 public:
  // Reads the line of names. RunError when there is none.
  CsvReader(const TextFile& file, char delimiter);
  const std::vector<std::string>& names() const { return names_; }
  bool next() override;

 private:
  enum class Scan { record, blank, cut };
  bool find_record();
  Scan scan();
  Scan end_line(char* at);
  Scan scan_quoted(char*& at, const char* end);
  Scan scan_plain(char*& at, const char* end);
  void undouble();

  char delimiter_;
  std::vector<std::string> names_;
  // Adds a field to those scanned.
  void add(const char* begin, const char* end) {
    if (scanned_count_ == scanned_.size()) scanned_.resize(2 * scanned_count_ + 8);
    scanned_[scanned_count_++] = {{begin, static_cast<std::size_t>(end - begin)},
                                  Field::Form::plain};
  }

  std::vector<Field> scanned_;  // longer than what was scanned: it is used again for every record
  std::size_t scanned_count_ = 0;
  std::vector<std::size_t> doubled_;  // fields with doubled quotation marks
  char* after_ = nullptr;             // where the scanned record ends
  std::int64_t breaks_ = 0;           // line breaks inside it
  std::int64_t next_line_ = 1;
  std::int64_t blank_line_ = 0;
};

}  // namespace starfold
