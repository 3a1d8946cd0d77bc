// Typed IR: an immutable graph of expressions in which equal nodes are one node.
//
// Functions are inlined and updates are in single-assignment form: inside a loop a state is a
// `loop_param`, after it a `loop_result`. What a node depends on is therefore visible in the graph,
// and the operands of a node always have smaller ids than the node itself.
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
};

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

// A state carried from one iteration of a loop to the next.
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
  std::vector<Output> outputs;
  std::vector<Trace> traces;
  std::vector<NameType> name_types;
  std::map<NodeId, std::string> names;      // what the user calls a node
  std::map<NodeId, LocalName> local_names;  // what functions call it
};

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

// The program with everything removed that no output or trace needs.
Program prune(const Program& program);

// Throws Bug when an invariant of the IR is broken; `pass` names the culprit.
void verify(const Program& program, const char* pass);

// One line per size, input, node and loop: everything that a result depends on, so that programs which
// print equally compute equally. With `names`, also what the user calls each node.
std::string print(const Program& program, bool names = false);

// A literal, a size or zeros(p): it may be the value of many names, and to call it by one would mislead.
bool is_plain(const Node& node);

// An expression in the language's own notation, with the user's names where they exist; `depth`
// limits how far unnamed operands are written out.
std::string print_expr(const Program& program, NodeId id, int depth = 12);

}  // namespace starfold::ir
