// The IR as text: one line per node, and expressions in the language's own notation.
#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "starfold/ir/ir.h"

namespace starfold::ir {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  // 1e-09 as people write it.
  const std::size_t e = text.find('e');
  if (e != std::string::npos && e + 3 < text.size() && text[e + 2] == '0') text.erase(e + 2, 1);
  return text;
}

std::string constant(const Tensor& tensor) {
  if (tensor.shape.empty()) return number(tensor.item());
  constexpr std::size_t most = 8;
  const auto write = [&](const auto& self, std::size_t axis, std::size_t begin,
                         std::size_t length) -> std::string {
    if (axis == tensor.rank()) return number(tensor.data[begin]);
    const auto extent = static_cast<std::size_t>(tensor.shape[axis]);
    std::string text = "[";
    for (std::size_t i = 0; i < extent; ++i) {
      if (i > 0) text += ", ";
      if (i == most) {
        text += "...";
        break;
      }
      text += self(self, axis + 1, begin + i * (length / extent), length / extent);
    }
    return text + "]";
  };
  return write(write, 0, 0, tensor.data.size());
}

// Binding strength as in the grammar; operands of lower strength need parentheses.
int precedence(const Node& node) {
  if (node.kind == Kind::size) {
    const std::string size = node.size.to_string();
    return size.find(' ') != std::string::npos ? 5 : size.find('*') != std::string::npos ? 6 : 10;
  }
  if (node.kind != Kind::apply) return 10;
  return node.op->binding;
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string expr(NodeId id, int depth, bool top) const {
    const Node& node = program_.graph[id];
    if (!top && goes_by_name(id)) return program_.names.at(id);
    switch (node.kind) {
      case Kind::constant:
        return constant(node.value);
      case Kind::size:
        return node.size.to_string();
      case Kind::input:
        return program_.inputs[node.index].name;
      case Kind::variable:
        return expr(node.args[0], depth, top);
      case Kind::project:
        return fmt::format("{}.{}", expr(node.args[0], depth, true), node.index + 1);
      case Kind::loop_param:
      case Kind::loop_result:
        return program_.loops[node.index].carried[node.slot].name;
      case Kind::local:
        return node.block->batches ? "batches { ... }" : "each client { ... }";
      case Kind::apply:
        return depth <= 0 ? std::string("...") : apply(node, depth);
    }
    return "";
  }

 private:
  bool goes_by_name(NodeId id) const {
    return !is_plain(program_.graph[id]) && program_.names.count(id) != 0;
  }

  std::string operand(NodeId id, int depth, int at_least) const {
    const std::string text = expr(id, depth, false);
    const bool atom = goes_by_name(id) || precedence(program_.graph[id]) >= at_least;
    const bool negative = program_.graph[id].kind == Kind::constant && text[0] == '-';
    return atom && !(negative && at_least > 7) ? text : "(" + text + ")";
  }

  std::string axes(const Node& node) const {
    if (node.attrs.axes.empty() || node.op->axes == Op::Axes::none) return "";
    std::string text = "[";
    const Type& folded = program_.graph[node.args[0]].type();
    const std::optional<std::size_t> star = folded.record_axis();
    if (node.op->family == Family::aggregation && !star && node.attrs.axes.size() == folded.rank())
      return "";
    for (const std::int64_t axis : node.attrs.axes) {
      if (text.size() > 1) text += ",";
      const bool is_star =
          star && static_cast<std::size_t>(axis) == *star && node.op->family == Family::aggregation;
      text += is_star ? "*" : std::to_string(axis + 1);
    }
    return text + "]";
  }

  std::string slices(const Node& node) const {
    std::string text;
    for (const Slice& slice : node.attrs.slices) {
      if (!text.empty()) text += ", ";
      switch (slice.kind) {
        case Slice::Kind::all:
          text += ":";
          break;
        case Slice::Kind::index:
          text += slice.first.to_string();
          break;
        case Slice::Kind::range:
          text += slice.first.to_string() + ":" + slice.last.to_string();
          break;
        case Slice::Kind::new_axis:
          text += "new";
          break;
      }
    }
    return "[" + text + "]";
  }

  // What binds more tightly than a sign stands close, and groups to the right.
  std::string infix(const Node& node, int depth) const {
    const int own = node.op->binding;
    const bool power = own > 7;
    const char* space = power ? "" : " ";
    return operand(node.args[0], depth - 1, own + (power ? 1 : 0)) + space + node.op->name + space +
           operand(node.args[1], depth - 1, own + (power ? 0 : 1));
  }

  std::string operands(const Node& node, int depth) const {
    std::string text;
    for (const NodeId arg : node.args)
      text += (text.empty() ? "" : ", ") + expr(arg, depth - 1, false);
    return text;
  }

  std::string apply(const Node& node, int depth) const {
    const std::string& name = node.op->name;
    const int own = node.op->binding;
    const auto first = [&](int at_least) { return operand(node.args[0], depth - 1, at_least); };
    switch (node.op->notation) {
      case Notation::infix:
        return infix(node, depth);
      case Notation::prefix:
        return name + (std::isalpha(name.back()) != 0 ? " " : "") + first(own);
      case Notation::slices:
        return first(10) + slices(node);
      case Notation::lookup:
        return first(10) + "[" + expr(node.args[1], depth - 1, false) + "]";
      case Notation::transpose:
        if (node.attrs.axes == std::vector<std::int64_t>{1, 0}) return first(10) + "'";
        break;
      case Notation::list:
        return "[" + operands(node, depth) + "]";
      case Notation::call:
        break;
    }
    std::string inside = operands(node, depth);
    for (const Size& size : node.attrs.sizes)
      inside += (inside.empty() ? "" : ", ") + size.to_string();
    return name + axes(node) + "(" + inside + ")";
  }

  const Program& program_;
};

}  // namespace

