#include "starfold/data/text/input.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"

namespace starfold {
namespace {

constexpr std::size_t bytes_at_once = std::size_t{1} << 18U;

class PlainInput : public ByteInput {
 public:
  explicit PlainInput(const DataFile& file) : file_(file.open()) {}

  std::size_t read(char* to, std::size_t size) override {
    const std::size_t count = file_.read_at(offset_, to, size);
    file_.require_unchanged();
    offset_ += static_cast<std::int64_t>(count);
    return count;
  }

 private:
  OpenFile file_;
  std::int64_t offset_ = 0;
};

// One gzip member after the other, each with its checksum, and nothing after the last.
class GzipInput : public ByteInput {
 public:
  explicit GzipInput(const DataFile& file)
      : path_(file.path()), packed_(file), buffer_(bytes_at_once), stream_() {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~GzipInput() override { inflateEnd(&stream_); }
  GzipInput(const GzipInput&) = delete;
  GzipInput& operator=(const GzipInput&) = delete;

  std::size_t read(char* to, std::size_t size) override {
    stream_.next_out = reinterpret_cast<unsigned char*>(to);
    stream_.avail_out = static_cast<unsigned>(std::min(size, bytes_at_once));
    const unsigned wanted = stream_.avail_out;
    while (stream_.avail_out == wanted) {
      if (stream_.avail_in == 0 && !refill()) {
        if (inside_) fail("is cut short");
        return 0;
      }
      inside_ = true;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        inside_ = false;
        inflateReset(&stream_);
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail("is damaged: what it holds was not compressed with gzip, or has changed since");
      }
    }
    return wanted - stream_.avail_out;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw RunError(fmt::format("{} {}", printable(path_), what));
  }
  bool refill() {
    stream_.next_in = reinterpret_cast<unsigned char*>(buffer_.data());
    stream_.avail_in = static_cast<unsigned>(packed_.read(buffer_.data(), buffer_.size()));
    return stream_.avail_in > 0;
  }

  std::string path_;
  PlainInput packed_;
  std::vector<char> buffer_;
  z_stream stream_;
  bool inside_ = true;  // a member; an empty file has none and is cut short
};

// Bytes of another encoding, one for each character, as UTF-8.
class RecodedInput : public ByteInput {
 public:
  RecodedInput(std::unique_ptr<ByteInput> bytes, Dialect::Encoding encoding)
      : bytes_(std::move(bytes)), encoding_(encoding), buffer_(bytes_at_once) {}

  std::size_t read(char* to, std::size_t size) override {
    if (at_ == text_.size()) {
      const std::size_t count = bytes_->read(buffer_.data(), buffer_.size());
      text_.clear();
      at_ = 0;
      append_utf8(encoding_, {buffer_.data(), count}, text_);
    }
    const std::size_t count = std::min(size, text_.size() - at_);
    std::memcpy(to, text_.data() + at_, count);
    at_ += count;
    return count;
  }

 private:
  std::unique_ptr<ByteInput> bytes_;
  Dialect::Encoding encoding_;
  std::vector<char> buffer_;
  std::string text_;
  std::size_t at_ = 0;
};

// The first byte that is neither 7-bit nor a zero, eight at a time.
std::size_t skip_ascii(const char* text, std::size_t from, std::size_t to) {
  constexpr std::uint64_t high = 0x8080808080808080U;
  constexpr std::uint64_t ones = 0x0101010101010101U;
  while (from + 8 <= to) {
    std::uint64_t word = 0;
    std::memcpy(&word, text + from, 8);
    if (((word | (word - ones)) & high) != 0) break;
    from += 8;
  }
  return from;
}

}  // namespace

TextFile text_file(const DataFile& file, Packing packing, Dialect::Encoding encoding) {
  TextFile text;
  text.path = printable(file.path());
  text.open = [file, packing, encoding]() -> std::unique_ptr<ByteInput> {
    std::unique_ptr<ByteInput> bytes;
    if (packing == Packing::gzip) {
      bytes = std::make_unique<GzipInput>(file);
    } else {
      bytes = std::make_unique<PlainInput>(file);
    }
    if (encoding == Dialect::Encoding::utf8) return bytes;
    return std::make_unique<RecodedInput>(std::move(bytes), encoding);
  };
  return text;
}

TextInput::TextInput(const TextFile& file)
    : path_(file.path), longest_record_(file.longest_record), bytes_(file.open()) {
  constexpr std::string_view byte_order_mark("\xEF\xBB\xBF", 3);
  while (valid_ < byte_order_mark.size() && more()) {
  }
  const std::string_view begin(text_.get(), valid_);
  if (begin.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
}

bool TextInput::more() {
  if (ended_) return false;
  make_room();
  // As much again as there is, so that whoever begins a long record anew reads it a few times only.
  const std::size_t before = filled_;
  while (!ended_ && (filled_ == before || filled_ < 2 * before)) {
    const std::size_t count = bytes_->read(text_.get() + filled_, capacity_ - filled_);
    filled_ += count;
    ended_ = count == 0;
  }
  if (!started_ && filled_ >= 2 && std::memcmp(text_.get(), "\x1f\x8b", 2) == 0)
    fail("is compressed with gzip more often than its name says; once is .csv.gz");
  started_ = true;
  check_text();
  return filled_ > before;
}

void TextInput::make_room() {
  const std::size_t kept = filled_ - at_;
  if (kept > longest_record_)
    fail("holds a record that is too long for the memory given; is a quotation mark left open?");
  if (capacity_ - kept >= std::max(kept, bytes_at_once) && capacity_ > 0) {
    std::memmove(text_.get(), text_.get() + at_, kept);
  } else {
    capacity_ = std::max(3 * kept, 2 * bytes_at_once);
    constexpr std::size_t behind = 8;
    std::unique_ptr<char[]> larger(new char[capacity_ + behind]);
    std::memset(larger.get() + capacity_, 0, behind);
    if (kept > 0) std::memcpy(larger.get(), text_.get() + at_, kept);
    text_ = std::move(larger);
  }
  valid_ -= at_;
  filled_ = kept;
  at_ = 0;
}

void TextInput::check_text() {
  const std::string_view text(text_.get(), filled_);
  while (valid_ < filled_) {
    valid_ = skip_ascii(text_.get(), valid_, filled_);
    if (valid_ == filled_) return;
    const auto c = text[valid_] == '\0' ? std::nullopt : decode_utf8(text, valid_);
    if (!c) {
      constexpr std::size_t longest_character = 4;
      if (!ended_ && text[valid_] != '\0' && filled_ - valid_ < longest_character) return;
      fail(
          "is not UTF-8 text; where it is Latin-1 or windows-1252, say --encoding latin1 or "
          "--encoding windows-1252 (in a study: encoding = \"latin1\")");
    }
    valid_ += c->length;
  }
}

void TextInput::fail(std::int64_t line, std::string_view what) const {
  throw RunError(fmt::format("{}, line {}{}", path_, line, what));
}
void TextInput::fail(std::string_view what) const {
  throw RunError(fmt::format("{} {}", path_, what));
}

}  // namespace starfold
