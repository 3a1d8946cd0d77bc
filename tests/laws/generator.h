// Random well-typed programs, as text, and random federations for them. The rows of a signature
// drive what is written, so that a new operation takes part as soon as its row is there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "starfold/federation/message.h"
#include "starfold/ops/standard.h"
#include "starfold/runtime/bind.h"
#include "tests/laws/generator_facts.h"
#include "tests/laws/random.h"

namespace starfold::laws {

struct GeneratorOptions {
  const Signature* signature = &standard_signature();
  bool base = false;     // the paper's base signature only
  bool core = false;     // the paper's families only, typed as widely as the language does
  bool special = false;  // data with nan, infinities and zeros; operations exact on them
  bool wide = false;     // magnitudes from 1e-200 to 1e200; operations that choose among operands
  bool derivatives = false;  // of outputs, with respect to shared inputs
  bool loops = true;         // states, loops, traces
  bool nested = false;       // loops in loops are common
  bool functions = true;     // functions and a module
  bool one_round = false;    // per-record expressions depend on no fold
  bool bounded = false;      // records are clipped before anything else is done with them
  int statements = 6;        // at most about so many
  int depth = 4;             // of expressions, at most
  int first_name = 1;        // names are numbered from here
};

// What an input's array should hold.
struct InputSpec {
  enum class Values { continuous, positive, grid, label, truth, wide };
  std::string name;
  Type type;
  Values values = Values::continuous;
  bool has_default = false;
  std::optional<Facts> facts;  // when they are not those of `values`
};

// An output that is the derivative of another output with respect to a shared input.
struct Derivative {
  std::string of;
  std::string by;
  std::string output;
  std::string statement;  // that gives it out
};

struct GeneratedProgram {
  ProgramText text;
  std::vector<InputSpec> inputs;
  SizeValues sizes;                              // of every size variable
  std::map<std::string, std::int64_t> declared;  // `size` declarations
  std::map<std::string, Facts> outputs;          // what is promised about them
  std::vector<Derivative> derivatives;
  bool special = false;
};

GeneratedProgram generate_program(Random& random, const GeneratorOptions& options = {});

// Clients with their arrays, and the values of shared inputs.
struct Federation {
  std::vector<Client> clients;
  Settings settings;
};

// The largest number of records of one record set in a federation.
inline constexpr int max_records = 60;

// One to six clients, or 17 to 24; some without records, some with one; at times all of them empty.
Federation generate_federation(Random& random, const GeneratedProgram& program);

// The records of all clients of `federation`, dealt out to so many clients anew.
Federation deal_again(Random& random, const GeneratedProgram& program, const Federation& federation,
                      int clients);

// So many clients, each with records drawn from those of all clients of `federation`: some with none, most with a few, now and
// then one with more than a block has.
Federation deal_unevenly(Random& random, const GeneratedProgram& program,
                         const Federation& federation, int clients);

// Random entries of the kind that the input asks for.
Tensor random_tensor(Random& random, const InputSpec& input, Shape shape, bool special);

// --- one-round programs in parts, for thm:one-round-realization

struct GeneratedComponent {
  std::string aggregation;  // empty: the matrix-product form left @ right
  std::string encoder;      // the federated expression; of the matrix product, the left one
  std::string right;
  Type shape;  // of the component
};

struct GeneratedFactorization {
  GeneratedProgram inputs;  // its text holds the declarations of inputs and sizes alone
  std::vector<GeneratedComponent> components;
  std::vector<std::string> names;  // y1, y2, ... in the decoder
  std::string decoder;
  Type result;
};

GeneratedFactorization generate_factorization(Random& random, const GeneratorOptions& options = {});

// A program on shared inputs of these names and types alone.
GeneratedProgram generate_shared_program(Random& random, const std::vector<InputSpec>& inputs,
                                         const SizeValues& sizes,
                                         const GeneratorOptions& options = {});

}  // namespace starfold::laws
