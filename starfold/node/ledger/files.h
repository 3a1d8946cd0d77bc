// The two files of a ledger, read. Private to starfold/node.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace starfold {

// The lines of an open file, in little memory.
class LineReader {
 public:
  LineReader(int file, std::string path);

  // Moves to the next whole line; false when there is none. RunError when reading fails.
  bool next();
  // Without its end.
  std::string_view line() const { return line_; }
  // Where the line begins in the file, and where the next does.
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }
  // After the last line: what follows it, without an end; no more than shows that it is none of ours.
  std::string_view rest() const { return {buffer_.get() + at_, filled_ - at_}; }

 private:
  bool fill();

  int file_;
  std::string path_;
  static constexpr std::size_t buffer_bytes = 1 << 20;
  std::unique_ptr<char[]> buffer_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  std::string_view line_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
};

// Number and hash of the last line.
struct LedgerHead {
  std::int64_t seq = -1;
  std::string hash;
};

// Always the same number of bytes, so that it can be replaced in one step in its place.
std::string format_head(const LedgerHead& head);

struct HeadFile {
  bool exists = false;
  std::optional<LedgerHead> head;  // none: there is no such file, or it is damaged
};
HeadFile read_head(const std::string& path);

}  // namespace starfold
