// Files of functions: imports, recursion, and the check of each definition by itself.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/embedded_lib.h"
#include "starfold/check/checker.h"
#include "starfold/syntax/parser.h"

namespace starfold {

void Checker::load_functions(Module& module, const ast::Block& items) {
  for (const ast::Stmt& stmt : items) {
    if (const auto* import = std::get_if<ast::Import>(&stmt.node)) {
      load_import(module, *import);
    } else if (const auto* fn = std::get_if<ast::Fn>(&stmt.node)) {
      if (options_.signature->find(fn->name.text) != nullptr) {
        report({Code::ReservedName,
                fmt::format("`{}` is the name of a built-in operation", fn->name.text),
                {fn->name.span, "reserved"},
                {},
                "",
                "choose another name"});
        continue;
      }
      const auto [existing, fresh] = module.functions.emplace(fn->name.text, fn);
      if (!fresh) {
        report({Code::Redefinition,
                fmt::format("the function `{}` is already defined", fn->name.text),
                {fn->name.span, "defined again"},
                {{existing->second->name.span, "first defined here"}},
                "",
                "choose another name"});
      }
    } else if (!module.name.empty()) {
      report({Code::NotAModule,
              fmt::format("the module `{}` holds something other than functions", module.name),
              {stmt.span, "not a function"},
              {},
              "a module is a file of functions; what it computes is visible in their parameters",
              "move this into the program, or into a function"});
    }
  }
}

void Checker::load_import(Module& module, const ast::Import& import) {
  const std::string& name = import.module.text;
  if (module.imports.count(name) != 0) return;
  if (std::find(importing_.begin(), importing_.end(), name) != importing_.end()) {
    std::string circle;
    for (auto at = std::find(importing_.begin(), importing_.end(), name); at != importing_.end(); ++at) circle += *at + " imports ";
    report({Code::ImportCycle,
            fmt::format("modules import each other in a circle: {}{}", circle, name),
            {import.module.span, "this import closes the circle"},
            {},
            "",
            "move what both need into a third module"});
    module.imports.emplace(name, nullptr);
    return;
  }
  const auto loaded = modules_.find(name);
  if (loaded != modules_.end()) {
    module.imports.emplace(name, loaded->second.get());
    return;
  }
  std::optional<std::pair<std::string, std::string>> found;
  if (options_.load) found = options_.load(name);
  std::vector<std::string> known;
  for (const EmbeddedModule& embedded : embedded_modules()) {
    known.emplace_back(embedded.name);
    if (!found && embedded.name == name) found = {fmt::format("lib/{}.fold", name), std::string(embedded.text)};
  }
  if (!found) {
    std::string list;
    for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
    report({Code::UnknownModule,
            fmt::format("there is no module named `{}`", name),
            {import.module.span, fmt::format("no file {}.fold beside the program", name)},
            {},
            "",
            list.empty() ? "" : fmt::format("the library has: {}", list)});
    module.imports.emplace(name, nullptr);
    return;
  }
  auto imported = std::make_unique<Module>();
  imported->name = name;
  imported->file = parse(sources_, sources_.add(found->first, std::move(found->second)), diagnostics_);
  Module* raw = imported.get();
  modules_.emplace(name, std::move(imported));
  importing_.push_back(name);
  load_functions(*raw, raw->file.items);
  importing_.pop_back();
  find_recursion(*raw);
  check_definitions(*raw);
  module.imports.emplace(name, raw);
}

namespace {

void collect_calls(const ast::Expr& expr, std::vector<const ast::Expr*>& calls) {
  if (expr.kind == ast::ExprKind::call && !expr.module) calls.push_back(&expr);
  for (const ast::ExprPtr& arg : expr.args) collect_calls(*arg, calls);
  for (const ast::Subscript& subscript : expr.subscripts) {
    if (subscript.first) collect_calls(*subscript.first, calls);
    if (subscript.last) collect_calls(*subscript.last, calls);
  }
}

void collect_calls(const ast::Block& block, std::vector<const ast::Expr*>& calls) {
  for (const ast::Stmt& stmt : block) {
    const auto visit = [&](const auto& node) {
      using Node = std::decay_t<decltype(node)>;
      if constexpr (requires { node.value; }) {
        if (node.value) collect_calls(*node.value, calls);
      }
      if constexpr (std::is_same_v<Node, ast::Repeat>) {
        collect_calls(node.body, calls);
        if (node.until) collect_calls(*node.until, calls);
      }
    };
    std::visit(visit, stmt.node);
  }
}

}  // namespace

void Checker::find_recursion(Module& module) {
  // Depth-first over the call graph; modules cannot call back into their importers.
  std::map<const ast::Fn*, int> color;  // 0 new, 1 on the path, 2 done
  struct Step {
    const ast::Fn* fn;
    std::vector<const ast::Expr*> calls;
    std::size_t next = 0;
  };
  const auto begin = [&](const ast::Fn* fn) {
    Step step{fn, {}};
    collect_calls(fn->body, step.calls);
    if (fn->value) collect_calls(*fn->value, step.calls);
    color[fn] = 1;
    return step;
  };
  for (const auto& [name, root] : module.functions) {
    if (color[root] != 0) continue;
    std::vector<Step> path = {begin(root)};
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next == step.calls.size()) {
        color[step.fn] = 2;
        path.pop_back();
        continue;
      }
      const ast::Expr* call = step.calls[step.next++];
      const auto callee = module.functions.find(call->text);
      if (callee == module.functions.end()) continue;
      if (color[callee->second] == 1) {
        auto at = std::find_if(path.begin(), path.end(), [&](const Step& s) { return s.fn == callee->second; });
        for (; at != path.end(); ++at) module.broken.insert(at->fn);
        report({Code::Recursion,
                callee->second == step.fn ? fmt::format("`{}` calls itself", call->text)
                                          : fmt::format("`{}` calls itself through `{}`", call->text, step.fn->name.text),
                {call->span, "a recursive call"},
                {{callee->second->name.span, "defined here"}},
                "functions are written out where they are called, so a call of itself would never end",
                "use `repeat` with a `state`"});
      } else if (color[callee->second] == 0) {
        path.push_back(begin(callee->second));
      }
    }
  }
}

