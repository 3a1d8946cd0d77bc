#include "starfold/federation/message.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"

namespace starfold {
namespace {

constexpr std::string_view magic = "STARFOLD";
constexpr std::size_t header_size = 8 + 2 + 2 + 8;
constexpr std::size_t checksum_size = 8;

std::string checksum(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return {reinterpret_cast<const char*>(digest), checksum_size};
}

// The fields of each kind, once for writing and once for reading.
void write(ByteWriter& out, const StartMessage& m) {
  out.text(m.plan_hash);
  out.text(m.program.name);
  out.text(m.program.text);
  out.number(static_cast<std::uint32_t>(m.program.modules.size()));
  for (const auto& [name, text] : m.program.modules) {
    out.text(name);
    out.text(text);
  }
  out.numbers(m.sizes);
  out.flag(m.planning.optimize);
  out.flag(m.planning.exact);
  out.flag(m.planning.additive);
  out.text(m.run);
  out.text(m.study);
  out.text(m.source);
  out.text(m.bindings);
  out.flag(m.group.has_value());
  if (m.group) secure::write(out, *m.group);
  out.flag(m.sampled);
  out.text(m.privacy);
}
StartMessage read_start(ByteReader& in) {
  StartMessage m;
  m.plan_hash = in.text();
  m.program.name = in.text();
  m.program.text = in.text();
  for (auto left = in.number<std::uint32_t>(); left > 0; --left) {
    std::string name = in.text();
    if (!m.program.modules.empty() && m.program.modules.rbegin()->first >= name) ByteReader::fail();
    m.program.modules[std::move(name)] = in.text();
  }
  m.sizes = in.numbers();
  m.planning.optimize = in.flag();
  m.planning.exact = in.flag();
  m.planning.additive = in.flag();
  m.run = in.text();
  m.study = in.text();
  m.source = in.text();
  m.bindings = in.text();
  if (in.flag()) m.group = secure::read_group(in);
  m.sampled = in.flag();
  m.privacy = in.text();
  return m;
}

void write(ByteWriter& out, const HelloMessage& m) {
  out.text(m.agreement);
  out.numbers(m.sizes);
  out.text(m.run);
}
HelloMessage read_hello(ByteReader& in) {
  HelloMessage m;
  m.agreement = in.text();
  m.sizes = in.numbers();
  m.run = in.text();
  return m;
}

void write(ByteWriter& out, const EncodeMessage& m) {
  out.text(m.agreement);
  out.number(m.sequence);
  out.number(m.round);
  out.tensors(m.values);
  out.text(m.run);
}
EncodeMessage read_encode(ByteReader& in) {
  EncodeMessage m;
  m.agreement = in.text();
  m.sequence = in.number<std::uint64_t>();
  m.round = in.number<std::uint32_t>();
  m.values = in.tensors();
  m.run = in.text();
  return m;
}

void write(ByteWriter& out, const StateMessage& m) {
  out.text(m.agreement);
  out.number(m.sequence);
  out.number(m.round);
  out.number(static_cast<std::uint32_t>(m.states.size()));
  for (const MergeState& state : m.states) out.tensors(state);
  out.text(m.run);
}
StateMessage read_state(ByteReader& in) {
  StateMessage m;
  m.agreement = in.text();
  m.sequence = in.number<std::uint64_t>();
  m.round = in.number<std::uint32_t>();
  for (auto left = in.number<std::uint32_t>(); left > 0; --left) m.states.push_back(in.tensors());
  m.run = in.text();
  return m;
}

void write(ByteWriter& out, const RefuseMessage& m) {
  out.number(static_cast<std::uint8_t>(m.reason));
}
RefuseMessage read_refuse(ByteReader& in) {
  const auto reason = in.number<std::uint8_t>();
  if (reason >= refusal_count) ByteReader::fail();
  return {static_cast<Refusal>(reason)};
}

void write(ByteWriter& /*out*/, const DescribeMessage& /*m*/) {}
DescribeMessage read_describe(ByteReader& /*in*/) { return {}; }

void write(ByteWriter& out, const DescriptionMessage& m) { out.text(m.text); }
DescriptionMessage read_description(ByteReader& in) { return {in.text()}; }

void write(ByteWriter& out, const SecureRequest& m) {
  out.text(m.agreement);
  secure::write(out, m.body);
  out.text(m.run);
}
SecureRequest read_secure_request(ByteReader& in) {
  SecureRequest m;
  m.agreement = in.text();
  m.body = secure::read_request(in);
  m.run = in.text();
  return m;
}

void write(ByteWriter& out, const SecureReply& m) {
  out.text(m.agreement);
  secure::write(out, m.body);
  out.text(m.run);
}
SecureReply read_secure_reply(ByteReader& in) {
  SecureReply m;
  m.agreement = in.text();
  m.body = secure::read_reply(in);
  m.run = in.text();
  return m;
}

Message read_body(std::uint16_t kind, ByteReader& in) {
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
    case 5:
      return read_describe(in);
    case 6:
      return read_description(in);
    case 7:
      return read_secure_request(in);
    case 8:
      return read_secure_reply(in);
    default:
      throw RunError(fmt::format("a message is of unknown kind {}", kind));
  }
}

}  // namespace

