// Values per client: each client, batches of records, private states, results that stay.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/check/checker.h"
#include "starfold/ir/builder.h"

namespace starfold {

// Whether what is being read runs at one client. A function is not known to, until it is called.
bool Checker::at_client() const { return !blocks_.empty() || (defining_ && frame().function); }

std::string Checker::record_set_here() const {
  const auto found = frame().record_sets.find("");
  return found == frame().record_sets.end() ? "" : found->second;
}

// Reports a statement that cannot stand inside a block; false outside of one.
bool Checker::refuse_inside(const char* what, Span span, const char* help) {
  if (blocks_.empty()) return false;
  report({Code::InsideClient,
          fmt::format("`{}` cannot stand inside `each client`", what),
          {span, "only outside of the block"},
          {},
          "a block is a part of what each client computes on its own",
          help});
  return true;
}

// From here on nodes are those of the body.
void Checker::open_block(ir::Local local) {
  OpenBlock block;
  block.local = std::move(local);
  ir::Program body;
  body.signature = program_.signature;
  block.outer = std::exchange(program_, std::move(body));
  block.base_numbers = std::exchange(base_numbers_, {});
  blocks_.push_back(std::move(block));
}

// What a node outside block number `block` is inside it: an input of the body. Literals and sizes are the same anywhere.
ir::NodeId Checker::capture(std::size_t block, ir::NodeId node) {
  OpenBlock& open = blocks_[block];
  if (const auto known = open.inside.find(node); known != open.inside.end()) return known->second;
  ir::Program& body = block + 1 < blocks_.size() ? blocks_[block + 1].outer : program_;
  const ir::Node& outer = open.outer.graph[node];
  if (outer.kind == ir::Kind::constant || outer.kind == ir::Kind::size)
    return open.inside[node] = body.graph.add(outer);
  std::string name = fmt::format("v{}", body.inputs.size() + 1);
  const auto named = open.outer.names.find(node);
  const auto local = open.outer.local_names.find(node);
  if (named != open.outer.names.end()) {
    name = named->second;
  } else if (local != open.outer.local_names.end()) {
    name = local->second.name;
  }
  const auto taken = [&] {
    return std::any_of(body.inputs.begin(), body.inputs.end(),
                       [&](const ir::Input& input) { return input.name == name; });
  };
  for (int number = 2; taken(); ++number) name = fmt::format("{}_{}", name, number);
  ir::Node input =
      make_node(ir::Kind::input, ir::seen_inside(open.local, outer.type()), outer.span);
  input.index = static_cast<std::uint32_t>(body.inputs.size());
  const Type type = input.type();
  const ir::NodeId inside = body.graph.add(std::move(input));
  body.inputs.push_back({name, type, inside, ir::no_node, outer.span});
  body.names.emplace(inside, std::move(name));
  open.operands.push_back(node);
  return open.inside[node] = inside;
}

// The node that a name stands for here: through every block that was opened since it was bound.
ir::NodeId Checker::resolve(const Binding& binding) {
  ir::NodeId node = binding.node;
  for (std::size_t block = binding.level; block < blocks_.size(); ++block)
    node = capture(block, node);
  return node;
}

// Ends a block: its node in the program around, or none after a mistake. `first` are operands before those that the
// body has captured.
Value Checker::close_block(std::vector<ir::NodeId> first, Span span) {
  OpenBlock block = std::move(blocks_.back());
  blocks_.pop_back();
  block.local.body = std::exchange(program_, std::move(block.outer));
  base_numbers_ = std::move(block.base_numbers);
  std::vector<ir::NameType>& names = block.local.body.name_types;
  program_.name_types.insert(program_.name_types.end(), names.begin(), names.end());
  names.clear();
  if (block.local.body.outputs.empty()) return {};
  ir::Node node;
  node.kind = ir::Kind::local;
  node.args = std::move(first);
  node.args.insert(node.args.end(), block.operands.begin(), block.operands.end());
  node.block = ir::make_local(std::move(block.local));
  node.types = ir::local_types(*node.block);
  node.span = place(span);
  const std::vector<Type> types = node.types;
  const ir::NodeId id = program_.graph.add(std::move(node));
  if (types.size() == 1) return {id};
  Value value;
  for (std::uint32_t i = 0; i < types.size(); ++i) {
    ir::Node part = make_node(ir::Kind::project, types[i], span);
    part.args = {id};
    part.index = i;
    value.push_back(program_.graph.add(std::move(part)));
  }
  return value;
}

Value Checker::each_client(const ast::Expr& expr) {
  if (!blocks_.empty()) {
    report({Code::NestedClient,
            "`each client` cannot stand inside `each client`",
            {expr.text_span, "a second block"},
            {},
            "inside, there is only one client, and everything is its own already",
            "write what stands between the inner braces as it is"});
    return {};
  }
  if (options_.base)
    report_base("`each client` computes a value per client", expr.text_span, "the local sort",
                "the base signature ends at folds of all records");
  open_block({});
  frame().scopes.emplace_back();
  for (const ast::Stmt& stmt : expr.block->body) statement(stmt);
  const Value results = expression(*expr.block->value);
  close_scope(expr.span);
  std::vector<Type> types;
  for (const ir::NodeId id : results)
    types.push_back(ir::seen_outside(blocks_.back().local, type(id)));
  for (std::size_t i = 0; i < results.size() && check_ranks(types, expr.span); ++i)
    program_.outputs.push_back({std::to_string(i + 1), results[i], expr.block->value_span});
  return close_block({}, expr.span);
}

// A value of a record set that counts its records: an input of the program.
std::optional<ir::NodeId> Checker::any_record(const std::string& record_set) {
  const ir::Program& outermost = blocks_.empty() ? program_ : blocks_.front().outer;
  for (const ir::Input& input : outermost.inputs) {
    if (!input.type.federated() || input.type.record_set() != record_set) continue;
    Binding binding;
    binding.node = input.node;
    return resolve(binding);
  }
  return std::nullopt;
}

// repeat batches(k, seed): the body is a program over one batch, with the states that it updates as inputs and outputs.
void Checker::batches(const ast::Repeat& repeat, Span span) {
  if (options_.base)
    report_base("batches are drawn from each client's records", repeat.count->span,
                "the local sort", "fold all records at once");
  if (!at_client()) {
    report({Code::BatchesOutside,
            "`batches` can only stand inside `each client`",
            {repeat.count->span, "no single client here"},
            {},
            "a batch is a part of one client's records",
            "put the loop into `each client { ... }`, and fold its result"});
  }
  const std::optional<ir::NodeId> size = shared_scalar(*repeat.count, "the size of a batch");
  const std::optional<ir::NodeId> seed = shared_scalar(*repeat.seed, "the seed of batches");
  std::vector<std::string> updated;
  Names seen;
  updated_states(repeat.body, updated, seen);
  std::vector<std::string> states;
  for (const std::string& name : updated) {
    const Binding* binding = find(name);
    if (binding != nullptr && binding->kind == Binding::Kind::state &&
        binding->level == blocks_.size() && !type(binding->node).federated())
      states.push_back(name);
  }
  ir::Local local;
  local.batches = true;
  local.states = states.size();
  local.record_set = record_set_here();
  std::vector<Binding> outside;
  for (const std::string& name : states) outside.push_back(*find(name));
  open_block(std::move(local));
  frame().scopes.emplace_back();
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Type type = blocks_.back().outer.graph[outside[i].node].type();
    ir::Node input = make_node(ir::Kind::input, type, outside[i].span);
    input.index = static_cast<std::uint32_t>(i);
    const ir::NodeId id = program_.graph.add(std::move(input));
    program_.inputs.push_back({states[i], type, id, ir::no_node, outside[i].span});
    blocks_.back().operands.push_back(outside[i].node);
    Binding inside = outside[i];
    inside.level = blocks_.size();
    inside.carried = true;
    inside.node = bind_variable(id, {states[i], outside[i].span});
    scope().names.emplace(states[i], inside);
  }
  frame().scopes.emplace_back();
  for (const ast::Stmt& stmt : repeat.body) statement(stmt);
  std::optional<ir::NodeId> until;
  if (repeat.until) until = shared_scalar(*repeat.until, "the condition of `until`");
  close_scope(span);
  for (const std::string& name : states)
    program_.outputs.push_back({name, find(name)->node, repeat.open});
  if (until) program_.outputs.push_back({"until", *until, repeat.until->span});
  const auto counts = [&](const ir::Input& input) {
    return input.type.federated() && input.type.record_set() == blocks_.back().local.record_set;
  };
  const bool counted = std::any_of(program_.inputs.begin(), program_.inputs.end(), counts);
  if (!counted && !any_record(blocks_.back().local.record_set) && !diagnostics_.has_errors()) {
    report({Code::BatchesOutside,
            "there are no records to make batches of",
            {repeat.count->span,
             fmt::format("no input has the star {}",
                         Dim::record(blocks_.back().local.record_set).to_string())},
            {},
            "",
            "declare an input with this star"});
  }
  close_scope(span);
  if (states.empty()) program_.outputs.clear();  // nothing comes of it
  const Value results = close_block(
      size && seed ? std::vector<ir::NodeId>{*size, *seed} : std::vector<ir::NodeId>{}, span);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Binding* binding = find(states[i]);
    binding->node = results[i];
    call_node(results[i], states[i]);
  }
}

