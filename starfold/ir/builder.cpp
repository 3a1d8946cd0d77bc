#include "starfold/ir/builder.h"

#include <fmt/format.h>

#include "starfold/base/error.h"

namespace starfold::ir {

NodeId Builder::number(double value) { return constant(Tensor::scalar(value)); }

NodeId Builder::constant(Tensor value) {
  Node node;
  node.kind = Kind::constant;
  node.types = {Type::shared(std::vector<Size>(value.shape.begin(), value.shape.end()))};
  node.value = std::move(value);
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
  Diagnostics diagnostics;
  TypeQuery query{*op, {}, {}, {}, std::nullopt, {}, span_, {}, diagnostics, {}};
  for (const NodeId arg : args) {
    query.args.push_back(type(arg));
    query.arg_spans.push_back(span_);
    query.arg_texts.emplace_back("...");
  }
  if (!axes.empty()) {
    query.axes.emplace();
    for (const std::int64_t axis : axes) {
      WrittenAxis written;
      written.number = axis + 1;
      query.axes->push_back(written);
    }
  }
  query.attrs.sizes = std::move(sizes);
  query.attrs.slices = std::move(slices);
  query.slice_spans.resize(query.attrs.slices.size(), span_);
  Types types = op->type(query);
  if (!types) {
    throw Bug(fmt::format("a pass made an ill-typed {}: {}", name,
                          diagnostics.items().empty() ? "" : diagnostics.items()[0].message));
  }
  Node node;
  node.kind = Kind::apply;
  node.op = op;
  node.args = std::move(args);
  node.attrs = std::move(query.attrs);
  node.types = std::move(*types);
  node.span = span_;
  return program_.graph.add(std::move(node));
}

}  // namespace starfold::ir
