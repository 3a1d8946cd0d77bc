// Calls of functions. A function is generic in its sizes and record sets and is written out where
// it is called.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/check/checker.h"

namespace starfold {
namespace {

// Finds the one unknown variable of a pattern such as 2*p + 1 from the size it stands for here.
void solve_pattern(const Size& pattern, const std::string& unknown, const Size& actual,
                   Sizes& sizes) {
  const std::optional<Size> factor = pattern.linear_factor(unknown);
  const std::optional<Size> part = multiply(*factor, Size::variable(unknown));
  const std::optional<Size> rest = part ? subtract(pattern, *part) : std::nullopt;
  const std::optional<Size> known_rest = rest ? rest->substitute(sizes) : std::nullopt;
  const std::optional<Size> known_factor = factor->substitute(sizes);
  if (!known_rest || !known_factor) return;
  const std::optional<Size> left = subtract(actual, *known_rest);
  const std::optional<Size> value = left ? divide(*left, *known_factor) : std::nullopt;
  if (value) sizes.emplace(unknown, *value);
}

std::string axes(std::size_t count) {
  return count == 1 ? "1 axis" : fmt::format("{} axes", count);
}

}  // namespace

// Whether another call may be written out; says so once when not.
bool Checker::within_limits() {
  if (outgrown_) return false;
  const bool large =
      inlined_calls_ > max_inlined_calls || inlined_expressions_ > max_inlined_expressions;
  if (!large && depth_ <= max_depth) return true;
  outgrown_ = true;
  // The call in the user's own text that leads here, not the one deep inside.
  const std::size_t outermost = definition_at_ + 1;
  const Span call = frames_[std::min(outermost, frames_.size() - 1)].call;
  diagnostics_.report(
      {Code::TooManyCalls,
       "the program grows too large when its functions are written out",
       {call,
        large ? fmt::format("this leads to more than {} calls or {} expressions", max_inlined_calls,
                            max_inlined_expressions)
              : fmt::format("this leads to more than {} expressions inside each other", max_depth)},
       {},
       "functions are written out where they are called, and calls of calls multiply",
       "bind a repeated call to a `let` and use that, or call fewer functions in a row"});
  return false;
}

Value Checker::call_function(const ast::Expr& expr, Module& module, const Function& function) {
  const ast::Fn& fn = *function.fn;
  record_use(expr.text_span, fn.name.span);
  Frame callee;
  bool complete = true;
  std::vector<ir::NodeId> args;
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    if (i < fn.params.size() && fn.params[i].type.function) {
      const std::optional<Given> given = given_function(fn.params[i], *expr.args[i]);
      complete = complete && given;
      if (given) callee.given.emplace(fn.params[i].name.text, *given);
      args.push_back(ir::no_node);
      continue;
    }
    const std::optional<ir::NodeId> value = single(*expr.args[i]);
    complete = complete && value;
    args.push_back(value.value_or(ir::no_node));
  }
  if (expr.has_subscripts) {
    report({Code::InvalidAxes,
            fmt::format("the function `{}` takes no axes", fn.name.text),
            {expr.text_span, "axes are written"},
            {{fn.name.span, "defined here"}},
            "",
            "only built-in operations take axes in square brackets"});
    return {};
  }
  if (expr.args.size() != fn.params.size()) {
    std::string names;
    for (const ast::Param& param : fn.params)
      names += (names.empty() ? "" : ", ") + param.name.text;
    report({Code::WrongArity,
            fmt::format("`{}` takes {} argument{}, not {}", fn.name.text, fn.params.size(),
                        fn.params.size() == 1 ? "" : "s", expr.args.size()),
            {expr.span, fmt::format("{} {}", expr.args.size(),
                                    expr.args.size() == 1 ? "argument" : "arguments")},
            {{fn.name.span, "defined here"}},
            "",
            fmt::format("write `{}({})`", fn.name.text, names)});
    return {};
  }
  if (!complete || function.broken) return {};
  callee.module = &module;
  callee.function = true;
  callee.variables = &function.variables;
  callee.call = expr.span;
  callee.scopes.emplace_back().loop = current_loop();
  if (!match_arguments(callee, expr, function, args)) return {};
  return inline_body(std::move(callee), fn, args);
}

// The function that an argument names: one of this file, or one that was given here.
std::optional<Given> Checker::given_function(const ast::Param& param, const ast::Expr& arg) {
  const bool name = arg.kind == ast::ExprKind::name;
  if (const auto given = frame().given.find(arg.text); name && given != frame().given.end())
    return given->second;
  const auto own = frame().module->functions.find(arg.text);
  if (name && own != frame().module->functions.end()) return Given{frame().module, &own->second};
  if (Binding* binding = name ? find(arg.text) : nullptr) binding->used = true;
  report({Code::ArgumentType,
          fmt::format("`{}` is declared fn, and this is no function", param.name.text),
          {arg.span, "not the name of a function of this file"},
          {{param.type.span, "declared here"}},
          "what is given is called where the function is written out",
          "define it with `fn`, and write its name alone"});
  return std::nullopt;
}

bool Checker::fail_argument(const ast::Param& param, const Type& actual, const ast::Expr& arg,
                            std::string detail, std::string help) {
  report({Code::ArgumentType,
          fmt::format("this argument is {}, but `{}` is declared {}", actual.to_string(),
                      param.name.text, text(param.type.span)),
          {arg.span, std::move(detail)},
          {{param.type.span, "declared here"}},
          "",
          std::move(help)});
  return false;
}