// A shared value for every record of a type's record set: where(1, value, value) with a number per record.
std::optional<ir::NodeId> Checker::repeated(ir::NodeId value, const Type& type, Span span) {
  ir::Builder build(program_, span);
  const std::size_t star = *type.record_axis();
  ir::NodeId one = ir::no_node;
  if (type.record_set() == ir::client_set) {
    one = build.one_per_client();
  } else if (const std::optional<ir::NodeId> record = any_record(type.record_set())) {
    const Type& of = build.type(*record);
    std::vector<Slice> first;
    for (const Dim& dim : of.dims)
      first.push_back(dim.star ? Slice{} : Slice{Slice::Kind::index, Size(1), Size(1)});
    one = build.call("ones_like", {build.call("[:]", {*record}, {}, {}, first)});
  } else {
    report({Code::PrivateState,
            fmt::format("there are no records {}", Dim::record(type.record_set()).to_string()),
            {span, "no input has this star"},
            {},
            "",
            "declare an input with this star, or use `*client` for one value per client"});
    return std::nullopt;
  }
  std::vector<Slice> spread(type.rank(), Slice{Slice::Kind::new_axis, {}, {}});
  spread[star] = Slice{};
  std::vector<Slice> row(type.rank(), Slice{});
  row[star] = Slice{Slice::Kind::new_axis, {}, {}};
  const ir::NodeId condition = type.rank() == 1 ? one : build.call("[:]", {one}, {}, {}, spread);
  const ir::NodeId rows = type.rank() == 1 ? value : build.call("[:]", {value}, {}, {}, row);
  return build.call("where", {condition, rows, rows});
}

