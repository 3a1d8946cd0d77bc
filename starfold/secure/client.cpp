#include "starfold/secure/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace starfold::secure {
namespace {

template <typename Fault = ProtocolError>
void insist(bool allowed, const char* otherwise) {
  if (!allowed) throw Fault(otherwise);
}

bool same(const KeysRequest& a, const KeysRequest& b) {
  return a.epoch == b.epoch && a.first == b.first && a.rounds == b.rounds;
}

bool contains(const std::vector<std::uint32_t>& members, std::uint32_t member) {
  return std::binary_search(members.begin(), members.end(), member);
}

void wipe(std::map<std::uint32_t, Share>& shares) {
  for (auto& [member, share] : shares) OPENSSL_cleanse(share.data(), sizeof share);
  shares.clear();
}

// The shares for one member, of all rounds of an epoch, as one text.
struct Dealt {
  std::vector<std::vector<Share>> masking;  // by round, by member
  std::vector<std::vector<Share>> seeds;
};
constexpr std::size_t bytes_of_round = 2 * sizeof(Share);

Bytes text_for(const Dealt& dealt, std::size_t place) {
  Bytes text;
  for (std::size_t i = 0; i < dealt.masking.size(); ++i) {
    text.append(reinterpret_cast<const char*>(dealt.masking[i][place].data()), sizeof(Share));
    text.append(reinterpret_cast<const char*>(dealt.seeds[i][place].data()), sizeof(Share));
  }
  return text;
}

void wipe(std::vector<std::vector<Share>>& all) {
  for (std::vector<Share>& shares : all)
    OPENSSL_cleanse(shares.data(), shares.size() * sizeof(Share));
}

}  // namespace

void Client::Round::forget() {
  masking = Secret();
  seed = Secret();
  wipe(masking_shares);
  wipe(seed_shares);
}

Client::Client(Group group, Identity identity, std::string_view run, std::string_view agreement,
               std::uint64_t next)
    : group_(std::move(group)),
      identity_(std::move(identity)),
      session_(session_of(run, agreement)),
      next_(next) {
  if (const std::string wrong = wrong_with(group_); !wrong.empty()) throw ProtocolError(wrong);
  const Key own = signing_key(*identity_);
  const auto found = std::find_if(group_.members.begin(), group_.members.end(),
                                  [&](const Member& member) { return member.key == own; });
  insist(found != group_.members.end(), "the key of this client is not among those of the study");
  member_ = static_cast<std::uint32_t>(found - group_.members.begin());
}

Client::Epoch& Client::epoch(std::uint32_t number) {
  insist<KeysLost>(epoch_ && epoch_->request.epoch == number, "there are no keys for this epoch");
  return *epoch_;
}

Client::Round& Client::round(Epoch& epoch, std::uint64_t sequence) const {
  insist<KeysLost>(
      sequence >= epoch.request.first && sequence - epoch.request.first < epoch.rounds.size(),
      "there are no keys for this round");
  return epoch.rounds[sequence - epoch.request.first];
}

// --- keys -----------------------------------------------------------------------------------------

KeysReply Client::keys(const KeysRequest& request) {
  if (epoch_ && same(epoch_->request, request)) return epoch_->keys;
  insist(!epoch_ || request.epoch > epoch_->request.epoch, "the keys of this epoch are over");
  insist(request.rounds >= 1 && request.rounds <= most_rounds_of_epoch,
         "keys for too many rounds are asked for");
  insist(request.first >= next_, "keys are asked for a round that is over");
  Epoch fresh;
  fresh.request = request;
  fresh.sealing = Secret::random();
  fresh.rounds.resize(request.rounds);
  KeysReply& reply = fresh.keys;
  reply.epoch = request.epoch;
  reply.first = request.first;
  reply.member = member_;
  reply.sealing = agreement_key(fresh.sealing);
  for (Round& round : fresh.rounds) {
    round.masking = Secret::random();
    round.seed = Secret::random();
    reply.masking.push_back(agreement_key(round.masking));
    reply.seeds.push_back(sha256({reinterpret_cast<const char*>(round.seed.data()), Secret::size}));
  }
  reply.signature = secure::sign(*identity_, signed_keys(session_, reply));
  // What was masked under the keys before can be unmasked no more, and is masked anew.
  epoch_ = std::move(fresh);
  masked_.reset();
  return epoch_->keys;
}

