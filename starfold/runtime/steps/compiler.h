// From the encoders and folds of a round to the steps of a block program.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "starfold/runtime/accumulate/accumulator.h"
#include "starfold/runtime/steps/program.h"

namespace starfold::engine {

// For each result cell, a cell of an operand.
using CellMap = std::vector<std::uint32_t>;

CellMap identity(std::size_t cells);

// Cells in the order of the results they are folded into.
CellMap by_place(const std::vector<std::uint32_t>& places);

// How deep sums look into the products they sum over.
inline constexpr int factor_depth = 3;

// A product that is not computed but handed to the sum over it: for each cell, `count` columns.
struct Factors {
  std::size_t count = 1;
  Columns columns;
  std::size_t cells() const { return columns.size() / count; }
  const Column* of(std::size_t cell) const { return columns.data() + cell * count; }
};

// Where the records of a set are records.
Roles roles_of(const ir::Program& program, const std::string& record_set);

class Compiler {
 public:
  Compiler(const Plan& plan, const SizeValues& sizes, const Round& round,
           const std::string& record_set, const Roles& roles, Tables& tables);

  // All steps. What is in `given` is taken from its columns instead of being computed.
  BlockProgram compile(const std::map<ir::NodeId, Columns>& given);

  // After compile(): of the round's kept values those that are worth keeping, with their columns.
  std::map<ir::NodeId, Columns> worth_keeping() const;
  // The numbers of the shared values that a value is made of.
  std::set<std::uint32_t> shared_parts(ir::NodeId id) const;

 private:
  const ir::Node& node(ir::NodeId id) const { return program_.graph[id]; }
  Shape unit_shape(ir::NodeId id) const { return block_shape(node(id).type(), sizes_, 1); }
  bool by_record(ir::NodeId id) const { return roles_[id] != Role::other; }
  // Whether the records are clients inside a block, and each has to compute the very bits that the operations of its own
  // values give: in exact runs nothing may show that many clients went through the block at once.
  bool as_one_alone(ir::NodeId id) const { return exact_ && !node(id).federated(); }
  bool folded_here(const Merge& merge) const;

  // --- which values are needed, and which products stay unevaluated
  void count_uses();
  std::vector<ir::NodeId> find_needed() const;
  std::vector<ir::NodeId> fold_leaves(const ir::Node& fold) const;
  void add_leaves(ir::NodeId id, int depth, std::vector<ir::NodeId>& leaves) const;
  bool splits(ir::NodeId id) const;
  // The values that an encoder reads: its operands, or those of what it computes in passing.
  std::vector<ir::NodeId> reads(ir::NodeId id) const;
  bool in_passing(ir::NodeId id) const;
  bool negated(ir::NodeId id) const;
  // sum(square(x - points)): each result is made of `terms` columns of x, and of as many numbers of the
  // points, `stride` apart.
  struct Distances {
    ir::NodeId x = ir::no_node;
    ir::NodeId points = ir::no_node;
    std::size_t terms = 0;
    std::size_t stride = 0;
    CellMap columns;  // of x, for one result after the other; for one when all have the same
    CellMap starts;   // the first number of each result's point
  };
  std::optional<Distances> distances(ir::NodeId id) const;
  // Those that argmax(-distances) looks at and nobody else.
  std::optional<Distances> nearest(ir::NodeId id) const;
  // A one_hot of one label per record, seen directly or through a view that shows its cells in order.
  std::optional<ir::NodeId> one_hot_behind(ir::NodeId id) const;
  // The labels of a fold that sums records group by group, and what else it reads.
  struct Groups {
    ir::NodeId one_hot = ir::no_node;
    ir::NodeId labels = ir::no_node;
    ir::NodeId summed = ir::no_node;  // none: records are counted
    bool transposed = false;          // groups are the columns of the result
  };
  std::optional<Groups> groups(const ir::Node& fold) const;
  // Sees to it that labels which the one_hot `id` does not know are counted, once.
  void check_labels(ir::NodeId id);

