// The encoders of a round as a block program: a short list of steps over columns.
//
// A block of n records holds a federated value as columns: for each entry of its cell (what one
// record holds), n contiguous numbers, wherever the star stands in its type. Permuting, indexing,
// reshaping, joining and repeating values then costs nothing: it only names other columns.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "starfold/plan/plan.h"
#include "starfold/runtime/kernels/kernels.h"
#include "starfold/types/size.h"

namespace starfold::engine {

// Where columns lie. The scratch of a worker, numbers repeated for every record, what is kept
// between calls, and then the client's inputs one by one.
enum Source : std::uint32_t { scratch, fills, kept, first_input };

struct Column {
  std::uint32_t source = scratch;
  std::uint32_t index = 0;
  friend auto operator<=>(const Column&, const Column&) = default;
};
using Columns = std::vector<Column>;

// One operand of a step, cell by cell: columns, or entries of a shared value.
struct Operand {
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  Columns columns;
  std::uint32_t shared = none;         // number of the shared value in Tables::shared
  std::vector<std::uint32_t> entries;  // of the shared value
  bool federated() const { return shared == none; }
};

enum class Code {
  // One cell after the other; neighbours in the list run through each cell together.
  unary,        // out = map(a)
  binary,       // out = map(a, b)
  ternary,      // out = map(a, b, c)
  accumulate,   // out = a joined with the other columns of the same result, by `join`
  fold_sample,  // columns into an entry of a merge, by its accumulator
  fold_dot,     // the sum of a * b
  // All cells at once.
  combine,    // out = sum of columns times shared numbers
  distances,  // out = sum of squared differences of columns and shared numbers
  nearest,    // out = which point has the smallest of them
  pair_sum,   // out = sum of a * b
  softmax,    // along lines of columns
  log_softmax,
  logsumexp,
  argmax,
  argmin,
  clip_norm,     // all columns are one vector
  quantize,      // the same, in whole units
  labels,        // nothing but a count of those that one_hot does not know
  lookup,        // rows of a shared table
  general,       // the operation's meaning on the block as ordinary tensors
  fold_block,    // all columns of all operands into a merge
  fold_records,  // the same as ordinary tensors
  fold_gram,     // all sums of a * b
  fold_groups,   // the sums of b among the records with each label
  fold_count,
  store,  // laid down as a whole
};
std::string_view to_string(Code code);

struct Step {
  Code code = Code::general;
  ir::NodeId node = ir::no_node;  // what it computes, or computes a part of
  std::vector<Operand> args;
  Columns out;
  Columns work;
  std::size_t terms = 1;              // columns that make up one result
  std::vector<std::uint32_t> places;  // folds: the entry of the result that each cell adds to
  std::size_t merge = 0;              // folds: which merge of the round
  std::size_t stride = 0;             // combine: from one weight to the next
  std::size_t number = 0;  // gram and groups: which of its merge; store: which of its round
  bool upper = false;      // gram: symmetric, so one half is enough
  bool truth = false;      // accumulate: entries become 0 or 1 before they are joined
  bool mean = false;       // accumulate: the joined sum is divided by the number of terms
  bool pooled = false;     // sample: the `terms` columns of an entry must come together

  double (*map1)(double) = nullptr;
  double (*map2)(double, double) = nullptr;
  kernels::Unary unary = nullptr;
  kernels::Binary binary = {};
  kernels::Ternary ternary = nullptr;

  std::size_t cells() const {
    return out.empty() || code == Code::accumulate ? args[0].columns.size() : out.size();
  }
};

// Whether a step works through its cells one by one.
bool by_cell(const Step& step);

// Steps first, ..., last - 1, which run through each cell together.
struct Group {
  std::size_t first = 0;
  std::size_t last = 0;
};

struct BlockProgram {
  std::vector<Step> steps;
  std::vector<Group> groups;
  std::size_t scratch_columns = 0;
  std::size_t columns_read = 0;  // by all steps together
};

// What the programs of a record set refer to.
struct Tables {
  struct Fill {
    std::uint32_t shared = 0;
    std::uint32_t entry = 0;
    friend auto operator<=>(const Fill&, const Fill&) = default;
  };
  std::vector<ir::NodeId> shared;  // shared values; number 0 is `numbers`
  std::vector<double> numbers;     // that no node holds
  std::map<double, std::uint32_t> number_places;
  std::vector<Fill> fills;
  std::map<Fill, std::uint32_t> fill_places;  // where each stands in `fills`: there may be many
  std::vector<ir::NodeId> inputs;             // the arrays that columns are read from
  std::vector<std::size_t> input_columns;     // and how many columns each has
};

// One record set of a round.
struct SetProgram {
  std::string record_set;
  Tables tables;
  BlockProgram first;  // everything; also computes what is kept
  BlockProgram again;  // when what is kept is still right
  std::size_t kept_columns = 0;
  std::vector<std::uint32_t> kept_depends;  // on these shared values
};

// Shared values by node, with all results of an operation that has several.
using SharedValues = std::map<ir::NodeId, std::vector<Tensor>>;
// Adds the value of a node whose operands are there. RunError as apply().
void compute_shared(const ir::Program& program, ir::NodeId id, const SizeValues& sizes,
                    SharedValues& values);

struct RoundProgram {
  SharedValues constants;
  std::vector<SetProgram> sets;
};

RoundProgram compile_round(const Plan& plan, const Round& round, const SizeValues& sizes);

// What a value is to a block program.
enum class Role : std::uint8_t {
  other,     // the same for all records, or of another record set
  array,     // laid down as a whole before
  computed,  // by the program's own steps
};
using Roles = std::vector<Role>;  // by node

// Values laid down as a whole, for who needs them before a round is folded, or where there is nothing to fold: a round of its
// own.
struct StoreProgram {
  Round round;
  SetProgram set;
};
StoreProgram compile_store(const Plan& plan, const Round& round, ir::NodeId node,
                           const SizeValues& sizes);
// The same for shared values of a block's plan, where the records are clients: each entry of a value is a column.
StoreProgram compile_stores(const Plan& plan, const Roles& roles,
                            const std::vector<ir::NodeId>& stored, const SizeValues& sizes);

// The record set of a fold's operands.
const std::string& record_set_of(const ir::Program& program, const ir::Node& fold);

// The shape of a value with `records` along its star.
Shape block_shape(const Type& type, const SizeValues& sizes, std::int64_t records);

// The steps as text, one line each.
std::string print(const Plan& plan, const SetProgram& set, const BlockProgram& program);

}  // namespace starfold::engine
