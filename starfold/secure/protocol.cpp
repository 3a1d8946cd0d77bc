#include "starfold/secure/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace starfold::secure {
namespace {

template <typename Array>
void write_array(ByteWriter& out, const Array& bytes) {
  for (const unsigned char byte : bytes) out.number(byte);
}
template <typename Array>
Array read_array(ByteReader& in) {
  Array bytes{};
  for (unsigned char& byte : bytes) byte = in.number<unsigned char>();
  return bytes;
}

std::uint32_t size32(std::size_t size) { return static_cast<std::uint32_t>(size); }

// A list: its length and its elements. Lengths are not believed before the elements are there.
template <typename Element, typename Each>
void write_list(ByteWriter& out, const std::vector<Element>& list, const Each& each) {
  out.number(size32(list.size()));
  for (const Element& element : list) each(element);
}
template <typename Each>
auto read_list(ByteReader& in, const Each& each) {
  std::vector<decltype(each())> list;
  for (auto left = in.number<std::uint32_t>(); left > 0; --left) list.push_back(each());
  return list;
}

void write_keys(ByteWriter& out, const std::vector<Key>& keys) {
  write_list(out, keys, [&](const Key& key) { write_array(out, key); });
}
std::vector<Key> read_keys(ByteReader& in) {
  return read_list(in, [&] { return read_array<Key>(in); });
}

void write_members(ByteWriter& out, const std::vector<std::uint32_t>& members) {
  write_list(out, members, [&](std::uint32_t member) { out.number(member); });
}
// Members ascend: one layout for one set.
std::vector<std::uint32_t> read_members(ByteReader& in) {
  std::vector<std::uint32_t> members = read_list(in, [&] { return in.number<std::uint32_t>(); });
  if (std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) != members.end())
    ByteReader::fail();
  return members;
}

void write_sealed(ByteWriter& out, const std::vector<Sealed>& all) {
  write_list(out, all, [&](const Sealed& sealed) {
    out.number(sealed.member);
    out.text(sealed.text);
  });
}
std::vector<Sealed> read_sealed(ByteReader& in) {
  return read_list(in, [&] {
    Sealed sealed;
    sealed.member = in.number<std::uint32_t>();
    sealed.text = in.text();
    return sealed;
  });
}

void write_words(ByteWriter& out, const Words& words) {
  write_list(out, words, [&](const std::vector<std::uint64_t>& piece) {
    out.text({reinterpret_cast<const char*>(piece.data()), 8 * piece.size()});
  });
}
Words read_words(ByteReader& in) {
  return read_list(in, [&] {
    const std::string bytes = in.text();
    if (bytes.size() % 8 != 0) ByteReader::fail();
    std::vector<std::uint64_t> piece(bytes.size() / 8);
    if (!piece.empty()) std::memcpy(piece.data(), bytes.data(), bytes.size());
    return piece;
  });
}

void write_body(ByteWriter& out, const KeysRequest& m) {
  out.number(m.epoch);
  out.number(m.first);
  out.number(m.rounds);
}
KeysRequest read_keys_request(ByteReader& in) {
  KeysRequest m;
  m.epoch = in.number<std::uint32_t>();
  m.first = in.number<std::uint64_t>();
  m.rounds = in.number<std::uint32_t>();
  return m;
}

void write_unsigned(ByteWriter& out, const KeysReply& m) {
  out.number(m.epoch);
  out.number(m.first);
  out.number(m.member);
  write_array(out, m.sealing);
  write_keys(out, m.masking);
  write_keys(out, m.seeds);
}
void write_body(ByteWriter& out, const KeysReply& m) {
  write_unsigned(out, m);
  write_array(out, m.signature);
}
KeysReply read_keys_reply(ByteReader& in) {
  KeysReply m;
  m.epoch = in.number<std::uint32_t>();
  m.first = in.number<std::uint64_t>();
  m.member = in.number<std::uint32_t>();
  m.sealing = read_array<Key>(in);
  m.masking = read_keys(in);
  m.seeds = read_keys(in);
  m.signature = read_array<Signature>(in);
  return m;
}

void write_body(ByteWriter& out, const ShareRequest& m) {
  out.number(m.epoch);
  write_list(out, m.keys, [&](const KeysReply& keys) { write_body(out, keys); });
}
ShareRequest read_share_request(ByteReader& in) {
  ShareRequest m;
  m.epoch = in.number<std::uint32_t>();
  m.keys = read_list(in, [&] { return read_keys_reply(in); });
  return m;
}

void write_body(ByteWriter& out, const ShareReply& m) {
  out.number(m.epoch);
  write_sealed(out, m.shares);
}
ShareReply read_share_reply(ByteReader& in) {
  ShareReply m;
  m.epoch = in.number<std::uint32_t>();
  m.shares = read_sealed(in);
  return m;
}

