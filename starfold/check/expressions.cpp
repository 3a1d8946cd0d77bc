// Expressions (def:expressions, def:typing-judgment).
#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/check/checker.h"
#include "starfold/signature/typing.h"

namespace starfold {

// The text of a piece of the program for a message: on one line, without comments, not too long.
std::string Checker::text(Span span) const {
  constexpr std::size_t longest = 60;  // messages quote, they do not repeat the program
  std::string out;
  bool blank = false;
  bool comment = false;
  for (const char c : sources_.text(span)) {
    if (c == '#') comment = true;
    if (c == '\n') comment = false;
    if (comment || c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      blank = !out.empty();
      continue;
    }
    if (out.size() >= longest) return out + "...";
    if (blank) out += ' ';
    blank = false;
    out += c;
  }
  return out;
}

void Checker::report(Diagnostic diagnostic) {
  if (frames_.size() > 1 && !defining_) {
    // A mistake that only this call makes: name it, and the call of the user's that leads to it.
    const Span innermost = frame().call;
    const Span outermost = frames_[std::min(definition_at_ + 1, frames_.size() - 1)].call;
    diagnostic.others.push_back({innermost, "in this call"});
    if (!(outermost == innermost))
      diagnostic.others.push_back({outermost, "reached from this call"});
  }
  diagnostics_.report(std::move(diagnostic));
}

ir::Node Checker::make_node(ir::Kind kind, Type type, Span span) const {
  ir::Node node;
  node.kind = kind;
  node.types = {std::move(type)};
  node.span = place(span);
  return node;
}

ir::NodeId Checker::constant(Tensor value, Span span) {
  std::vector<Size> sizes(value.shape.begin(), value.shape.end());
  ir::Node node = make_node(ir::Kind::constant, Type::shared(std::move(sizes)), span);
  node.value = std::move(value);
  return program_.graph.add(std::move(node));
}

Value Checker::expression(const ast::Expr& expr) {
  if (given_up()) return {};
  if (frame().function) ++inlined_expressions_;
  if (frames_.size() > 1 && !within_limits()) return {};
  ++depth_;
  Value value = expression_by_kind(expr);
  record_word(expr, value);
  --depth_;
  return value;
}

Value Checker::expression_by_kind(const ast::Expr& expr) {
  switch (expr.kind) {
    case ast::ExprKind::number:
      return {constant(Tensor::scalar(expr.number), expr.span)};
    case ast::ExprKind::name:
      return name(expr);
    case ast::ExprKind::unary:
      return unary(expr);
    case ast::ExprKind::binary: {
      std::optional<std::vector<ir::NodeId>> args = singles(expr.args, 2);
      if (!args) return {};
      const Op* op = options_.signature->find(expr.text, 2, false);
      return apply({*op, std::move(*args), {expr.args[0].get(), expr.args[1].get()}, expr.span});
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
    case ast::ExprKind::each_client:
      return each_client(expr);
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
          {expr.span, fmt::format("{} results", value.size())},
          {},
          "",
          "give each result a name first: `let (a, b) = ...`"});
  return std::nullopt;
}

std::optional<std::vector<ir::NodeId>> Checker::singles(const std::vector<ast::ExprPtr>& args,
                                                        std::size_t count) {
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
          fmt::format("fold it first, for example: {}",
                      typing::fold_to_number(actual, text(expr.span)))});
  return std::nullopt;
}