void Checker::check_definitions(Module& module) {
  // In an order where a function's callees come first, so that a broken callee silences its callers.
  std::set<const ast::Fn*> done;
  std::vector<std::pair<const ast::Fn*, bool>> pending;
  for (const auto& [name, fn] : module.functions) pending.emplace_back(fn, false);
  while (!pending.empty()) {
    const auto [fn, callees_done] = pending.back();
    pending.pop_back();
    if (done.count(fn) != 0) continue;
    if (callees_done) {
      done.insert(fn);
      check_definition(module, *fn);
      continue;
    }
    pending.emplace_back(fn, true);
    if (module.broken.count(fn) != 0) continue;
    std::vector<const ast::Expr*> calls;
    collect_calls(fn->body, calls);
    if (fn->value) collect_calls(*fn->value, calls);
    for (const ast::Expr* call : calls) {
      const auto callee = module.functions.find(call->text);
      if (callee != module.functions.end()) pending.emplace_back(callee->second, false);
    }
  }
}

void Checker::check_definition(Module& module, const ast::Fn& fn) {
  if (module.broken.count(&fn) != 0) return;
  const std::size_t errors_before = diagnostics_.error_count();
  ir::Program whole = std::exchange(program_, {});
  std::set<ir::NodeId> whole_bound = std::exchange(bound_, {});
  const bool was_defining = std::exchange(defining_, true);

  Frame definition;
  definition.module = &module;
  definition.function = true;
  definition.call = fn.name.span;
  definition.scopes.emplace_back();
  frames_.push_back(std::move(definition));
  bool parameters_ok = true;
  for (const ast::Param& param : fn.params) {
    // Every name in a parameter's sizes is a size of the function itself.
    const auto declare = [&](const auto& self, const ast::Expr& expr) -> void {
      if (expr.kind == ast::ExprKind::name) frame().sizes.emplace(expr.text, Size::variable(expr.text));
      for (const ast::ExprPtr& arg : expr.args) self(self, *arg);
    };
    for (const ast::Dim& dim : param.type.dims) {
      if (dim.size) declare(declare, *dim.size);
    }
    const std::optional<Type> type = type_of(param.type, TypeUse::parameter);
    Binding binding;
    binding.kind = type ? Binding::Kind::value : Binding::Kind::broken;
    parameters_ok = parameters_ok && type;
    if (type) {
      ir::Node node = make_node(ir::Kind::input, *type, param.name.span);
      node.index = static_cast<std::uint32_t>(program_.inputs.size());
      binding.node = program_.graph.add(std::move(node));
      program_.inputs.push_back({param.name.text, *type, binding.node, ir::no_node, param.name.span});
      bound_.insert(binding.node);
    }
    define(param.name, binding);
  }
  for (const ast::Stmt& stmt : fn.body) statement(stmt);
  if (fn.value) {
    const Value value = expression(*fn.value);
    if (value.size() == 1) check_declared(fn.result, type(value[0]), *fn.value);
  }
  close_scope();
  frames_.pop_back();

  defining_ = was_defining;
  program_ = std::move(whole);
  bound_ = std::move(whole_bound);
  if (!parameters_ok || diagnostics_.error_count() != errors_before) module.broken.insert(&fn);
}

}  // namespace starfold
