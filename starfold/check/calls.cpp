// Calls of operations and functions. A function is generic in its sizes and record sets and is
// written out where it is called.
#include <fmt/format.h>

#include "starfold/base/suggest.h"
#include "starfold/check/checker.h"

namespace starfold {

Value Checker::call(const ast::Expr& expr) {
  if (expr.module) {
    const auto found = frame().module->imports.find(expr.module->text);
    if (found == frame().module->imports.end()) {
      report({Code::UnknownModule,
              fmt::format("there is no module named `{}` here", expr.module->text),
              {expr.module->span, "not imported"},
              {},
              "",
              fmt::format("add `import {}` at the top", expr.module->text)});
      return {};
    }
    if (found->second == nullptr) return {};  // the import was reported
    const auto fn = found->second->functions.find(expr.text);
    if (fn == found->second->functions.end()) {
      std::vector<std::string> names;
      for (const auto& [name, function] : found->second->functions) names.push_back(name);
      const std::string suggestion = nearest(expr.text, names);
      report({Code::UnknownFunction,
              fmt::format("module `{}` has no function `{}`", expr.module->text, expr.text),
              {expr.text_span, "not defined there"},
              {},
              "",
              suggestion.empty() ? "" : fmt::format("did you mean `{}.{}`?", expr.module->text, suggestion)});
      return {};
    }
    return call_function(expr, *found->second, *fn->second);
  }
  if (Binding* binding = find(expr.text)) {
    binding->used = true;
    if (binding->kind != Binding::Kind::broken) {
      report({Code::NotAValue,
              fmt::format("`{}` is a value and cannot be called", expr.text),
              {expr.text_span, "not a function"},
              {{binding->span, "defined here"}},
              "",
              "use square brackets to index, `*` to multiply"});
    }
    return {};
  }
  const auto fn = frame().module->functions.find(expr.text);
  if (fn != frame().module->functions.end()) return call_function(expr, *frame().module, *fn->second);
  return call_operation(expr);
}

std::optional<std::vector<WrittenAxis>> Checker::written_axes(const ast::Expr& expr) {
  std::vector<WrittenAxis> axes;
  for (const ast::Subscript& subscript : expr.subscripts) {
    WrittenAxis axis;
    axis.span = subscript.span;
    if (subscript.kind == ast::Subscript::Kind::star) {
      axis.star = true;
      axis.record_set = subscript.record_set;
      const auto renamed = frame().record_sets.find(axis.record_set);
      if (!axis.record_set.empty() && renamed != frame().record_sets.end()) axis.record_set = renamed->second;
    } else {
      const bool number = subscript.kind == ast::Subscript::Kind::index && subscript.first->kind == ast::ExprKind::number &&
                          subscript.first->number == static_cast<double>(static_cast<int>(subscript.first->number));
      if (!number) {
        report({Code::InvalidAxes,
                "an axis is written as a number or a star",
                {subscript.span, "neither a number nor `*`"},
                {},
                "",
                fmt::format("write `{}[1](...)` or `{}[*](...)`", expr.text, expr.text)});
        return std::nullopt;
      }
      axis.number = static_cast<std::int64_t>(subscript.first->number);
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

Value Checker::fail_no_operation(const ast::Expr& expr) {
  std::vector<std::string> names;
  for (const auto& op : options_.signature->ops()) names.push_back(op->name);
  for (const auto& [name, fn] : frame().module->functions) names.push_back(name);
  const std::string suggestion = nearest(expr.text, names);
  report({Code::UnknownFunction,
          fmt::format("there is no operation or function named `{}`", expr.text),
          {expr.text_span, "not defined"},
          {},
          "",
          suggestion.empty() ? "`starfold ops` lists all operations" : fmt::format("did you mean `{}`?", suggestion)});
  return {};
}

Value Checker::fail_arity(const ast::Expr& expr, const Op& op) {
  const std::size_t given = expr.args.size();
  const bool arity_fits = static_cast<int>(given) >= op.min_args && (op.max_args < 0 || static_cast<int>(given) <= op.max_args);
  if (arity_fits) {
    const bool missing = op.axes == Op::Axes::required;
    report({Code::InvalidAxes,
            missing ? fmt::format("`{}` needs its axes", expr.text) : fmt::format("`{}` takes no axes", expr.text),
            {expr.text_span, missing ? "no axes are written" : "axes are written"},
            {},
            "",
            fmt::format("write `{}`", op.surface)});
    return {};
  }
  std::string expected = fmt::format("{}", op.min_args);
  if (op.max_args < 0) expected = fmt::format("at least {}", op.min_args);
  if (op.max_args > op.min_args) expected = fmt::format("{} to {}", op.min_args, op.max_args);
  report({Code::WrongArity,
          fmt::format("`{}` takes {} argument{}, not {}", expr.text, expected, expected == "1" ? "" : "s", given),
          {expr.span, fmt::format("{} {}", given, given == 1 ? "argument" : "arguments")},
          {},
          "",
          fmt::format("write `{}`", op.surface)});
  return {};
}

Value Checker::call_operation(const ast::Expr& expr) {
  const Op* any = options_.signature->find(expr.text);
  if (any == nullptr) return fail_no_operation(expr);
  const Op* op = options_.signature->find(expr.text, static_cast<int>(expr.args.size()), expr.has_subscripts);
  if (op == nullptr) {
    for (const ast::ExprPtr& arg : expr.args) expression(*arg);  // their names are used, their mistakes count
    return fail_arity(expr, *any);
  }
  if (op->family == Family::differentiation) return derivative(expr, *op);

  const std::size_t values = op->first_size_arg < 0 ? expr.args.size() : static_cast<std::size_t>(op->first_size_arg);
  const std::optional<std::vector<ir::NodeId>> args = singles(expr.args, values);
  Attrs attrs;
  bool sizes_ok = true;
  for (std::size_t i = values; i < expr.args.size(); ++i) {
    std::optional<Size> size = positive_size(*expr.args[i]);
    sizes_ok = sizes_ok && size;
    if (size) attrs.sizes.push_back(std::move(*size));
  }
  std::optional<std::vector<WrittenAxis>> axes;
  if (expr.has_subscripts) {
    axes = written_axes(expr);
    if (!axes) return {};
  }
  if (!args || !sizes_ok) return {};
  std::vector<const ast::Expr*> written;
  for (std::size_t i = 0; i < values; ++i) written.push_back(expr.args[i].get());
  return apply(*op, *args, written, expr.span, std::move(attrs), std::move(axes));
}

namespace {

// Whether a node's value can change with another's.
bool depends_on(const ir::Program& program, ir::NodeId node, ir::NodeId on) {
  std::vector<ir::NodeId> pending = {node};
  std::set<ir::NodeId> seen;
  while (!pending.empty()) {
    const ir::NodeId id = pending.back();
    pending.pop_back();
    if (id == on) return true;
    if (id < on || !seen.insert(id).second) continue;  // operands are older than their users
    const ir::Node& at = program.graph[id];
    pending.insert(pending.end(), at.args.begin(), at.args.end());
    if (at.kind != ir::Kind::loop_result) continue;
    for (const ir::Carried& carried : program.loops[at.index].carried) {
      pending.push_back(carried.init);
      if (carried.next != ir::no_node) pending.push_back(carried.next);
    }
  }
  return false;
}

}  // namespace

Value Checker::derivative(const ast::Expr& expr, const Op& op) {
  const std::optional<ir::NodeId> of = single(*expr.args[0]);
  const ast::Expr& variable = *expr.args[1];
  Binding* binding = variable.kind == ast::ExprKind::name ? find(variable.text) : nullptr;
  if (variable.kind == ast::ExprKind::name && binding == nullptr && !size_of_name(variable, false, TypeUse::annotation)) {
    unknown_name(variable.text, variable.span);
    return {};
  }
  if (binding != nullptr && binding->kind == Binding::Kind::broken) return {};
  if (binding == nullptr || binding->kind == Binding::Kind::size) {
    report({Code::NotDifferentiableVariable,
            fmt::format("`{}` needs the name of a shared value, not `{}`", expr.text, text(variable.span)),
            {variable.span, variable.kind == ast::ExprKind::name ? "a size is fixed" : "not a name"},
            {},
            "a derivative is taken with respect to a named input, state or let",
            variable.kind == ast::ExprKind::name ? "" : fmt::format("name it first: `let v = {}`", text(variable.span))});
    return {};
  }
  binding->used = true;
  if (!of) return {};
  if (!type(binding->node).federated() && !depends_on(program_, *of, binding->node) && !(frame().function && !defining_)) {
    report({Code::ZeroGradient,
            fmt::format("`{}` does not depend on `{}`", text(expr.args[0]->span), variable.text),
            {expr.span, "zero everywhere"},
            {},
            "",
            "differentiate by a name that the expression uses"});
  }
  return apply(op, {*of, binding->node}, {expr.args[0].get(), &variable}, expr.span);
}

Value Checker::call_function(const ast::Expr& expr, Module& module, const ast::Fn& fn) {
  const std::optional<std::vector<ir::NodeId>> args = singles(expr.args, expr.args.size());
  if (expr.has_subscripts) {
    report({Code::InvalidAxes, fmt::format("the function `{}` takes no axes", expr.text), {expr.text_span, "axes are written"}, {}, "", ""});
    return {};
  }
  if (expr.args.size() != fn.params.size()) {
    report({Code::WrongArity,
            fmt::format("`{}` takes {} argument{}, not {}", expr.text, fn.params.size(), fn.params.size() == 1 ? "" : "s", expr.args.size()),
            {expr.span, fmt::format("{} {}", expr.args.size(), expr.args.size() == 1 ? "argument" : "arguments")},
            {{fn.name.span, "defined here"}},
            "",
            ""});
    return {};
  }
  if (!args || module.broken.count(&fn) != 0) return {};
  if (++inlined_calls_ > max_inlined_calls || inlined_expressions_ > max_inlined_expressions) {
    report({Code::TooManyCalls,
            "the program grows too large when its functions are written out",
            {expr.span, fmt::format("more than {} calls", max_inlined_calls)},
            {},
            "functions are inlined where they are called, and calls of calls multiply",
            "bind a repeated call to a `let` and use it twice"});
    return {};
  }
  Frame callee;
  callee.module = &module;
  callee.function = true;
  callee.call = expr.span;
  callee.scopes.emplace_back().loop = current_loop();
  for (std::size_t i = 0; i < fn.params.size(); ++i) {
    if (!match_parameter(callee, fn.params[i], type((*args)[i]), *expr.args[i])) return {};
    Binding binding;
    binding.node = (*args)[i];
    binding.span = fn.params[i].name.span;
    callee.scopes.back().names.emplace(fn.params[i].name.text, binding);
  }
  return inline_body(std::move(callee), fn);
}

namespace {

// Finds the value of the one unknown variable that stands alone in a pattern such as p + 1.
bool solve_pattern(const Size& pattern, const Size& actual, std::map<std::string, Size, std::less<>>& sizes) {
  std::vector<std::string> unknown;
  for (const std::string& name : pattern.variables()) {
    if (sizes.count(name) == 0) unknown.push_back(name);
  }
  if (unknown.size() != 1) return unknown.empty();
  // pattern = unknown + rest exactly when taking the variable away leaves no trace of it.
  const std::optional<Size> rest = subtract(pattern, Size::variable(unknown[0]));
  if (!rest) return false;
  for (const std::string& name : rest->variables()) {
    if (name == unknown[0]) return false;
  }
  const std::optional<Size> known = rest->substitute(sizes);
  const std::optional<Size> value = known ? subtract(actual, *known) : std::nullopt;
  if (!value) return false;
  sizes.emplace(unknown[0], *value);
  return true;
}

}  // namespace

bool Checker::match_parameter(Frame& callee, const ast::Param& param, const Type& actual, const ast::Expr& arg) {
  const auto mismatch = [&](const std::string& detail, const std::string& help = {}) {
    report({Code::ArgumentType,
            fmt::format("this argument is {}, but `{}` is declared {}", actual.to_string(), param.name.text, text(param.type.span)),
            {arg.span, detail},
            {{param.type.span, "declared here"}},
            "",
            help});
    return false;
  };
  if (actual.rank() != param.type.dims.size()) {
    return mismatch(fmt::format("{} has {} {}, {} expected", actual.to_string(), actual.rank(), actual.rank() == 1 ? "axis" : "axes",
                                param.type.dims.size()));
  }
  for (std::size_t axis = 0; axis < actual.rank(); ++axis) {
    const ast::Dim& written = param.type.dims[axis];
    const Dim& dim = actual.dims[axis];
    if (written.star != dim.star) {
      return mismatch(dim.star ? fmt::format("axis {} is the record axis here, an ordinary axis there", axis + 1)
                               : fmt::format("axis {} must be a record axis", axis + 1),
                      dim.star ? "" : "the function works on federated values");
    }
    if (written.star) {
      const auto [bound, fresh] = callee.record_sets.emplace(written.record_set, dim.record_set);
      if (!fresh && bound->second != dim.record_set) {
        return mismatch(fmt::format("its record set is *{}, but *{} was found before", dim.record_set, bound->second));
      }
      continue;
    }
    // The pattern is read with the callee's own sizes as plain variables.
    Frame pattern_frame;
    pattern_frame.module = callee.module;
    pattern_frame.function = true;
    pattern_frame.scopes.emplace_back();
    pattern_frame.call = callee.call;
    frames_.push_back(std::move(pattern_frame));
    const bool was_defining = std::exchange(defining_, true);
    const std::optional<Size> pattern = size_of(*written.size, false, TypeUse::parameter);
    defining_ = was_defining;
    frames_.pop_back();
    if (!pattern) return false;
    const bool solved = solve_pattern(*pattern, dim.size, callee.sizes);
    const std::optional<Size> expected = solved ? pattern->substitute(callee.sizes) : std::nullopt;
    if (!expected) {
      report({Code::UnsolvedSize,
              fmt::format("the size {} of `{}` cannot be found from this argument", pattern->to_string(), param.name.text),
              {arg.span, fmt::format("its size here is {}", dim.to_string())},
              {{written.span, "an equation with more than one unknown"}},
              "a function's sizes are solved from its arguments, one at a time",
              "declare an earlier parameter whose size is the variable itself"});
      return false;
    }
    if (!(*expected == dim.size)) return mismatch(fmt::format("axis {} is {}, but {} is expected", axis + 1, dim.to_string(), expected->to_string()));
  }
  return true;
}

Value Checker::inline_body(Frame callee, const ast::Fn& fn) {
  frames_.push_back(std::move(callee));
  const bool was_defining = std::exchange(defining_, false);
  for (const ast::Stmt& stmt : fn.body) statement(stmt);
  Value value = fn.value ? expression(*fn.value) : Value{};
  if (fn.result && value.size() == 1) check_declared(fn.result, type(value[0]), *fn.value);
  defining_ = was_defining;
  frames_.pop_back();
  return value;
}

}  // namespace starfold
