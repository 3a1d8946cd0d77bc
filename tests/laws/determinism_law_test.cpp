// Determinism: a run has the same bits however the system deals time to its threads. Every kind of run is repeated with one to eight
// threads that yield and sleep at random places (starfold/base/schedule.h). STARFOLD_LAW_REPETITIONS=2000 is the
// long form.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "starfold/base/parallel.h"
#include "starfold/base/schedule.h"
#include "starfold/federation/remote.h"
#include "starfold/ops/meaning.h"
#include "starfold/starfold.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

int repetitions() {
  const char* set = std::getenv("STARFOLD_LAW_REPETITIONS");
  return set != nullptr ? std::atoi(set) : law_programs(12);
}

std::atomic<std::uint64_t> perturbations = 0;

// Mostly nothing; now and then the thread gives its place away, or is away for longer than a task takes.
void perturb() {
  thread_local Random random(++perturbations * 0x9E3779B97F4A7C15ULL);
  const auto choice = random.below(16);
  if (choice < 4) std::this_thread::yield();
  if (choice == 4) std::this_thread::sleep_for(std::chrono::microseconds(1 + random.below(200)));
  perturbations.fetch_add(1, std::memory_order_relaxed);
}

class Perturbed {
 public:
  Perturbed() { at_schedule_points = perturb; }
  ~Perturbed() { at_schedule_points = nullptr; }
  Perturbed(const Perturbed&) = delete;
  Perturbed& operator=(const Perturbed&) = delete;
};

double value_of(std::int64_t record, std::size_t column) {
  Random random(static_cast<std::uint64_t>(record) * 31 + column + 1);
  return static_cast<double>(random.below(2'000'001)) / 1e6 - 1;
}

// Clients with x : [*, p] and y : [*].
std::vector<Client> clients_of(std::size_t count, std::int64_t records, std::int64_t p) {
  std::vector<Client> clients(count);
  for (std::size_t c = 0; c < count; ++c) {
    const std::int64_t own = records + static_cast<std::int64_t>(c % 7) - 3;
    Tensor x(Shape{own, p});
    Tensor y(Shape{own});
    for (std::int64_t i = 0; i < own; ++i) {
      const std::int64_t record = static_cast<std::int64_t>(c) * 1'000'003 + i;
      for (std::int64_t j = 0; j < p; ++j)
        x.data[i * p + j] = value_of(record, static_cast<std::size_t>(j) + 1);
      y.data[i] = value_of(record, 0);
    }
    clients[c].name = fmt::format("c{}", c);
    clients[c].arrays = {{"x", std::move(x)}, {"y", std::move(y)}};
  }
  return clients;
}

// A table that is read again in every round.
class ReadAgain : public RecordTable {
 public:
  ReadAgain(std::int64_t records, std::size_t p) {
    records_ = records;
    columns_ = p + 1;
    inputs_["x"] = {0, p};
    inputs_["y"] = {p, 1};
    for (std::int64_t i = 0; i < 4096; ++i) {
      for (std::size_t j = 0; j < columns_; ++j) values_.push_back(value_of(i, j));
    }
  }
  const double* kept(std::size_t) const override { return nullptr; }
  bool seekable() const override { return true; }
  std::unique_ptr<RecordCursor> read(std::int64_t first, std::size_t block,
                                     std::size_t stride) const override {
    return std::make_unique<Cursor>(*this, first, block, stride);
  }

 private:
  class Cursor : public RecordCursor {
   public:
    Cursor(const ReadAgain& table, std::int64_t at, std::size_t block, std::size_t stride)
        : table_(table), at_(at), block_(block), stride_(stride) {}
    std::size_t next(double* to) override {
      schedule_point();
      const auto left = static_cast<std::size_t>(table_.records_ - at_);
      const std::size_t count = std::min(block_, left);
      for (std::size_t i = 0; i < count; ++i, ++at_) {
        const double* record =
            &table_.values_[static_cast<std::size_t>(at_ % 4096) * table_.columns_];
        for (std::size_t j = 0; j < table_.columns_; ++j) to[j * stride_ + i] = record[j];
      }
      return count;
    }

   private:
    const ReadAgain& table_;
    std::int64_t at_;
    std::size_t block_;
    std::size_t stride_;
  };
  std::vector<double> values_;
};

const char* const kNewton = R"(input x : [*, p]
input y : [*]
let b = each client {
  state c = zeros(p)
  repeat 20 {
    let step = solve(x' @ x + eye(p), x' @ (x @ c - y) + c)
    c <- c - 0.5 * step
  } until max(abs(step)) < 1e-9
  c
}
output m = mean[*](b)
)";

