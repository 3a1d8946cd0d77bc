// Expressions (def:expressions, def:typing-judgment).
#include <fmt/format.h>

#include <algorithm>

#include "starfold/check/checker.h"

namespace starfold {

std::string Checker::text(Span span) const {
  std::string out;
  constexpr std::size_t longest = 60;  // messages quote, they do not repeat the program
  bool blank = false;
  for (const char c : sources_.text(span)) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      blank = !out.empty();
      continue;
    }
    if (blank) out += ' ';
    blank = false;
    out += c;
    if (out.size() > longest) return out.substr(0, longest - 3) + "...";
  }
  return out;
}

void Checker::report(Diagnostic diagnostic) {
  if (frames_.size() > 1 && !defining_) diagnostic.others.push_back({frame().call, "in this call"});
  diagnostics_.report(std::move(diagnostic));
}

ir::Node Checker::make_node(ir::Kind kind, Type type, Span span) const {
  ir::Node node;
  node.kind = kind;
  node.types = {std::move(type)};
  node.span = span;
  return node;
}

ir::NodeId Checker::constant(Tensor value, Span span) {
  std::vector<Size> sizes(value.shape.begin(), value.shape.end());
  ir::Node node = make_node(ir::Kind::constant, Type::shared(std::move(sizes)), span);
  node.value = std::move(value);
  return program_.graph.add(std::move(node));
}

Value Checker::expression(const ast::Expr& expr) {
  if (frame().function && ++inlined_expressions_ > max_inlined_expressions) return {};
  switch (expr.kind) {
    case ast::ExprKind::number:
      return {constant(Tensor::scalar(expr.number), expr.span)};
    case ast::ExprKind::name:
      return name(expr);
    case ast::ExprKind::unary:
      return unary(expr);
    case ast::ExprKind::binary: {
      const std::optional<std::vector<ir::NodeId>> args = singles(expr.args, 2);
      if (!args) return {};
      const Op* op = options_.signature->find(expr.text, 2, false);
      return apply(*op, *args, {expr.args[0].get(), expr.args[1].get()}, expr.span);
    }
    case ast::ExprKind::call:
      return call(expr);
    case ast::ExprKind::index:
      return index(expr);
    case ast::ExprKind::transpose:
      return transpose(expr);
    case ast::ExprKind::list:
      return list(expr);
    case ast::ExprKind::tuple: {
      const std::optional<std::vector<ir::NodeId>> parts = singles(expr.args, expr.args.size());
      return parts ? *parts : Value{};
    }
    case ast::ExprKind::invalid:
      return {};
  }
  return {};
}

std::optional<ir::NodeId> Checker::single(const ast::Expr& expr) {
  const Value value = expression(expr);
  if (value.empty()) return std::nullopt;
  if (value.size() == 1) return value[0];
  report({Code::NotAValue,
          fmt::format("{} results are used as one value", value.size()),
          {expr.span, "several results"},
          {},
          "",
          "bind them first: `let (a, b) = ...`"});
  return std::nullopt;
}

std::optional<std::vector<ir::NodeId>> Checker::singles(const std::vector<ast::ExprPtr>& args, std::size_t count) {
  std::vector<ir::NodeId> nodes;
  bool ok = true;
  for (std::size_t i = 0; i < count && i < args.size(); ++i) {
    const std::optional<ir::NodeId> node = single(*args[i]);
    if (node) nodes.push_back(*node);
    ok = ok && node;
  }
  return ok ? std::optional(nodes) : std::nullopt;
}

std::optional<ir::NodeId> Checker::shared_scalar(const ast::Expr& expr, const char* what) {
  const std::optional<ir::NodeId> node = single(expr);
  if (!node || type(*node).is_scalar()) return node;
  const Type& actual = type(*node);
  report({actual.federated() ? Code::FederatedScalar : Code::NotAScalar,
          fmt::format("{} must be a single shared number, not {}", what, actual.to_string()),
          {expr.span, fmt::format("this is {}", actual.to_string())},
          {},
          "",
          actual.federated() ? fmt::format("fold it first, for example `mean[*]({})`", text(expr.span))
                             : fmt::format("fold it first, for example `max({})`", text(expr.span))});
  return std::nullopt;
}