  // --- values
  void emit(ir::NodeId id);
  bool suits_kernel(ir::NodeId id) const;
  void emit_array(ir::NodeId id);
  void emit_store(std::size_t store);
  void emit_unary(ir::NodeId id);
  void emit_binary(ir::NodeId id);
  void emit_ternary(ir::NodeId id);
  void emit_outer(ir::NodeId id);
  void emit_one_hot(ir::NodeId id);
  void emit_filled(ir::NodeId id, double value);
  void emit_view(ir::NodeId id);
  void emit_matmul(ir::NodeId id);
  void emit_join(ir::NodeId id);
  void emit_argmax(ir::NodeId id);
  void emit_distances(ir::NodeId id, const Distances& parts, Code code);
  void emit_lines(ir::NodeId id, Code code);
  void emit_clip_norm(ir::NodeId id);
  void emit_quantize(ir::NodeId id);
  void emit_lookup(ir::NodeId id);
  void emit_general(ir::NodeId id);

  // --- folds
  void emit_fold(std::size_t merge);
  void emit_matmul_fold(std::size_t merge);
  Factors factors(ir::NodeId id, int depth) const;
  void emit_product_sum(std::size_t merge, const Factors& product,
                        const std::vector<std::uint32_t>& places);
  void emit_gram(std::size_t merge, const Factors& rows, const Factors& columns, Columns common,
                 const std::vector<std::uint32_t>& places);
  void emit_groups(std::size_t merge, const Groups& groups);
  void emit_dots(std::size_t merge, Columns a, Columns b, const std::vector<std::uint32_t>& places);
  // Takes out the factors that all cells have; at least one is left to each.
  Columns take_common(Factors& factors) const;
  // The products of all factors but the last, and the last.
  std::pair<Columns, Columns> in_two(const Factors& factors);
  Columns multiplied(const Columns& a, const Columns& b);

  // --- parts
  Operand operand(ir::NodeId id, const CellMap& map);
  Operand operand(ir::NodeId id);
  Operand whole(ir::NodeId id);
  Operand number(double value, std::size_t cells);
  std::uint32_t shared_number(ir::NodeId id);
  Column fill(std::uint32_t shared, std::uint32_t entry);
  Columns fresh(std::size_t count);
  CellMap broadcast_map(ir::NodeId from, ir::NodeId to) const;
  CellMap view_map(const ir::Node& view, std::vector<std::uint32_t> offsets) const;
  Step& add(Step step);

  double cost(ir::NodeId id) const;

  // How a fold of the plan is accumulated.
  AccumulatorKind accumulator_of(const ir::Node& fold) const;

  const ir::Program& program_;
  const bool exact_;
  const SizeValues& sizes_;
  const Round& round_;
  const std::string& record_set_;
  const Roles& roles_;
  Tables& tables_;

  std::set<ir::NodeId> encoders_;  // of this record set
  std::set<ir::NodeId> kept_;
  std::map<ir::NodeId, int> uses_;
  std::map<ir::NodeId, Columns> values_;
  std::map<ir::NodeId, double> costs_;
  std::map<std::pair<Column, Column>, Column> products_;
  std::set<ir::NodeId> checked_;  // those whose labels are counted
  std::vector<Step> steps_;
  std::uint32_t next_column_ = 0;
  std::map<std::size_t, std::size_t> tiles_;  // of each merge: grams and groups so far
};

// Groups neighbouring steps that can run through each cell together.
std::vector<Group> group_steps(const std::vector<Step>& steps);

// Gives the scratch columns of a program their places, as few as possible; `pinned` ones become kept
// columns in this order. Rewrites the steps.
void place_columns(BlockProgram& program, const std::vector<Column>& pinned);

// For each entry of a tensor of this shape, its place in the result of folding `axes`.
std::vector<std::uint32_t> folded_places(const Shape& shape, const std::vector<std::int64_t>& axes);

// The operand cells that a product of matrices with these shapes multiplies: entry c of the result
// is the sum over k < terms of left[c] + k * left_stride times right[c] + k * right_stride.
struct MatmulMap {
  CellMap left;
  CellMap right;
  std::size_t left_stride = 0;
  std::size_t right_stride = 0;
  std::size_t terms = 0;
  std::size_t batch = 1;  // matrices in the result, each rows by columns
  std::size_t rows = 1;
  std::size_t columns = 1;
};
MatmulMap matmul_map(const Shape& left, const Shape& right);

}  // namespace starfold::engine
