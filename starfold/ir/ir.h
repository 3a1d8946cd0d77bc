// Typed IR: an immutable graph of expressions in which equal nodes are one node.
//
// Functions are inlined and updates are in single-assignment form: inside a loop a state is a
// `loop_param`, after it a `loop_result`. What a node depends on is therefore visible in the graph,
// and the operands of a node always have smaller ids than the node itself. What runs at one client alone is a program
// of its own, which its node owns (Local).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "starfold/base/source.h"
#include "starfold/signature/op.h"
#include "starfold/tensor/tensor.h"
#include "starfold/types/type.h"

namespace starfold::ir {

using NodeId = std::uint32_t;
using LoopId = std::uint32_t;
inline constexpr NodeId no_node = std::numeric_limits<NodeId>::max();
inline constexpr LoopId no_loop = std::numeric_limits<LoopId>::max();

enum class Kind {
  constant,     // `value`
  size,         // the number that `size` stands for
  input,        // input number `index`
  apply,        // `op` applied to `args`
  project,      // result number `index` of args[0]
  variable,     // args[0], kept apart as variable number `index` for differentiation
  loop_param,   // the state `slot` of loop `index` at the start of an iteration
  loop_result,  // the state `slot` of loop `index` after its last iteration
  local,        // `block` at each client on its own; `args` are what it sees from outside
};

// The record set with one record per client.
inline const std::string client_set = "client";

struct Local;

struct Node {
  Kind kind = Kind::constant;
  const Op* op = nullptr;
  Attrs attrs;
  std::vector<NodeId> args;
  std::vector<Type> types;  // one, or several for an operation with several results
  Tensor value;
  Size size;
  std::uint32_t index = 0;
  std::uint32_t slot = 0;
  std::shared_ptr<const Local> block;
  Span span;  // where it was first written; not part of its identity

  const Type& type() const { return types.front(); }
  bool federated() const { return types.front().federated(); }
};

// True when two nodes denote the same value.
bool same(const Node& a, const Node& b);

// Whether a node applies the language's operation of this name to so many operands. For rewrites that are about one
// operation; what many operations have in common is a trait of their rows.
bool is_op(const Node& node, std::string_view name, std::size_t arity);

class Graph {
 public:
  // The node, or the equal one that is already there.
  NodeId add(Node node);
  const Node& operator[](NodeId id) const { return nodes_[id]; }
  std::size_t size() const { return nodes_.size(); }
  // Whether computing a node may end the run: it or an operand's operand refuses some values. A rewrite must not
  // drop such a node, or a run would no longer fail where the definition does.
  bool can_refuse(NodeId id) const { return refuses_[id] != 0; }

