#include "starfold/federation/message.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <bit>
#include <cstring>

#include "starfold/base/error.h"

namespace starfold {
namespace {

static_assert(std::endian::native == std::endian::little,
              "messages are written as they lie in memory");

constexpr std::string_view magic = "STARFOLD";
constexpr std::size_t header_size = 8 + 2 + 2 + 8;
constexpr std::size_t checksum_size = 8;
constexpr std::size_t max_rank = 32;

std::string checksum(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return {reinterpret_cast<const char*>(digest), checksum_size};
}

class Writer {
 public:
  template <typename Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    bytes_.append(value);
  }
  void tensor(const Tensor& tensor) {
    number(static_cast<std::uint8_t>(tensor.rank()));
    for (const std::int64_t extent : tensor.shape) number(extent);
    bytes_.append(reinterpret_cast<const char*>(tensor.data.data()),
                  tensor.data.size() * sizeof(double));
  }
  void tensors(const std::vector<Tensor>& all) {
    number(static_cast<std::uint32_t>(all.size()));
    for (const Tensor& one : all) tensor(one);
  }
  void sizes(const SizeValues& values) {
    number(static_cast<std::uint32_t>(values.size()));
    for (const auto& [name, value] : values) {
      text(name);
      number(value);
    }
  }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

// Reads what Writer wrote; every length is checked against what is there.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<std::uint64_t>())); }
  Tensor tensor() {
    const std::size_t rank = number<std::uint8_t>();
    if (rank > max_rank) fail();
    Shape shape;
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      const auto extent = number<std::int64_t>();
      if (extent < 0 || __builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count))
        fail();
      shape.push_back(extent);
    }
    if (count > rest_.size() / sizeof(double)) fail();
    const std::string_view data = take(count * sizeof(double));
    std::vector<double> values(count);
    if (count > 0) std::memcpy(values.data(), data.data(), data.size());
    return {std::move(shape), std::move(values)};
  }
  std::vector<Tensor> tensors() {
    std::vector<Tensor> all;
    for (auto left = number<std::uint32_t>(); left > 0; --left) all.push_back(tensor());
    return all;
  }
  SizeValues sizes() {
    SizeValues values;
    for (auto left = number<std::uint32_t>(); left > 0; --left) {
      std::string name = text();
      // One layout per message: names ascend, so that equal messages are equal bytes.
      if (!values.empty() && values.rbegin()->first >= name) fail();
      values[std::move(name)] = number<std::int64_t>();
    }
    return values;
  }
  void end() const {
    if (!rest_.empty()) fail();
  }
  [[noreturn]] static void fail() {
    throw RunError("a message is malformed: a length or an order does not fit");
  }

 private:
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

// The fields of each kind, once for writing and once for reading.
void write(Writer& out, const StartMessage& m) {
  out.text(m.plan_hash);
  out.text(m.program.name);
  out.text(m.program.text);
  out.number(static_cast<std::uint32_t>(m.program.modules.size()));
  for (const auto& [name, text] : m.program.modules) {
    out.text(name);
    out.text(text);
  }
  out.sizes(m.sizes);
  out.number(static_cast<std::uint8_t>(m.optimize ? 1 : 0));
}
StartMessage read_start(Reader& in) {
  StartMessage m;
  m.plan_hash = in.text();
  m.program.name = in.text();
  m.program.text = in.text();
  for (auto left = in.number<std::uint32_t>(); left > 0; --left) {
    std::string name = in.text();
    if (!m.program.modules.empty() && m.program.modules.rbegin()->first >= name) Reader::fail();
    m.program.modules[std::move(name)] = in.text();
  }
  m.sizes = in.sizes();
  const auto optimize = in.number<std::uint8_t>();
  if (optimize > 1) Reader::fail();
  m.optimize = optimize != 0;
  return m;
}

void write(Writer& out, const HelloMessage& m) {
  out.text(m.plan_hash);
  out.sizes(m.sizes);
}
HelloMessage read_hello(Reader& in) {
  HelloMessage m;
  m.plan_hash = in.text();
  m.sizes = in.sizes();
  return m;
}

