// Messages from anyone: arbitrary bytes and changed messages are read, or refused with a reason; a
// node always answers with a message, and a coordinator never takes what does not fit.
//
// The first byte chooses: bytes as they come, or a valid message of a dialogue with some of its bytes
// changed and its checksum made right again, so that what lies behind the checksum is reached too.
#include <openssl/sha.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "fuzz/require.h"
#include "starfold/base/error.h"
#include "starfold/federation/coordinator.h"
#include "starfold/federation/node.h"

using namespace starfold;

namespace {

const char* const text =
    "input x : [*, p]\n"
    "input w : [*visits]\n"
    "input b : [p]\n"
    "state s : [p] = b\n"
    "repeat 2 {\n"
    "  s <- sum[*](x * s) / (1 + norm(s))\n"
    "} until max(s) > 100\n"
    "output s\n"
    "output spread = var[*](x)\n"
    "output soft = logsumexp[*](w)\n"
    "output some = any[*](w > 0)\n"
    "output n = records(w)\n";

Client owner() {
  Client client{"a", {}};
  client.arrays["x"] = Tensor({3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6});
  client.arrays["w"] = Tensor({2}, std::vector<double>{-1, 1});
  return client;
}

Settings settings() {
  Settings given;
  given.shared["b"] = Tensor({2}, std::vector<double>{1, 2});
  return given;
}

// A program, a coordinator that has greeted its client, and the messages of their first round.
struct Dialogue {
  std::shared_ptr<const CompiledProgram> program = compile_program({"fuzz.fold", text, {}});
  ProgramCache cache;
  Bytes start, hello, encode, state;

  Dialogue() {
    Coordinator coordinator(program, settings(), {"a"});
    Node node(owner(), cache);
    start = coordinator.request();
    hello = node.handle(start);
    coordinator.absorb(0, hello);
    encode = coordinator.request();
    state = node.handle(encode);
    coordinator.absorb(0, state);
  }
};

constexpr std::size_t checksum_size = 8;

// The bytes with a checksum that fits, where they are long enough to have one.
Bytes sealed(Bytes bytes) {
  if (bytes.size() < 20 + checksum_size) return bytes;
  const std::size_t covered = bytes.size() - checksum_size;
  const std::uint64_t length = covered - 20;
  std::memcpy(bytes.data() + 12, &length, sizeof length);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), covered, digest);
  std::memcpy(bytes.data() + covered, digest, checksum_size);
  return bytes;
}

// Takes commands of three bytes: a place and a new byte; a high place cuts or grows the message.
Bytes changed(Bytes bytes, std::string_view commands) {
  while (commands.size() >= 3) {
    const auto place = static_cast<std::uint16_t>(static_cast<unsigned char>(commands[0]) |
                                                  (static_cast<unsigned char>(commands[1]) << 8));
    if (place < 0xF000) {
      if (!bytes.empty()) bytes[place % bytes.size()] = commands[2];
    } else if (place < 0xF800) {
      bytes.resize(bytes.size() -
                   std::min<std::size_t>(bytes.size(), static_cast<unsigned char>(commands[2])));
    } else {
      bytes.insert(bytes.size() / 2, static_cast<unsigned char>(commands[2]) % 32, '\1');
    }
    commands.remove_prefix(3);
  }
  return sealed(std::move(bytes));
}

void read(std::string_view bytes) {
  try {
    const Message message = decode_message(bytes);
    require(encode_message(message) == bytes);
  } catch (const RunError& error) {
    require(*error.what() != '\0');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Dialogue dialogue;
  if (size == 0) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Bytes* const templates[] = {&dialogue.start, &dialogue.hello, &dialogue.encode,
                                    &dialogue.state};
  Bytes bytes(rest);
  if (data[0] % 6 == 1) bytes = sealed(bytes);
  if (data[0] % 6 > 1) bytes = changed(*templates[data[0] % 6 - 2], rest);
  read(bytes);

  // A fresh node, a greeted one, and a coordinator in each of its moods.
  Node fresh(owner(), dialogue.cache);
  read(fresh.handle(bytes));
  Node greeted(owner(), dialogue.cache);
  greeted.handle(dialogue.start);
  read(greeted.handle(bytes));
  require(greeted.handle(dialogue.start) == dialogue.hello);

  for (const bool greeting : {true, false}) {
    Coordinator coordinator(dialogue.program, settings(), {"a"});
    if (!greeting) coordinator.absorb(0, dialogue.hello);
    try {
      coordinator.absorb(0, bytes);
    } catch (const RunError& error) {
      require(*error.what() != '\0');
      // A refused answer leaves no trace: the right one still counts.
      const Message message = [&]() -> Message {
        try {
          return decode_message(bytes);
        } catch (const RunError&) {
          return HelloMessage{};
        }
      }();
      if (!std::holds_alternative<RefuseMessage>(message))
        coordinator.absorb(0, greeting ? dialogue.hello : dialogue.state);
    }
  }
  return 0;
}
