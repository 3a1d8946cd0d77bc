// Records as JSON objects: one after the other, or in one array. Private to starfold/data.
#pragma once

#include <deque>
#include <unordered_map>

#include "starfold/data/text/records.h"

namespace starfold {

class JsonReader : public TextRecords {
 public:
  // `keys` are the columns; a key that is none of them becomes one.
  JsonReader(const TextFile& file, std::vector<std::string> keys);
  const std::vector<std::string>& keys() const { return keys_; }
  bool next() override;

 private:
  struct Cut {};  // the text that is there ends within an object

  bool skip_blanks();
  void begin();
  bool find_object();
  void read_object();
  char peek(const char* at) const;
  void blanks(const char*& at) const;
  void expect(const char*& at, char c) const;
  std::string_view string(const char*& at);
  void escape(const char*& at, std::string& text) const;
  char32_t hexadecimal(const char*& at) const;
  Field value(const char*& at);
  void number(const char*& at) const;
  void word(const char*& at, std::string_view text) const;
  void skip_nested(const char*& at);
  std::size_t column(std::string_view key);
  [[noreturn]] void not_json() const { fail(": this is not JSON"); }

  std::vector<std::string> keys_;
  std::vector<Field> values_;         // by column
  std::vector<std::size_t> written_;  // columns of the current record
  std::unordered_map<std::string_view, std::size_t> index_;
  std::deque<std::string> names_;      // what index_ points into
  std::deque<std::string> unescaped_;  // texts of the current record
  std::vector<std::uint64_t> seen_;    // by column: the last attempt that found it
  std::uint64_t attempt_ = 0;          // to read an object
  std::int64_t next_line_ = 1;
  std::size_t expected_ = 0;  // records tend to have their keys in one order
  bool started_ = false;
  bool array_ = false;
  bool first_ = true;
  bool line_break_ = true;  // since the last object
};

}  // namespace starfold
