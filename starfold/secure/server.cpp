#include "starfold/secure/server.h"

#include <fmt/format.h>

#include <algorithm>

namespace starfold::secure {
namespace {

template <typename Fault = UnusableReply>
void accept_if(bool usable, const char* otherwise) {
  if (!usable) throw Fault(otherwise);
}

}  // namespace

Server::Server(Group group, std::string_view run, std::string_view agreement, std::uint32_t epoch,
               std::uint64_t first, std::uint32_t rounds, const std::vector<bool>& there)
    : group_(std::move(group)),
      session_(session_of(run, agreement)),
      epoch_(epoch),
      first_(first),
      rounds_(rounds),
      state_(group_.members.size(), State::absent) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t i = 0; i < group_.members.size(); ++i) {
    if (there[i]) members.push_back(i);
  }
  require_enough(members.size(), group_.inputs());
  ask(members, Stage::keys);
}

void Server::require_enough(std::size_t count, std::size_t least) const {
  if (count < least)
    throw TooFew(fmt::format("{} of {} clients {} left; secure aggregation needs {}", count,
                             group_.members.size(), count == 1 ? "is" : "are", least));
}

void Server::ask(const std::vector<std::uint32_t>& members, Stage stage) {
  stage_ = stage;
  state_.assign(group_.members.size(), State::absent);
  for (const std::uint32_t member : members) state_[member] = State::awaited;
}

std::vector<std::uint32_t> Server::answered() const {
  std::vector<std::uint32_t> members;
  for (std::uint32_t i = 0; i < state_.size(); ++i) {
    if (state_[i] == State::answered) members.push_back(i);
  }
  return members;
}

bool Server::begin(std::uint64_t sequence, std::uint32_t round, std::vector<Tensor> values,
                   Layout layout) {
  if (stage_ != Stage::ready && stage_ != Stage::done)
    throw Bug("a round of secure aggregation begins before the last has ended");
  if (sequence < first_ || sequence - first_ >= rounds_) return false;
  // After a checkpoint there may be nothing left to bring to somebody who was missing.
  for (const std::uint32_t member : sharers_) {
    if (delivered_.count(member) == 0 && sealed_.count(member) == 0) return false;
  }
  moment_ = {session_, epoch_, sequence, round, hash_of(values), keys_hash_};
  values_ = std::move(values);
  sum_ = zeros(layout);
  layout_ = std::move(layout);
  present_.clear();
  signatures_.clear();
  shares_.clear();
  ask(sharers_, Stage::mask);
  return true;
}

Request Server::request(std::uint32_t member) const {
  switch (stage_) {
    case Stage::keys:
      return KeysRequest{epoch_, first_, rounds_};
    case Stage::share:
      return ShareRequest{epoch_, keys_};
    case Stage::mask: {
      MaskRequest request{epoch_, moment_.sequence, moment_.round, values_, {}};
      if (delivered_.count(member) != 0) return request;
      for (const auto& [sender, text] : sealed_.at(member)) {
        if (std::binary_search(sharers_.begin(), sharers_.end(), sender))
          request.shares.push_back({sender, text});
      }
      return request;
    }
    case Stage::sign:
      return SignRequest{epoch_, moment_.sequence, present_};
    case Stage::unmask: {
      UnmaskRequest request{epoch_, moment_.sequence, present_, {}};
      for (const auto& [signer, signature] : signatures_) {
        if (request.signatures.size() < group_.answers())  // more are not asked for
          request.signatures.push_back({signer, signature});
      }
      return request;
    }
    case Stage::ready:
    case Stage::done:
      break;
  }
  throw Bug("nothing is asked between rounds of secure aggregation");
}

const KeysReply& Server::keys_of(std::uint32_t member) const {
  return *std::find_if(keys_.begin(), keys_.end(),
                       [&](const KeysReply& keys) { return keys.member == member; });
}

// --- replies --------------------------------------------------------------------------------------

