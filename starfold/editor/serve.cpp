#include "starfold/editor/serve.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "starfold/editor/library_files.h"
#include "starfold/editor/server.h"
#include "starfold/editor/wire.h"

namespace starfold::editor {
namespace {

// All of it, or false when no one listens.
bool write_all(int out, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(out, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool more_waits(int in) {
  pollfd waiting{in, POLLIN, 0};
  return ::poll(&waiting, 1, 0) > 0;
}

}  // namespace

int serve(int in, int out) {
  bool heard = true;
  Server server(
      [&](const std::string& body) { heard = heard && write_all(out, with_header(body)); },
      library_folder());
  MessageReader reader;
  std::vector<char> piece(1 << 16);
  while (heard) {
    const ssize_t size = ::read(in, piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    reader.add({piece.data(), static_cast<std::size_t>(size)});
    for (bool waiting = true; waiting && heard;) {
      MessageReader::Next next = reader.next();
      switch (next.kind) {
        case MessageReader::Kind::none:
          waiting = false;
          break;
        case MessageReader::Kind::message:
          server.receive(next.body);
          if (server.ended()) return server.exit_code();
          break;
        case MessageReader::Kind::too_long:
          server.refuse("the message is too long");
          break;
        case MessageReader::Kind::broken:
          server.refuse("this is no header of a message");
          return 1;
      }
    }
    if (!more_waits(in)) server.settle();
  }
  return server.exit_code();
}

}  // namespace starfold::editor
