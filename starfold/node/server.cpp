#include "starfold/node/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <list>

#include "starfold/base/clock.h"
#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/node/disk.h"
#include "starfold/node/frames.h"

namespace starfold {
namespace {

constexpr std::size_t most_connections = 256;
constexpr auto longest_silence = std::chrono::seconds(60);  // in the middle of a message
constexpr int poll_milliseconds = 200;                      // how soon signals are seen

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw RunError(
      fmt::format("the socket {} cannot be {}: {}", printable(path), what, std::strerror(errno)));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw RunError(fmt::format("the path of the socket {} is too long", printable(path)));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// A socket that a node left behind when it was killed is removed; one that someone listens on is not.
void remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode))
    throw RunError(fmt::format("{} is in the way: it is not a socket", printable(path)));
  const Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(probe.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    throw RunError(fmt::format("another node listens on {}", printable(path)));
  unlink(path.c_str());
}

gid_t group_number(const std::string& name) {
  const group* found = getgrnam(name.c_str());
  if (found == nullptr)
    throw RunError(fmt::format("there is no group {} on this machine", printable(name)));
  return found->gr_gid;
}

// Whoever connects: the owner's own user, or a member of the group that may.
struct Peer {
  bool welcome = false;
  std::string name;
};
Peer peer_of(int connection, std::optional<gid_t> group) {
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return {};
  Peer peer{who.uid == geteuid(), fmt::format("uid {} pid {}", who.uid, who.pid)};
  if (peer.welcome || !group) return peer;
  std::array<gid_t, 256> groups{};
  socklen_t bytes = sizeof groups;
  peer.welcome = who.gid == *group;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) == 0) {
    const gid_t* const first = groups.data();
    const gid_t* const end = first + bytes / sizeof(gid_t);
    peer.welcome = peer.welcome || std::find(first, end, *group) != end;
  }
  return peer;
}

struct Connection {
  Descriptor socket;
  std::string peer;
  FrameReader in;
  std::string out;
  std::size_t sent = 0;
  Clock::time_point last_heard = Clock::now();

  bool waits_to_send() const { return sent < out.size(); }
};

