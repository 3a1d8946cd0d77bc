// What a run promises about privacy, and what both sides need to know to keep it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "starfold/base/error.h"
#include "starfold/privacy/sensitivity.h"
#include "starfold/tensor/bytes.h"

namespace starfold::privacy {

// Where noise is added: to the merged state, by the server; to every message, by its client; to the outputs, by the server; or in
// shares by the clients, under secure aggregation.
enum class At { server, client, output, distributed };
// "server", "client", "output", "distributed".
std::string_view to_string(At at);

// [privacy] of a study.
struct Promise {
  Unit unit = Unit::record;
  Neighbours neighbours = Neighbours::add_remove;
  double epsilon = 1;
  double delta = 0;  // 0: pure
  At at = At::server;
  std::optional<std::uint64_t> seed = std::nullopt;  // for tests: then nothing is private

  // Noise is Laplace's where delta is 0, else Gauss's.
  bool pure() const { return delta == 0; }
};

// The promise as it travels, with the facts that noise and grid are calculated from: they are part of what both sides agree on.
struct Terms {
  Promise promise;           // its seed stays at home
  bool predictable = false;  // noise that the server makes has a seed
  std::int64_t clients = 0;  // how many there are at most
  std::int64_t shares = 0;   // distributed: how many add their share of noise at least
  std::map<std::string, Tensor, std::less<>> inputs =
      {};  // values of shared inputs that bounds may rest on
};
Bytes encode_terms(const Terms& terms);
// RunError when the bytes are something else, or promise what cannot be promised.
Terms decode_terms(std::string_view bytes);

// Why a promise is none; empty when it is one.
std::string wrong_with(const Promise& promise);

// A program cannot be run with the privacy that was promised. The place is that of the expression.
class NotPrivate : public RunError {
 public:
  NotPrivate(const std::string& message, Span where, std::string help = {})
      : RunError(message, where), help_(std::move(help)) {}
  explicit NotPrivate(const std::string& message) : RunError(message) {}
  const std::string& help() const { return help_; }

 private:
  std::string help_;
};

// NotPrivate unless everything that a plan releases has a bound, as far as that shows without the sizes of data.
void require_bounds(const Plan& plan, const Promise& promise, const Known& known);

}  // namespace starfold::privacy
