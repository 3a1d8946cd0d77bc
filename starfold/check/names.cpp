// Scopes: what a name stands for, and what is said when it stands for nothing.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/suggest.h"
#include "starfold/check/checker.h"
#include "starfold/check/foreign.h"

namespace starfold {

Binding* Checker::find(std::string_view name) {
  for (auto at = frame().scopes.rbegin(); at != frame().scopes.rend(); ++at) {
    const auto found = at->names.find(name);
    if (found != at->names.end()) return &found->second;
  }
  return nullptr;
}

// Reports the name of a built-in operation; the name is bound all the same, so that its uses are
// not mistakes too.
bool Checker::check_reserved(const ast::Name& name) {
  const Op* op = options_.signature->find(name.text);
  if (op == nullptr) return true;
  report({Code::ReservedName,
          fmt::format("`{}` is the name of a built-in operation", name.text),
          {name.span, fmt::format("reserved: {}", op->surface)},
          {},
          "operations mean the same in every program",
          fmt::format("choose another name, for example `my_{}`", name.text)});
  return false;
}

bool Checker::define(const ast::Name& name, Binding binding) {
  if (name.text == "_") return true;
  binding.level = blocks_.size();
  check_reserved(name);
  Module& module = *frame().module;
  const bool outermost = frame().scopes.size() == 1;
  const auto existing = scope().names.find(name.text);
  const auto function = module.functions.find(name.text);
  std::optional<Label> other;
  std::string what = "is already defined in this scope";
  if (existing != scope().names.end()) {
    other = Label{existing->second.span, "first defined here"};
    if (existing->second.kind == Binding::Kind::size) what = "is already the name of a size";
  } else if (outermost && frame().function && frame().sizes.count(name.text) != 0) {
    what = "is already the name of a size of this function";
    for (const ir::SizeVariable& size : program_.sizes) {
      if (size.name == name.text) other = Label{size.span, "first used here"};
    }
    if (!other) other = Label{name.span, ""};
  } else if (outermost && !frame().function && function != module.functions.end()) {
    other = Label{function->second.fn->name.span, "defined here"};
    what = "is already the name of a function";
  } else if (outermost && !frame().function && module.imports.count(name.text) != 0) {
    other = Label{name.span, ""};
    what = "is already the name of a module";
  }
  if (other) {
    const bool state =
        existing != scope().names.end() && existing->second.kind == Binding::Kind::state;
    std::vector<Label> others;
    if (!(other->span == name.span)) others.push_back(*other);
    report({Code::Redefinition,
            fmt::format("`{}` {}", name.text, what),
            {name.span, "defined again"},
            std::move(others),
            "a name keeps its meaning within a scope",
            state ? fmt::format("to give the state a new value write `{} <- ...` inside repeat",
                                name.text)
                  : "choose another name"});
    return false;
  }
  binding.span = name.span;
  record_definition(name, binding);
  scope().names.emplace(name.text, std::move(binding));
  return true;
}

void Checker::define_broken(const ast::Name& name) {
  Binding broken;
  broken.kind = Binding::Kind::broken;
  define(name, broken);
}

void Checker::name_type(const ast::Name& name, const Type& type) {
  if (!frame().function && name.text != "_")
    program_.name_types.push_back({name.text, type, name.span});
}

// A name that derivatives are taken by gets a node of its own: it must stay apart from equal values
// under other names, and from equal literals. The wrapper goes away after differentiation.
ir::NodeId Checker::bind_variable(ir::NodeId node, const ast::Name& name) {
  if (!type(node).federated() && frame().variables->count(name.text) != 0) {
    ir::Node wrapper = make_node(ir::Kind::variable, type(node), program_.graph[node].span);
    wrapper.args = {node};
    wrapper.index = next_variable_++;
    node = program_.graph.add(std::move(wrapper));
  }
  call_node(node, name.text);
  return node;
}

// Remembers what a node is called here, for those who read the plan.
void Checker::call_node(ir::NodeId node, const std::string& name) {
  if (name == "_") return;
  if (!frame().function) {
    program_.names.emplace(node, name);
  } else if (!defining_) {
    program_.local_names.emplace(node, ir::LocalName{name, frame().number});
  }
}

// Whether a name was lost with a statement that could not be read, or was itself reported.
bool Checker::is_lost(std::string_view name) const {
  const bool letters =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x80; });
  return !letters || frame().module->file->lost.count(name) != 0;
}