void write_body(ByteWriter& out, const MaskRequest& m) {
  out.number(m.epoch);
  out.number(m.sequence);
  out.number(m.round);
  out.tensors(m.values);
  write_sealed(out, m.shares);
}
MaskRequest read_mask_request(ByteReader& in) {
  MaskRequest m;
  m.epoch = in.number<std::uint32_t>();
  m.sequence = in.number<std::uint64_t>();
  m.round = in.number<std::uint32_t>();
  m.values = in.tensors();
  m.shares = read_sealed(in);
  return m;
}

void write_body(ByteWriter& out, const MaskedReply& m) {
  out.number(m.epoch);
  out.number(m.sequence);
  out.number(m.round);
  write_words(out, m.masked);
  write_array(out, m.everyone);
  write_array(out, m.signature);
}
MaskedReply read_masked_reply(ByteReader& in) {
  MaskedReply m;
  m.epoch = in.number<std::uint32_t>();
  m.sequence = in.number<std::uint64_t>();
  m.round = in.number<std::uint32_t>();
  m.masked = read_words(in);
  m.everyone = read_array<Signature>(in);
  m.signature = read_array<Signature>(in);
  return m;
}

void write_body(ByteWriter& out, const SignRequest& m) {
  out.number(m.epoch);
  out.number(m.sequence);
  write_members(out, m.present);
}
SignRequest read_sign_request(ByteReader& in) {
  SignRequest m;
  m.epoch = in.number<std::uint32_t>();
  m.sequence = in.number<std::uint64_t>();
  m.present = read_members(in);
  return m;
}

void write_body(ByteWriter& out, const SignReply& m) {
  out.number(m.epoch);
  out.number(m.sequence);
  write_array(out, m.signature);
}
SignReply read_sign_reply(ByteReader& in) {
  SignReply m;
  m.epoch = in.number<std::uint32_t>();
  m.sequence = in.number<std::uint64_t>();
  m.signature = read_array<Signature>(in);
  return m;
}

void write_body(ByteWriter& out, const UnmaskRequest& m) {
  out.number(m.epoch);
  out.number(m.sequence);
  write_members(out, m.present);
  write_list(out, m.signatures, [&](const Signed& one) {
    out.number(one.member);
    write_array(out, one.signature);
  });
}
UnmaskRequest read_unmask_request(ByteReader& in) {
  UnmaskRequest m;
  m.epoch = in.number<std::uint32_t>();
  m.sequence = in.number<std::uint64_t>();
  m.present = read_members(in);
  m.signatures = read_list(in, [&] {
    Signed one;
    one.member = in.number<std::uint32_t>();
    one.signature = read_array<Signature>(in);
    return one;
  });
  return m;
}

void write_body(ByteWriter& out, const UnmaskReply& m) {
  out.number(m.epoch);
  out.number(m.sequence);
  write_list(out, m.shares, [&](const Share& share) {
    for (const std::uint64_t piece : share) out.number(piece);
  });
}
UnmaskReply read_unmask_reply(ByteReader& in) {
  UnmaskReply m;
  m.epoch = in.number<std::uint32_t>();
  m.sequence = in.number<std::uint64_t>();
  m.shares = read_list(in, [&] {
    Share share{};
    for (std::uint64_t& piece : share) piece = in.number<std::uint64_t>();
    return share;
  });
  return m;
}

template <typename Variant>
void write_variant(ByteWriter& out, const Variant& message) {
  out.number(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& m) { write_body(out, m); }, message);
}

// The beginning of every text that is signed or derived from: what it is for, and in which version.
ByteWriter purpose(std::string_view what, const Key& session) {
  ByteWriter out;
  out.text("starfold secure aggregation 1");
  out.text(what);
  write_array(out, session);
  return out;
}

}  // namespace

// --- groups ---------------------------------------------------------------------------------------

std::uint32_t Group::answers() const { return std::max(threshold, size32(members.size() / 2 + 1)); }

std::uint32_t Group::inputs() const {
  return std::max({answers(), minimum_clients, least_members});
}

std::string wrong_with(const Group& group) {
  const std::size_t members = group.members.size();
  const std::uint32_t least = std::max(group.minimum_clients, least_members);
  if (members < least)
    return fmt::format("{} {} too few for secure aggregation: it needs {}", members,
                       members == 1 ? "client is" : "clients are", least);
  if (members > most_members)
    return fmt::format("secure aggregation is for at most {} clients, not {}", most_members,
                       members);
  if (group.threshold > members)
    return fmt::format("the threshold {} is more than the {} clients", group.threshold, members);
  std::set<std::string_view> names;
  std::set<Key> keys;
  for (const Member& member : group.members) {
    if (!names.insert(member.name).second || !keys.insert(member.key).second)
      return "two clients have the same name or the same key";
  }
  return {};
}