// --- shares ---------------------------------------------------------------------------------------

void Client::check_keys(const ShareRequest& request, const Epoch& epoch) const {
  insist(request.keys.size() >= group_.inputs(), "too few clients gave keys");
  std::set<Key> seen;
  bool own = false;
  const KeysReply* before = nullptr;
  for (const KeysReply& keys : request.keys) {
    insist(
        keys.member < group_.members.size() && (before == nullptr || before->member < keys.member),
        "keys of somebody who is not in the group, or twice");
    before = &keys;
    insist(keys.epoch == epoch.request.epoch && keys.first == epoch.request.first &&
               keys.masking.size() == epoch.rounds.size() &&
               keys.seeds.size() == epoch.rounds.size(),
           "keys of another epoch");
    bool distinct = seen.insert(keys.sealing).second;
    for (const Key& key : keys.masking) distinct = seen.insert(key).second && distinct;
    for (const Key& key : keys.seeds) distinct = seen.insert(key).second && distinct;
    insist(distinct, "two keys are the same");
    insist(verify(group_.members[keys.member].key, signed_keys(session_, keys), keys.signature),
           "keys with a wrong signature");
    if (keys.member == member_)
      own = signed_keys(session_, keys) == signed_keys(session_, epoch.keys);
  }
  insist(own, "the keys of this client were changed");
}

ShareReply Client::share(const ShareRequest& request) {
  Epoch& epoch = this->epoch(request.epoch);
  const Key hash = hash_of(request.keys);
  if (!epoch.all_keys.empty()) {
    insist(hash == epoch.keys_hash, "shares were asked for with other keys before");
    return epoch.shares;
  }
  check_keys(request, epoch);
  Dealt dealt;
  for (const Round& round : epoch.rounds) {
    dealt.masking.push_back(split(round.masking, group_.answers(), group_.members.size()));
    dealt.seeds.push_back(split(round.seed, group_.answers(), group_.members.size()));
  }
  ShareReply reply;
  reply.epoch = epoch.request.epoch;
  for (const KeysReply& keys : request.keys) {
    if (keys.member == member_) continue;
    const std::string purpose = sealing_purpose(session_, hash, reply.epoch, member_, keys.member);
    const Secret key = derive(agree(epoch.sealing, keys.sealing), salt_of(session_), purpose);
    Bytes text = text_for(dealt, keys.member);
    reply.shares.push_back({keys.member, seal(key, purpose, text)});
    OPENSSL_cleanse(text.data(), text.size());
  }
  for (std::size_t i = 0; i < epoch.rounds.size(); ++i) {
    epoch.rounds[i].masking_shares[member_] = dealt.masking[i][member_];
    epoch.rounds[i].seed_shares[member_] = dealt.seeds[i][member_];
  }
  wipe(dealt.masking);
  wipe(dealt.seeds);
  epoch.all_keys = request.keys;
  epoch.keys_hash = hash;
  epoch.shares = std::move(reply);
  return epoch.shares;
}