Value Checker::name(const ast::Expr& expr) {
  if (Binding* binding = find(expr.text)) {
    binding->used = true;
    switch (binding->kind) {
      case Binding::Kind::value:
      case Binding::Kind::state:
        return {binding->node};
      case Binding::Kind::broken:
        return {};
      case Binding::Kind::size:
        break;
    }
  }
  const std::optional<Size> size = size_of_name(expr, false, TypeUse::annotation);
  if (!size) {
    unknown_name(expr.text, expr.span);
    return {};
  }
  // A size variable used as a shared scalar.
  ir::Node node = make_node(ir::Kind::size, Type::scalar(), expr.span);
  node.size = *size;
  return {program_.graph.add(std::move(node))};
}

Value Checker::unary(const ast::Expr& expr) {
  const std::optional<ir::NodeId> operand = single(*expr.args[0]);
  if (!operand) return {};
  const ir::Node& node = program_.graph[*operand];
  if (expr.text == "-" && node.kind == ir::Kind::constant && node.type().is_scalar()) {
    return {constant(Tensor::scalar(-node.value.item()), expr.span)};
  }
  return apply(*options_.signature->find(expr.text, 1, false), {*operand}, {expr.args[0].get()}, expr.span);
}

namespace {

// The numbers of a literal made of numbers only; nullopt when it holds anything else or is ragged.
std::optional<Tensor> literal(const ast::Expr& expr) {
  if (expr.kind == ast::ExprKind::number) return Tensor::scalar(expr.number);
  if (expr.kind == ast::ExprKind::unary && expr.text == "-" && expr.args[0]->kind == ast::ExprKind::number) {
    return Tensor::scalar(-expr.args[0]->number);
  }
  if (expr.kind != ast::ExprKind::list || expr.args.empty()) return std::nullopt;
  Tensor whole;
  whole.data.clear();
  for (const ast::ExprPtr& arg : expr.args) {
    std::optional<Tensor> part = literal(*arg);
    if (!part || (arg != expr.args.front() && part->shape != whole.shape)) return std::nullopt;
    whole.shape = part->shape;
    whole.data.insert(whole.data.end(), part->data.begin(), part->data.end());
  }
  whole.shape.insert(whole.shape.begin(), static_cast<std::int64_t>(expr.args.size()));
  return whole;
}

std::vector<const ast::Expr*> pointers(const std::vector<ast::ExprPtr>& args) {
  std::vector<const ast::Expr*> result;
  for (const ast::ExprPtr& arg : args) result.push_back(arg.get());
  return result;
}

}  // namespace

Value Checker::list(const ast::Expr& expr) {
  if (expr.args.empty()) {
    report({Code::RaggedLiteral, "a literal needs at least one element", {expr.span, "empty"}, {}, "", ""});
    return {};
  }
  if (std::optional<Tensor> value = literal(expr)) return {constant(std::move(*value), expr.span)};
  const std::optional<std::vector<ir::NodeId>> args = singles(expr.args, expr.args.size());
  if (!args) return {};
  return apply(*options_.signature->find("[,]"), *args, pointers(expr.args), expr.span);
}

Value Checker::transpose(const ast::Expr& expr) {
  const std::optional<ir::NodeId> operand = single(*expr.args[0]);
  if (!operand) return {};
  const Type& of = type(*operand);
  if (of.rank() != 2) {
    report({Code::WrongRank,
            fmt::format("`'` transposes a matrix, not {}", of.to_string()),
            {expr.span, fmt::format("{} has {}", of.to_string(), of.rank() == 1 ? "one axis" : fmt::format("{} axes", of.rank()))},
            {},
            "",
            of.rank() == 1   ? "`@` takes vectors on either side as they are"
            : of.rank() == 0 ? "a number needs no transpose"
                             : "use `permute[...]` to reorder more than two axes"});
    return {};
  }
  std::vector<WrittenAxis> swapped(2);
  swapped[0].number = 2;
  swapped[1].number = 1;
  return apply(*options_.signature->find("permute"), {*operand}, {expr.args[0].get()}, expr.span, {}, swapped);
}

