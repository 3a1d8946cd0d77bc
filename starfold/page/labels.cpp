#include "starfold/page/labels.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace starfold::page {
namespace {

using ir::Kind;
using ir::NodeId;

// What is known of the entries along one axis.
struct Axis {
  bool numbered = false;  // in an order of their own: the names of columns would mislead
  Labels labels;          // empty: unknown
  bool partly = false;    // just joined from entries with names and others without

  static Axis in_own_order() { return {true, {}, false}; }
  // Both are true of the same entries.
  void join(const Axis& other) {
    const bool differ = !labels.empty() && !other.labels.empty() && labels != other.labels;
    if (numbered || other.numbered || differ) {
      *this = in_own_order();
    } else if (labels.empty()) {
      labels = other.labels;
    }
  }
};
using Axes = std::vector<Axis>;

bool is_ones(const ir::Node& node) {
  if (node.kind == Kind::constant)
    return std::all_of(node.value.data.begin(), node.value.data.end(),
                       [](double v) { return v == 1; });
  return node.kind == Kind::apply && node.op->fill == 1;
}

// Follows names from operation to operation.
class Names {
 public:
  Names(const ir::Program& program, const std::map<std::string, std::vector<std::string>>& columns,
        const SizeValues& sizes)
      : program_(program), columns_(columns), sizes_(sizes), axes_(program.graph.size()) {
    // A state has the names of its first value and, known a pass later, of the next.
    for (int pass = 0; pass < 3; ++pass) {
      for (NodeId id = 0; id < program.graph.size(); ++id) axes_[id] = find(program.graph[id]);
    }
  }

  const Axes& of(NodeId id) const { return axes_[id].front(); }

 private:
  using All = std::vector<Axes>;  // one for each result

  All find(const ir::Node& node) const {
    switch (node.kind) {
      case Kind::input:
        return {of_input(program_.inputs[node.index])};
      case Kind::variable:
        return axes_[node.args[0]];
      case Kind::project:
        return {axes_[node.args[0]][node.index]};
      case Kind::loop_param:
      case Kind::loop_result: {
        const ir::Carried& state = program_.loops[node.index].carried[node.slot];
        Axes axes = known(state.init, node);
        const Axes next = known(state.next, node);
        for (std::size_t i = 0; i < axes.size(); ++i) axes[i].join(next[i]);
        return {std::move(axes)};
      }
      case Kind::apply:
        return apply(node);
      default: {
        All all;
        for (const Type& type : node.types) all.emplace_back(type.rank());
        return all;
      }
    }
  }

  // What is known of a node by now; nothing yet of a later one.
  Axes known(NodeId id, const ir::Node& like) const {
    return id == ir::no_node || axes_[id].empty() ? Axes(like.type().rank()) : of(id);
  }

  // A matrix of records has the columns of the table beside its star.
  Axes of_input(const ir::Input& input) const {
    Axes axes(input.type.rank());
    const auto own = columns_.find(input.name);
    if (own != columns_.end() && input.type.federated() && axes.size() == 2)
      axes[1 - *input.type.record_axis()].labels = own->second;
    return axes;
  }

  All apply(const ir::Node& node) const {
    const Axes& first = node.args.empty() ? none_ : of(node.args[0]);
    switch (node.op->naming) {
      case Naming::usual:
        return by_family(node, first);
      case Naming::none:
        return {{}};
      case Naming::listed:
        return listed(first, node.op->named_as);
      case Naming::sorted:
        return {sorted(first)};
      case Naming::lookup:
        return {looked_up(node, first)};
      case Naming::slices:
        return {sliced(first, node.attrs.slices)};
      case Naming::joined:
        return {joined(node)};
      case Naming::variables:
        return {{variables(node, 0), variables(node, node.args.size() - 1)}};
    }
    return {};
  }

  All by_family(const ir::Node& node, const Axes& first) const {
    if (node.op->family == Family::aggregation) return {without(first, node.attrs.axes)};
    if (node.op->family == Family::permutation) return {permuted(first, node.attrs.axes)};
    if (node.op->family == Family::matmul) return {product(node)};
    return broadcasts(node) ? All{aligned(node)} : by_size(node);
  }

  static All listed(const Axes& first, const std::vector<std::vector<int>>& named_as) {
    All all;
    for (const std::vector<int>& result : named_as) {
      all.emplace_back();
      for (const int axis : result)
        all.back().push_back(axis < 0 ? Axis::in_own_order()
                                      : first[static_cast<std::size_t>(axis)]);
    }
    return all;
  }

  // The axis of a covariance's operand that is not folded.
  Axis variables(const ir::Node& cov, std::size_t operand) const {
    const std::optional<std::size_t> star = program_.graph[cov.args[operand]].type().record_axis();
    return of(cov.args[operand])[1 - (star ? *star : static_cast<std::size_t>(cov.attrs.axes[0]))];
  }

  static Axes sorted(Axes axes) {
    if (!axes.empty()) axes.back() = Axis::in_own_order();
    return axes;
  }

