#include "starfold/ir/builder.h"

#include <fmt/format.h>

#include "starfold/base/error.h"

namespace starfold::ir {

Typing type_again(const Op& op, std::vector<Type> args, Attrs attrs, Span span) {
  Diagnostics diagnostics;
  TypeQuery query{op,   std::move(args),  {},          {}, std::nullopt, {},
                  span, std::move(attrs), diagnostics, {}};
  query.arg_spans.resize(query.args.size(), span);
  query.arg_texts.resize(query.args.size(), "...");
  query.slice_spans.resize(query.attrs.slices.size(), span);
  if (op.axes == Op::Axes::required || (!query.attrs.axes.empty() && op.axes != Op::Axes::none)) {
    query.axes.emplace();
    for (const std::int64_t axis : query.attrs.axes) {
      WrittenAxis written;
      written.number = axis + 1;
      query.axes->push_back(written);
    }
    query.attrs.axes.clear();
  }
  Typing typing;
  typing.types = op.type(query);
  typing.attrs = std::move(query.attrs);
  if (!typing.types && !diagnostics.items().empty())
    typing.reason = diagnostics.items().front().message;
  return typing;
}

NodeId Builder::number(double value) { return constant(Tensor::scalar(value)); }

NodeId Builder::constant(Tensor value) {
  Node node;
  node.kind = Kind::constant;
  node.types = {Type::shared(std::vector<Size>(value.shape.begin(), value.shape.end()))};
  node.value = std::move(value);
  node.span = span_;
  return program_.graph.add(std::move(node));
}

NodeId Builder::one_per_client() {
  Local local;
  local.body.signature = program_.signature;
  const NodeId one = Builder(local.body, span_).number(1);
  local.body.outputs.push_back({"1", one, span_});
  Node node;
  node.kind = Kind::local;
  node.block = make_local(std::move(local));
  node.types = local_types(*node.block);
  node.span = span_;
  return program_.graph.add(std::move(node));
}

NodeId Builder::size(const Size& size) {
  if (size.is_constant()) return number(static_cast<double>(size.constant()));
  Node node;
  node.kind = Kind::size;
  node.types = {Type::scalar()};
  node.size = size;
  node.span = span_;
  return program_.graph.add(std::move(node));
}

NodeId Builder::call(std::string_view name, std::vector<NodeId> args,
                     const std::vector<std::int64_t>& axes, std::vector<Size> sizes,
                     std::vector<Slice> slices) {
  const Op* op =
      program_.signature->find(name, static_cast<int>(args.size() + sizes.size()), !axes.empty());
  if (op == nullptr) throw Bug(fmt::format("no operation {} for {} operands", name, args.size()));
  std::vector<Type> types;
  for (const NodeId arg : args) types.push_back(type(arg));
  Typing typing =
      type_again(*op, std::move(types), {axes, std::move(sizes), std::move(slices)}, span_);
  if (!typing.types) throw Bug(fmt::format("a pass made an ill-typed {}: {}", name, typing.reason));
  Node node;
  node.kind = Kind::apply;
  node.op = op;
  node.args = std::move(args);
  node.attrs = std::move(typing.attrs);
  node.types = std::move(*typing.types);
  node.span = span_;
  return program_.graph.add(std::move(node));
}

}  // namespace starfold::ir
