// Scopes: what a name stands for, and what is said when it stands for nothing.
#include <fmt/format.h>

#include "starfold/base/suggest.h"
#include "starfold/check/checker.h"

namespace starfold {

Binding* Checker::find(std::string_view name) {
  for (auto at = frame().scopes.rbegin(); at != frame().scopes.rend(); ++at) {
    const auto found = at->names.find(name);
    if (found != at->names.end()) return &found->second;
  }
  return nullptr;
}

bool Checker::define(const ast::Name& name, Binding binding) {
  if (name.text == "_") return true;
  if (const Op* op = options_.signature->find(name.text)) {
    report({Code::ReservedName,
            fmt::format("`{}` is the name of a built-in operation", name.text),
            {name.span, fmt::format("reserved: {}", op->doc)},
            {},
            "",
            fmt::format("choose another name, for example `{}_value`", name.text)});
    return false;
  }
  Module& module = *frame().module;
  const auto function = module.functions.find(name.text);
  const auto imported = module.imports.find(name.text);
  const auto existing = scope().names.find(name.text);
  const bool is_function = !frame().function && function != module.functions.end();
  if (existing != scope().names.end() || is_function || imported != module.imports.end()) {
    std::vector<Label> others;
    if (existing != scope().names.end()) others.push_back({existing->second.span, "first defined here"});
    if (is_function) others.push_back({function->second->name.span, "a function of this name is defined here"});
    report({Code::Redefinition,
            fmt::format("`{}` is already defined in this scope", name.text),
            {name.span, "defined again"},
            std::move(others),
            "a name keeps its meaning within a scope",
            existing != scope().names.end() && existing->second.kind == Binding::Kind::state
                ? fmt::format("to give a state a new value write `{} <- ...` inside repeat", name.text)
                : "choose another name"});
    return false;
  }
  binding.span = name.span;
  scope().names.emplace(name.text, std::move(binding));
  return true;
}

void Checker::name_type(const ast::Name& name, const Type& type) {
  if (!frame().function && !defining_) program_.name_types.push_back({name.text, type, name.span});
}

// A name for a shared value is a variable to differentiate by: it gets a node of its own, apart from
// equal values written elsewhere. The wrapper goes away after differentiation.
ir::NodeId Checker::bind_variable(const ast::Expr& value, ir::NodeId node, std::string_view name) {
  const bool alias = value.kind == ast::ExprKind::name;
  if (!alias && !type(node).federated()) {
    ir::Node wrapper = make_node(ir::Kind::variable, type(node), value.span);
    wrapper.args = {node};
    wrapper.index = next_variable_++;
    node = program_.graph.add(std::move(wrapper));
  }
  bound_.insert(node);
  if (!frame().function) program_.names.emplace(node, name);
  return node;
}

std::vector<std::string> Checker::visible_names() const {
  std::vector<std::string> names;
  for (const Scope& visible : frame().scopes) {
    for (const auto& [name, binding] : visible.names) names.push_back(name);
  }
  for (const auto& [name, size] : frame().sizes) names.push_back(name);
  return names;
}

std::nullopt_t Checker::unknown_name(const std::string& text, Span span) {
  if (frame().function && frames_.front().scopes.front().names.count(text) != 0) {
    report({Code::OutsideFunction,
            fmt::format("a function does not see `{}`", text),
            {span, "defined outside the function"},
            {{frames_.front().scopes.front().names.find(text)->second.span, "defined here"}},
            "what a function uses is visible in its parameters, so that it means the same at every call",
            fmt::format("add a parameter: `{} : ...`", text)});
    return std::nullopt;
  }
  const std::string suggestion = nearest(text, visible_names());
  const Op* op = options_.signature->find(text);
  const bool function = frame().module->functions.count(text) != 0;
  std::string help;
  if (op != nullptr) {
    help = fmt::format("`{}` is an operation and is written `{}`", text, op->surface);
  } else if (function) {
    help = fmt::format("`{0}` is a function; call it: `{0}(...)`", text);
  } else if (!suggestion.empty()) {
    help = fmt::format("did you mean `{}`?", suggestion);
  } else {
    help = "define it first with `let`, or declare it as an `input`";
  }
  report({Code::UnknownName,
          fmt::format("there is no value named `{}`", text),
          {span, op != nullptr || function ? "not a value" : "not defined here"},
          {},
          "",
          std::move(help)});
  return std::nullopt;
}

std::optional<Label> Checker::size_origin(const Size& size) const {
  const std::vector<std::string> variables = size.variables();
  if (variables.size() != 1) return std::nullopt;
  for (const ir::SizeVariable& variable : program_.sizes) {
    if (variable.name == variables[0]) {
      return Label{variable.span, fmt::format("{} is introduced here", variable.name)};
    }
  }
  return std::nullopt;
}

}  // namespace starfold
