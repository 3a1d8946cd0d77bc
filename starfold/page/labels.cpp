#include "starfold/page/labels.h"

#include <algorithm>
#include <set>

namespace starfold::page {
namespace {

// The axis beside the star of a federated matrix.
const Size& width_of(const Type& type) { return type.dims[1 - *type.record_axis()].size; }

bool is_ones(const ir::Node& node) {
  if (node.kind == ir::Kind::constant)
    return std::all_of(node.value.data.begin(), node.value.data.end(),
                       [](double v) { return v == 1; });
  return node.kind == ir::Kind::apply && node.op->name == "ones";
}

bool is_one_column(const ir::Node& node) {
  return !node.federated() && node.type().rank() > 0 && node.type().dims.back().is_one() &&
         is_ones(node);
}

// What the columns of matrices joined side by side are called; empty when one of them has no names.
Labels joined(const ir::Program& program, const ir::Node& node, const std::vector<Labels>& names) {
  Labels labels;
  for (const ir::NodeId part : node.args) {
    const bool ones = is_one_column(program.graph[part]);
    if (!ones && names[part].empty()) return {};
    if (ones) labels.emplace_back(intercept);
    labels.insert(labels.end(), names[part].begin(), names[part].end());
  }
  return labels;
}

// One mark for each axis, set where entries are numbered.
using Marks = std::vector<char>;

// Finds marks by following values from operation to operation.
class Numbering {
 public:
  explicit Numbering(const ir::Program& program) : program_(program), marks_(program.graph.size()) {
    // A state has the marks of its first value and, known a pass later, of the next.
    for (int pass = 0; pass < 3; ++pass) {
      for (ir::NodeId id = 0; id < program.graph.size(); ++id) marks_[id] = find(program.graph[id]);
    }
  }

  const Marks& of(ir::NodeId id) const { return marks_[id].front(); }

 private:
  using All = std::vector<Marks>;  // one for each result

  All find(const ir::Node& node) const {
    switch (node.kind) {
      case ir::Kind::variable:
        return marks_[node.args[0]];
      case ir::Kind::project:
        return {marks_[node.args[0]][node.index]};
      case ir::Kind::loop_param:
      case ir::Kind::loop_result: {
        const ir::Carried& state = program_.loops[node.index].carried[node.slot];
        return {either(at(state.init, node), at(state.next, node))};
      }
      case ir::Kind::apply:
        return apply(node);
      default:
        return {Marks(node.type().rank())};
    }
  }

  // What is known of a node by now; a later one has no marks yet.
  Marks at(ir::NodeId id, const ir::Node& like) const {
    return id == ir::no_node || marks_[id].empty() ? Marks(like.type().rank()) : of(id);
  }

  static Marks either(Marks a, const Marks& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] | b[i];
    return a;
  }

  All apply(const ir::Node& node) const {
    const std::string& name = node.op->name;
    const Marks& first = node.args.empty() ? none_ : of(node.args[0]);
    if (name == "eigh") return {{1}, {first[0], 1}};
    if (name == "svd") return {{first[0], 1}, {1}, {first[1], 1}};
    if (name == "qr") return {{first[0], 1}, {1, first[1]}};
    if (name == "sort") return {sorted(first)};
    if (name == "[e]") return {looked_up(node, first)};
    if (name == "[:]") return {sliced(first, node.attrs.slices)};
    if (name == "records") return {{}};
    switch (node.op->family) {
      case Family::unary:
      case Family::binary:
      case Family::comparison:
        return {elementwise(node)};
      case Family::aggregation:
        return {without(first, node.attrs.axes)};
      case Family::permutation:
        return {permuted(first, node.attrs.axes)};
      case Family::matmul:
        return {product(node)};
      default:
        return anything(node);
    }
  }

  static Marks sorted(Marks marks) {
    if (!marks.empty()) marks.back() = 1;
    return marks;
  }