class Server {
 public:
  Server(Desk& desk, const ServerSignals& signals) : desk_(desk), signals_(signals) {
    const NodeConfig& config = desk.config();
    const sockaddr_un address = address_of(config.socket);
    if (!config.socket_group.empty()) group_ = group_number(config.socket_group);
    remove_stale(config.socket, address);
    listener_ = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const mode_t before = umask(0177);  // nobody else gets in between bind and chmod
    const int bound =
        bind(listener_.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    umask(before);
    if (bound != 0) fail(config.socket, "made");
    struct stat made {};
    lstat(config.socket.c_str(), &made);
    inode_ = made.st_ino;
    if (group_ && (chown(config.socket.c_str(), static_cast<uid_t>(-1), *group_) != 0 ||
                   chmod(config.socket.c_str(), 0660) != 0))
      fail(config.socket, "given to its group");
    if (listen(listener_.number(), 512) != 0) fail(config.socket, "listened on");
  }
  ~Server() {
    struct stat found {};
    const std::string& path = desk_.config().socket;
    if (lstat(path.c_str(), &found) == 0 && found.st_ino == inode_) unlink(path.c_str());
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void run() {
    if (signals_.listening) signals_.listening();
    while (signals_.stop == nullptr || !*signals_.stop) {
      if (signals_.reload != nullptr && signals_.reload->exchange(false)) reload();
      turn();
    }
  }

 private:
  void reload() {
    try {
      const NodeConfig fresh = read_node_config(desk_.config().file);
      desk_.reload(fresh.policy);
      say("the policy was read again");
    } catch (const std::exception& error) {
      say(fmt::format("the policy stays as it was: {}", error.what()));
    }
  }
  void say(const std::string& words) const {
    if (signals_.say) signals_.say(words);
  }

  void turn() {
    const Clock::time_point now = Clock::now();
    int patience = poll_milliseconds;
    const bool quiet = now < quiet_until_;
    std::vector<pollfd> watched = {{listener_.number(), static_cast<short>(quiet ? 0 : POLLIN), 0}};
    if (quiet) {
      const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(quiet_until_ - now);
      patience = std::min(patience, static_cast<int>(wait.count()) + 1);
    }
    for (const Connection& connection : connections_) {
      const bool sends = connection.waits_to_send();  // one request at a time
      const auto events = static_cast<short>(quiet ? 0 : sends ? POLLOUT : POLLIN);
      watched.push_back({connection.socket.number(), events, 0});
    }
    if (poll(watched.data(), watched.size(), patience) < 0) return;  // a signal
    std::size_t at = 1;
    for (auto it = connections_.begin(); it != connections_.end(); ++at) {
      const bool alive = attend(*it, watched[at].revents);
      it = alive ? std::next(it) : connections_.erase(it);
    }
    if (watched[0].revents != 0 && Clock::now() >= quiet_until_) welcome();
  }

  void welcome() {
    for (;;) {
      Descriptor socket(
          accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      const Peer peer = peer_of(socket.number(), group_);
      if (!peer.welcome) {
        say(fmt::format("a connection was turned away: {}", peer.name));
        continue;
      }
      if (connections_.size() >= most_connections) drop_one();
      Connection connection;
      connection.socket = std::move(socket);
      connection.peer = peer.name;
      connections_.push_back(std::move(connection));
    }
  }

  // Makes room by ending the connection that has said nothing for longest.
  void drop_one() {
    connections_.erase(std::min_element(
        connections_.begin(), connections_.end(),
        [](const Connection& a, const Connection& b) { return a.last_heard < b.last_heard; }));
  }

  // Whether the connection goes on.
  bool attend(Connection& connection, short events) {
    const bool gone = (events & (POLLHUP | POLLERR)) != 0;
    const bool quiet = Clock::now() < quiet_until_;  // also by a refusal earlier in this turn
    if (gone && (quiet || connection.waits_to_send())) return false;
    if (quiet) return true;
    if ((events & POLLOUT) != 0) return send_on(connection);
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) return receive(connection);
    return !connection.in.inside() || connection.waits_to_send() ||
           Clock::now() - connection.last_heard < longest_silence;
  }

  bool receive(Connection& connection) {
    std::array<char, 1 << 16> piece{};
    const ssize_t got = recv(connection.socket.number(), piece.data(), piece.size(), 0);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    connection.last_heard = Clock::now();
    connection.in.add({piece.data(), static_cast<std::size_t>(got)});
    return serve_next(connection);
  }

  // Answers what has arrived whole, until an answer has to wait.
  bool serve_next(Connection& connection) {
    while (!connection.waits_to_send()) {
      const std::optional<std::string> request = connection.in.next();
      if (!request) return !connection.in.broken();
      const Clock::time_point begin = Clock::now();
      const Answer answer = desk_.answer(*request, connection.peer);
      connection.out = frame_head(answer.bytes.size()) + answer.bytes;
      if (const auto& refused = desk_.refused(); refused && answer.written)
        say(fmt::format("refused ({}): {}", refused->rule.empty() ? "request" : refused->rule,
                        refused->detail));
      if (answer.pad) {
        quiet_until_ = padded(begin);
        return true;
      }
      if (!flush(connection)) return false;
    }
    return true;
  }

  // A refusal that depends on records leaves at one of few times, whatever was found and when. Until then nobody is answered:
  // else a second connection would tell when the work on the first was done.
  static Clock::time_point padded(Clock::time_point begin) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const double step = std::exp2(std::ceil(std::log2(std::max(seconds, 0.125))));
    return begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(step));
  }

  bool send_on(Connection& connection) { return flush(connection) && serve_next(connection); }

  // Sends as much as the other side takes.
  static bool flush(Connection& connection) {
    while (connection.waits_to_send()) {
      const ssize_t sent = send(connection.socket.number(), connection.out.data() + connection.sent,
                                connection.out.size() - connection.sent, MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      connection.sent += static_cast<std::size_t>(sent);
    }
    connection.out.clear();
    connection.out.shrink_to_fit();
    connection.sent = 0;
    return true;
  }

  Desk& desk_;
  const ServerSignals& signals_;
  std::optional<gid_t> group_;
  Descriptor listener_;
  ino_t inode_ = 0;
  std::list<Connection> connections_;
  Clock::time_point quiet_until_;
};

}  // namespace

void serve(Desk& desk, const ServerSignals& signals) { Server(desk, signals).run(); }

}  // namespace starfold
