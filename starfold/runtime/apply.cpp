#include "starfold/runtime/apply.h"

#include <fmt/format.h>

#include "starfold/base/error.h"
#include "starfold/runtime/engine/map_chains.h"

namespace starfold {
namespace {

std::int64_t number(const Size& size, const SizeValues& sizes, Span where) {
  const std::optional<std::int64_t> value = size.evaluate(sizes);
  if (!value) throw RunError(fmt::format("the size {} has no value", size.to_string()), where);
  return *value;
}

std::int64_t positive(const Size& size, const SizeValues& sizes, Span where) {
  const std::int64_t value = number(size, sizes, where);
  if (value < 1)
    throw RunError(
        fmt::format("the size {} is {}; sizes must be positive", size.to_string(), value), where);
  return value;
}

}  // namespace

Shape cell_shape(const Type& type, const SizeValues& sizes) {
  Shape shape;
  for (const Dim& dim : type.dims) {
    if (!dim.star) shape.push_back(positive(dim.size, sizes, {}));
  }
  return shape;
}

std::vector<Tensor> apply(const ir::Program& program, const ir::Node& node,
                          std::vector<const Tensor*> args, const SizeValues& sizes) {
  Application application;
  application.args = std::move(args);
  for (const ir::NodeId arg : node.args)
    application.record_axes.push_back(program.graph[arg].type().record_axis());
  application.axes = node.attrs.axes;
  for (const Size& size : node.attrs.sizes)
    application.sizes.push_back(positive(size, sizes, node.span));
  for (const Slice& slice : node.attrs.slices) {
    ConcreteSlice concrete{slice.kind, 0, 0};
    if (slice.kind == Slice::Kind::index || slice.kind == Slice::Kind::range) {
      concrete.first = number(slice.first, sizes, node.span);
      concrete.last = number(slice.last, sizes, node.span);
    }
    application.slices.push_back(concrete);
  }
  if (!node.op->meaning) throw Bug(fmt::format("{} has no meaning to run", node.op->name));
  try {
    return node.op->meaning(application);
  } catch (const RunError& error) {
    if (error.where()) throw;
    throw RunError(error.what(), node.span);
  }
}

bool apply_in_place(const ir::Node& node, const Tensor* const* args, Tensor& result) {
  const Op& op = *node.op;
  if (node.args.size() == 1 && op.map1 != nullptr && op.kernel == Kernel::unary) {
    result.shape = args[0]->shape;
    result.data.resize(args[0]->data.size());
    map_entries(op, args[0]->data.data(), result.data.data(), result.data.size());
    return true;
  }
  if (node.args.size() != 2 || op.map2 == nullptr || op.kernel != Kernel::binary) return false;
  const Tensor& a = *args[0];
  const Tensor& b = *args[1];
  if (!(a.shape == b.shape || a.shape.empty() || b.shape.empty())) return false;
  const Tensor& larger = a.shape.empty() ? b : a;
  result.shape = larger.shape;
  result.data.resize(larger.data.size());
  map_entries(op, {a.data.data(), a.shape.empty()}, {b.data.data(), b.shape.empty()},
              result.data.data(), result.data.size());
  return true;
}

Tensor leaf_value(const ir::Node& node, const SizeValues& sizes) {
  if (node.kind == ir::Kind::constant) return node.value;
  return Tensor::scalar(static_cast<double>(number(node.size, sizes, node.span)));
}

}  // namespace starfold
