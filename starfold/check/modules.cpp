// Files of functions: imports, recursion, and the check of each definition by itself.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/embedded_lib.h"
#include "starfold/base/suggest.h"
#include "starfold/check/checker.h"
#include "starfold/check/walk.h"
#include "starfold/syntax/parser.h"

namespace starfold {
namespace {

// How many modules may import each other in a row.
constexpr std::size_t max_import_depth = 100;

// The functions of a module in the order of its text.
std::vector<Function*> in_order(Module& module) {
  std::vector<Function*> functions;
  for (const ast::Stmt& stmt : module.file->items) {
    const auto* fn = std::get_if<ast::Fn>(&stmt.node);
    const auto found = fn ? module.functions.find(fn->name.text) : module.functions.end();
    if (found != module.functions.end() && found->second.fn == fn)
      functions.push_back(&found->second);
  }
  return functions;
}

// The calls inside a function that may be of functions of the same file.
std::vector<const ast::Expr*> calls_in(const ast::Fn& fn) {
  std::vector<const ast::Expr*> calls;
  walk(fn, [&](const ast::Expr& expr) {
    if (expr.kind == ast::ExprKind::call && !expr.module) calls.push_back(&expr);
  });
  return calls;
}

}  // namespace

bool Function::takes_functions() const {
  return std::any_of(fn->params.begin(), fn->params.end(),
                     [](const ast::Param& param) { return param.type.function; });
}

void Checker::load_functions(Module& module) {
  bool said = false;
  for (const ast::Stmt& stmt : module.file->items) {
    if (const auto* import = std::get_if<ast::Import>(&stmt.node)) {
      load_import(module, *import);
    } else if (const auto* fn = std::get_if<ast::Fn>(&stmt.node)) {
      load_function(module, *fn);
    } else if (!module.name.empty() && !said) {
      said = true;
      report({Code::NotAModule,
              fmt::format("the module `{}` holds something other than functions", module.name),
              {stmt.span, "not a function"},
              {},
              "a module is a file of functions; what they use is visible in their parameters",
              "move this into a function, or into the program that imports the module"});
    }
  }
}

void Checker::load_function(Module& module, const ast::Fn& fn) {
  record_function(module, fn);
  if (!module.library) check_reserved(fn.name);
  Function function;
  function.fn = &fn;
  walk(fn, [&](const ast::Expr& expr) { add_variable(expr, function.variables); });
  const auto [existing, fresh] = module.functions.emplace(fn.name.text, std::move(function));
  if (fresh) return;
  report({Code::Redefinition,
          fmt::format("the function `{}` is already defined", fn.name.text),
          {fn.name.span, "defined again"},
          {{existing->second.fn->name.span, "first defined here"}},
          "",
          "choose another name"});
}

// A derivative's variable must stay apart from equal values, so it is known before the body is read.
void Checker::add_variable(const ast::Expr& expr, Names& variables) const {
  if (expr.kind != ast::ExprKind::call || expr.module || expr.args.size() != 2) return;
  const Op* op = options_.signature->find(expr.text);
  if (op == nullptr || op->family != Family::differentiation) return;
  if (expr.args[1]->kind == ast::ExprKind::name) variables.insert(expr.args[1]->text);
}

void Checker::load_import(Module& module, const ast::Import& import) {
  const std::string& name = import.module.text;
  if (module.imports.count(name) != 0) return;
  const auto loaded = modules_.find(name);
  const auto open = std::find(importing_.begin(), importing_.end(), name);
  const bool circle = open != importing_.end();
  if (circle || importing_.size() >= max_import_depth) {
    std::string way;
    for (auto at = open; at != importing_.end(); ++at) way += *at + " imports ";
    report({Code::ImportCycle,
            circle
                ? fmt::format("modules import each other in a circle: {}{}", way, name)
                : fmt::format("more than {} modules import each other in a row", max_import_depth),
            {import.module.span, circle ? "this import closes the circle" : "one too many"},
            {},
            "a module is complete before the one that imports it",
            "move what both need into a third module"});
    module.imports.emplace(name, nullptr);
    return;
  }
  if (loaded != modules_.end()) {
    module.imports.emplace(name, loaded->second.get());
    record_module(module, import.module, loaded->second->file->id);
    return;
  }
  std::optional<std::pair<std::string, std::string>> found;
  if (options_.load) found = options_.load(name);
  std::vector<std::string> known;
  for (const EmbeddedModule& embedded : embedded_modules()) {
    known.emplace_back(embedded.name);
    if (!found && embedded.name == name) {
      found = {fmt::format("lib/{}.fold", name), std::string(embedded.text)};
    }
  }
  if (!found) {
    const std::string suggestion = nearest(name, known);
    std::string list;
    for (const std::string& one : known) {
      if (one.find('/') == std::string::npos) list += (list.empty() ? "" : ", ") + one;
    }
    report({Code::UnknownModule,
            fmt::format("there is no module named `{}`", name),
            {import.module.span,
             fmt::format("no file {}.fold beside the program, and none in the library", name)},
            {},
            "",
            !suggestion.empty() ? fmt::format("did you mean `{}`?", suggestion)
            : list.empty()      ? fmt::format("put the functions into a file named {}.fold", name)
                                : fmt::format("the library has: {}", list)});
    module.imports.emplace(name, nullptr);
    return;
  }
  auto imported = std::make_unique<Module>();
  imported->name = name;
  imported->library = true;
  imported->owned =
      parse(sources_, sources_.add(found->first, std::move(found->second)), diagnostics_);
  imported->file = &imported->owned;
  Module* raw = imported.get();
  record_module(module, import.module, raw->file->id);
  modules_.emplace(name, std::move(imported));
  importing_.push_back(name);
  load_functions(*raw);
  importing_.pop_back();
  find_recursion(*raw);
  check_definitions(*raw);
  module.imports.emplace(name, raw);
}

// A function of a module may have the name of an operation: without the module's name, that is the operation.
Function* Checker::callee_of(Module& module, const ast::Expr& call) const {
  const auto callee = module.functions.find(call.text);
  const bool operation = module.library && options_.signature->find(call.text) != nullptr;
  return callee == module.functions.end() || operation ? nullptr : &callee->second;
}

void Checker::find_recursion(Module& module) {
  // Depth-first over the call graph; modules cannot call back into their importers.
  std::map<const Function*, int> color;  // 0 new, 1 on the path, 2 done
  struct Step {
    Function* function;
    std::vector<const ast::Expr*> calls;
    std::size_t next = 0;
  };
  const auto begin = [&](Function* function) {
    color[function] = 1;
    return Step{function, calls_in(*function->fn)};
  };
  for (Function* root : in_order(module)) {
    if (color[root] != 0) continue;
    std::vector<Step> path = {begin(root)};
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next == step.calls.size()) {
        color[step.function] = 2;
        path.pop_back();
        continue;
      }
      const ast::Expr* call = step.calls[step.next++];
      Function* called = callee_of(module, *call);
      if (called == nullptr) continue;
      if (color[called] == 0) {
        path.push_back(begin(called));
        continue;
      }
      if (color[called] != 1) continue;
      auto at = std::find_if(path.begin(), path.end(),
                             [&](const Step& s) { return s.function == called; });
      // A second call in the same circle is the same mistake.
      if (std::all_of(at, path.end(), [](const Step& s) { return s.function->broken; })) continue;
      for (; at != path.end(); ++at) at->function->broken = true;
      const bool itself = called == step.function;
      report({Code::Recursion,
              itself ? fmt::format("`{}` calls itself", call->text)
                     : fmt::format("`{}` calls itself through `{}`", call->text,
                                   step.function->fn->name.text),
              {call->span, "a recursive call"},
              {{called->fn->name.span, "defined here"}},
              "functions are written out where they are called, and this one would never end",
              "use `repeat` with a `state`"});
    }
  }
}

