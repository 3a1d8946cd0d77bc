#include "starfold/support/bounds.h"

#include <algorithm>
#include <cmath>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/tensor/gather.h"

namespace starfold::support {
namespace {

using ir::Kind;
using ir::NodeId;

// Larger values are known by one interval.
constexpr std::int64_t most_entries = 1 << 12;

Interval hull(const Box& box) {
  if (box.entries.empty()) return {0, 0};
  Interval all = box.entries[0];
  for (const Interval& entry : box.entries) all = range::hull(all, entry);
  return all;
}

// Rules speak of numbers; what they make of nan is none.
Interval known(Interval range) {
  return std::isnan(range.lo) || std::isnan(range.hi) ? Interval() : range;
}

// The shape of a value with one record.
std::optional<Shape> shape_with_one(const Type& type, const SizeValues& sizes) {
  Shape shape;
  std::int64_t count = 1;
  for (const Dim& dim : type.dims) {
    const auto extent = dim.star ? std::optional<std::int64_t>(1) : dim.size.evaluate(sizes);
    if (!extent || *extent > most_entries || (count *= *extent) > most_entries) return std::nullopt;
    shape.push_back(*extent);
  }
  return shape;
}

// How many elements of its first operand one entry of a result is folded from.
double folded(const ir::Program& program, const ir::Node& node, const SizeValues& sizes) {
  const bool matmul = node.op->family == Family::matmul;
  if (!matmul && node.op->family != Family::aggregation) return 1;
  const Type& type = program.graph[node.args[0]].type();
  double count = 1;
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    const auto& axes = node.attrs.axes;
    const bool folds =
        matmul ? axis + 1 == type.rank()
               : std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
    if (!folds) continue;
    const auto size = type.dims[axis].star ? std::nullopt : type.dims[axis].size.evaluate(sizes);
    if (!size) return std::numeric_limits<double>::infinity();
    count *= static_cast<double>(*size);
  }
  return count;
}

class Boxes {
 public:
  Boxes(const ir::Program& program, const SizeValues& sizes, const InputBoxes& inputs)
      : program_(program), sizes_(sizes) {
    for (NodeId id = 0; id < program.graph.size(); ++id)
      boxes_.push_back(box(program.graph[id], inputs));
  }

  const Box& operator[](NodeId id) const { return boxes_[id]; }

 private:
  Box box(const ir::Node& node, const InputBoxes& inputs) const {
    if (node.kind == Kind::constant || node.kind == Kind::size)
      return box_of(leaf_value(node, sizes_));
    if (node.kind == Kind::input) {
      const auto found = inputs.find(program_.inputs[node.index].name);
      return found == inputs.end() ? Box() : found->second;
    }
    if (node.kind != Kind::apply) return {};
    if (!node.federated()) {
      if (std::optional<Box> exactly = computed(node)) return *std::move(exactly);
    }
    if (!node.op->range) return {};
    const std::optional<Shape> shape = shape_with_one(node.type(), sizes_);
    std::optional<Box> result;
    switch (node.op->kernel) {
      case Kernel::view:
        if (shape) result = view(node, *shape);
        break;
      case Kernel::unary:
      case Kernel::binary:
      case Kernel::ternary:
        if (shape) result = entry_by_entry(node, *shape);
        break;
      default:
        break;
    }
    return result ? *std::move(result) : of_hulls(node);
  }

  // A shared value that is made of known ones alone.
  std::optional<Box> computed(const ir::Node& node) const {
    std::vector<Tensor> operands;
    for (const NodeId arg : node.args) {
      const Box& operand = boxes_[arg];
      if (!operand.shape) return std::nullopt;
      Tensor& value = operands.emplace_back(*operand.shape);
      for (std::size_t i = 0; i < operand.entries.size(); ++i) {
        if (operand.entries[i].lo != operand.entries[i].hi) return std::nullopt;
        value.data[i] = operand.entries[i].lo;
      }
    }
    if (node.types.size() != 1 || !shape_with_one(node.type(), sizes_)) return std::nullopt;
    try {
      return box_of(apply(program_, node, pointers(operands), sizes_).front());
    } catch (const RunError&) {  // then the round cannot be computed either
      return std::nullopt;
    }
  }

  static std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
    std::vector<const Tensor*> result;
    for (const Tensor& tensor : tensors) result.push_back(&tensor);
    return result;
  }

