// phi of a round: one client's records through all encoders of the round, block by block, in one pass.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starfold/merge/monoid.h"
#include "starfold/plan/plan.h"
#include "starfold/runtime/bind.h"
#include "starfold/tensor/bytes.h"

namespace starfold {
namespace engine {
class Buffer;
struct Cut;
}  // namespace engine

struct EngineOptions {
  std::int64_t block_records = 512;  // records per block; results differ by rounding at most
  int threads = 1;                   // results are the same bits for any number
  // Set to end a round early: it is looked at between blocks, and the round then fails.
  const std::atomic<bool>* stop = nullptr;
  // Bytes that may still be kept between rounds beside the records; engines take from it what they keep. Null: all they need.
  std::shared_ptr<std::atomic<std::int64_t>> room = nullptr;
  // Blocks of the program without loops go through many clients at once, or else client by client, which is slower: the same
  // bits in exact runs, and rounding elsewhere.
  bool at_once = true;
  // Bytes that copies of records may take which lie in memory already, for runs of many rounds. Null: none are made.
  std::shared_ptr<std::atomic<std::int64_t>> copies = nullptr;
};

// The encoders of a plan, compiled for given sizes when a round first needs them. The engines of many
// clients share one; it may be used from several threads.
class Encoders {
 public:
  // `sizes` gives every size variable of the plan's program a value.
  Encoders(std::shared_ptr<const Plan> plan, SizeValues sizes);
  ~Encoders();

  // The steps of a round's block program as text.
  std::string print(const Round& round) const;

 private:
  friend class Engine;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Evaluates the encoders of a plan on the records of one client. Reusable over rounds: data is laid
// out once, and what does not change between rounds (Round::steady) is kept.
class Engine {
 public:
  // `client` was bound to the sizes.
  Engine(std::shared_ptr<const Encoders> encoders, const Client& client,
         EngineOptions options = {});
  Engine(std::shared_ptr<const Plan> plan, SizeValues sizes, const Client& client,
         EngineOptions options = {});
  // The encoders of another plan over the records that an engine has laid out already: federated inputs of the same
  // name and type are the same. With `most`, over the first of them alone.
  Engine(std::shared_ptr<const Encoders> encoders, const Engine& same_client,
         std::int64_t most = std::numeric_limits<std::int64_t>::max());
  // For a block: over so many records of each set, which are given array by array, or lie in a table. With shares they
  // belong to several clients, or to several batches of one.
  struct Records {
    std::map<std::string, std::int64_t> counts;
    std::shared_ptr<const RecordTable> table = nullptr;
    std::shared_ptr<const Shares> shares = nullptr;
  };
  Engine(std::shared_ptr<const Encoders> encoders, const Records& records, EngineOptions options);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  // The state of each merge of the round, in order. `received` holds the values of round.receives.
  // A RunError names the place in the program, never a record's value.
  std::vector<MergeState> encode(const Round& round, const std::map<ir::NodeId, Tensor>& received);

  // The same, and the states after each of the round's loops over batches.
  struct Encoded {
    std::vector<MergeState> states;
    std::vector<std::vector<Tensor>> passes;
  };
  Encoded encode_all(const Round& round, const std::map<ir::NodeId, Tensor>& received);
  // The same for who asks often: values where they are, null for one that is not there, and a result that lasts until
  // the next call.
  using Received = std::function<const Tensor*(ir::NodeId)>;
  Encoded& encode_again(const Round& round, const Received& received);
  // The same for shares first to last - 1, or for all where there are none, one after the other. Before each `begin` may
  // change what the received values hold; `end` gets the states.
  struct Turns {
    std::function<void(std::size_t share)> begin;
    std::function<void(std::size_t share, const std::vector<MergeState>& states)> end;
  };
  void encode_shares(const Round& round, std::size_t first, std::size_t last,
                     const Received& received, const Turns& turns);

  // What its client keeps so far, by name.
  const std::map<std::string, Tensor>& kept() const;
  // The private states of its client, and those that one with the same records has written. RunError when the bytes
  // are something else.
  bool has_private() const;
  void save_private(ByteWriter& out) const;
  void restore_private(ByteReader& saved);

  // For a block: its records, input by input, and a federated result that a round has laid down. Rounds are of one share
  // alone, beginning with the first; what is laid down for each lies together.
  void cut(const std::map<std::string, std::int64_t>& counts, std::shared_ptr<const Shares> shares);
  void work_on(std::size_t share);
  const engine::Cut& cut_of(const std::string& record_set) const;
  // Arrays hold other numbers than before: what was computed of them goes.
  void forget();
  void give(std::size_t input, std::shared_ptr<const engine::Buffer> array);
  void give_table(std::size_t input, const std::string& name);
  std::shared_ptr<const engine::Buffer> result(std::size_t output) const;

  // How many records there are, in the record set that has most.
  std::int64_t records() const;
  // Whether it has laid out the array of an input.
  bool has_array(const std::string& input) const;
  // The array of an input that it has laid out; none when it has not, or reads a table.
  std::optional<Tensor> array(const std::string& input) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace starfold
