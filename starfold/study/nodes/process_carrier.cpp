#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "starfold/base/clock.h"
#include "starfold/base/error.h"
#include "starfold/base/json.h"
#include "starfold/base/utf8.h"
#include "starfold/node/disk.h"
#include "starfold/node/frames.h"
#include "starfold/study/nodes/carriers.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace starfold {
namespace {

template <typename Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// A child process with pipes to its standard input and output.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    // Its input is a socket, because writing to one whose other end is gone raises no signal.
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) != 0 ||
        pipe2(out.data(), O_CLOEXEC) != 0)
      throw RunError("no pipe can be made to the program that carries messages");
    const Descriptor child_in(in[0]);
    const Descriptor child_out(out[1]);
    to_ = Descriptor(in[1]);
    from_ = Descriptor(out[0]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, child_in.number(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, child_out.number(), STDOUT_FILENO);
    // Ctrl-C is for the run, which then ends the child in order.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::vector<char*> arguments;
    for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
    arguments.push_back(nullptr);
    const int failed =
        posix_spawnp(&id_, arguments.front(), &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failed != 0)
      throw RunError(fmt::format("{} cannot be started: {}", printable(command.front()),
                                 std::strerror(failed)));
    fcntl(to_.number(), F_SETFL, O_NONBLOCK);
    fcntl(from_.number(), F_SETFL, O_NONBLOCK);
  }
  // Ends with its input; whoever does not is ended.
  ~Child() {
    to_ = Descriptor();
    for (int waited = 0; waited < 150; ++waited) {
      if (waitpid(id_, nullptr, WNOHANG) != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int to() const { return to_.number(); }
  int from() const { return from_.number(); }

 private:
  pid_t id_ = -1;
  Descriptor to_;
  Descriptor from_;
};

class ProcessCarrier : public Carrier {
 public:
  ProcessCarrier(const std::vector<std::string>& command, const std::string& setup, double patience,
                 const std::atomic<bool>* stop)
      : child_(command) {
    out_ = frame_head(setup.size()) + setup;
    const Clock::time_point start = Clock::now();
    FrameReader reader(1 << 20);
    for (;;) {
      exchange(0.1);
      if (in_.size() >= sizeof(std::uint64_t)) {
        reader.add(in_);
        in_.clear();
      }
      if (const std::optional<std::string> answer = reader.next()) {
        check_ready(*answer);
        return;
      }
      if (stop != nullptr && *stop) throw RunError("the run was stopped");
      const std::chrono::duration<double> waited = Clock::now() - start;
      if (reader.broken() || waited.count() > patience)
        throw RunError("the program that carries messages does not get ready");
    }
  }

  void send(std::size_t client, const Bytes& request) override {
    append(out_, static_cast<std::uint32_t>(client));
    append(out_, static_cast<std::uint64_t>(request.size()));
    out_ += request;
  }

  std::optional<Delivery> receive(double seconds) override {
    std::optional<Delivery> delivery = next();
    if (delivery) return delivery;
    exchange(seconds);
    return next();
  }

 private:
  static void check_ready(const std::string& answer) {
    const nlohmann::json said = parse_json(answer);
    if (said.is_object() && said.value("ok", false)) return;
    const std::string why = said.is_object() && said.contains("error") && said["error"].is_string()
                                ? said["error"].get<std::string>()
                                : "it does not say why";
    throw RunError(fmt::format("messages cannot be carried: {}", printable(why)));
  }

  // Sends and receives what can be, waiting no longer than that.
  void exchange(double seconds) {
    std::array<pollfd, 2> watched = {pollfd{child_.from(), POLLIN, 0},
                                     pollfd{sent_ < out_.size() ? child_.to() : -1, POLLOUT, 0}};
    if (poll(watched.data(), watched.size(), static_cast<int>(std::ceil(seconds * 1000))) <= 0)
      return;
    if (watched[1].revents != 0) flush();
    if (watched[0].revents == 0) return;
    std::array<char, 1 << 16> piece{};
    const ssize_t got = read(child_.from(), piece.data(), piece.size());
    if (got > 0) in_.append(piece.data(), static_cast<std::size_t>(got));
    if (got == 0) throw RunError("the program that carries messages has ended");
  }

  void flush() {
    const ssize_t sent =
        ::send(child_.to(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
      throw RunError("the program that carries messages has ended");
    if (sent > 0) sent_ += static_cast<std::size_t>(sent);
    if (sent_ < out_.size()) return;
    out_.clear();
    sent_ = 0;
  }

  // client: u32, status: u8, length: u64, bytes.
  std::optional<Delivery> next() {
    std::uint32_t client = 0;
    std::uint64_t length = 0;
    constexpr std::size_t head = sizeof client + 1 + sizeof length;
    if (in_.size() < head) return std::nullopt;
    std::memcpy(&client, in_.data(), sizeof client);
    std::memcpy(&length, in_.data() + sizeof client + 1, sizeof length);
    if (length > longest_message) throw RunError("the program that carries messages is broken");
    if (in_.size() - head < length) return std::nullopt;
    Delivery delivery{client, std::nullopt};
    if (in_[sizeof client] == 0) delivery.answer = in_.substr(head, length);
    in_.erase(0, head + length);
    return delivery;
  }

  Child child_;
  Bytes out_;
  std::size_t sent_ = 0;
  Bytes in_;
};

}  // namespace

std::unique_ptr<Carrier> process_carrier(const std::vector<std::string>& command,
                                         const std::string& setup, double patience,
                                         const std::atomic<bool>* stop) {
  return std::make_unique<ProcessCarrier>(command, setup, patience, stop);
}

}  // namespace starfold