 private:
  std::vector<Node> nodes_;
  std::vector<char> refuses_;
  std::unordered_multimap<std::size_t, NodeId> by_hash_;
};

// A state carried from one iteration of a loop to the next. A federated one is private: it lives at the clients. Its
// first value may be shared and is then repeated for every record.
struct Carried {
  std::string name;
  Type type;
  NodeId init = no_node;
  NodeId param = no_node;
  NodeId next = no_node;
};

struct Loop {
  LoopId parent = no_loop;  // the loop it is written in
  NodeId count = no_node;   // the largest number of iterations, a shared scalar
  std::vector<Carried> carried;
  NodeId until = no_node;  // no_node when there is none
  Span span;
};

struct Input {
  std::string name;
  Type type;
  NodeId node = no_node;
  NodeId fallback = no_node;  // the default, no_node when there is none
  Span span;
};

struct SizeVariable {
  std::string name;
  std::optional<std::int64_t> value;  // of a `size` declaration
  Span span;
};

struct Output {
  std::string name;
  NodeId node = no_node;
  Span span;
};

// What is watched each time it is reached: a number to record, or a condition.
struct Trace {
  enum class Kind {
    record,   // one number
    expect,   // a condition; a warning where it does not hold
    require,  // a condition; the run ends where it does not hold
  };
  std::string name;
  NodeId node = no_node;
  LoopId loop = no_loop;
  Span span;
  Kind kind = Kind::record;
  std::string sentence = {};  // what it means when the condition does not hold
};

// A name of the program and its type, for `check`.
struct NameType {
  std::string name;
  Type type;
  Span span;
};

// A name inside a function; every call of the function has its own.
struct LocalName {
  std::string name;
  std::size_t call = 0;  // the calls of a program are numbered as they are written out
};

struct Program {
  std::shared_ptr<const Signature> signature;  // keeps the operations of the nodes alive
  Graph graph;
  std::vector<Input> inputs;
  std::vector<SizeVariable> sizes;
  std::vector<Loop> loops;
  std::vector<Output> outputs;  // shared; those of a block may be federated
  std::vector<Output> keeps;    // federated: results that stay at the clients
  std::vector<Trace> traces;
  std::vector<NameType> name_types;
  std::map<NodeId, std::string> names;      // what the user calls a node
  std::map<NodeId, LocalName> local_names;  // what functions call it
};

// A program inside a node, over a federation that consists of one client. Its inputs are the operands of the node, and
// its outputs the results.
struct Local {
  // Inside, a value per client ([*client, s]) is the client's own row, [s].
  Program body;
  // `repeat batches(k, seed)`, inside another block: the body runs once per batch of the records of `record_set`. The
  // first operands are k, the seed, and the first values of the states; the first inputs and outputs of the body are
  // the states. A further output ends the loop when it is not zero.
  bool batches = false;
  std::size_t states = 0;
  std::string record_set;

  std::string text;      // everything that a result depends on: equal blocks are one
  bool refuses = false;  // computing it may end the run

  // How many operands come before those that are inputs of the body.
  std::size_t first_input() const { return batches ? 2 : 0; }
};
// A block with what follows from its parts.
std::shared_ptr<const Local> make_local(Local local);
// A type as seen inside a block, and a result as seen outside: [*client, s] and [s].
Type seen_inside(const Local& local, const Type& type);
Type seen_outside(const Local& local, const Type& type);
std::vector<Type> local_types(const Local& local);
// The program with every block's body replaced, innermost first.
Program map_blocks(const Program& program, const std::function<Program(const Program&)>& map);

// The node of a block with the maps among its operands, and the maps that those are made of, moved into its body where
// `moves` says so: a block computes them itself, and nothing is laid down for it.
Node inline_maps(const Program& outer, const Node& local, const std::function<bool(NodeId)>& moves);

// Whether a value depends on how records are split over clients, by node: it comes from a block or a private state.
std::vector<bool> find_split(const Program& program);

// Whether a node is a fold: it takes records in and gives a shared value out.
bool is_fold(const Graph& graph, const Node& node);

// Whether every entry of an application is 1, and no refusal is lost with it.
bool is_ones(const Graph& graph, NodeId id);

// Where each node and loop belongs: the innermost loop whose iteration it depends on. What does not
// change inside a loop has its home outside it.
struct Homes {
  std::vector<LoopId> of_node;  // no_loop: outside all loops
  std::vector<LoopId> of_loop;
};
Homes find_homes(const Program& program);

// Copies a program node by node. `rewrite` gets each node with its operands already replaced and
// returns the node that takes its place, adding to the new graph as it likes.
using Rewrite = std::function<NodeId(Program& to, Node node)>;
Program rebuild(const Program& program, const Rewrite& rewrite);

// The program with everything removed that no output, trace or kept result needs.
Program prune(const Program& program);

// Throws Bug when an invariant of the IR is broken; `pass` names the culprit. `inside`: the body of a block.
void verify(const Program& program, const char* pass, bool inside = false);

// One line per size, input, node and loop: everything that a result depends on, so that programs which
// print equally compute equally. With `names`, also what the user calls each node.
std::string print(const Program& program, bool names = false);

// A literal, a size or zeros(p): it may be the value of many names, and to call it by one would mislead.
bool is_plain(const Node& node);

// An expression in the language's own notation, with the user's names where they exist; `depth`
// limits how far unnamed operands are written out.
std::string print_expr(const Program& program, NodeId id, int depth = 12);

}  // namespace starfold::ir
