// Messages on a stream: the length of each as 8 bytes, little-endian, then its bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace starfold {

// What a message may have; whoever announces more is not answered.
inline constexpr std::uint64_t longest_message = std::uint64_t{1} << 30;

// The bytes that announce a message of this length.
std::string frame_head(std::size_t length);

// Takes bytes as they come and gives whole messages. Memory is taken as bytes arrive, not as they are announced.
class FrameReader {
 public:
  explicit FrameReader(std::uint64_t longest = longest_message) : longest_(longest) {}

  void add(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole message; none: more bytes are needed.
  std::optional<std::string> next();
  // Whether a message was announced that is too long: nothing more can be read.
  bool broken() const { return broken_; }
  // Whether part of a message has arrived.
  bool inside() const { return !buffer_.empty(); }

 private:
  std::uint64_t longest_;
  std::string buffer_;
  bool broken_ = false;
};

}  // namespace starfold
