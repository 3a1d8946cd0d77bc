#include "starfold/node/ledger/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
#include "starfold/base/utf8.h"
#include "starfold/node/disk.h"
#include "starfold/node/ledger/line.h"

namespace starfold {

LineReader::LineReader(int file, std::string path)
    : file_(file),
      path_(std::move(path)),
      buffer_(std::make_unique_for_overwrite<char[]>(buffer_bytes)) {}

bool LineReader::fill() {
  if (at_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + at_, filled_ - at_);
    filled_ -= at_;
    at_ = 0;
  }
  while (true) {
    const ssize_t count = ::pread(file_, buffer_.get() + filled_, buffer_bytes - filled_,
                                  end_ + static_cast<std::int64_t>(filled_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw RunError(fmt::format("{} cannot be read: {}", printable(path_), system_reason()));
    filled_ += static_cast<std::size_t>(count);
    return count > 0;
  }
}

bool LineReader::next() {
  std::size_t searched = at_;
  while (true) {
    const void* found = std::memchr(buffer_.get() + searched, '\n', filled_ - searched);
    if (found != nullptr) {
      const std::size_t at =
          static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.get());
      line_ = {buffer_.get() + at_, at - at_};
      begin_ = end_;
      end_ += static_cast<std::int64_t>(at + 1 - at_);
      at_ = at + 1;
      return true;
    }
    const std::size_t open = filled_ - at_;
    if (open > longest_ledger_line || !fill()) return false;
    searched = open;
  }
}

namespace {

constexpr std::size_t head_bytes = 160;

std::string check_of(const LedgerHead& head) {
  return sha256_hex(fmt::format("{} {}", head.seq, head.hash)).substr(0, 16);
}

}  // namespace

std::string format_head(const LedgerHead& head) {
  const std::string text = fmt::format("{{\"seq\":{},\"hash\":\"{}\",\"check\":\"{}\"}}", head.seq,
                                       head.hash, check_of(head));
  return fmt::format("{:<{}}\n", text, head_bytes - 1);
}

namespace {

std::optional<LedgerHead> parse_head(const std::string& text) {
  constexpr std::string_view before = "{\"seq\":";
  constexpr std::string_view between = ",\"hash\":\"";
  LedgerHead head;
  if (!text.starts_with(before)) return std::nullopt;
  const char* number = text.data() + before.size();
  const auto [end, error] = std::from_chars(number, text.data() + text.size(), head.seq);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || !rest.starts_with(between)) return std::nullopt;
  head.hash = rest.substr(between.size(), 64);
  if (format_head(head) != text) return std::nullopt;
  return head;
}

}  // namespace

HeadFile read_head(const std::string& path) {
  // A node may be writing it: then it is whole a moment later.
  constexpr int tries = 3;
  HeadFile file;
  for (int i = 0; i < tries && !file.head; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    file.exists = static_cast<bool>(open_regular(path));
    if (!file.exists) return file;
    try {
      file.head = parse_head(read_regular(path, head_bytes));
    } catch (const RunError&) {
      continue;  // too long to be one
    }
  }
  return file;
}

}  // namespace starfold