Value Checker::index(const ast::Expr& expr) {
  const std::optional<ir::NodeId> operand = single(*expr.args[0]);
  const bool computed = expr.subscripts.size() == 1 && expr.subscripts[0].kind == ast::Subscript::Kind::index &&
                        !size_of(*expr.subscripts[0].first, false) &&
                        expr.subscripts[0].first->kind != ast::ExprKind::number;
  if (computed) {
    const std::optional<ir::NodeId> indices = single(*expr.subscripts[0].first);
    if (!operand || !indices) return {};
    return apply(*options_.signature->find("[e]"), {*operand, *indices}, {expr.args[0].get(), expr.subscripts[0].first.get()},
                 expr.span);
  }
  Attrs attrs;
  std::vector<Span> spans;
  std::size_t axis = 0;
  for (const ast::Subscript& subscript : expr.subscripts) {
    Slice slice;
    spans.push_back(subscript.span);
    if (subscript.kind == ast::Subscript::Kind::star) {
      report({Code::UnexpectedToken,
              "a star is no index",
              {subscript.span, "stars are written in types and after aggregations"},
              {},
              "",
              "write `:` to keep the record axis"});
      return {};
    }
    if (subscript.kind == ast::Subscript::Kind::new_axis) {
      slice.kind = Slice::Kind::new_axis;
      attrs.slices.push_back(slice);
      continue;
    }
    const bool star = operand && axis < type(*operand).rank() && type(*operand).dims[axis].star;
    const bool missing_axis = operand && axis >= type(*operand).rank();
    ++axis;
    if (subscript.kind != ast::Subscript::Kind::all) {
      slice.kind = subscript.kind == ast::Subscript::Kind::index ? Slice::Kind::index : Slice::Kind::range;
    }
    if (subscript.kind != ast::Subscript::Kind::all && !star && !missing_axis) {
      std::optional<Size> first = Size(1);
      if (subscript.first) first = size_of(*subscript.first, true);
      std::optional<Size> last = first;
      if (subscript.kind == ast::Subscript::Kind::range) {
        last = subscript.last ? size_of(*subscript.last, true) : (operand ? type(*operand).dims[axis - 1].size : Size(1));
      }
      if (!first || !last) return {};
      slice.first = *first;
      slice.last = *last;
    }
    attrs.slices.push_back(std::move(slice));
  }
  if (!operand) return {};
  return apply(*options_.signature->find("[:]"), {*operand}, {expr.args[0].get()}, expr.span, std::move(attrs), std::nullopt,
               std::move(spans));
}

Value Checker::apply(const Op& op, const std::vector<ir::NodeId>& args, const std::vector<const ast::Expr*>& written,
                     Span span, Attrs attrs, std::optional<std::vector<WrittenAxis>> axes, std::vector<Span> slice_spans) {
  Diagnostics found;
  TypeQuery query{op, {}, {}, {}, std::move(axes), std::move(slice_spans), span, std::move(attrs), found, {}};
  for (std::size_t i = 0; i < args.size(); ++i) {
    query.args.push_back(type(args[i]));
    query.arg_spans.push_back(written[i]->span);
    query.arg_texts.push_back(text(written[i]->span));
  }
  query.size_origin = [this](const Size& size) { return size_origin(size); };
  Types types = op.type(query);
  for (const Diagnostic& diagnostic : found.items()) report(diagnostic);
  if (!types) return {};

  // The exposure discipline (prop:exposure-discipline), whatever a row may say: only a record-axis
  // aggregation or a contraction of stars makes a shared value from a federated one.
  const bool takes_federated = std::any_of(query.args.begin(), query.args.end(), [](const Type& t) { return t.federated(); });
  if (takes_federated && op.family != Family::aggregation && op.family != Family::matmul &&
      op.family != Family::differentiation && !types->front().federated()) {
    throw std::logic_error("the typing rule of " + op.name + " drops the record axis");
  }
  if (options_.base) check_base(op, query.args, span);

  ir::Node node;
  node.kind = ir::Kind::apply;
  node.op = &op;
  node.args = args;
  node.attrs = std::move(query.attrs);
  node.types = std::move(*types);
  node.span = span;
  const std::size_t results = node.types.size();
  const std::vector<Type> result_types = node.types;
  const ir::NodeId id = program_.graph.add(std::move(node));
  if (results == 1) return {id};
  Value value;
  for (std::uint32_t i = 0; i < results; ++i) {
    ir::Node part = make_node(ir::Kind::project, result_types[i], span);
    part.args = {id};
    part.index = i;
    value.push_back(program_.graph.add(std::move(part)));
  }
  return value;
}

}  // namespace starfold