void Server::absorb(std::uint32_t member, Reply reply) {
  accept_if<LateReply>(epoch_of(reply) == epoch_, "it belongs to keys that are over");
  accept_if<LateReply>(awaits(member), "it was not awaited");
  const auto* keys = std::get_if<KeysReply>(&reply);
  auto* shares = std::get_if<ShareReply>(&reply);
  auto* masked = std::get_if<MaskedReply>(&reply);
  const auto* signature = std::get_if<SignReply>(&reply);
  auto* unmasked = std::get_if<UnmaskReply>(&reply);
  if (keys != nullptr && stage_ == Stage::keys) {
    take(member, *keys);
  } else if (shares != nullptr && stage_ == Stage::share) {
    take(member, *shares);
  } else if (masked != nullptr && stage_ == Stage::mask) {
    take(member, *masked);
  } else if (signature != nullptr && stage_ == Stage::sign) {
    take(member, *signature);
  } else if (unmasked != nullptr && stage_ == Stage::unmask) {
    take(member, *unmasked);
  } else {
    throw LateReply("it answers another step");
  }
  state_[member] = State::answered;
  go_on();
}

void Server::take(std::uint32_t member, const KeysReply& reply) {
  accept_if(reply.member == member && reply.first == first_ && reply.masking.size() == rounds_ &&
                reply.seeds.size() == rounds_,
            "its keys are not those that were asked for");
  accept_if(verify(group_.members[member].key, signed_keys(session_, reply), reply.signature),
            "its keys are not signed with the key that the study pins");
  const auto place =
      std::upper_bound(keys_.begin(), keys_.end(), member,
                       [](std::uint32_t m, const KeysReply& keys) { return m < keys.member; });
  keys_.insert(place, reply);
}

void Server::take(std::uint32_t member, ShareReply& reply) {
  std::map<std::uint32_t, Bytes> given;
  for (Sealed& sealed : reply.shares) given.emplace(sealed.member, std::move(sealed.text));
  bool whole = given.size() + 1 == keys_.size() && reply.shares.size() == given.size();
  for (const KeysReply& keys : keys_)
    whole = whole && (keys.member == member) != (given.count(keys.member) == 1);
  accept_if(whole, "its shares are not for those who gave keys");
  for (auto& [receiver, text] : given) sealed_[receiver][member] = std::move(text);
}

void Server::take(std::uint32_t member, MaskedReply& reply) {
  accept_if<LateReply>(reply.sequence == moment_.sequence, "it answers another request");
  accept_if(reply.round == moment_.round && fits(layout_, reply.masked),
            "its masked numbers are not those of the round");
  accept_if(verify(group_.members[member].key, signed_masked(moment_, member, reply.masked),
                   reply.signature) &&
                verify(group_.members[member].key, signed_present(moment_, sharers_, sharers_),
                       reply.everyone),
            "its masked numbers are not signed with the key that the study pins");
  combine(sum_, reply.masked, layout_, Direction::add);
  signatures_[member] = reply.everyone;
  delivered_.insert(member);
}

void Server::take(std::uint32_t member, const SignReply& reply) {
  accept_if<LateReply>(reply.sequence == moment_.sequence, "it answers another request");
  accept_if(verify(group_.members[member].key, signed_present(moment_, sharers_, present_),
                   reply.signature),
            "its signature is wrong");
  signatures_[member] = reply.signature;
}

void Server::take(std::uint32_t member, UnmaskReply& reply) {
  accept_if<LateReply>(reply.sequence == moment_.sequence, "it answers another request");
  bool whole = reply.shares.size() == sharers_.size();
  for (const Share& share : reply.shares) {
    for (const std::uint64_t piece : share) whole = whole && piece < field::prime;
  }
  accept_if(whole, "its shares are not those that were asked for");
  shares_[member] = std::move(reply.shares);
}

// --- stages ---------------------------------------------------------------------------------------

