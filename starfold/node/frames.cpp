#include "starfold/node/frames.h"

#include <cstring>

namespace starfold {

std::string frame_head(std::size_t length) {
  const std::uint64_t number = length;
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::optional<std::string> FrameReader::next() {
  std::uint64_t length = 0;
  if (broken_ || buffer_.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, buffer_.data(), sizeof length);
  if (length > longest_) {
    broken_ = true;
    return std::nullopt;
  }
  if (buffer_.size() - sizeof length < length) return std::nullopt;
  std::string message = buffer_.substr(sizeof length, length);
  buffer_.erase(0, sizeof length + length);
  return message;
}

}  // namespace starfold
