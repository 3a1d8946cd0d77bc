// Messages as they travel: a header with their length, then JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace starfold::editor {

// A program has at most 4 MB, which escapes can make six times as long; a longer message is none of ours.
inline constexpr std::size_t max_message_bytes = 32 << 20;
inline constexpr std::size_t max_header_bytes = 4096;

// A message with its header before it.
std::string with_header(std::string_view body);

// Cuts a stream into messages, whatever pieces it comes in.
class MessageReader {
 public:
  enum class Kind {
    none,      // more bytes are needed
    message,   // `body`
    too_long,  // announced longer than allowed; it is skipped as it comes, and takes no memory
    broken,    // no header: where the next message begins cannot be known
  };
  struct Next {
    Kind kind = Kind::none;
    std::string body;
  };

  void add(std::string_view bytes) { waiting_ += bytes; }
  Next next();

 private:
  std::string waiting_;
  std::optional<std::size_t> length_;  // of the message whose header was read
  std::size_t skip_ = 0;               // bytes of a message that is not wanted
};

}  // namespace starfold::editor