Value Checker::name(const ast::Expr& expr) {
  if (Binding* binding = find(expr.text)) {
    binding->used = true;
    record_use(expr.span, binding->span);
    switch (binding->kind) {
      case Binding::Kind::value:
      case Binding::Kind::state:
        return {resolve(*binding)};
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
  // A size used as a shared scalar.
  if (size->is_constant())
    return {constant(Tensor::scalar(static_cast<double>(size->constant())), expr.span)};
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
  return apply({*options_.signature->find(expr.text, 1, false),
                {*operand},
                {expr.args[0].get()},
                expr.span});
}

namespace {

// Whether a literal is made of numbers only, nested no deeper than a value can be.
bool is_literal(const ast::Expr& expr, std::size_t depth = 0) {
  if (expr.kind == ast::ExprKind::unary && expr.text == "-")
    return expr.args[0]->kind == ast::ExprKind::number;
  if (expr.kind != ast::ExprKind::list) return expr.kind == ast::ExprKind::number;
  if (depth > max_rank) return false;
  return std::all_of(expr.args.begin(), expr.args.end(),
                     [&](const ast::ExprPtr& arg) { return is_literal(*arg, depth + 1); });
}

// The numbers of a literal; nullopt when it is ragged.
std::optional<Tensor> literal(const ast::Expr& expr) {
  if (expr.kind == ast::ExprKind::number) return Tensor::scalar(expr.number);
  if (expr.kind == ast::ExprKind::unary) return Tensor::scalar(-expr.args[0]->number);
  Tensor whole;
  whole.data.clear();
  for (const ast::ExprPtr& arg : expr.args) {
    const std::optional<Tensor> part = literal(*arg);
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
  if (is_literal(expr)) {
    if (std::optional<Tensor> value = literal(expr)) {
      if (!check_ranks({Type{std::vector<Dim>(value->rank())}}, expr.span)) return {};
      return {constant(std::move(*value), expr.span)};
    }
  }
  std::optional<std::vector<ir::NodeId>> args = singles(expr.args, expr.args.size());
  if (!args) return {};
  return apply(
      {*options_.signature->find("[,]"), std::move(*args), pointers(expr.args), expr.span});
}

Value Checker::transpose(const ast::Expr& expr) {
  const std::optional<ir::NodeId> operand = single(*expr.args[0]);
  if (!operand) return {};
  const Type& of = type(*operand);
  if (of.rank() != 2) {
    report(
        {Code::WrongRank,
         fmt::format("`'` transposes a matrix, not {}", of.to_string()),
         {expr.span, fmt::format("{} has {}", of.to_string(),
                                 of.rank() == 1 ? "one axis" : fmt::format("{} axes", of.rank()))},
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
  return apply({*options_.signature->find("permute"),
                {*operand},
                {expr.args[0].get()},
                expr.span,
                {},
                swapped});
}

// A position along an axis, known before the run.
std::optional<Size> Checker::position(const ast::Expr& expr) {
  if (expr.kind == ast::ExprKind::number || expr.kind == ast::ExprKind::invalid)
    return size_of(expr, true);
  if (std::optional<Size> size = size_of(expr, false)) return size;
  const std::optional<ir::NodeId> node = single(expr);
  if (!node) return std::nullopt;
  report({Code::NotASize,
          fmt::format("the position `{}` is known only during the run", text(expr.span)),
          {expr.span, fmt::format("a value: {}", type(*node).to_string())},
          {},
          "shapes are fixed before anything runs",
          "write a whole number or a size; only `table[e]` looks up computed positions, with "
          "nothing else in the brackets"});
  return std::nullopt;
}

// One position of an index expression; `dim` is the axis it picks from, null when that is not known.
std::optional<Slice> Checker::slice_of(const ast::Subscript& subscript, const Dim* dim) {
  Slice slice;
  if (subscript.kind == ast::Subscript::Kind::all) return slice;
  slice.kind =
      subscript.kind == ast::Subscript::Kind::index ? Slice::Kind::index : Slice::Kind::range;
  std::optional<Size> first = Size(1);
  if (subscript.first) first = position(*subscript.first);
  std::optional<Size> last = first;
  if (slice.kind == Slice::Kind::range)
    last = subscript.last ? position(*subscript.last) : std::optional(Size(1));
  if (slice.kind == Slice::Kind::range && !subscript.last && dim != nullptr && !dim->star)
    last = dim->size;
  if (!first || !last) return std::nullopt;
  slice.first = *first;
  slice.last = *last;
  return slice;
}

Value Checker::index(const ast::Expr& expr) {
  const std::optional<ir::NodeId> operand = single(*expr.args[0]);
  const ast::Subscript& only = expr.subscripts[0];
  const bool computed = expr.subscripts.size() == 1 && only.kind == ast::Subscript::Kind::index &&
                        only.first->kind != ast::ExprKind::number && !size_of(*only.first, false);
  if (computed) {
    const std::optional<ir::NodeId> indices = single(*only.first);
    if (!operand || !indices) return {};
    return apply({*options_.signature->find("[e]"),
                  {*operand, *indices},
                  {expr.args[0].get(), only.first.get()},
                  expr.span});
  }
  Attrs attrs;
  std::vector<Span> spans;
  std::size_t axis = 0;
  bool ok = true;
  for (const ast::Subscript& subscript : expr.subscripts) {
    spans.push_back(subscript.span);
    if (subscript.kind == ast::Subscript::Kind::star) {
      report({Code::InvalidAxes,
              "a star is not an index",
              {subscript.span, "stars stand in types, and in the axes of aggregations"},
              {},
              "",
              "write `:` to keep all records"});
      return {};
    }
    if (subscript.kind == ast::Subscript::Kind::new_axis) {
      attrs.slices.push_back({Slice::Kind::new_axis, {}, {}});
      continue;
    }
    const bool known = operand && axis < type(*operand).rank();
    const Dim dim = known ? type(*operand).dims[axis] : Dim{};
    ++axis;
    const std::optional<Slice> slice = slice_of(subscript, known ? &dim : nullptr);
    ok = ok && slice;
    if (slice) attrs.slices.push_back(*slice);
  }
  if (!operand || !ok) return {};
  return apply({*options_.signature->find("[:]"),
                {*operand},
                {expr.args[0].get()},
                expr.span,
                std::move(attrs),
                std::nullopt,
                std::move(spans)});
}

bool Checker::check_ranks(const std::vector<Type>& types, Span span) {
  for (const Type& type : types) {
    if (type.rank() <= max_rank) continue;
    report({Code::WrongRank,
            fmt::format("a value has at most {} axes", max_rank),
            {span, fmt::format("this would have {}", type.rank())},
            {},
            "",
            "join axes with `reshape`"});
    return false;
  }
  return true;
}

Value Checker::apply(Application a) {
  Diagnostics found;
  TypeQuery query{
      a.op,  {}, {}, {}, std::move(a.axes), std::move(a.slice_spans), a.span, std::move(a.attrs),
      found, {}};
  for (std::size_t i = 0; i < a.args.size(); ++i) {
    query.args.push_back(type(a.args[i]));
    query.arg_spans.push_back(a.written[i]->span);
  }
  query.arg_texts.resize(a.args.size());
  Types types = a.op.type(query);
  if (!types) {
    // Once more, with all that a message needs; most applications never need it.
    found = {};
    for (std::size_t i = 0; i < a.args.size(); ++i) query.arg_texts[i] = text(a.written[i]->span);
    query.size_origin = [this](const Size& size) { return size_origin(size); };
    a.op.type(query);
    for (const Diagnostic& diagnostic : found.items()) report(diagnostic);
    return {};
  }
  if (!check_ranks(*types, a.span)) return {};

  // The exposure discipline (prop:exposure-discipline), whatever a row may say: only a record-axis
  // aggregation or a contraction of stars makes a shared value from a federated one.
  const bool takes_federated = std::any_of(query.args.begin(), query.args.end(),
                                           [](const Type& t) { return t.federated(); });
  if (takes_federated && a.op.family != Family::aggregation && a.op.family != Family::matmul &&
      !types->front().federated()) {
    throw Bug("the typing rule of " + a.op.name + " drops the record axis");
  }
  if (options_.base) check_base(a.op, query.attrs, query.args, a.args, query.arg_spans, a.span);
  const bool all_numbers =
      options_.base && !a.args.empty() && types->front().is_scalar() &&
      std::all_of(a.args.begin(), a.args.end(), [&](ir::NodeId id) { return is_base_number(id); });

  ir::Node node;
  node.kind = ir::Kind::apply;
  node.op = &a.op;
  node.args = std::move(a.args);
  node.attrs = std::move(query.attrs);
  node.types = *types;
  node.span = place(a.span);
  const ir::NodeId id = program_.graph.add(std::move(node));
  if (all_numbers) base_numbers_.insert(id);
  if (types->size() == 1) return {id};
  Value value;
  for (std::uint32_t i = 0; i < types->size(); ++i) {
    ir::Node part = make_node(ir::Kind::project, (*types)[i], a.span);
    part.args = {id};
    part.index = i;
    value.push_back(program_.graph.add(std::move(part)));
  }
  return value;
}

}  // namespace starfold