bool Server::can_spare(std::uint32_t member) const {
  const auto others = static_cast<std::size_t>(
      std::count_if(state_.begin(), state_.end(), [](State s) { return s != State::absent; }) -
      (state_[member] == State::absent ? 0 : 1));
  const bool late = stage_ == Stage::sign || stage_ == Stage::unmask;
  return others >= (late ? group_.answers() : group_.inputs());
}

void Server::drop(std::uint32_t member) {
  if (state_[member] == State::absent) return;
  state_[member] = State::absent;
  go_on();
}

void Server::go_on() {
  if (std::find(state_.begin(), state_.end(), State::awaited) != state_.end()) return;
  const std::vector<std::uint32_t> members = answered();
  switch (stage_) {
    case Stage::keys:
      require_enough(members.size(), group_.inputs());
      std::erase_if(keys_, [&](const KeysReply& keys) {
        return !std::binary_search(members.begin(), members.end(), keys.member);
      });
      keys_hash_ = hash_of(keys_);
      return ask(members, Stage::share);
    case Stage::share:
      require_enough(members.size(), group_.inputs());
      sharers_ = members;
      return ask({}, Stage::ready);
    case Stage::mask: {
      require_enough(members.size(), group_.inputs());
      present_ = members;
      const bool everyone = present_ == sharers_;
      if (!everyone) signatures_.clear();
      return ask(present_, everyone ? Stage::unmask : Stage::sign);
    }
    case Stage::sign:
      require_enough(signatures_.size(), group_.answers());
      return ask(members, Stage::unmask);
    case Stage::unmask:
      require_enough(shares_.size(), group_.answers());
      remove_masks();
      return ask({}, Stage::done);
    case Stage::ready:
    case Stage::done:
      return;
  }
}

// --- the sum --------------------------------------------------------------------------------------

void Server::remove_masks() {
  std::vector<std::uint32_t> givers;
  for (const auto& [member, shares] : shares_) {
    if (givers.size() < group_.answers()) givers.push_back(member);
  }
  const Joiner joiner(givers);
  for (std::size_t i = 0; i < sharers_.size(); ++i) {
    const std::uint32_t member = sharers_[i];
    const std::size_t place = moment_.sequence - first_;
    std::vector<Share> shares;
    for (const std::uint32_t giver : givers) shares.push_back(shares_.at(giver)[i]);
    const std::optional<Secret> secret = joiner.join(shares);
    const bool there = std::binary_search(present_.begin(), present_.end(), member);
    const KeysReply& keys = keys_of(member);
    const bool right = secret && (there ? sha256({reinterpret_cast<const char*>(secret->data()),
                                                  Secret::size}) == keys.seeds[place]
                                        : agreement_key(*secret) == keys.masking[place]);
    if (!right)
      throw RunError(fmt::format("the shares of the secret of client {} do not fit each other",
                                 group_.members[member].name));
    if (there) {
      remove_own(member, *secret);
    } else {
      remove_shared(member, *secret);
    }
  }
}

void Server::remove_own(std::uint32_t member, const Secret& seed) {
  combine_mask(sum_, layout_, seed, salt_of(session_), own_mask(moment_, member),
               Direction::subtract);
}

// What everyone who is there has added or subtracted for one who is missing.
void Server::remove_shared(std::uint32_t missing, const Secret& masking) {
  const std::size_t place = moment_.sequence - first_;
  for (const std::uint32_t member : present_) {
    const Direction was = direction_of(member, missing);
    combine_mask(sum_, layout_, agree(masking, keys_of(member).masking[place]), salt_of(session_),
                 shared_mask(moment_, member, missing),
                 was == Direction::add ? Direction::subtract : Direction::add);
  }
}

// --- checkpoints ----------------------------------------------------------------------------------

namespace {

void write_key(ByteWriter& out, const Key& key) {
  out.text({reinterpret_cast<const char*>(key.data()), key.size()});
}
Key read_key(ByteReader& in) {
  const std::string text = in.text();
  Key key{};
  if (text.size() != key.size()) ByteReader::fail();
  std::memcpy(key.data(), text.data(), key.size());
  return key;
}

}  // namespace

