// The rules of a policy, one function for each moment at which they can say no. What follows from program, columns and sizes
// alone names its rule; what depends on records has one sentence for all of it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "starfold/data/binding/binding_text.h"
#include "starfold/federation/program.h"
#include "starfold/node/config.h"
#include "starfold/node/ledger/ledger.h"
#include "starfold/privacy/terms.h"

namespace starfold {

// Why a request is refused: what the server is told, and what the owner is.
struct Decision {
  Refusal reason = Refusal::internal_error;
  std::string rule;    // a key of the policy; empty: the request itself was wrong
  std::string detail;  // one sentence
};
using Forbidden = std::optional<Decision>;  // none: allowed

// How the numbers of a run are protected beyond the policy's own rules.
struct Protection {
  bool masked = false;                       // until they are merged
  std::optional<privacy::Terms> terms = {};  // with noise
};

// Whether a study may run here at all: its standing with the owner, the list of programs, what is required of runs.
Forbidden forbids_study(const Policy& policy, const Account& account, const std::string& plan_hash,
                        const Protection& protection);

// Whether all studies together, which have spent what `total` says, may spend so much more.
Forbidden forbids_spending(const Policy& policy, const Account& total, double epsilon,
                           double delta);

// Whether the noise of a private run is what it promises, as far as this client makes it: a share hides nothing alone, so the sum
// has to be masked, over as many clients as the shares are made for.
Forbidden forbids_noise(const privacy::Terms& terms, const std::optional<secure::Group>& group);

// Whether the number of records may count as known, as neighbours that replace a record take it: not where a record may be left out for
// what it holds.
Forbidden forbids_neighbours(const privacy::Promise& promise, const NodeSource& source,
                             Missing missing);

// Whether states may be masked together with these others. `own` is the node's key.
Forbidden forbids_group(const Policy& policy, const secure::Group& group, const secure::Key& own);

// Whether a program may fold what it folds, out of these columns of a source.
Forbidden forbids_program(const Policy& policy, const NodeSource& source, const Plan& plan,
                          const Bindings& bindings);

// Whether a source lets these columns be read.
Forbidden forbids_columns(const NodeSource& source, const ColumnPlan& plan);

// Whether the study may have one more round with so many numbers.
Forbidden forbids_round(const Policy& policy, const Account& account, std::int64_t numbers);

// Whether so many usable records, by record set, are enough for a plan.
Forbidden forbids_records(const Policy& policy, const Plan& plan, const SizeValues& sizes,
                          const std::map<std::string, std::int64_t>& records);

// Whether the study may have these numbers of so many records, after what it has had.
Forbidden forbids_total(const Policy& policy, const Account& account, std::int64_t numbers,
                        const std::map<std::string, std::int64_t>& records);

// Whether the rounds of a plan can be encoded within so many bytes: sizes come from outside too.
Forbidden forbids_memory(const Plan& plan, const SizeValues& sizes, int threads,
                         std::int64_t memory);

// How many numbers a client sends in a round.
std::int64_t round_numbers(const Plan& plan, const Round& round, const SizeValues& sizes);

}  // namespace starfold
