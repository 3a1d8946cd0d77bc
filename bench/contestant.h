// A contestant is prepared once and then does its work again and again: Starfold, or a limit that it is
// measured against. bench/run starts each in a process of its own and lets them take turns.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace starfold::bench {

// The key=value words of the command line.
class Arguments {
 public:
  Arguments(int count, char** words);

  // A word that must be there; std::runtime_error when it is not.
  const std::string& text(const std::string& key) const;
  std::string text(const std::string& key, const std::string& otherwise) const;
  std::int64_t number(const std::string& key) const { return std::stoll(text(key)); }
  std::int64_t number(const std::string& key, std::int64_t otherwise) const;
  // All words whose key begins with this, without it.
  std::map<std::string, std::string> beginning_with(const std::string& prefix) const;

 private:
  std::map<std::string, std::string> words_;
};

struct Outcome {
  double seconds = 0;
  std::vector<double> values;            // what was computed, for comparison with the others
  std::map<std::string, double> extras;  // anything else worth knowing, by name
};

// One turn. Turn k starts from shared values that are (1 + k / 1000) times those of turn 0, for every
// contestant alike: nothing can be remembered from the turn before.
using Contestant = std::function<Outcome(int turn)>;

// Starfold. The data is laid out beforehand; a turn is the rounds of the program, with private=1 on grids and with noise.
Contestant make_engine(const Arguments& arguments);
// What a policy's look at the support of the same rounds takes; the rounds themselves do not count.
Contestant make_support(const Arguments& arguments);
// Starfold over several clients, from tables in memory to results; with time=rounds only its rounds
// count, with time=round only the last of them.
Contestant make_federation(const Arguments& arguments);
// A round of secure aggregation with all its keys, in memory, and the plain sum of the same integers.
Contestant make_masked(const Arguments& arguments);
Contestant make_unmasked(const Arguments& arguments);
// Exact noise on the integers, and rounded floating-point noise from a generator that nothing should be kept secret with.
Contestant make_noise(const Arguments& arguments);
Contestant make_rounded_noise(const Arguments& arguments);
// Reading so many numbers once.
Contestant make_read(const Arguments& arguments);
// One dsyrk of a multi-threaded OpenBLAS, and a read of the data where read=1.
Contestant make_dsyrk(const Arguments& arguments);
// So many floating-point operations at the speed of multiply-adds that never wait.
Contestant make_multiply_add(const Arguments& arguments);
// DuckDB's scan of a Parquet file: the sum of every column.
Contestant make_scan(const Arguments& arguments);

// Writes the arrays of a row as .npy files, or a Parquet file.
void generate_arrays(const Arguments& arguments);
void generate_parquet(const Arguments& arguments);

using Clock = std::chrono::steady_clock;
inline double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs body(i) for i in [0, threads) on a thread each.
void on_threads(int threads, const std::function<void(int)>& body);

}  // namespace starfold::bench