  // Places chosen one by one, then the table's other axes.
  Axes looked_up(const ir::Node& node, const Axes& table) const {
    Axes axes(node.type().rank(), Axis::in_own_order());
    std::copy_backward(table.begin() + 1, table.end(), axes.end());
    const std::optional<Labels> chosen = chosen_labels(program_.graph[node.args[1]], table[0]);
    if (chosen && axes.size() == table.size()) axes[0] = {false, *chosen, false};
    return axes;
  }

  // The names at places that are written in the program.
  std::optional<Labels> chosen_labels(const ir::Node& places, const Axis& table) const {
    std::vector<double> numbers;
    if (places.kind == Kind::constant) numbers = places.value.data;
    if (places.kind == Kind::apply && places.op->notation == Notation::list) {
      for (const NodeId arg : places.args) {
        const ir::Node& place = program_.graph[arg];
        if (place.kind != Kind::constant || place.value.data.size() != 1) return std::nullopt;
        numbers.push_back(place.value.data[0]);
      }
    }
    Labels chosen;
    for (const double number : numbers) {
      if (!(number >= 1 && number <= static_cast<double>(table.labels.size())) ||
          number != std::floor(number))
        return std::nullopt;
      chosen.push_back(table.labels[static_cast<std::size_t>(number) - 1]);
    }
    return chosen.empty() ? std::nullopt : std::optional(chosen);
  }

  Axes sliced(const Axes& axes, const std::vector<Slice>& slices) const {
    Axes result;
    std::size_t at = 0;
    for (const Slice& slice : slices) {
      if (slice.kind == Slice::Kind::new_axis) {
        result.emplace_back();
      } else if (slice.kind == Slice::Kind::index) {
        ++at;
      } else {
        result.push_back(slice.kind == Slice::Kind::all ? axes[at] : part(axes[at], slice));
        ++at;
      }
    }
    result.insert(result.end(), axes.begin() + static_cast<std::ptrdiff_t>(at), axes.end());
    return result;
  }

  // Some entries of an axis. Their number may be the size of another one, whose names named entries must
  // not get.
  Axis part(const Axis& axis, const Slice& slice) const {
    if (axis.numbered || axis.labels.empty()) return axis;
    const std::optional<std::int64_t> first = slice.first.evaluate(sizes_);
    const std::optional<std::int64_t> last = slice.last.evaluate(sizes_);
    const auto count = static_cast<std::int64_t>(axis.labels.size());
    if (!first || !last || *first < 1 || *last > count || *first > *last)
      return Axis::in_own_order();
    return {false, Labels(axis.labels.begin() + (*first - 1), axis.labels.begin() + *last), false};
  }

  // Matrices side by side; a column of ones is the intercept.
  Axes joined(const ir::Node& node) const {
    const auto at = static_cast<std::size_t>(node.attrs.axes.front());
    const std::size_t rank = node.type().rank();
    const std::optional<std::size_t> star = node.type().record_axis();
    Axes axes(rank);
    bool complete = true;
    for (const NodeId arg : node.args) {
      const Axes& own = of(arg);
      for (std::size_t k = 0, i = 0; i < rank; ++i) {
        if (own.size() < rank && i == star)
          continue;  // a shared operand, repeated for every record
        const Axis& axis = own[k++];
        if (i != at) {
          axes[i].join(axis);
          continue;
        }
        const ir::Node& part = program_.graph[arg];
        const bool single = part.type().dims[k - 1].is_one() && axis.labels.empty();
        const bool ones = single && is_ones(part);
        if (ones) axes[at].labels.emplace_back(intercept);
        if (const std::optional<std::string> column = single ? column_itself(part) : std::nullopt) {
          axes[at].labels.push_back(*column);
          continue;
        }
        axes[at].labels.insert(axes[at].labels.end(), axis.labels.begin(), axis.labels.end());
        axes[at].numbered = axes[at].numbered || axis.numbered;
        complete = complete && (ones || !axis.labels.empty());
      }
    }
    if (axes[at].numbered) axes[at] = Axis::in_own_order();
    if (!complete) axes[at] = {axes[at].numbered, {}, !axes[at].labels.empty()};
    return axes;
  }

  // The name of the column that a node is, as it stands in `concat[2](x, y[:, new])`.
  std::optional<std::string> column_itself(const ir::Node& node) const {
    const bool same = node.kind == Kind::variable ||
                      (node.kind == Kind::apply && node.op->naming == Naming::slices);
    if (same) return column_itself(program_.graph[node.args[0]]);
    if (node.kind != Kind::input) return std::nullopt;
    const ir::Input& input = program_.inputs[node.index];
    if (!input.type.federated() || input.type.rank() != 1) return std::nullopt;
    const auto own = columns_.find(input.name);
    return own != columns_.end() && own->second.size() == 1 ? own->second.front() : input.name;
  }

  static Axes without(const Axes& axes, const std::vector<std::int64_t>& folded) {
    Axes rest;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (std::find(folded.begin(), folded.end(), static_cast<std::int64_t>(i)) == folded.end())
        rest.push_back(axes[i]);
    }
    return rest;
  }