// Every routine of LAPACK that the language calls.
const char* const kFactors = R"(input x : [*, p]
input y : [*]
let (a, b, c, d, e) = each client {
  let m = x' @ x + eye(p)
  let (values, vectors) = eigh(m)
  let (u, s, v) = svd(m)
  let (q, r) = qr(m)
  (vectors @ values, u @ s, q @ diag(r), logdet(m) + det(m / 10), sum(inv(m)) + sum(cholesky(m)))
}
output a = mean[*](a)
output b = mean[*](b)
output c = mean[*](c)
output d = mean[*](d)
output e = mean[*](e)
)";

const char* const kBatches = R"(input x : [*, p]
input y : [*]
state theta : [p] = zeros(p)
state turn = 0
repeat 3 {
  let (local, n) = each client {
    state b = theta
    state steps = 0
    repeat batches(8, turn) {
      b <- b - 0.1 * grad(mean[*](square(x @ b - y)), b)
      steps <- steps + 1
    }
    (b, steps)
  }
  turn <- turn + 1
  theta <- sum[*](n[:, new] * local) / sum[*](n)
}
output theta
)";

const char* const kPrivateState = R"(input x : [*, p]
input y : [*]
state theta = zeros(p)
private state own : [*client, p] = zeros(p)
repeat 4 {
  let next = each client {
    own - 0.1 * solve(x' @ x + eye(p), x' @ (x @ (theta + own) - y))
  }
  theta <- mean[*](next)
  own <- next
}
output theta
)";

const char* const kRounds = R"(input x : [*, p]
input y : [*]
state theta = zeros(p)
repeat 3 {
  theta <- theta - solve(x' @ x + eye(p), x' @ (tanh(x @ theta) - y))
}
output theta
output v = var[*](x)
output l = logsumexp[*](y)
)";

const char* const kPrivate = R"(input x : [*, p]
input y : [*]
output s = sum[*](clip(y, -1, 1))
output t = sum[*](clip(x[:, 1], 0, 1))
)";

std::shared_ptr<const CompiledProgram> program_of(const char* text, bool exact, bool additive) {
  ProgramOptions options;
  options.planning.exact = exact;
  options.planning.additive = additive;
  auto program = compile_program({"law.fold", text, {}}, options);
  if (!program->plan) throw std::invalid_argument(std::string("no plan: ") + text);
  return program;
}

// Nodes that answer on threads of their own, in the order in which they happen to finish.
class ThreadCarrier : public Carrier {
 public:
  ThreadCarrier(const std::vector<Client>& clients, ProgramCache& cache, int threads) {
    EngineOptions options;
    options.threads = threads;
    for (const Client& client : clients)
      nodes_.push_back(std::make_unique<Node>(client, cache, options));
    answering_.resize(nodes_.size());
  }

  void send(std::size_t client, const Bytes& request) override {
    answering_[client] = std::jthread([this, client, request] {
      schedule_point();
      Bytes answer = nodes_[client]->handle(request);
      const std::lock_guard lock(mutex_);
      arrived_.push_back({client, std::move(answer)});
      news_.notify_one();
    });
  }