std::string canonical(const Group& group) {
  std::string text = fmt::format("secure_aggregation threshold {} minimum_clients {}\n",
                                 group.threshold, group.minimum_clients);
  for (const Member& member : group.members)
    text += fmt::format("{} {}:{}\n", key_text(member.key), member.name.size(), member.name);
  return text;
}

void write(ByteWriter& out, const Group& group) {
  out.number(group.threshold);
  out.number(group.minimum_clients);
  write_list(out, group.members, [&](const Member& member) {
    out.text(member.name);
    write_array(out, member.key);
  });
}

Group read_group(ByteReader& in) {
  Group group;
  group.threshold = in.number<std::uint32_t>();
  group.minimum_clients = in.number<std::uint32_t>();
  group.members = read_list(in, [&] {
    Member member;
    member.name = in.text();
    member.key = read_array<Key>(in);
    return member;
  });
  return group;
}

// --- messages -------------------------------------------------------------------------------------

void write(ByteWriter& out, const Request& request) { write_variant(out, request); }
void write(ByteWriter& out, const Reply& reply) { write_variant(out, reply); }

Request read_request(ByteReader& in) {
  switch (in.number<std::uint8_t>()) {
    case 0:
      return read_keys_request(in);
    case 1:
      return read_share_request(in);
    case 2:
      return read_mask_request(in);
    case 3:
      return read_sign_request(in);
    case 4:
      return read_unmask_request(in);
    default:
      ByteReader::fail();
  }
}

Reply read_reply(ByteReader& in) {
  switch (in.number<std::uint8_t>()) {
    case 0:
      return read_keys_reply(in);
    case 1:
      return read_share_reply(in);
    case 2:
      return read_masked_reply(in);
    case 3:
      return read_sign_reply(in);
    case 4:
      return read_unmask_reply(in);
    default:
      ByteReader::fail();
  }
}

std::uint32_t epoch_of(const Request& request) {
  return std::visit([](const auto& m) { return m.epoch; }, request);
}
std::uint32_t epoch_of(const Reply& reply) {
  return std::visit([](const auto& m) { return m.epoch; }, reply);
}

// --- bindings -------------------------------------------------------------------------------------

Key session_of(std::string_view run, std::string_view agreement) {
  ByteWriter out = purpose("session", {});
  out.text(run);
  out.text(agreement);
  return sha256(out.take());
}

std::string Moment::text() const {
  ByteWriter out;
  write_array(out, session);
  out.number(epoch);
  out.number(sequence);
  out.number(round);
  write_array(out, values);
  write_array(out, keys);
  return out.take();
}

Key hash_of(const std::vector<Tensor>& values) {
  ByteWriter out;
  out.tensors(values);
  return sha256(out.take());
}

Key hash_of(const std::vector<KeysReply>& keys) {
  ByteWriter out;
  write_list(out, keys, [&](const KeysReply& one) { write_unsigned(out, one); });
  return sha256(out.take());
}

std::string signed_keys(const Key& session, const KeysReply& keys) {
  ByteWriter out = purpose("keys", session);
  write_unsigned(out, keys);
  return out.take();
}

std::string signed_present(const Moment& moment, const std::vector<std::uint32_t>& sharers,
                           const std::vector<std::uint32_t>& present) {
  ByteWriter out = purpose("present", moment.session);
  out.text(moment.text());
  write_members(out, sharers);
  write_members(out, present);
  return out.take();
}

std::string signed_masked(const Moment& moment, std::uint32_t member, const Words& masked) {
  ByteWriter numbers;
  write_words(numbers, masked);
  ByteWriter out = purpose("masked", moment.session);
  out.text(moment.text());
  out.number(member);
  write_array(out, sha256(numbers.take()));
  return out.take();
}

std::string_view salt_of(const Key& session) {
  return {reinterpret_cast<const char*>(session.data()), session.size()};
}

std::string sealing_purpose(const Key& session, const Key& keys, std::uint32_t epoch,
                            std::uint32_t from, std::uint32_t to) {
  ByteWriter out = purpose("shares", session);
  write_array(out, keys);
  out.number(epoch);
  out.number(from);
  out.number(to);
  return out.take();
}

std::string own_mask(const Moment& moment, std::uint32_t member) {
  ByteWriter out = purpose("own mask", moment.session);
  out.text(moment.text());
  out.number(member);
  return out.take();
}

std::string shared_mask(const Moment& moment, std::uint32_t one, std::uint32_t other) {
  ByteWriter out = purpose("shared mask", moment.session);
  out.text(moment.text());
  out.number(std::min(one, other));
  out.number(std::max(one, other));
  return out.take();
}

Direction direction_of(std::uint32_t own, std::uint32_t other) {
  return own < other ? Direction::add : Direction::subtract;
}

}  // namespace starfold::secure