void Checker::check_definitions(Module& module) {
  // In an order where a function's callees come first, so that a broken callee silences its callers.
  std::set<const Function*> done;
  std::vector<std::pair<Function*, bool>> pending;
  for (Function* function : in_order(module)) pending.emplace_back(function, false);
  std::reverse(pending.begin(), pending.end());
  while (!pending.empty()) {
    const auto [function, callees_done] = pending.back();
    pending.pop_back();
    if (done.count(function) != 0) continue;
    if (callees_done) {
      done.insert(function);
      check_definition(module, *function);
      continue;
    }
    pending.emplace_back(function, true);
    if (function->broken) continue;
    for (const ast::Expr* call : calls_in(*function->fn)) {
      if (Function* callee = callee_of(module, *call)) pending.emplace_back(callee, false);
    }
  }
}

void Checker::check_definition(Module& module, Function& function) {
  if (function.broken) return;
  const ast::Fn& fn = *function.fn;
  const std::size_t errors_before = diagnostics_.error_count();
  ir::Program whole = std::exchange(program_, {});
  program_.signature = whole.signature;
  const bool was_defining = std::exchange(defining_, true);
  const std::size_t was_at = std::exchange(definition_at_, frames_.size());
  std::map<std::string, int, std::less<>> traces = std::exchange(traces_, {});

  Frame definition;
  definition.module = &module;
  definition.function = true;
  definition.variables = &function.variables;
  definition.call = fn.name.span;
  definition.scopes.emplace_back();
  frames_.push_back(std::move(definition));
  parameters(function);
  if (!function.takes_functions()) {
    for (const ast::Stmt& stmt : fn.body) statement(stmt);
    result_of(fn);
    close_scope(cover(fn.name.span, fn.braces ? fn.close : fn.value_span));
  }
  frames_.pop_back();

  traces_ = std::move(traces);
  definition_at_ = was_at;
  defining_ = was_defining;
  program_ = std::move(whole);
  if (diagnostics_.error_count() != errors_before) function.broken = true;
}

