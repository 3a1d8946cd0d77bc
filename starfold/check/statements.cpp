// Statements: lets, states, loops, traces, conditions, outputs.
#include <fmt/format.h>

#include "starfold/check/checker.h"

namespace starfold {

// The states that a loop body updates and does not declare itself, each once.
void updated_states(const ast::Block& body, std::vector<std::string>& found, Names& seen) {
  Names local;
  const auto add = [&](const std::string& name) {
    if (local.count(name) == 0 && seen.insert(name).second) found.push_back(name);
  };
  for (const ast::Stmt& stmt : body) {
    if (const auto* state = std::get_if<ast::State>(&stmt.node)) local.insert(state->name.text);
    if (const auto* let = std::get_if<ast::Let>(&stmt.node)) {
      for (const ast::Name& name : let->names) local.insert(name.text);
    }
    if (const auto* update = std::get_if<ast::Update>(&stmt.node)) add(update->name.text);
    if (const auto* inner = std::get_if<ast::Repeat>(&stmt.node)) {
      std::vector<std::string> nested;
      Names seen_nested;
      updated_states(inner->body, nested, seen_nested);
      for (const std::string& name : nested) add(name);
    }
  }
}

namespace {

// Where a state gets the value that it has after a block; `otherwise` when that is in a loop inside it.
Span last_update(const ast::Block& body, const std::string& name, Span otherwise) {
  for (auto stmt = body.rbegin(); stmt != body.rend(); ++stmt) {
    const auto* update = std::get_if<ast::Update>(&stmt->node);
    if (update != nullptr && update->name.text == name) return update->value->span;
  }
  return otherwise;
}

}  // namespace

void Checker::statement(const ast::Stmt& stmt) {
  if (given_up()) return;
  const auto handle = [&](const auto& node) {
    using Node = std::decay_t<decltype(node)>;
    if constexpr (std::is_same_v<Node, ast::SizeDecl>) size_declaration(node);
    if constexpr (std::is_same_v<Node, ast::Input>) input(node);
    if constexpr (std::is_same_v<Node, ast::Let>) let(node);
    if constexpr (std::is_same_v<Node, ast::State>) state(node);
    if constexpr (std::is_same_v<Node, ast::Update>) update(node);
    if constexpr (std::is_same_v<Node, ast::Repeat>) repeat(node, stmt.span);
    if constexpr (std::is_same_v<Node, ast::Trace>) trace(node);
    if constexpr (std::is_same_v<Node, ast::Demand>) demand(node, stmt.span);
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
  program_.sizes.push_back({decl.name.text, size->constant(), decl.name.span});
  name_type(decl.name, Type::scalar());
}

// The value of an input that is not bound; no_node when there is none.
ir::NodeId Checker::default_value(const ast::Input& decl, const Type& declared) {
  if (!decl.fallback) return ir::no_node;
  const std::optional<ir::NodeId> value = single(*decl.fallback);
  if (declared.federated()) {
    report({Code::FederatedDefault,
            fmt::format("the federated input `{}` cannot have a default", decl.name.text),
            {decl.fallback->span, "a value known to everyone"},
            {{decl.type.span, "records come from the clients"}},
            "records live on the clients, and only they can supply them",
            "remove the default, or the star from the type"});
    return ir::no_node;
  }
  if (!value || !check_declared(decl.type, type(*value), *decl.fallback)) return ir::no_node;
  return *value;
}

void Checker::input(const ast::Input& decl) {
  const std::optional<Type> type = type_of(decl.type, TypeUse::input);
  if (!type) {
    if (decl.fallback) single(*decl.fallback);
    return define_broken(decl.name);
  }
  const ir::NodeId fallback = default_value(decl, *type);
  if (options_.base) check_base_input(*type, decl.type.span);
  ir::Node node = make_node(ir::Kind::input, *type, decl.name.span);
  node.index = static_cast<std::uint32_t>(program_.inputs.size());
  const ir::NodeId id = program_.graph.add(std::move(node));
  Binding binding;
  binding.node = id;
  if (!define(decl.name, binding)) return;
  program_.inputs.push_back({decl.name.text, *type, id, fallback, decl.name.span});
  program_.names.emplace(id, decl.name.text);
  name_type(decl.name, *type);
}

void Checker::let(const ast::Let& let) {
  const Value value = expression(*let.value);
  const auto all_broken = [&] {
    for (const ast::Name& name : let.names) define_broken(name);
  };
  if (value.empty()) return all_broken();
  if (value.size() != let.names.size()) {
    const bool several = value.size() > 1;
    std::string names;
    for (std::size_t i = 0; i < value.size() && i < 4; ++i) {
      names += (names.empty() ? "" : ", ") + std::string(1, static_cast<char>('a' + i));
    }
    report(
        {several && !let.tuple ? Code::NotAValue : Code::TupleMismatch,
         !several     ? fmt::format("one value is bound to {} names", let.names.size())
         : !let.tuple ? fmt::format("{} results are bound to one name", value.size())
                      : fmt::format("{} results are bound to {} name{}", value.size(),
                                    let.names.size(), let.names.size() == 1 ? "" : "s"),
         {let.value->span, several ? fmt::format("{} results", value.size())
                                   : fmt::format("a single value: {}", type(value[0]).to_string())},
         {},
         "",
         several ? fmt::format("give each result a name: `let ({}) = ...`", names)
                 : "write `let name = ...`"});
    return all_broken();
  }
  if (let.type && !check_declared(*let.type, type(value[0]), *let.value)) return all_broken();
  for (std::size_t i = 0; i < value.size(); ++i) {
    Binding binding;
    binding.node = bind_variable(value[i], let.names[i]);
    binding.is_let = true;
    if (define(let.names[i], binding)) name_type(let.names[i], type(binding.node));
  }
}

void Checker::state(const ast::State& state) {
  if (state.at_client) return private_state(state);
  const std::optional<ir::NodeId> value = single(*state.value);
  if (value && type(*value).federated()) {
    report({Code::FederatedState,
            "a federated value cannot be kept in a state",
            {state.value->span, fmt::format("{} is split across clients by its record axis",
                                            type(*value).to_string())},
            {},
            "only shared values pass from one round to the next",
            at_client()
                ? fmt::format("use `let` for a value per record, or fold the record axis first: "
                              "sum[*]({})",
                              text(state.value->span))
                : fmt::format("use `let` for a value per record, `private state` for one that "
                              "stays at the clients, or fold the record axis first: sum[*]({})",
                              text(state.value->span))});
    return define_broken(state.name);
  }
  if (!value) {
    if (state.type) type_of(*state.type, TypeUse::annotation);
    return define_broken(state.name);
  }
  if (state.type && !check_declared(*state.type, type(*value), *state.value))
    return define_broken(state.name);
  Binding binding;
  binding.kind = Binding::Kind::state;
  binding.node = bind_variable(*value, state.name);
  if (define(state.name, binding)) name_type(state.name, type(binding.node));
}

void Checker::update(const ast::Update& update) {
  const std::optional<ir::NodeId> value = single(*update.value);
  const std::string& name = update.name.text;
  Binding* binding = find(name);
  if (binding == nullptr) {
    unknown_name(name, update.name.span, "state");
    return;
  }
  record_use(update.name.span, binding->span);
  if (binding->kind == Binding::Kind::broken) return;
  if (binding->kind != Binding::Kind::state) {
    report({Code::UpdateOfNonState,
            fmt::format("`{}` is not a state", name),
            {update.name.span, "only a state can be updated"},
            {{binding->span, "defined here"}},
            "",
            fmt::format(
                "define it as `state {} = ...` before the loop, or bind the new value with `let`",
                name)});
    return;
  }
  if (binding->level < blocks_.size()) {
    report(
        {Code::OuterState,
         fmt::format("`{}` is a state from outside `each client`", name),
         {update.name.span, "updated inside"},
         {{binding->span, "the state is defined here"}},
         "each client would give it a value of its own",
         fmt::format(
             "begin with `state my_{0} = {0}` inside, make it the result of the block, and update "
             "`{0}` after it",
             name)});
    return;
  }
  if (current_loop() == ir::no_loop && !binding->carried) {
    report({Code::UpdateOutsideRepeat,
            fmt::format("`{}` is updated outside repeat", name),
            {update.name.span, "no loop here"},
            {{binding->span, "the state is defined here"}},
            "a state changes from one iteration to the next",
            "put the update into a `repeat` block, or bind the new value with `let`"});
    return;
  }
  if (!value) return;
  const Type& before = type(binding->node);
  const Type& after = type(*value);
  if (after.federated() && !before.federated()) {
    report({Code::FederatedState,
            "a federated value cannot be kept in a state",
            {update.value->span,
             fmt::format("{} is split across clients by its record axis", after.to_string())},
            {{binding->span, fmt::format("the state is {}", before.to_string())}},
            "only shared values pass from one round to the next",
            fmt::format("fold the record axis first, for example: sum[*]({})",
                        text(update.value->span))});
  } else if (!(after == before)) {
    report({Code::StateType,
            fmt::format("the state `{}` is {}, but its new value is {}", name, before.to_string(),
                        after.to_string()),
            {update.value->span, fmt::format("this is {}", after.to_string())},
            {{binding->span, fmt::format("the state is {}", before.to_string())}},
            "a state keeps its type through all iterations",
            before.federated() && !after.federated()
                ? "the new value of a private state is a value per record, as the state is"
            : before.rank() == after.rank()
                ? "values of changing shape are written as successive `let`s"
                : "fold or index the new value, or give the state that type from the start"});
  } else {
    binding->node = bind_variable(*value, update.name);
  }
}

// Opens a loop: inside it each state that its body updates is a parameter. Returns their names.
std::vector<std::string> Checker::open_loop(const ast::Repeat& repeat, ir::LoopId id,
                                            ir::Loop loop) {
  std::vector<std::string> updated;
  Names seen;
  updated_states(repeat.body, updated, seen);
  std::vector<std::string> carried_names;
  for (const std::string& name : updated) {
    Binding* binding = find(name);
    if (binding == nullptr || binding->kind != Binding::Kind::state) continue;
    if (binding->level != blocks_.size()) continue;  // its update is reported
    ir::Carried carried{name, type(binding->node), binding->node, ir::no_node, ir::no_node};
    ir::Node param = make_node(ir::Kind::loop_param, carried.type, binding->span);
    param.index = id;
    param.slot = static_cast<std::uint32_t>(carried_names.size());
    carried.param = program_.graph.add(std::move(param));
    call_node(carried.param, name);
    binding->node = carried.param;
    loop.carried.push_back(std::move(carried));
    carried_names.push_back(name);
  }
  program_.loops.push_back(std::move(loop));
  frame().scopes.emplace_back().loop = id;
  return carried_names;
}

void Checker::repeat(const ast::Repeat& repeat, Span span) {
  if (repeat.seed) return batches(repeat, span);
  const std::optional<ir::NodeId> count = shared_scalar(*repeat.count, "the number of iterations");
  if (options_.base && count) check_base_loop(repeat, *count);
  const auto id = static_cast<ir::LoopId>(program_.loops.size());
  ir::Loop loop;
  loop.parent = current_loop();
  loop.count = count ? *count : constant(Tensor::scalar(0), repeat.count->span);
  loop.span = span;
  const std::vector<std::string> carried_names = open_loop(repeat, id, std::move(loop));
  for (const ast::Stmt& stmt : repeat.body) statement(stmt);
  if (repeat.until) until(repeat, id);
  close_scope(span);

  for (std::uint32_t slot = 0; slot < carried_names.size(); ++slot) {
    Binding* binding = find(carried_names[slot]);
    program_.loops[id].carried[slot].next = binding->node;
    if (options_.base)
      check_base_value(binding->node, last_update(repeat.body, carried_names[slot], binding->span));
    ir::Node result = make_node(ir::Kind::loop_result, type(binding->node), binding->span);
    result.index = id;
    result.slot = slot;
    binding->node = program_.graph.add(std::move(result));
    call_node(binding->node, carried_names[slot]);
  }
}

void Checker::until(const ast::Repeat& repeat, ir::LoopId loop) {
  const std::optional<ir::NodeId> condition =
      shared_scalar(*repeat.until, "the condition of `until`");
  if (!condition) return;
  program_.loops[loop].until = *condition;
  if (!says_warnings() || diagnostics_.has_errors()) return;
  // What differs between iterations depends on a state that the loop carries.
  const std::vector<ir::Carried>& carried = program_.loops[loop].carried;
  const ir::NodeId oldest = carried.empty() ? ir::no_node : carried.front().param;
  const auto is_carried = [&](ir::NodeId id) {
    const ir::Node& node = program_.graph[id];
    return node.kind == ir::Kind::loop_param && node.index == loop;
  };
  if (varies_with(*condition, is_carried, oldest, false)) return;
  report({Code::ConstantUntil,
          "this condition is the same in every iteration",
          {repeat.until->span, "it depends on no state that the loop updates"},
          {},
          "the loop stops after its first iteration or never",
          "compare something that changes with a state, or leave `until` out"});
}

void Checker::trace(const ast::Trace& trace) {
  if (refuse_inside("trace", trace.name.span,
                    "make it a result of the block, fold it, and trace that")) {
    single(*trace.value);
    return;
  }
  const std::optional<ir::NodeId> value = shared_scalar(*trace.value, "a trace");
  record_definition(Definition::Kind::trace, trace.name, {Type::scalar()});
  std::string name = trace.name.text;
  const auto [taken, fresh] = traces_.emplace(name, 1);
  if (!fresh && !frame().function) {
    std::vector<Label> first;
    for (const ir::Trace& other : program_.traces) {
      if (other.name == name) first.push_back({other.span, "first traced here"});
    }
    report({Code::Redefinition,
            fmt::format("there is already a trace named `{}`", name),
            {trace.name.span, "traced again"},
            std::move(first),
            "",
            "give each trace its own name"});
    return;
  }
  // A function called twice traces twice.
  while (!fresh) {
    name = fmt::format("{}_{}", trace.name.text, ++taken->second);
    if (traces_.emplace(name, 1).second) break;
  }
  if (value && options_.base) check_base_value(*value, trace.value->span);
  if (value) program_.traces.push_back({std::move(name), *value, current_loop(), trace.name.span});
}

// Conditions see shared values only: what they tell was folded before.
void Checker::demand(const ast::Demand& demand, Span span) {
  const std::optional<ir::NodeId> value = single(*demand.value);
  if (!value) return;
  const Type& actual = type(*value);
  if (actual.federated() || actual.rank() > 1) {
    report(
        {actual.federated() ? Code::FederatedScalar : Code::NotAScalar,
         fmt::format("a condition must be a shared number or vector, not {}", actual.to_string()),
         {demand.value->span, fmt::format("this is {}", actual.to_string())},
         {},
         "what a condition tells is known to everyone",
         actual.federated()
             ? fmt::format("count the records for which it fails: sum[*](not ({})) == 0",
                           text(demand.value->span))
             : "fold an axis first, for example with all[2]"});
    return;
  }
  if (options_.base) check_base_value(*value, demand.value->span);
  program_.traces.push_back({"", *value, current_loop(), span,
                             demand.must ? ir::Trace::Kind::require : ir::Trace::Kind::expect,
                             demand.sentence});
}

void Checker::output(const ast::Output& output) {
  if (output.kept) return keep(output);
  std::optional<ir::NodeId> value;
  Span span = output.name.span;
  if (output.value) {
    value = single(*output.value);
    span = output.value->span;
  } else {
    ast::Expr reference;
    reference.kind = ast::ExprKind::name;
    reference.text = output.name.text;
    reference.span = reference.text_span = span;
    value = single(reference);
  }
  const auto [first, fresh] = outputs_.emplace(output.name.text, output.name.span);
  if (!fresh) {
    report({Code::Redefinition,
            fmt::format("there is already an output named `{}`", output.name.text),
            {output.name.span, "given out again"},
            {{first->second, "first given out here"}},
            "",
            "give each output its own name"});
    return;
  }
  if (!value) return;
  if (type(*value).federated()) {
    report({Code::FederatedOutput,
            "a federated value cannot be an output",
            {span, fmt::format("{} is split across clients by its record axis",
                               type(*value).to_string())},
            {},
            "",
            fmt::format("fold the record axis first, for example: output {} = sum[*]({})",
                        output.value ? output.name.text : "total", text(span))});
    return;
  }
  if (options_.base) check_base_value(*value, span);
  program_.outputs.push_back({output.name.text, *value, output.name.span});
  if (output.value) {
    record_definition(Definition::Kind::output, output.name, {type(*value)});
    program_.names.emplace(*value, output.name.text);
    name_type(output.name, type(*value));
  }
}

void Checker::close_scope(Span whole) {
  end_visible(scope(), whole);
  // Where text could not be read, uses may have been lost with it.
  const bool warn = says_warnings() && !frame().module->file->damaged;
  for (const auto& [name, binding] : scope().names) {
    if (!warn || !binding.is_let || binding.used || name[0] == '_') continue;
    report({Code::UnusedLet,
            fmt::format("`{}` is never used", name),
            {binding.span, "nothing depends on it"},
            {},
            "",
            fmt::format("remove it, or name it `_{}` to keep it", name)});
  }
  for (auto& [name, binding] : scope().names) {
    if (binding.level > 0) binding.node = ir::no_node;  // of a program that is not this one
    frame().ended.insert_or_assign(name, binding);
  }
  frame().scopes.pop_back();
}

}  // namespace starfold
