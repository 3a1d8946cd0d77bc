// Typed nodes made by passes: the same typing rules as for what a user writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starfold/ir/ir.h"

namespace starfold::ir {

// What the typing rule of an operation says of an application whose axes are resolved.
struct Typing {
  Types types;         // nullopt: the rule refuses it
  Attrs attrs;         // with the axes as the rule resolves them
  std::string reason;  // of the refusal
};
Typing type_again(const Op& op, std::vector<Type> args, Attrs attrs, Span span);

class Builder {
 public:
  // New nodes get `span`, the place they explain; operations are those of the program's signature.
  Builder(Program& program, Span span) : program_(program), span_(span) {}

  NodeId number(double value);
  NodeId constant(Tensor value);
  // 1 at every client: [*client].
  NodeId one_per_client();
  // The number a size stands for.
  NodeId size(const Size& size);
  // The operation of this name; axes count from 0. Throws Bug when it is not well-typed.
  NodeId call(std::string_view op, std::vector<NodeId> args,
              const std::vector<std::int64_t>& axes = {}, std::vector<Size> sizes = {},
              std::vector<Slice> slices = {});

  NodeId add(NodeId a, NodeId b) { return call("+", {a, b}); }
  NodeId sub(NodeId a, NodeId b) { return call("-", {a, b}); }
  NodeId mul(NodeId a, NodeId b) { return call("*", {a, b}); }
  NodeId div(NodeId a, NodeId b) { return call("/", {a, b}); }

  const Type& type(NodeId id) const { return program_.graph[id].type(); }
  const Node& node(NodeId id) const { return program_.graph[id]; }
  Program& program() { return program_; }

 private:
  Program& program_;
  Span span_;
};

}  // namespace starfold::ir