bool is_plain(const Node& node) {
  return node.kind == Kind::size || (node.kind == Kind::constant && node.value.shape.empty()) ||
         (node.kind == Kind::apply && node.args.empty());
}

std::string print_expr(const Program& program, NodeId id, int depth) {
  return Printer(program).expr(id, depth, true);
}

namespace {

// The kind of a node, and what tells it from others of its kind.
std::string what_it_is(const Program& program, const Node& node) {
  switch (node.kind) {
    case Kind::constant: {
      std::string text = "constant";
      for (const double value : node.value.data) text += fmt::format(" {:a}", value);
      return text;
    }
    case Kind::size:
      return "size " + node.size.to_string();
    case Kind::input:
      return "input " + program.inputs[node.index].name;
    case Kind::apply:
      return node.op->name;
    case Kind::project:
      return fmt::format("project {}", node.index);
    case Kind::variable:
      return fmt::format("variable {}", node.index);
    case Kind::loop_param:
      return fmt::format("param {}.{}", node.index, node.slot);
    case Kind::loop_result:
      return fmt::format("result {}.{}", node.index, node.slot);
    case Kind::local:
      return node.block->batches ? "batches of *" + node.block->record_set : "each client";
  }
  return "";
}

std::string print_node(const Program& program, NodeId id) {
  const Node& node = program.graph[id];
  std::string text = fmt::format("%{} = {}", id, what_it_is(program, node));
  for (const std::int64_t axis : node.attrs.axes) text += fmt::format(" axis{}", axis + 1);
  for (const Size& size : node.attrs.sizes) text += fmt::format(" <{}>", size.to_string());
  for (const Slice& slice : node.attrs.slices) {
    text += fmt::format(" slice{}({},{})", static_cast<int>(slice.kind), slice.first.to_string(),
                        slice.last.to_string());
  }
  for (const NodeId arg : node.args) text += fmt::format(" %{}", arg);
  for (const Type& type : node.types) text += " : " + type.to_string();
  return text;
}

// The body of a block under its node.
std::string indented(const std::string& lines) {
  std::string text;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at) + 1;
    text += "  | " + lines.substr(at, end - at);
    at = end;
  }
  return text;
}

std::string print_loop(const Program& program, LoopId id) {
  const Loop& loop = program.loops[id];
  std::string text = fmt::format("loop {} count %{}", id, loop.count);
  for (const Carried& carried : loop.carried) {
    text += fmt::format(" ({}: %{} -> %{} = %{})", carried.name, carried.init, carried.param,
                        carried.next);
  }
  if (loop.until != no_node) text += fmt::format(" until %{}", loop.until);
  return text;
}

}  // namespace

std::string print(const Program& program, bool names) {
  std::string text;
  for (const SizeVariable& size : program.sizes) {
    text +=
        fmt::format("size {}{}\n", size.name, size.value ? fmt::format(" = {}", *size.value) : "");
  }
  for (const Input& input : program.inputs) {
    text += fmt::format("input {} : {}", input.name, input.type.to_string());
    text += input.fallback == no_node ? "\n" : fmt::format(" = %{}\n", input.fallback);
  }
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    text += print_node(program, id);
    const auto name = program.names.find(id);
    if (names && name != program.names.end()) text += "  # " + name->second;
    text += "\n";
    if (program.graph[id].block) text += indented(print(program.graph[id].block->body, names));
  }
  for (LoopId id = 0; id < program.loops.size(); ++id) text += print_loop(program, id) + "\n";
  for (const Trace& trace : program.traces) {
    const std::string what = trace.kind == Trace::Kind::record ? "trace " + trace.name
                             : trace.kind == Trace::Kind::expect
                                 ? fmt::format("expect \"{}\"", trace.sentence)
                                 : fmt::format("require \"{}\"", trace.sentence);
    text += fmt::format("{} %{}{}\n", what, trace.node,
                        trace.loop == no_loop ? "" : fmt::format(" loop {}", trace.loop));
  }
  for (const Output& output : program.outputs)
    text += fmt::format("output {} %{}\n", output.name, output.node);
  for (const Output& keep : program.keeps)
    text += fmt::format("keep {} %{}\n", keep.name, keep.node);
  return text;
}

}  // namespace starfold::ir