  // Places chosen one by one, then the table's other axes.
  static Marks looked_up(const ir::Node& node, const Marks& table) {
    Marks marks(node.type().rank(), 1);
    std::copy_backward(table.begin() + 1, table.end(), marks.end());
    return marks;
  }

  static Marks sliced(const Marks& marks, const std::vector<Slice>& slices) {
    Marks result;
    std::size_t at = 0;
    for (const Slice& slice : slices) {
      if (slice.kind == Slice::Kind::new_axis) {
        result.push_back(0);
      } else if (slice.kind == Slice::Kind::index) {
        ++at;
      } else {
        result.push_back(marks[at++]);
      }
    }
    result.insert(result.end(), marks.begin() + static_cast<std::ptrdiff_t>(at), marks.end());
    return result;
  }

  Marks elementwise(const ir::Node& node) const {
    Marks marks(node.type().rank());
    for (const ir::NodeId arg : node.args) {
      const Marks& own = of(arg);
      const std::size_t skip = marks.size() - own.size();
      for (std::size_t i = 0; i < own.size(); ++i) marks[skip + i] |= own[i];
    }
    return marks;
  }

  static Marks without(const Marks& marks, const std::vector<std::int64_t>& axes) {
    Marks rest;
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) == axes.end())
        rest.push_back(marks[i]);
    }
    return rest;
  }

  static Marks permuted(const Marks& marks, const std::vector<std::int64_t>& axes) {
    Marks result;
    for (const std::int64_t axis : axes) result.push_back(marks[static_cast<std::size_t>(axis)]);
    return result;
  }

  Marks product(const ir::Node& node) const {
    const Marks& a = of(node.args[0]);
    const Marks& b = of(node.args[1]);
    Marks marks(node.type().rank());
    const bool column = b.size() > 1;  // the result's last axis is b's, and a's rows are before it
    if (column && !marks.empty()) marks.back() |= b.back();
    if (a.size() > 1 && marks.size() > (column ? 1U : 0U))
      marks[marks.size() - (column ? 2 : 1)] |= a[a.size() - 2];
    return marks;
  }

  // Of other operations nothing is known: a mark anywhere is a mark everywhere.
  All anything(const ir::Node& node) const {
    const bool any = std::any_of(node.args.begin(), node.args.end(), [&](ir::NodeId arg) {
      const Marks& own = of(arg);
      return std::find(own.begin(), own.end(), 1) != own.end();
    });
    All all;
    for (const Type& type : node.types) all.emplace_back(type.rank(), any ? 1 : 0);
    return all;
  }

  const ir::Program& program_;
  std::vector<All> marks_;
  Marks none_;
};

}  // namespace

AxisNames axis_names(const ir::Program& program,
                     const std::map<std::string, std::vector<std::string>>& columns) {
  std::vector<Labels> names(program.graph.size());  // of each federated matrix' columns
  for (const ir::Input& input : program.inputs) {
    const auto own = columns.find(input.name);
    if (own != columns.end() && input.type.federated() && input.type.rank() == 2)
      names[input.node] = own->second;
  }
  AxisNames result;
  std::set<Size> disputed;
  for (ir::NodeId id = 0; id < program.graph.size(); ++id) {
    const ir::Node& node = program.graph[id];
    if (node.kind == ir::Kind::apply && node.op->name == "concat" && node.federated() &&
        node.type().rank() == 2)
      names[id] = joined(program, node, names);
    if (names[id].empty() || width_of(node.type()).is_constant()) continue;
    const auto [known, fresh] = result.emplace(width_of(node.type()), names[id]);
    if (!fresh && known->second != names[id]) disputed.insert(known->first);
  }
  for (const Size& size : disputed) result.erase(size);
  return result;
}

std::vector<std::vector<char>> numbered_axes(const ir::Program& program) {
  const Numbering numbering(program);
  std::vector<std::vector<char>> result;
  for (const ir::Output& output : program.outputs) result.push_back(numbering.of(output.node));
  return result;
}

}  // namespace starfold::page