namespace {

// In the order of Refusal: what the server is told, and the rule of the client's policy where there is one.
struct RefusalRow {
  std::string_view sentence;
  std::string_view rule = {};
};
constexpr RefusalRow refusals[refusal_count] = {
    {"the request cannot be read"},
    {"this message is not for a client"},
    {"the program has errors"},
    {"the same text gives another plan there; client and server run different versions"},
    {"its data do not fit the program"},
    {"no program was started"},
    {"the request belongs to another program"},
    {"the plan has no such round"},
    {"the shared values are not those that the round needs"},
    {"its records cannot be folded as the program asks"},
    {"it has not enough memory or threads"},
    {"an internal error"},
    {"the request belongs to another run"},
    {"the request is out of order"},
    {"it has no source of this name", "source"},
    {"its policy does not let programs bind one of these columns", "columns"},
    {"its policy does not allow one of the merges of this program", "merges"},
    {"its policy allows fewer numbers", "max_numbers"},
    {"its policy allows fewer rounds", "max_rounds"},
    {"its policy does not list this program", "programs"},
    {"its owner has not approved this study yet", "programs"},
    {"its owner has denied this study", "denied"},
    {"this study was refused too often there; its owner must approve it again", "max_refusals"},
    {"its policy requires differential privacy", "privacy"},
    {"its budget of privacy does not allow it", "budget"},
    {"its policy requires secure aggregation", "secure_aggregation"},
    {"refused by the policy of this client", "policy"},
    {"it has no keys for this step of secure aggregation any more"},
    {"the request breaks the protocol of secure aggregation"},
    {"its policy does not let out what `each client` computes", "local_blocks"},
};

}  // namespace

std::string_view sentence(Refusal refusal) {
  return refusals[static_cast<std::size_t>(refusal)].sentence;
}

std::string_view rule_of(Refusal refusal) {
  return refusals[static_cast<std::size_t>(refusal)].rule;
}

std::string agreement(const std::string& plan_hash, std::string_view bindings,
                      const std::optional<secure::Group>& group, std::string_view privacy) {
  if (bindings.empty() && !group && privacy.empty()) return plan_hash;
  std::string text = fmt::format("{}\n{}", plan_hash, bindings);
  if (group) text += "\n" + secure::canonical(*group);
  if (!privacy.empty()) text += "\nprivacy " + sha256_hex(privacy);
  return sha256_hex(text);
}

Bytes encode_message(const Message& message) {
  ByteWriter body;
  std::visit([&](const auto& m) { write(body, m); }, message);
  const Bytes content = body.take();
  Bytes bytes(magic);
  ByteWriter header;
  header.number(message_version);
  header.number(static_cast<std::uint16_t>(message.index()));
  header.number(static_cast<std::uint64_t>(content.size()));
  bytes += header.take();
  bytes += content;
  bytes += checksum(bytes);
  return bytes;
}

bool is_greeting(std::string_view bytes) {
  constexpr std::size_t kind_at = magic.size() + 2;
  return bytes.size() > kind_at && bytes.starts_with(magic) && bytes[kind_at] == 1;
}

Message decode_message(std::string_view bytes) {
  if (bytes.substr(0, magic.size()) != magic)
    throw RunError("these bytes are not a Starfold message");
  if (bytes.size() < header_size + checksum_size) throw RunError("a message is cut short");
  ByteReader header(bytes.substr(magic.size(), header_size - magic.size()));
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
  ByteReader body(bytes.substr(header_size, room));
  Message message = read_body(kind, body);
  body.end();
  return message;
}

}  // namespace starfold