  static Axes permuted(const Axes& axes, const std::vector<std::int64_t>& order) {
    Axes result;
    for (const std::int64_t axis : order) result.push_back(axes[static_cast<std::size_t>(axis)]);
    return result;
  }

  Axes product(const ir::Node& node) const {
    const Axes& a = of(node.args[0]);
    const Axes& b = of(node.args[1]);
    Axes axes(node.type().rank());
    const bool column = b.size() > 1;  // the result's last axis is b's, and a's rows are before it
    if (column && !axes.empty()) axes.back() = b.back();
    if (a.size() > 1 && axes.size() > (column ? 1U : 0U))
      axes[axes.size() - (column ? 2 : 1)] = a[a.size() - 2];
    return axes;
  }

  // Whether the result has the shape that its operands have together: then its entries are theirs.
  bool broadcasts(const ir::Node& node) const {
    if (node.args.empty() || node.types.size() > 1) return false;
    Type type = program_.graph[node.args[0]].type();
    for (const NodeId arg : node.args) {
      const Broadcast both = broadcast(type, program_.graph[arg].type());
      if (both.clash != Clash::none) return false;
      type = both.type;
    }
    return type == node.type();
  }

  Axes aligned(const ir::Node& node) const {
    Axes axes(node.type().rank());
    for (const NodeId arg : node.args) {
      const Axes& own = of(arg);
      const std::vector<Dim>& dims = program_.graph[arg].type().dims;
      const std::size_t skip = axes.size() - own.size();
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (dims[i] == node.type().dims[skip + i]) axes[skip + i].join(own[i]);
      }
    }
    return axes;
  }

  // Of other operations nothing is known. A disorder anywhere is one everywhere; names are those of the
  // operands' axes of the same size, when all of these have the same.
  All by_size(const ir::Node& node) const {
    bool disorder = false;
    for (const NodeId arg : node.args) {
      for (const Axis& axis : of(arg)) disorder = disorder || axis.numbered;
    }
    All all;
    for (const Type& type : node.types) {
      all.emplace_back();
      for (const Dim& dim : type.dims) {
        all.back().push_back(disorder ? Axis::in_own_order()
                                      : Axis{false, common(node, dim), false});
      }
    }
    return all;
  }

  Labels common(const ir::Node& node, const Dim& dim) const {
    std::set<Labels> found;
    for (const NodeId arg : node.args) {
      const std::vector<Dim>& dims = program_.graph[arg].type().dims;
      for (std::size_t i = 0; i < dims.size(); ++i) {
        if (!dim.star && dims[i] == dim) found.insert(of(arg)[i].labels);
      }
    }
    return found.size() == 1 ? *found.begin() : Labels();
  }

  const ir::Program& program_;
  const std::map<std::string, std::vector<std::string>>& columns_;
  const SizeValues& sizes_;
  std::vector<All> axes_;
  Axes none_;
};

// What entries along a size are called: the columns of the inputs that have this size, also with others
// joined to them. Sizes that different columns share have no names.
std::map<Size, Labels> names_by_size(const ir::Program& program, const Names& names) {
  std::map<Size, Labels> result;
  std::set<Size> disputed;
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    const ir::Node& node = program.graph[id];
    const bool origin =
        node.kind == Kind::input || (node.kind == Kind::apply && node.op->naming == Naming::joined);
    for (std::size_t i = 0; origin && i < node.type().rank(); ++i) {
      const Dim& dim = node.type().dims[i];
      const Labels& labels = names.of(id)[i].labels;
      if (names.of(id)[i].partly) disputed.insert(dim.size);
      if (labels.empty() || dim.star || dim.size.is_constant()) continue;
      const auto [known, fresh] = result.emplace(dim.size, labels);
      if (!fresh && known->second != labels) disputed.insert(dim.size);
    }
  }
  for (const Size& size : disputed) result.erase(size);
  return result;
}

// The names along each axis of a node.
std::vector<Labels> labels_of(const ir::Program& program, NodeId id, const Names& names,
                              const std::map<Size, Labels>& by_size) {
  std::vector<Labels> result;
  const Axes& axes = names.of(id);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto fallback = by_size.find(program.graph[id].type().dims[i].size);
    const bool unknown = !axes[i].numbered && axes[i].labels.empty();
    result.push_back(unknown && fallback != by_size.end() ? fallback->second : axes[i].labels);
  }
  return result;
}

}  // namespace

OutputLabels output_labels(const ir::Program& program,
                           const std::map<std::string, std::vector<std::string>>& columns,
                           const SizeValues& sizes) {
  const Names names(program, columns, sizes);
  const std::map<Size, Labels> by_size = names_by_size(program, names);
  OutputLabels result;
  for (const ir::Output& output : program.outputs)
    result.push_back(labels_of(program, output.node, names, by_size));
  return result;
}

Labels condition_labels(const ir::Program& program, std::size_t place,
                        const std::map<std::string, std::vector<std::string>>& columns,
                        const SizeValues& sizes) {
  const Names names(program, columns, sizes);
  std::vector<Labels> axes =
      labels_of(program, program.traces[place].node, names, names_by_size(program, names));
  return axes.empty() ? Labels() : std::move(axes.front());
}

}  // namespace starfold::page
