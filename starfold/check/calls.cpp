// Calls: of functions, of modules' functions, of built-in operations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starfold/base/suggest.h"
#include "starfold/check/checker.h"
#include "starfold/check/foreign.h"
#include "starfold/check/walk.h"

namespace starfold {

// Checks the arguments of a call that cannot be made: their names are used, their mistakes count.
void Checker::use_arguments(const ast::Expr& expr) {
  for (const ast::ExprPtr& arg : expr.args) expression(*arg);
}

Value Checker::call(const ast::Expr& expr) {
  if (expr.module) return call_of_module(expr);
  const bool operation = options_.signature->find(expr.text) != nullptr;
  Binding* binding = find(expr.text);
  // Under a reserved name, which was reported, both stay in use.
  if (binding != nullptr && !operation) {
    binding->used = true;
    use_arguments(expr);
    if (binding->kind == Binding::Kind::broken) return {};
    report({Code::NotAValue,
            fmt::format("`{}` is {} and cannot be called", expr.text,
                        binding->kind == Binding::Kind::size ? "a size" : "a value"),
            {expr.text_span, "not a function"},
            {{binding->span, "defined here"}},
            "",
            "use square brackets to index, and `*` to multiply"});
    return {};
  }
  const auto given = frame().given.find(expr.text);
  if (given != frame().given.end())
    return call_function(expr, *given->second.module, *given->second.function);
  const auto fn = frame().module->functions.find(expr.text);
  if (fn != frame().module->functions.end()) {
    const bool fits = !expr.has_subscripts && expr.args.size() == fn->second.fn->params.size();
    // A module's function may have the name of an operation, since others call it by the module's
    // name; without that the name means the operation.
    if (!operation || (fits && !frame().module->library)) {
      return call_function(expr, *frame().module, fn->second);
    }
  }
  return operation ? call_operation(expr) : fail_no_operation(expr);
}

Value Checker::call_of_module(const ast::Expr& expr) {
  const std::string& module = expr.module->text;
  const auto found = frame().module->imports.find(module);
  if (found == frame().module->imports.end()) {
    use_arguments(expr);
    if (is_lost(module)) return {};
    std::vector<std::string> names;
    for (const auto& [name, imported] : frame().module->imports) names.push_back(name);
    const std::string suggestion = nearest(module, names);
    const Op* op = options_.signature->find(expr.text);
    const std::string foreign = foreign_member_help(module, expr.text);
    Binding* value = find(module);
    if (value != nullptr) value->used = true;
    report({Code::UnknownModule,
            value != nullptr ? fmt::format("`{}` is a value, not a module", module)
                             : fmt::format("there is no module named `{}` here", module),
            {expr.module->span, value != nullptr ? "has no functions of its own" : "not imported"},
            {},
            "",
            !suggestion.empty() && value == nullptr ? fmt::format("did you mean `{}`?", suggestion)
            : op != nullptr
                ? fmt::format("`{}` is built in and is written `{}`", expr.text, op->surface)
            : !foreign.empty() ? foreign
            : value != nullptr ? "a function is written before its values, as in f(x)"
                               : fmt::format("add `import {}` at the top", module)});
    return {};
  }
  if (found->second == nullptr) {  // the import was reported
    use_arguments(expr);
    return {};
  }
  record_use(expr.module->span, {found->second->file->id, 0, 0});
  const auto fn = found->second->functions.find(expr.text);
  if (fn != found->second->functions.end()) return call_function(expr, *found->second, fn->second);
  use_arguments(expr);
  if (found->second->file->lost.count(expr.text) != 0) return {};
  std::vector<std::string> names;
  for (const auto& [name, function] : found->second->functions) names.push_back(name);
  const std::string suggestion = nearest(expr.text, names);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  report({Code::UnknownFunction,
          fmt::format("the module `{}` has no function `{}`", module, expr.text),
          {expr.text_span, "not defined there"},
          {},
          "",
          !suggestion.empty() ? fmt::format("did you mean `{}.{}`?", module, suggestion)
          : list.empty() || list.size() > 100 ? ""
                                              : fmt::format("it has: {}", list)});
  return {};
}

std::optional<std::vector<WrittenAxis>> Checker::written_axes(const ast::Expr& expr) {
  constexpr double largest = 1e9;
  std::vector<WrittenAxis> axes;
  for (const ast::Subscript& subscript : expr.subscripts) {
    WrittenAxis axis;
    axis.span = subscript.span;
    if (subscript.kind == ast::Subscript::Kind::star) {
      axis.star = true;
      const auto renamed = frame().record_sets.find(subscript.record_set);
      const bool own = !subscript.record_set.empty() && renamed != frame().record_sets.end();
      axis.record_set = own ? renamed->second : subscript.record_set;
    } else {
      const bool single = subscript.kind == ast::Subscript::Kind::index;
      const bool number = single && subscript.first->kind == ast::ExprKind::number;
      const double value = number ? subscript.first->number : 0.5;
      if (!(std::abs(value) < largest) || value != std::floor(value)) {
        if (single && subscript.first->kind == ast::ExprKind::invalid) return std::nullopt;
        report({Code::InvalidAxes,
                "an axis is written as a number or a star",
                {subscript.span, "neither a whole number nor `*`"},
                {},
                "which axes are folded must be plain from the text",
                fmt::format("write `{0}[1](...)` or `{0}[*](...)`", expr.text)});
        return std::nullopt;
      }
      axis.number = static_cast<std::int64_t>(value);
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

Value Checker::fail_no_operation(const ast::Expr& expr) {
  use_arguments(expr);
  if (is_lost(expr.text)) return {};
  std::string help = foreign_function_help(expr.text);
  if (help.empty()) {
    std::vector<std::string> names;
    for (const auto& op : options_.signature->ops()) names.push_back(op->name);
    for (const auto& [name, function] : frame().module->functions) names.push_back(name);
    const std::string suggestion = nearest(expr.text, names);
    help = suggestion.empty() ? "`starfold ops` lists all operations"
                              : fmt::format("did you mean `{}`?", suggestion);
  }
  report({Code::UnknownFunction,
          fmt::format("there is no operation or function named `{}`", expr.text),
          {expr.text_span, "not defined"},
          {},
          "",
          std::move(help)});
  return {};
}

// No row of this name takes so many arguments, or axes.
Value Checker::fail_arity(const ast::Expr& expr) {
  use_arguments(expr);
  const auto given = static_cast<int>(expr.args.size());
  std::string arities;
  std::string surfaces;
  const Op* fitting = nullptr;  // but for its axes
  bool several = false;
  for (const auto& op : options_.signature->ops()) {
    if (op->name != expr.text) continue;
    const bool fits = given >= op->min_args && (op->max_args < 0 || given <= op->max_args);
    if (fits && fitting == nullptr) fitting = op.get();
    std::string arity = fmt::format("{}", op->min_args);
    if (op->max_args < 0) arity = fmt::format("at least {}", op->min_args);
    if (op->max_args > op->min_args) arity = fmt::format("{} to {}", op->min_args, op->max_args);
    several = several || op->max_args != 1;
    arities = arities.empty()
                  ? arity
                  : fmt::format("{} or {}", std::min(arities, arity), std::max(arities, arity));
    surfaces += (surfaces.empty() ? "`" : " or `") + op->surface + "`";
  }
  if (fitting != nullptr) {
    const bool missing = fitting->axes == Op::Axes::required;
    report({Code::InvalidAxes,
            missing ? fmt::format("`{}` needs its axes", expr.text)
                    : fmt::format("`{}` of {} argument{} takes no axes", expr.text, given,
                                  given == 1 ? "" : "s"),
            {expr.text_span, missing ? "no axes are written" : "axes are written"},
            {},
            "",
            fmt::format("write `{}`", fitting->surface.substr(0, fitting->surface.find(", e'")))});
    return {};
  }
  report({Code::WrongArity,
          fmt::format("`{}` takes {} argument{}, not {}", expr.text, arities, several ? "s" : "",
                      given),
          {expr.span, fmt::format("{} argument{}", given, given == 1 ? "" : "s")},
          {},
          "",
          fmt::format("write {}", surfaces)});
  return {};
}

std::optional<Size> Checker::size_argument(const ast::Expr& expr, const Op& op) {
  const ast::Expr* counting = nullptr;
  walk(expr, [&](const ast::Expr& part) {
    const Op* called = part.kind == ast::ExprKind::call && !part.module
                           ? options_.signature->find(part.text)
                           : nullptr;
    const bool counts =
        called != nullptr && called->family == Family::aggregation && called->shape_only;
    if (counts && counting == nullptr) counting = &part;
  });
  if (counting == nullptr) return positive_size(expr);
  use_arguments(*counting);
  const bool reshapes = op.name == "reshape";
  report({reshapes ? Code::StarReshaped : Code::NotASize,
          reshapes ? "the record axis cannot be reshaped" : "the number of records is not a size",
          {counting->span, "differs between clients, and is known only during the run"},
          {},
          "shapes are fixed before anything runs",
          reshapes ? "write the sizes of the ordinary axes only; the record axis stays where it is"
                   : "use `zeros_like(e)` or `ones_like(e)` for a value per record"});
  return std::nullopt;
}

Value Checker::call_operation(const ast::Expr& expr) {
  const Op* op =
      options_.signature->find(expr.text, static_cast<int>(expr.args.size()), expr.has_subscripts);
  if (op == nullptr) return fail_arity(expr);
  if (op->family == Family::differentiation) return derivative(expr, *op);

  const std::size_t values =
      op->first_size_arg < 0 ? expr.args.size() : static_cast<std::size_t>(op->first_size_arg);
  std::optional<std::vector<ir::NodeId>> args = singles(expr.args, values);
  Attrs attrs;
  bool ok = args.has_value();
  for (std::size_t i = values; i < expr.args.size(); ++i) {
    std::optional<Size> size = size_argument(*expr.args[i], *op);
    ok = ok && size;
    if (size) attrs.sizes.push_back(std::move(*size));
  }
  std::optional<std::vector<WrittenAxis>> axes;
  if (expr.has_subscripts) {
    axes = written_axes(expr);
    ok = ok && axes;
  }
  if (!ok) return {};
  std::vector<const ast::Expr*> written;
  for (std::size_t i = 0; i < values; ++i) written.push_back(expr.args[i].get());
  return apply(
      {*op, std::move(*args), std::move(written), expr.span, std::move(attrs), std::move(axes)});
}

// The node of the name a derivative is taken by.
std::optional<ir::NodeId> Checker::derivative_variable(const ast::Expr& call,
                                                       const ast::Expr& variable) {
  const bool is_name = variable.kind == ast::ExprKind::name;
  Binding* binding = is_name ? find(variable.text) : nullptr;
  if (binding != nullptr && binding->kind == Binding::Kind::broken) return std::nullopt;
  if (binding != nullptr && binding->kind != Binding::Kind::size) {
    binding->used = true;
    record_use(variable.span, binding->span);
    return resolve(*binding);
  }
  if (is_name && binding == nullptr && !size_of_name(variable, false, TypeUse::annotation)) {
    unknown_name(variable.text, variable.span);
    return std::nullopt;
  }
  if (!is_name && expression(variable).empty()) return std::nullopt;
  report({Code::NotDifferentiableVariable,
          fmt::format("`{}` needs the name of a shared value, not `{}`", call.text,
                      text(variable.span)),
          {variable.span, is_name ? "a size is a fixed number" : "not a name"},
          {},
          "a derivative is taken with respect to a named input, state or let",
          is_name ? ""
                  : fmt::format("name it with `let v = {}`, and use `v` in what is differentiated",
                                text(variable.span))});
  return std::nullopt;
}

Value Checker::derivative(const ast::Expr& expr, const Op& op) {
  if (expr.args.size() != 2) return fail_arity(expr);
  const std::optional<ir::NodeId> of = single(*expr.args[0]);
  const std::optional<ir::NodeId> by = derivative_variable(expr, *expr.args[1]);
  if (!of || !by) return {};
  Value value = apply({op, {*of, *by}, {expr.args[0].get(), expr.args[1].get()}, expr.span});
  const auto is_variable = [&](ir::NodeId id) { return id == *by; };
  if (!value.empty() && says_warnings() && !varies_with(*of, is_variable, *by, true)) {
    report({Code::ZeroGradient,
            fmt::format("this derivative by `{}` is zero everywhere", expr.args[1]->text),
            {expr.args[0]->span, fmt::format("does not change with `{}`", expr.args[1]->text)},
            {},
            "steps such as `floor` and comparisons, and what `stop_gradient` holds fixed, have "
            "derivative zero",
            fmt::format("differentiate something that is computed from `{}`", expr.args[1]->text)});
  }
  return value;
}

}  // namespace starfold