  // Whatever the operation is.
  Box of_hulls(const ir::Node& node) const {
    std::vector<Interval> operands;
    for (const NodeId arg : node.args) operands.push_back(hull(boxes_[arg]));
    return {std::nullopt, {known(node.op->range(operands, folded(program_, node, sizes_)))}};
  }

  // An operation that only puts entries elsewhere does the same to their bounds.
  std::optional<Box> view(const ir::Node& node, const Shape& shape) const {
    std::vector<Tensor> ends[2];
    for (const NodeId arg : node.args) {
      const Box& operand = boxes_[arg];
      if (!operand.shape) return std::nullopt;
      for (const bool upper : {false, true}) {
        Tensor& end = ends[upper].emplace_back(*operand.shape);
        for (std::size_t i = 0; i < operand.entries.size(); ++i)
          end.data[i] = upper ? operand.entries[i].hi : operand.entries[i].lo;
      }
    }
    const auto moved = [&](const std::vector<Tensor>& operands) {
      return apply(program_, node, pointers(operands), sizes_).front();
    };
    const Tensor lower = moved(ends[0]);
    const Tensor upper = moved(ends[1]);
    if (lower.shape != shape || upper.shape != shape) return std::nullopt;
    Box result{shape, {}};
    for (std::size_t i = 0; i < lower.data.size(); ++i)
      result.entries.push_back({lower.data[i], upper.data[i]});
    return result;
  }

  std::optional<Box> entry_by_entry(const ir::Node& node, const Shape& shape) const {
    std::vector<std::vector<std::int64_t>> from;
    bool shaped = false;
    for (const NodeId arg : node.args) {
      const Box& operand = boxes_[arg];
      shaped = shaped || operand.shape;
      const Shape& own = operand.shape ? *operand.shape : Shape();
      from.push_back(places(shape, broadcast_strides(own, shape)));
    }
    if (!shaped) return std::nullopt;
    Box result{shape, {}};
    std::vector<Interval> operands(node.args.size());
    const auto count = static_cast<std::size_t>(element_count(shape));
    for (std::size_t entry = 0; entry < count; ++entry) {
      for (std::size_t i = 0; i < operands.size(); ++i)
        operands[i] = boxes_[node.args[i]].entries[static_cast<std::size_t>(from[i][entry])];
      result.entries.push_back(known(node.op->range(operands, 1)));
    }
    return result;
  }

  const ir::Program& program_;
  const SizeValues& sizes_;
  std::vector<Box> boxes_;
};

double size_of(const Interval& range) {
  return range.bounded() ? range::outward(range).size() : std::numeric_limits<double>::infinity();
}

std::vector<double> sizes_of(const Box& box) {
  std::vector<double> sizes;
  for (const Interval& entry : box.entries) sizes.push_back(size_of(entry));
  return sizes;
}

// Of [.., i, *] @ [.., *, j], cell by cell where both are a vector or a matrix.
std::vector<double> products(const Box& left, const Box& right) {
  const auto plain = [](const Box& box) { return box.shape && box.shape->size() <= 2; };
  const auto times = [](double a, double b) {
    return std::isfinite(a) && std::isfinite(b) ? a * b : std::numeric_limits<double>::infinity();
  };
  if (!plain(left) || !plain(right)) return {times(size_of(hull(left)), size_of(hull(right)))};
  std::vector<double> result;
  for (const double a : sizes_of(left)) {
    for (const double b : sizes_of(right)) result.push_back(times(a, b));
  }
  return result;
}

}  // namespace

Box box_of(const Tensor& tensor) {
  Box box{tensor.shape, {}};
  for (const double x : tensor.data) box.entries.push_back(known({x, x}));
  if (tensor.count() <= most_entries) return box;
  return {std::nullopt, {hull(box)}};
}

std::vector<std::vector<double>> largest_terms(const SupportProgram& support,
                                               const SizeValues& sizes, const InputBoxes& inputs) {
  const Boxes boxes(support.program, sizes, inputs);
  std::vector<std::vector<double>> largest;
  for (const Terms& terms : support.terms) {
    largest.push_back(terms.right == ir::no_node ? sizes_of(boxes[terms.left])
                                                 : products(boxes[terms.left], boxes[terms.right]));
  }
  return largest;
}

}  // namespace starfold::support