void write(Writer& out, const EncodeMessage& m) {
  out.text(m.plan_hash);
  out.number(m.sequence);
  out.number(m.round);
  out.tensors(m.values);
}
EncodeMessage read_encode(Reader& in) {
  EncodeMessage m;
  m.plan_hash = in.text();
  m.sequence = in.number<std::uint64_t>();
  m.round = in.number<std::uint32_t>();
  m.values = in.tensors();
  return m;
}

void write(Writer& out, const StateMessage& m) {
  out.text(m.plan_hash);
  out.number(m.sequence);
  out.number(m.round);
  out.number(static_cast<std::uint32_t>(m.states.size()));
  for (const MergeState& state : m.states) out.tensors(state);
}
StateMessage read_state(Reader& in) {
  StateMessage m;
  m.plan_hash = in.text();
  m.sequence = in.number<std::uint64_t>();
  m.round = in.number<std::uint32_t>();
  for (auto left = in.number<std::uint32_t>(); left > 0; --left) m.states.push_back(in.tensors());
  return m;
}

void write(Writer& out, const RefuseMessage& m) { out.number(static_cast<std::uint8_t>(m.reason)); }
RefuseMessage read_refuse(Reader& in) {
  const auto reason = in.number<std::uint8_t>();
  if (reason >= refusal_count) Reader::fail();
  return {static_cast<Refusal>(reason)};
}

Message read_body(std::uint16_t kind, Reader& in) {
  switch (kind) {
    case 0:
      return read_start(in);
    case 1:
      return read_hello(in);
    case 2:
      return read_encode(in);
    case 3:
      return read_state(in);
    case 4:
      return read_refuse(in);
    default:
      throw RunError(fmt::format("a message is of unknown kind {}", kind));
  }
}

}  // namespace

std::string_view sentence(Refusal refusal) {
  static constexpr std::string_view sentences[refusal_count] = {
      "the request cannot be read",
      "this message is not for a client",
      "the program has errors",
      "the same text gives another plan there; client and server run different versions",
      "its data do not fit the program",
      "no program was started",
      "the request belongs to another program",
      "the plan has no such round",
      "the shared values are not those that the round needs",
      "its records cannot be folded as the program asks",
      "it has not enough memory or threads",
      "an internal error",
  };
  return sentences[static_cast<std::size_t>(refusal)];
}

std::int64_t numbers_in(const std::vector<MergeState>& states) {
  std::int64_t count = 0;
  for (const MergeState& state : states) {
    for (const Tensor& part : state) count += part.count();
  }
  return count;
}

Bytes encode_message(const Message& message) {
  Writer body;
  std::visit([&](const auto& m) { write(body, m); }, message);
  const Bytes content = body.take();
  Bytes bytes(magic);
  Writer header;
  header.number(message_version);
  header.number(static_cast<std::uint16_t>(message.index()));
  header.number(static_cast<std::uint64_t>(content.size()));
  bytes += header.take();
  bytes += content;
  bytes += checksum(bytes);
  return bytes;
}

Message decode_message(std::string_view bytes) {
  if (bytes.substr(0, magic.size()) != magic)
    throw RunError("these bytes are not a Starfold message");
  if (bytes.size() < header_size + checksum_size) throw RunError("a message is cut short");
  Reader header(bytes.substr(magic.size(), header_size - magic.size()));
  const auto version = header.number<std::uint16_t>();
  const auto kind = header.number<std::uint16_t>();
  const auto length = header.number<std::uint64_t>();
  if (version != message_version) {
    throw RunError(
        fmt::format("a message has format version {}, but this Starfold speaks version {}", version,
                    message_version));
  }
  const std::size_t room = bytes.size() - header_size - checksum_size;
  if (length != room)
    throw RunError(fmt::format("a message says {} bytes but has {}", length, room));
  const std::string_view covered = bytes.substr(0, header_size + room);
  if (checksum(covered) != bytes.substr(covered.size()))
    throw RunError("a message was changed on its way: its checksum is wrong");
  Reader body(bytes.substr(header_size, room));
  Message message = read_body(kind, body);
  body.end();
  return message;
}

}  // namespace starfold