void Checker::private_state(const ast::State& state) {
  if (refuse_inside("private state", state.name.span,
                    "declare it outside, and make its new value a result of the block")) {
    single(*state.value);
    return define_broken(state.name);
  }
  if (options_.base)
    report_base("a private state is a value per client", state.name.span, "the local sort",
                "keep shared values only");
  const std::optional<ir::NodeId> value = single(*state.value);
  const std::optional<Type> declared =
      state.type ? type_of(*state.type, TypeUse::annotation) : std::nullopt;
  if (!value || (state.type && !declared)) return define_broken(state.name);
  const Type actual = type(*value);
  const Type wanted = declared ? *declared : actual;
  if (!wanted.federated()) {
    report({Code::PrivateState,
            fmt::format("a private state lives at the clients, and {} has no star",
                        wanted.to_string()),
            {state.type ? state.type->span : state.value->span,
             fmt::format("{} is the same everywhere", wanted.to_string())},
            {},
            "",
            fmt::format(
                "write `private state {} : [*client{}{}] = ...` for one value per client, or leave "
                "`private` out",
                state.name.text, wanted.is_scalar() ? "" : ", ",
                wanted.is_scalar() ? ""
                                   : wanted.to_string().substr(1, wanted.to_string().size() - 2))});
    return define_broken(state.name);
  }
  std::optional<ir::NodeId> first = value;
  if (!actual.federated()) {
    if (!(actual == without_axis(wanted, *wanted.record_axis()))) {
      check_declared(*state.type, actual, *state.value, true);
      return define_broken(state.name);
    }
    first = repeated(*value, wanted, state.value->span);
  } else if (!(actual == wanted) && !check_declared(*state.type, actual, *state.value)) {
    return define_broken(state.name);
  }
  if (!first) return define_broken(state.name);
  Binding binding;
  binding.kind = Binding::Kind::state;
  binding.node = bind_variable(*first, state.name);
  if (define(state.name, binding)) name_type(state.name, type(binding.node));
}

void Checker::keep(const ast::Output& keep) {
  ast::Expr reference;
  reference.kind = ast::ExprKind::name;
  reference.text = keep.name.text;
  reference.span = reference.text_span = keep.name.span;
  const ast::Expr& written = keep.value ? *keep.value : reference;
  const std::optional<ir::NodeId> value = single(written);
  if (options_.base)
    report_base("`keep` leaves a result at each client", keep.name.span, "a value per client",
                "the programs of the paper end in shared outputs");
  const auto [first, fresh] = keeps_.emplace(keep.name.text, keep.name.span);
  if (!fresh) {
    report({Code::Redefinition,
            fmt::format("there is already a kept result named `{}`", keep.name.text),
            {keep.name.span, "kept again"},
            {{first->second, "first kept here"}},
            "",
            "give each result its own name"});
    return;
  }
  if (!value) return;
  if (!type(*value).federated()) {
    report({Code::KeptShared,
            "a shared value is not a client's own",
            {written.span, fmt::format("{} is the same everywhere", type(*value).to_string())},
            {},
            "what is kept stays at each client and is its own",
            fmt::format("give it out: output {}{}", keep.name.text,
                        keep.value ? " = " + text(written.span) : "")});
    return;
  }
  program_.keeps.push_back({keep.name.text, *value, keep.name.span});
  if (!keep.value) return;
  program_.names.emplace(*value, keep.name.text);
  name_type(keep.name, type(*value));
}

}  // namespace starfold