// The rank, the place of the star and its record set.
bool Checker::match_axes(Frame& callee, const ast::Param& param, const Type& pattern,
                         const Type& actual, const ast::Expr& arg) {
  if (actual.rank() != pattern.rank()) {
    return fail_argument(param, actual, arg,
                         fmt::format("{}, {} expected", axes(actual.rank()), axes(pattern.rank())));
  }
  for (std::size_t axis = 0; axis < actual.rank(); ++axis) {
    const Dim& written = pattern.dims[axis];
    const Dim& dim = actual.dims[axis];
    if (written.star != dim.star) {
      return fail_argument(
          param, actual, arg,
          dim.star
              ? fmt::format("axis {} is the record axis, an ordinary axis is expected", axis + 1)
              : fmt::format("axis {} is not a record axis, but one is expected", axis + 1),
          actual.federated() && !pattern.federated() ? "fold the record axis first" : "");
    }
    if (!written.star) continue;
    // One record per client is a promise that no other record set keeps.
    if (written.record_set == ir::client_set && dim.record_set != ir::client_set)
      return fail_argument(
          param, actual, arg,
          fmt::format("its record set is {}, but one record per client is expected",
                      Dim::record(dim.record_set).to_string()));
    const auto [bound, fresh] = callee.record_sets.emplace(written.record_set, dim.record_set);
    if (!fresh && bound->second != dim.record_set) {
      return fail_argument(
          param, actual, arg,
          fmt::format("its record set is {}, that of an earlier argument is {}",
                      Dim::record(dim.record_set).to_string(),
                      Dim::record(bound->second).to_string()),
          "the stars of both parameters are the same, so the arguments must have one record set");
    }
  }
  return true;
}

bool Checker::match_sizes(Frame& callee, const ast::Param& param, const Type& pattern,
                          const Type& actual, const ast::Expr& arg) {
  for (std::size_t axis = 0; axis < actual.rank(); ++axis) {
    const Dim& written = pattern.dims[axis];
    const Dim& dim = actual.dims[axis];
    if (written.star) continue;
    bool known = true;
    for (const std::string& name : written.size.variables())
      known = known && callee.sizes.count(name) != 0;
    const std::optional<Size> expected =
        known ? written.size.substitute(callee.sizes) : std::nullopt;
    if (!expected) {
      return fail_argument(param, actual, arg,
                           fmt::format("axis {} is {}, which is not of the form {}", axis + 1,
                                       dim.to_string(), written.to_string()));
    }
    if (!(*expected == dim.size)) {
      return fail_argument(param, actual, arg,
                           fmt::format("axis {} is {}, but {} is expected", axis + 1,
                                       dim.to_string(), expected->to_string()),
                           expected->is_constant() || written.size.is_constant()
                               ? ""
                               : fmt::format("`{}` is {} elsewhere in this call",
                                             written.to_string(), expected->to_string()));
    }
    for (const std::string& name : written.size.variables()) {
      const Size& value = callee.sizes.at(name);
      if (!value.is_constant() || value.constant() >= 1) continue;
      return fail_argument(param, actual, arg,
                           fmt::format("axis {} is {}, so {} would be {}", axis + 1,
                                       dim.to_string(), name, value.to_string()),
                           "a size is at least 1");
    }
  }
  return true;
}

bool Checker::match_arguments(Frame& callee, const ast::Expr& call, const Function& function,
                              const std::vector<ir::NodeId>& args) {
  const ast::Fn& fn = *function.fn;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (fn.params[i].type.function) continue;
    if (!match_axes(callee, fn.params[i], function.params[i], type(args[i]), *call.args[i]))
      return false;
  }
  for (const Function::Unknown& unknown : function.solution) {
    const Size& pattern = function.params[unknown.param].dims[unknown.axis].size;
    const Size& actual = type(args[unknown.param]).dims[unknown.axis].size;
    solve_pattern(pattern, unknown.size, actual, callee.sizes);
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (fn.params[i].type.function) continue;
    if (!match_sizes(callee, fn.params[i], function.params[i], type(args[i]), *call.args[i]))
      return false;
  }
  return true;
}

Value Checker::inline_body(Frame callee, const ast::Fn& fn, const std::vector<ir::NodeId>& args) {
  callee.number = ++inlined_calls_;
  frames_.push_back(std::move(callee));
  const bool was_defining = std::exchange(defining_, false);
  Value value;
  if (within_limits()) {
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (fn.params[i].type.function) continue;
      Binding binding;
      binding.node = bind_variable(args[i], fn.params[i].name);
      binding.level = blocks_.size();
      binding.span = fn.params[i].name.span;
      scope().names.emplace(fn.params[i].name.text, binding);
    }
    for (const ast::Stmt& stmt : fn.body) statement(stmt);
    value = result_of(fn);
  }
  defining_ = was_defining;
  frames_.pop_back();
  return value;
}

// The result of the function whose frame is open.
Value Checker::result_of(const ast::Fn& fn) {
  if (!fn.value) return {};
  Value value = expression(*fn.value);
  if (!fn.result || value.empty()) return value;
  if (value.size() == 1) {
    check_declared(*fn.result, type(value[0]), *fn.value);
  } else {
    report({Code::DeclaredType,
            fmt::format("`{}` gives {} results, but {} is declared", fn.name.text, value.size(),
                        text(fn.result->span)),
            {fn.value->span, fmt::format("{} results", value.size())},
            {{fn.result->span, "one value is declared here"}},
            "",
            "leave the declared type out of a function with several results"});
  }
  return value;
}

}  // namespace starfold