void Server::save(ByteWriter& out) const {
  out.number(epoch_);
  out.number(first_);
  out.number(rounds_);
  // Keys, who shared, who is there and their signatures are what requests hold already.
  write(out, Request(ShareRequest{epoch_, keys_}));
  write(out, Request(SignRequest{epoch_, moment_.sequence, sharers_}));
  UnmaskRequest unmask{epoch_, moment_.sequence, present_, {}};
  for (const auto& [signer, signature] : signatures_)
    unmask.signatures.push_back({signer, signature});
  write(out, Request(unmask));
  MaskedReply sum;
  sum.masked = sum_;
  write(out, Reply(sum));
  out.number(moment_.round);
  write_key(out, moment_.values);
  write(out, Request(SignRequest{epoch_, 0, {delivered_.begin(), delivered_.end()}}));
  out.number(static_cast<std::uint32_t>(layout_.size()));
  for (const Piece& piece : layout_) {
    out.text(piece.name);
    out.number(piece.width);
    out.number(piece.count);
  }
}

Server Server::restore(Group group, std::string_view run, std::string_view agreement,
                       ByteReader& in) {
  const auto epoch = in.number<std::uint32_t>();
  const auto first = in.number<std::uint64_t>();
  const auto rounds = in.number<std::uint32_t>();
  const std::vector<bool> all(group.members.size(), true);
  Server server(std::move(group), run, agreement, epoch, first, rounds, all);
  const Request keys = read_request(in);
  const Request sharers = read_request(in);
  const Request unmask = read_request(in);
  Reply sum = read_reply(in);
  const auto* with_keys = std::get_if<ShareRequest>(&keys);
  const auto* with_sharers = std::get_if<SignRequest>(&sharers);
  const auto* with_present = std::get_if<UnmaskRequest>(&unmask);
  auto* with_sum = std::get_if<MaskedReply>(&sum);
  if (with_keys == nullptr || with_sharers == nullptr || with_present == nullptr ||
      with_sum == nullptr)
    ByteReader::fail();
  server.keys_ = with_keys->keys;
  server.keys_hash_ = hash_of(server.keys_);
  server.sharers_ = with_sharers->present;
  server.present_ = with_present->present;
  for (const Signed& one : with_present->signatures) server.signatures_[one.member] = one.signature;
  server.sum_ = std::move(with_sum->masked);
  const auto round = in.number<std::uint32_t>();
  const Key values = read_key(in);
  const Request delivered = read_request(in);
  const auto* with_delivered = std::get_if<SignRequest>(&delivered);
  if (with_delivered == nullptr) ByteReader::fail();
  server.delivered_ = {with_delivered->present.begin(), with_delivered->present.end()};
  server.moment_ = {server.session_, epoch,  with_present->sequence,
                    round,           values, server.keys_hash_};
  for (auto left = in.number<std::uint32_t>(); left > 0; --left) {
    Piece piece;
    piece.name = in.text();
    piece.width = in.number<std::uint32_t>();
    piece.count = in.number<std::uint64_t>();
    server.layout_.push_back(std::move(piece));
  }
  const std::size_t members = server.group_.members.size();
  bool sound = fits(server.layout_, server.sum_) && server.moment_.sequence >= first &&
               server.moment_.sequence - first < rounds;
  for (const std::uint32_t member : server.sharers_) {
    sound = sound && member < members;
    const auto has_keys = [&](const KeysReply& one) {
      return one.member == member && one.masking.size() == rounds && one.seeds.size() == rounds;
    };
    sound = sound && std::any_of(server.keys_.begin(), server.keys_.end(), has_keys);
  }
  sound = sound && std::includes(server.sharers_.begin(), server.sharers_.end(),
                                 server.present_.begin(), server.present_.end());
  if (!sound) ByteReader::fail();
  server.ask(server.present_, Stage::unmask);
  return server;
}

}  // namespace starfold::secure