std::vector<std::string> Checker::visible_names() const {
  std::vector<std::string> names;
  for (const Scope& visible : frame().scopes) {
    for (const auto& [name, binding] : visible.names) names.push_back(name);
  }
  for (const auto& [name, size] : frame().sizes) names.push_back(name);
  return names;
}

std::nullopt_t Checker::unknown_name(const std::string& text, Span span, const char* what) {
  if (is_lost(text)) return std::nullopt;
  const auto outer = outer_names_.find(text);
  if (frame().function && frame().module->name.empty() && outer != outer_names_.end()) {
    report({Code::OutsideFunction,
            fmt::format("a function does not see `{}`", text),
            {span, "defined outside the function"},
            {{outer->second, "defined here"}},
            "a function sees its parameters only, so that it means the same at every call",
            std::string_view(what) == "size"
                ? fmt::format("add a parameter with an axis of size `{}`", text)
                : fmt::format("add a parameter for `{}`", text)});
    return std::nullopt;
  }
  if (diagnostics_.full()) {  // looking for names alike takes time, and nobody would read them
    report({Code::UnknownName, "", {span, ""}, {}, "", ""});
    return std::nullopt;
  }
  const std::string suggestion = nearest(text, visible_names());
  const Op* op = options_.signature->find(text);
  const bool function = frame().module->functions.count(text) != 0;
  const auto output = outputs_.find(text);
  const auto ended = frame().ended.find(text);
  std::vector<Label> others;
  std::string help;
  if (op != nullptr) {
    help = fmt::format("`{}` is an operation and is written `{}`", text, op->surface);
  } else if (function) {
    help = fmt::format("`{0}` is a function; call it: `{0}(...)`", text);
  } else if (frame().module->imports.count(text) != 0) {
    help = fmt::format("`{0}` is a module; call one of its functions: `{0}.name(...)`", text);
  } else if (ended != frame().ended.end()) {
    const ir::NodeId node = ended->second.node;
    others.push_back({ended->second.span, "this name ends with its loop"});
    help =
        node != ir::no_node && type(node).federated()
            ? "a state cannot keep a value per record: compute it again from the states"
            : fmt::format(
                  "keep it in a state: `state {0} = ...` before the loop, and `{0} <- ...` inside",
                  text);
  } else if (const std::string_view known = foreign_value_help(text); !known.empty()) {
    help = known;
  } else if (output != outputs_.end()) {
    others.push_back({output->second, "this names an output, not a value"});
    help = fmt::format("bind the value first, with `let {0} = ...`, then write `output {0}`", text);
  } else if (!suggestion.empty()) {
    help = fmt::format("did you mean `{}`?", suggestion);
  } else {
    help = std::string_view(what) == "size"
               ? "a size is introduced by the type of an input, or by `size k = 3`"
           : std::string_view(what) == "state"
               ? fmt::format("define it before the loop: `state {} = ...`", text)
           : frame().function ? "define it first with `let`, or add a parameter"
                              : "define it first with `let`, or declare it as an `input`";
  }
  report({Code::UnknownName,
          fmt::format("there is no {} named `{}`", what, text),
          {span, op != nullptr || function ? "not a value" : "not defined here"},
          std::move(others),
          "",
          std::move(help)});
  return std::nullopt;
}

std::optional<Label> Checker::size_origin(const Size& size) const {
  const std::vector<std::string> variables = size.variables();
  if (variables.size() != 1) return std::nullopt;
  const ir::Program& program = blocks_.empty() ? program_ : blocks_.front().outer;
  for (const ir::SizeVariable& variable : program.sizes) {
    if (variable.name == variables[0]) {
      return Label{variable.span, fmt::format("`{}` is introduced here", variable.name)};
    }
  }
  return std::nullopt;
}

}  // namespace starfold
