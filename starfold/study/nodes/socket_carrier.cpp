#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <deque>

#include "starfold/node/disk.h"
#include "starfold/node/frames.h"
#include "starfold/study/nodes/carriers.h"

namespace starfold {
namespace {

// One node. There is never more than one question on its way: another one takes a new connection, so that no answer
// to the first can be taken for one to the second.
class Line {
 public:
  explicit Line(std::string path) : path_(std::move(path)) {}

  // Whether the node can be reached.
  bool send(const Bytes& request) {
    if (asked_) socket_ = Descriptor();
    if (!socket_ && !open()) return false;
    asked_ = true;
    out_ = frame_head(request.size()) + request;
    sent_ = 0;
    return flush();
  }

  int number() const { return socket_.number(); }
  short events() const {
    if (!socket_) return 0;
    return static_cast<short>(POLLIN | (sent_ < out_.size() ? POLLOUT : 0));
  }

  // Takes what has come, which may be more than one answer. False when the node is gone and owes one.
  bool attend(short events, std::vector<Bytes>& answers) {
    if ((events & POLLOUT) != 0 && !flush()) return false;
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) return true;
    std::array<char, 1 << 16> piece{};
    const ssize_t got = recv(socket_.number(), piece.data(), piece.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return lose();
    in_.add({piece.data(), static_cast<std::size_t>(got)});
    while (std::optional<std::string> message = in_.next()) {
      answers.push_back(*std::move(message));
      asked_ = false;
    }
    return in_.broken() ? lose() : true;
  }

 private:
  bool open() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    Descriptor fresh(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fresh ||
        connect(fresh.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return false;
    socket_ = std::move(fresh);
    in_ = FrameReader();
    return true;
  }

  bool flush() {
    while (sent_ < out_.size()) {
      const ssize_t sent =
          ::send(socket_.number(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return true;
      if (sent < 0) return lose();
      sent_ += static_cast<std::size_t>(sent);
    }
    return true;
  }

  bool lose() {
    socket_ = Descriptor();
    const bool was_asked = asked_;
    asked_ = false;
    out_.clear();
    sent_ = 0;
    return !was_asked;
  }

  std::string path_;
  Descriptor socket_;
  bool asked_ = false;
  FrameReader in_;
  Bytes out_;
  std::size_t sent_ = 0;
};

class SocketCarrier : public Carrier {
 public:
  explicit SocketCarrier(std::vector<std::string> sockets) {
    for (std::string& path : sockets) lines_.emplace_back(std::move(path));
  }

  void send(std::size_t client, const Bytes& request) override {
    if (!lines_[client].send(request)) ready_.push_back({client, std::nullopt});
  }

  std::optional<Delivery> receive(double seconds) override {
    if (ready_.empty()) wait(seconds);
    if (ready_.empty()) return std::nullopt;
    Delivery delivery = std::move(ready_.front());
    ready_.pop_front();
    return delivery;
  }

 private:
  void wait(double seconds) {
    std::vector<pollfd> watched;
    for (const Line& line : lines_) watched.push_back({line.number(), line.events(), 0});
    if (poll(watched.data(), watched.size(), static_cast<int>(std::ceil(seconds * 1000))) <= 0)
      return;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      std::vector<Bytes> answers;
      const bool there = lines_[i].attend(watched[i].revents, answers);
      for (Bytes& answer : answers) ready_.push_back({i, std::move(answer)});
      if (!there) ready_.push_back({i, std::nullopt});
    }
  }

  std::vector<Line> lines_;
  std::deque<Delivery> ready_;
};

}  // namespace

std::unique_ptr<Carrier> socket_carrier(std::vector<std::string> sockets) {
  return std::make_unique<SocketCarrier>(std::move(sockets));
}

}  // namespace starfold