// Opens what the others have dealt to this member. Who has dealt is who takes part from here on.
void Client::take_shares(Epoch& epoch, const std::vector<Sealed>& shares) const {
  std::vector<std::uint32_t> sharers = {member_};
  std::vector<std::pair<std::uint32_t, Bytes>> opened;
  for (const Sealed& sealed : shares) {
    const auto sender =
        std::find_if(epoch.all_keys.begin(), epoch.all_keys.end(),
                     [&](const KeysReply& keys) { return keys.member == sealed.member; });
    insist(sender != epoch.all_keys.end() && !contains(sharers, sealed.member),
           "shares of somebody who gave no keys, or twice");
    const std::string purpose =
        sealing_purpose(session_, epoch.keys_hash, epoch.request.epoch, sealed.member, member_);
    const Secret key = derive(agree(epoch.sealing, sender->sealing), salt_of(session_), purpose);
    std::optional<Bytes> text = secure::open(key, purpose, sealed.text);
    insist(text && text->size() == epoch.rounds.size() * bytes_of_round,
           "shares that were changed, or are for somebody else");
    opened.emplace_back(sealed.member, *std::move(text));
    sharers.insert(std::upper_bound(sharers.begin(), sharers.end(), sealed.member), sealed.member);
  }
  insist(sharers.size() >= group_.inputs(), "too few clients gave shares");
  for (auto& [member, text] : opened) {
    for (std::size_t i = 0; i < epoch.rounds.size(); ++i) {
      const char* from = text.data() + i * bytes_of_round;
      std::memcpy(epoch.rounds[i].masking_shares[member].data(), from, sizeof(Share));
      std::memcpy(epoch.rounds[i].seed_shares[member].data(), from + sizeof(Share), sizeof(Share));
    }
    OPENSSL_cleanse(text.data(), text.size());
  }
  epoch.sharers = std::move(sharers);
}

// --- masks ----------------------------------------------------------------------------------------

Moment Client::moment(const Epoch& epoch, const MaskRequest& request) const {
  return {session_,      epoch.request.epoch,     request.sequence,
          request.round, hash_of(request.values), epoch.keys_hash};
}

void Client::check(const MaskRequest& request) {
  Epoch& epoch = this->epoch(request.epoch);
  insist<KeysLost>(!epoch.all_keys.empty(), "no shares were made in this epoch");
  insist(request.sequence >= next_, "a round that is over");
  round(epoch, request.sequence);
  if (epoch.sharers.empty()) {
    take_shares(epoch, request.shares);
  } else if (!request.shares.empty()) {
    bool known = request.shares.size() + 1 == epoch.sharers.size();
    for (const Sealed& sealed : request.shares)
      known = known && contains(epoch.sharers, sealed.member);
    insist(known, "other shares than before");
  }
  if (!masked_) return;
  insist(request.sequence >= masked_->sequence, "a round that is over");
  insist(request.sequence > masked_->sequence ||
             moment(epoch, request).text() == masked_->moment.text(),
         "a round was masked with other shared values before");
}

MaskedReply Client::mask(const MaskRequest& request, const Layout& layout, Words input) {
  check(request);
  Epoch& epoch = this->epoch(request.epoch);
  insist(fits(layout, input), "the numbers to be masked do not fit their layout");
  const Moment now = moment(epoch, request);
  ByteWriter plain;
  for (const std::vector<std::uint64_t>& piece : input)
    plain.text({reinterpret_cast<const char*>(piece.data()), 8 * piece.size()});
  Bytes numbers = plain.take();
  const Key hash = sha256(numbers);
  OPENSSL_cleanse(numbers.data(), numbers.size());
  if (masked_ && masked_->sequence == request.sequence) {
    // A mask is for one input: two under the same one would show their difference.
    insist(masked_->numbers == hash, "a mask cannot be used for two inputs");
    return masked_->reply;
  }
  Round& round = this->round(epoch, request.sequence);
  const std::size_t place = request.sequence - epoch.request.first;
  combine_mask(input, layout, round.seed, salt_of(session_), own_mask(now, member_),
               Direction::add);
  for (const std::uint32_t other : epoch.sharers) {
    if (other == member_) continue;
    const auto keys = std::find_if(epoch.all_keys.begin(), epoch.all_keys.end(),
                                   [&](const KeysReply& one) { return one.member == other; });
    combine_mask(input, layout, agree(round.masking, keys->masking[place]), salt_of(session_),
                 shared_mask(now, member_, other), direction_of(member_, other));
  }
  MaskedReply reply;
  reply.epoch = request.epoch;
  reply.sequence = request.sequence;
  reply.round = request.round;
  reply.masked = std::move(input);
  reply.everyone = secure::sign(*identity_, signed_present(now, epoch.sharers, epoch.sharers));
  reply.signature = secure::sign(*identity_, signed_masked(now, member_, reply.masked));
  masked_ = Masked{request.sequence, now, hash, std::nullopt, std::nullopt, std::move(reply), {}};
  return masked_->reply;
}