void Checker::parameters(Function& function) {
  bool complete = true;
  for (const ast::Param& param : function.fn->params) {
    if (param.type.function) {
      check_reserved(param.name);
      function.params.emplace_back();
      continue;
    }
    // Every name in a parameter's sizes is a size of the function itself.
    for (const ast::Dim& dim : param.type.dims) {
      if (!dim.size) continue;
      walk(*dim.size, [&](const ast::Expr& expr) {
        if (expr.kind != ast::ExprKind::name) return;
        if (!frame().sizes.emplace(expr.text, Size::variable(expr.text)).second) return;
        check_reserved({expr.text, expr.span});
        program_.sizes.push_back({expr.text, std::nullopt, expr.span});
        record_definition(Definition::Kind::size, {expr.text, expr.span}, {Type::scalar()});
      });
    }
    const std::optional<Type> type = type_of(param.type, TypeUse::annotation);
    complete = complete && type;
    Binding binding;
    binding.kind = type ? Binding::Kind::value : Binding::Kind::broken;
    if (type) {
      ir::Node node = make_node(ir::Kind::input, *type, param.name.span);
      node.index = static_cast<std::uint32_t>(program_.inputs.size());
      binding.node = program_.graph.add(std::move(node));
      program_.inputs.push_back(
          {param.name.text, *type, binding.node, ir::no_node, param.name.span});
      function.params.push_back(*type);
    }
    define(param.name, binding);
  }
  if (complete) {
    find_solution(function);
  } else {
    function.broken = true;  // also where the parser has said why, and nothing more is reported
  }
}

// How a call tells every size: each must be the only unknown of some axis, with known factors and
// summands. Axes that are a size by itself come first: they need no division, which sums do not have.
// The others are solved in the order in which they become the only one.
void Checker::find_solution(Function& function) {
  struct Axis {
    std::size_t param;
    std::size_t axis;
    std::vector<std::string> unknown;
  };
  std::vector<Axis> axes;
  std::map<std::string, std::vector<std::size_t>, std::less<>> axes_of;  // by size
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    for (std::size_t axis = 0; axis < function.params[i].rank(); ++axis) {
      axes.push_back({i, axis, function.params[i].dims[axis].size.variables()});
      for (const std::string& name : axes.back().unknown) axes_of[name].push_back(axes.size() - 1);
    }
  }
  Names known;
  for (const Axis& at : axes) {
    const auto name = function.params[at.param].dims[at.axis].size.as_variable();
    if (name && known.emplace(*name).second)
      function.solution.push_back({std::string(*name), at.param, at.axis});
  }
  std::vector<std::size_t> pending(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    pending[i] = axes.size() - 1 - i;  // the first on top
  while (!pending.empty()) {
    Axis& at = axes[pending.back()];
    pending.pop_back();
    std::erase_if(at.unknown, [&](const std::string& name) { return known.count(name) != 0; });
    if (at.unknown.size() != 1) continue;
    const std::string name = at.unknown[0];
    const std::optional<Size> factor =
        function.params[at.param].dims[at.axis].size.linear_factor(name);
    if (!factor || !divide(*factor, *factor)) continue;
    known.insert(name);
    function.solution.push_back({name, at.param, at.axis});
    const std::vector<std::size_t>& users = axes_of[name];
    pending.insert(pending.end(), users.rbegin(), users.rend());
  }
  for (Axis& at : axes) {
    std::erase_if(at.unknown, [&](const std::string& name) { return known.count(name) != 0; });
    if (at.unknown.empty()) continue;
    const std::string& name = at.unknown[0];
    report(
        {Code::UnsolvedSize,
         fmt::format("a call of `{}` would not tell the size `{}`", function.fn->name.text, name),
         {function.fn->params[at.param].type.dims[at.axis].span,
          at.unknown.size() == 1 ? fmt::format("`{}` cannot be found from this", name)
                                 : "more than one unknown size"},
         {},
         "a function's sizes are found from its arguments, one at a time",
         fmt::format("add a parameter with an axis of size `{}`", name)});
    return;
  }
}

}  // namespace starfold