  std::optional<Delivery> receive(double seconds) override {
    std::unique_lock lock(mutex_);
    const auto some = [&] { return !arrived_.empty(); };
    if (!news_.wait_for(lock, std::chrono::duration<double>(seconds), some)) return std::nullopt;
    Delivery delivery = std::move(arrived_.front());
    arrived_.pop_front();
    return delivery;
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<Delivery> arrived_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::jthread> answering_;  // last: joined before what they use is gone
};

using RunOn = std::function<Results(int threads)>;

// The first run has one thread and an undisturbed schedule; all others must have its bits.
void expect_one_answer(const char* kind, const RunOn& run) {
  const Results alone = run(1);
  const Perturbed perturbed;
  Random random(7);
  int different = 0;
  std::string first;
  for (int i = 0; i < repetitions(); ++i) {
    const int threads = 1 + static_cast<int>(random.below(8));
    const Verdict broken = same_bits(run(threads), alone);
    if (!broken) continue;
    if (different++ == 0)
      first = fmt::format("repetition {} with {} threads: {}", i, threads, *broken);
  }
  EXPECT_EQ(different, 0) << kind << ": of " << repetitions() << " repetitions so many differ; "
                          << first;
  ::testing::Test::RecordProperty("repetitions", repetitions());
}

RunOn locally(std::shared_ptr<const CompiledProgram> program, std::vector<Client> clients,
              RunOptions options = {}) {
  return [=](int threads) mutable {
    options.threads = threads;
    return run_local(program, clients, {}, options).results;
  };
}

RunOn packed(std::shared_ptr<const CompiledProgram> program, const std::vector<Client>& clients) {
  const std::vector<Pack> packs = pack_clients(program->plan->program, clients);
  EXPECT_LT(packs.size(), clients.size());
  return [=](int threads) {
    RunOptions options;
    options.threads = threads;
    return run_packs(program, packs, {}, options).results;
  };
}

TEST(Determinism, PackedClients) {
  expect_one_answer("packed", packed(program_of(kNewton, false, false), clients_of(300, 40, 6)));
}

TEST(Determinism, BlocksOfClients) {
  expect_one_answer("blocks", locally(program_of(kNewton, false, false), clients_of(40, 60, 12)));
}

TEST(Determinism, Factorizations) {
  expect_one_answer("factorizations",
                    locally(program_of(kFactors, false, false), clients_of(40, 50, 9)));
}

TEST(Determinism, Batches) {
  expect_one_answer("batches", locally(program_of(kBatches, false, false), clients_of(30, 60, 5)));
}

TEST(Determinism, PrivateStates) {
  expect_one_answer("private states",
                    locally(program_of(kPrivateState, false, false), clients_of(40, 50, 6)));
}

TEST(Determinism, RoundsOfManyClients) {
  expect_one_answer("rounds", locally(program_of(kRounds, false, false), clients_of(60, 80, 8)));
}

TEST(Determinism, LargeClients) {
  expect_one_answer("large clients",
                    locally(program_of(kRounds, false, false), clients_of(2, 200'000, 5)));
}

TEST(Determinism, Streaming) {
  std::vector<Client> clients(2);
  clients[0].name = "a";
  clients[0].table = std::make_shared<ReadAgain>(300'000, 5);
  clients[1].name = "b";
  clients[1].table = std::make_shared<ReadAgain>(70'001, 5);
  expect_one_answer("streaming", locally(program_of(kRounds, false, false), clients));
}

TEST(Determinism, Exact) {
  expect_one_answer("exact", locally(program_of(kRounds, true, false), clients_of(20, 300, 4)));
  expect_one_answer("exact, large",
                    locally(program_of(kRounds, true, false), clients_of(1, 200'000, 4)));
}

TEST(Determinism, PrivateWithASeed) {
  RunOptions options;
  options.privacy.emplace();
  options.privacy->epsilon = 1;
  options.privacy->delta = 1e-5;
  options.privacy->seed = 1;
  expect_one_answer("private",
                    locally(program_of(kPrivate, false, true), clients_of(12, 100, 2), options));
}

TEST(Determinism, Nodes) {
  const auto program = program_of(kNewton, false, false);
  const std::vector<Client> clients = clients_of(6, 60, 6);
  std::vector<std::string> names;
  for (const Client& client : clients) names.push_back(client.name);
  expect_one_answer("nodes", [&](int threads) {
    ProgramCache cache(standard_signature());
    ThreadCarrier carrier(clients, cache, threads);
    RunIdentity identity;
    identity.run = std::string(32, 'a');
    identity.bindings = "bindings";
    identity.sources.assign(clients.size(), "source");
    Coordinator coordinator(program, {}, names, nullptr, identity);
    return run_remote(std::move(coordinator), *program, names, carrier, {}).results;
  });
}

// Runs beside each other in one process, as threads of a Python program may start them: one whose answer differs from the others is the
// answer.
RunOn beside_each_other(const RunOn& run) {
  return [run](int threads) {
    std::vector<Results> found(3);
    {
      std::vector<std::jthread> users;
      for (Results& one : found) users.emplace_back([&] { one = RunOn(run)(threads); });
    }
    for (const Results& one : found) {
      if (same_bits(one, found[0])) return one;
    }
    return found[0];
  };
}

TEST(Determinism, RunsBesideEachOther) {
  expect_one_answer(
      "blocks beside each other",
      beside_each_other(locally(program_of(kNewton, false, false), clients_of(20, 40, 6))));
}

TEST(Determinism, RunsOfRoundsBesideEachOther) {
  expect_one_answer(
      "rounds beside each other",
      beside_each_other(locally(program_of(kRounds, false, false), clients_of(3, 40, 8))));
}

// The law finds a race of the kind that it was written for: results that pass through memory that threads share, put
// back on purpose.
TEST(Determinism, ScratchSharedBetweenThreadsIsFound) {
  static double shared_scratch[64];
  const auto racy_sum = [](std::size_t task) {
    for (std::size_t i = 0; i < 64; ++i) {
      std::atomic_ref(shared_scratch[i])
          .store(static_cast<double>(task + i), std::memory_order_relaxed);
    }
    schedule_point();
    double sum = 0;
    for (double& x : shared_scratch) sum += std::atomic_ref(x).load(std::memory_order_relaxed);
    return sum;
  };
  const auto sums = [&](int threads) {
    std::vector<double> found(200);
    in_parallel(found.size(), static_cast<std::size_t>(threads),
                [&](std::size_t task) { found[task] = racy_sum(task); });
    return found;
  };
  const std::vector<double> alone = sums(1);
  const Perturbed perturbed;
  int different = 0;
  for (int i = 0; i < 20; ++i) different += sums(2 + i % 7) != alone ? 1 : 0;
  EXPECT_GT(different, 0) << "the law cannot find what it is for";
  EXPECT_EQ(sums(1), alone);
}

}  // namespace
}  // namespace starfold::laws