Client::Masked& Client::masked(std::uint32_t epoch, std::uint64_t sequence) {
  this->epoch(epoch);
  insist<KeysLost>(masked_ && masked_->sequence == sequence, "this round was not masked");
  return *masked_;
}

// --- who is there ---------------------------------------------------------------------------------

void Client::check_present(const std::vector<std::uint32_t>& present, const Epoch& epoch) const {
  insist(
      std::adjacent_find(present.begin(), present.end(), std::greater_equal<>()) == present.end(),
      "members out of order");
  insist(std::includes(epoch.sharers.begin(), epoch.sharers.end(), present.begin(), present.end()),
         "somebody is said to be there who gave no shares");
  insist(contains(present, member_), "this client is said to be missing");
  insist(present.size() >= group_.inputs(), "too few clients are left");
}

SignReply Client::sign(const SignRequest& request) {
  Masked& masked = this->masked(request.epoch, request.sequence);
  check_present(request.present, *epoch_);
  insist(!masked.signed_for || *masked.signed_for == request.present,
         "other members were said to be there before");
  insist(!masked.unmasked_for || *masked.unmasked_for == request.present,
         "the round was unmasked for other members");
  masked.signed_for = request.present;
  return {
      request.epoch, request.sequence,
      secure::sign(*identity_, signed_present(masked.moment, epoch_->sharers, request.present))};
}

bool Client::asked_again(const UnmaskRequest& request) {
  const Masked& masked = this->masked(request.epoch, request.sequence);
  if (!masked.unmasked_for) return false;
  // Shares for another set would give away both secrets of somebody.
  insist(*masked.unmasked_for == request.present, "the round was unmasked for other members");
  return true;
}

void Client::check(const UnmaskRequest& request) {
  if (asked_again(request)) return;
  const Masked& masked = this->masked(request.epoch, request.sequence);
  check_present(request.present, *epoch_);
  insist(request.present == epoch_->sharers || masked.signed_for == request.present,
         "this client has not signed who is there");
  const std::string text = signed_present(masked.moment, epoch_->sharers, request.present);
  std::set<std::uint32_t> signers;
  for (const Signed& one : request.signatures) {
    insist(contains(request.present, one.member) && signers.insert(one.member).second,
           "a signature of somebody who is not there, or twice");
    insist(verify(group_.members[one.member].key, text, one.signature),
           "others saw other values or other members");
  }
  insist(signers.size() >= group_.answers(), "too few signatures");
}

UnmaskReply Client::unmask(const UnmaskRequest& request) {
  check(request);
  Masked& masked = this->masked(request.epoch, request.sequence);
  if (masked.unmasked_for) return masked.unmasked;
  Round& own = round(*epoch_, request.sequence);
  UnmaskReply reply;
  reply.epoch = request.epoch;
  reply.sequence = request.sequence;
  for (const std::uint32_t member : epoch_->sharers)
    reply.shares.push_back(contains(request.present, member) ? own.seed_shares.at(member)
                                                             : own.masking_shares.at(member));
  // The secrets of this round and of those before it are of no more use to anybody.
  for (std::uint64_t done = epoch_->request.first; done <= request.sequence; ++done)
    epoch_->rounds[done - epoch_->request.first].forget();
  next_ = request.sequence + 1;
  masked.unmasked_for = request.present;
  masked.unmasked = std::move(reply);
  return masked.unmasked;
}

}  // namespace starfold::secure
