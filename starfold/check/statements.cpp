// Statements: lets, states, loops, traces, outputs.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/check/checker.h"

namespace starfold {
namespace {

// The states that a loop body updates and does not declare itself.
void updated_states(const ast::Block& body, std::vector<std::string>& found) {
  std::set<std::string, std::less<>> local;
  for (const ast::Stmt& stmt : body) {
    const auto add = [&](const std::string& name) {
      if (local.count(name) == 0 && std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
    };
    if (const auto* state = std::get_if<ast::State>(&stmt.node)) local.insert(state->name.text);
    if (const auto* let = std::get_if<ast::Let>(&stmt.node)) {
      for (const ast::Name& name : let->names) local.insert(name.text);
    }
    if (const auto* update = std::get_if<ast::Update>(&stmt.node)) add(update->name.text);
    if (const auto* inner = std::get_if<ast::Repeat>(&stmt.node)) {
      std::vector<std::string> nested;
      updated_states(inner->body, nested);
      for (const std::string& name : nested) add(name);
    }
  }
}

}  // namespace

void Checker::statement(const ast::Stmt& stmt) {
  const auto handle = [&](const auto& node) {
    using Node = std::decay_t<decltype(node)>;
    if constexpr (std::is_same_v<Node, ast::SizeDecl>) size_declaration(node);
    if constexpr (std::is_same_v<Node, ast::Input>) input(node);
    if constexpr (std::is_same_v<Node, ast::Let>) let(node);
    if constexpr (std::is_same_v<Node, ast::State>) state(node);
    if constexpr (std::is_same_v<Node, ast::Update>) update(node);
    if constexpr (std::is_same_v<Node, ast::Repeat>) repeat(node, stmt.span);
    if constexpr (std::is_same_v<Node, ast::Trace>) trace(node);
    if constexpr (std::is_same_v<Node, ast::Output>) output(node);
    // Imports and functions were read before the first statement.
  };
  std::visit(handle, stmt.node);
}

void Checker::size_declaration(const ast::SizeDecl& decl) {
  const std::optional<Size> size = positive_size(*decl.value);
  Binding binding;
  binding.kind = Binding::Kind::size;
  binding.size = Size::variable(decl.name.text);
  if (!define(decl.name, binding) || !size) return;
  if (!size->is_constant()) {
    report({Code::NotASize, "a declared size needs an integer value", {decl.value->span, "not an integer"}, {}, "", ""});
    return;
  }
  program_.sizes.push_back({decl.name.text, size->constant(), decl.name.span});
  name_type(decl.name, Type::scalar());
}

void Checker::input(const ast::Input& decl) {
  const std::optional<Type> type = type_of(decl.type, TypeUse::input);
  if (!type) {
    Binding broken;
    broken.kind = Binding::Kind::broken;
    define(decl.name, broken);
    return;
  }
  ir::NodeId fallback = ir::no_node;
  if (decl.fallback) {
    if (type->federated()) {
      report({Code::FederatedDefault,
              fmt::format("the federated input `{}` cannot have a default", decl.name.text),
              {decl.fallback->span, "a value known to everyone"},
              {{decl.type.span, "records come from the clients"}},
              "records live on the clients; only they can supply them",
              "remove the default, or drop the star"});
    } else if (const std::optional<ir::NodeId> value = single(*decl.fallback)) {
      fallback = *value;
      if (!(this->type(*value) == *type)) {
        report({Code::DeclaredType,
                fmt::format("the default is {}, but the input is {}", this->type(*value).to_string(), type->to_string()),
                {decl.fallback->span, fmt::format("this is {}", this->type(*value).to_string())},
                {{decl.type.span, fmt::format("{} is declared here", type->to_string())}},
                "",
                ""});
      }
    }
  }
  ir::Node node = make_node(ir::Kind::input, *type, decl.name.span);
  node.index = static_cast<std::uint32_t>(program_.inputs.size());
  const ir::NodeId id = program_.graph.add(std::move(node));
  Binding binding;
  binding.node = id;
  if (!define(decl.name, binding)) return;
  program_.inputs.push_back({decl.name.text, *type, id, fallback, decl.name.span});
  program_.names.emplace(id, decl.name.text);
  bound_.insert(id);
  name_type(decl.name, *type);
}

void Checker::let(const ast::Let& let) {
  Value value = expression(*let.value);
  const auto define_broken = [&] {
    for (const ast::Name& name : let.names) {
      Binding broken;
      broken.kind = Binding::Kind::broken;
      define(name, broken);
    }
  };
  if (value.empty()) return define_broken();
  if (value.size() != let.names.size()) {
    report({value.size() > 1 && !let.tuple ? Code::NotAValue : Code::TupleMismatch,
            value.size() == 1 ? fmt::format("one value is bound to {} names", let.names.size())
            : !let.tuple      ? fmt::format("{} results are bound to one name", value.size())
                              : fmt::format("{} results are bound to {} names", value.size(), let.names.size()),
            {let.value->span, fmt::format("{} {}", value.size(), value.size() == 1 ? "value" : "results")},
            {},
            "",
            value.size() > 1 ? fmt::format("bind each result: `let (a, b{}) = ...`", value.size() > 2 ? ", ..." : "") : "write `let name = ...`"});
    return define_broken();
  }
  if (let.type && !check_declared(let.type, type(value[0]), *let.value)) return define_broken();
  for (std::size_t i = 0; i < value.size(); ++i) {
    Binding binding;
    binding.node = bind_variable(*let.value, value[i], let.names[i].text);
    binding.is_let = true;
    if (define(let.names[i], binding)) name_type(let.names[i], type(binding.node));
  }
}

void Checker::state(const ast::State& state) {
  const std::optional<ir::NodeId> value = single(*state.value);
  Binding binding;
  binding.kind = Binding::Kind::broken;
  if (value && type(*value).federated()) {
    report({Code::FederatedState,
            "a federated value cannot be kept in a state",
            {state.value->span, fmt::format("{} is split across clients by its record axis", type(*value).to_string())},
            {},
            "only shared values pass from one round to the next (round-wise shared memory)",
            "use `let` for per-record values, or fold the record axis first"});
  } else if (value && check_declared(state.type, type(*value), *state.value)) {
    binding.kind = Binding::Kind::state;
    binding.node = bind_variable(*state.value, *value, state.name.text);
  }
  if (define(state.name, binding) && binding.kind == Binding::Kind::state) name_type(state.name, type(binding.node));
}

void Checker::update(const ast::Update& update) {
  const std::optional<ir::NodeId> value = single(*update.value);
  Binding* binding = find(update.name.text);
  if (binding == nullptr) {
    unknown_name(update.name.text, update.name.span);
    return;
  }
  if (binding->kind == Binding::Kind::broken) return;
  if (binding->kind != Binding::Kind::state) {
    report({Code::UpdateOfNonState,
            fmt::format("`{}` is not a state", update.name.text),
            {update.name.span, "only a state can be updated"},
            {{binding->span, "defined here"}},
            "",
            fmt::format("define it as `state {} = ...` before the loop, or use a new `let`", update.name.text)});
    return;
  }
  if (current_loop() == ir::no_loop) {
    report({Code::UpdateOutsideRepeat,
            fmt::format("`{}` is updated outside repeat", update.name.text),
            {update.name.span, "no loop here"},
            {{binding->span, "the state is defined here"}},
            "a state changes from one iteration to the next",
            "put the update into a `repeat` block, or use a new `let`"});
    return;
  }
  if (!value) return;
  if (!(type(*value) == type(binding->node))) {
    report({type(*value).federated() ? Code::FederatedState : Code::StateType,
            type(*value).federated()
                ? std::string("a federated value cannot be kept in a state")
                : fmt::format("`{}` is {}, but its new value is {}", update.name.text, type(binding->node).to_string(),
                              type(*value).to_string()),
            {update.value->span, fmt::format("this is {}", type(*value).to_string())},
            {{binding->span, fmt::format("the state is {}", type(binding->node).to_string())}},
            type(*value).federated() ? "only shared values pass from one round to the next (round-wise shared memory)"
                                     : "a state keeps its type through all iterations",
            type(*value).federated() ? "fold the record axis first" : ""});
    return;
  }
  binding->node = bind_variable(*update.value, *value, update.name.text);
}

void Checker::repeat(const ast::Repeat& repeat, Span span) {
  const std::optional<ir::NodeId> count = shared_scalar(*repeat.count, "the number of iterations");
  const auto loop_id = static_cast<ir::LoopId>(program_.loops.size());
  ir::Loop loop;
  loop.parent = current_loop();
  loop.depth = loop.parent == ir::no_loop ? 1 : program_.loops[loop.parent].depth + 1;
  loop.count = count ? *count : constant(Tensor::scalar(0), repeat.count->span);
  loop.span = span;

  std::vector<std::string> updated;
  updated_states(repeat.body, updated);
  std::vector<std::string> carried_names;
  for (const std::string& name : updated) {
    Binding* binding = find(name);
    if (binding == nullptr || binding->kind != Binding::Kind::state) continue;
    ir::Carried carried{name, type(binding->node), binding->node, ir::no_node, ir::no_node};
    ir::Node param = make_node(ir::Kind::loop_param, carried.type, binding->span);
    param.index = loop_id;
    param.slot = static_cast<std::uint32_t>(carried_names.size());
    carried.param = program_.graph.add(std::move(param));
    program_.names.emplace(carried.param, name);
    bound_.insert(carried.param);
    binding->node = carried.param;
    loop.carried.push_back(std::move(carried));
    carried_names.push_back(name);
  }
  program_.loops.push_back(std::move(loop));

  frame().scopes.emplace_back().loop = loop_id;
  for (const ast::Stmt& stmt : repeat.body) statement(stmt);
  if (repeat.until) until(repeat, loop_id);
  close_scope();

  for (std::uint32_t slot = 0; slot < carried_names.size(); ++slot) {
    Binding* binding = find(carried_names[slot]);
    program_.loops[loop_id].carried[slot].next = binding->node;
    ir::Node result = make_node(ir::Kind::loop_result, type(binding->node), binding->span);
    result.index = loop_id;
    result.slot = slot;
    binding->node = program_.graph.add(std::move(result));
    program_.names.emplace(binding->node, carried_names[slot]);
    bound_.insert(binding->node);
  }
}

void Checker::until(const ast::Repeat& repeat, ir::LoopId loop) {
  const std::optional<ir::NodeId> condition = shared_scalar(*repeat.until, "the condition of `until`");
  if (!condition) return;
  program_.loops[loop].until = *condition;
  // Loop-carried values end a loop; anything else is the same in every iteration. While the loop is
  // open its own `next` values are not yet known, so the search stops at loop parameters.
  std::vector<ir::NodeId> pending = {*condition};
  std::set<ir::NodeId> seen;
  while (!pending.empty()) {
    const ir::NodeId id = pending.back();
    pending.pop_back();
    if (!seen.insert(id).second) continue;
    const ir::Node& node = program_.graph[id];
    if (node.kind == ir::Kind::loop_param && node.index == loop) return;
    if (node.kind == ir::Kind::loop_result) {
      for (const ir::Carried& carried : program_.loops[node.index].carried) {
        pending.push_back(carried.init);
        pending.push_back(carried.next);
      }
    }
    pending.insert(pending.end(), node.args.begin(), node.args.end());
  }
  if (frame().function && !defining_) return;
  report({Code::ConstantUntil,
          "this condition is the same in every iteration",
          {repeat.until->span, "it depends on no state that the loop updates"},
          {},
          "",
          "compare something that the body changes, or leave `until` out"});
}

void Checker::trace(const ast::Trace& trace) {
  const std::optional<ir::NodeId> value = shared_scalar(*trace.value, "a trace");
  if (!value) return;
  std::string name = trace.name.text;
  const auto taken = [&](const std::string& text) {
    for (const ir::Trace& other : program_.traces) {
      if (other.name == text) return &other;
    }
    return static_cast<const ir::Trace*>(nullptr);
  };
  if (const ir::Trace* first = taken(name)) {
    if (!frame().function) {
      report({Code::Redefinition,
              fmt::format("there is already a trace named `{}`", name),
              {trace.name.span, "traced again"},
              {{first->span, "first traced here"}},
              "",
              "give each trace its own name"});
      return;
    }
    // A function called twice traces twice.
    for (int i = 2; taken(name) != nullptr; ++i) name = fmt::format("{}_{}", trace.name.text, i);
  }
  program_.traces.push_back({std::move(name), *value, current_loop(), trace.name.span});
}

void Checker::output(const ast::Output& output) {
  std::optional<ir::NodeId> value;
  Span span = output.name.span;
  if (output.value) {
    value = single(*output.value);
    span = output.value->span;
    if (const Binding* other = find(output.name.text)) {
      report({Code::Redefinition,
              fmt::format("`{}` is already defined in this scope", output.name.text),
              {output.name.span, "an output of the same name with another value"},
              {{other->span, "first defined here"}},
              "",
              fmt::format("write `output {}` to give out that value, or choose another name", output.name.text)});
      return;
    }
  } else {
    ast::Expr reference;
    reference.kind = ast::ExprKind::name;
    reference.text = output.name.text;
    reference.span = span;
    value = single(reference);
  }
  if (!value) return;
  if (type(*value).federated()) {
    const std::string written = output.value ? text(span) : output.name.text;
    report({Code::FederatedOutput,
            "a federated value cannot be an output",
            {span, fmt::format("{} is split across clients by its record axis", type(*value).to_string())},
            {},
            "",
            fmt::format("fold the record axis first, for example: output {} = sum[*]({})",
                        output.value ? output.name.text : "total", written)});
    return;
  }
  for (const ir::Output& other : program_.outputs) {
    if (other.name != output.name.text) continue;
    report({Code::Redefinition,
            fmt::format("there is already an output named `{}`", output.name.text),
            {output.name.span, "given out again"},
            {{other.span, "first given out here"}},
            "",
            "give each output its own name"});
    return;
  }
  program_.outputs.push_back({output.name.text, *value, output.name.span});
  if (output.value) {
    program_.names.emplace(*value, output.name.text);
    name_type(output.name, type(*value));
  }
}

void Checker::close_scope() {
  for (const auto& [name, binding] : scope().names) {
    if (!binding.is_let || binding.used || name[0] == '_') continue;
    if (frame().function && !defining_) continue;
    report({Code::UnusedLet,
            fmt::format("`{}` is never used", name),
            {binding.span, "computed by nobody"},
            {},
            "",
            fmt::format("remove it, or write `_{}` to keep it", name)});
  }
  frame().scopes.pop_back();
}

}  // namespace starfold
