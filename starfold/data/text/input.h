// The text of a file, a piece at a time: decompressed, checked to be UTF-8. Private to starfold/data.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "starfold/data/file.h"
#include "starfold/data/text/dialect.h"

namespace starfold {

enum class Packing { none, gzip };

// Reads bytes one after the other. RunError when a file is damaged, cut short, or changes.
class ByteInput {
 public:
  virtual ~ByteInput() = default;
  // Up to `size` bytes; 0 only at the end.
  virtual std::size_t read(char* to, std::size_t size) = 0;
};

// A text that can be read any number of times, and how much of it may lie in memory at once.
struct TextFile {
  std::string path;  // as messages show it
  std::function<std::unique_ptr<ByteInput>()> open;
  std::size_t longest_record = std::size_t{1} << 27U;
};
TextFile text_file(const DataFile& file, Packing packing,
                   Dialect::Encoding encoding = Dialect::Encoding::utf8);

// The part of a text from the current record on. Who reads it moves `at`.
class TextInput {
 public:
  explicit TextInput(const TextFile& file);

  char* at() const { return text_.get() + at_; }
  // Eight bytes behind it may be read, whatever is in them.
  char* end() const { return text_.get() + valid_; }
  void move_to(const char* position) { at_ = static_cast<std::size_t>(position - text_.get()); }
  // Adds text behind end(); what is before at() is gone, and pointers with it. False at the end of the file.
  // RunError when it is not text, or one record is too long.
  bool more();
  bool ended() const { return ended_; }

  // RunError about a line of this file.
  [[noreturn]] void fail(std::int64_t line, std::string_view what) const;
  [[noreturn]] void fail(std::string_view what) const;

 private:
  void make_room();
  void check_text();

  std::string path_;
  std::size_t longest_record_;
  std::unique_ptr<ByteInput> bytes_;
  std::unique_ptr<char[]> text_;
  std::size_t capacity_ = 0;
  std::size_t at_ = 0;
  std::size_t valid_ = 0;   // up to here it is known to be UTF-8
  std::size_t filled_ = 0;  // a character cut in two may follow
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace starfold
