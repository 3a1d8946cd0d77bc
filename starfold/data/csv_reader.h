// CSV by one dialect, which docs/data.md describes: nothing is guessed. Private to starfold/data.
#pragma once

#include "starfold/data/text_records.h"

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
  std::vector<Field> scanned_;
  std::vector<std::size_t> doubled_;  // fields with doubled quotation marks
  char* after_ = nullptr;             // where the scanned record ends
  std::int64_t breaks_ = 0;           // line breaks inside it
  std::int64_t next_line_ = 1;
  std::int64_t blank_line_ = 0;
};

}  // namespace starfold
