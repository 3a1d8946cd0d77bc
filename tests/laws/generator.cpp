#include "tests/laws/generator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/laws/generator_expressions.h"

namespace starfold::laws {
namespace {

using Values = InputSpec::Values;

Facts facts_of(Values values) {
  switch (values) {
    case Values::continuous:
      return {-2, 2, 0, -1};
    case Values::positive:
      return {0.5, 2, 0, -1};
    case Values::grid:
      return {-2, 2, 0, 1};
    case Values::label:
      return {1, 3, 0, 0};
    case Values::truth:
      return {0, 1, 0, 0};
    case Values::wide:
      return {-2, 2, 0, 1};  // as if: what chooses among its operands needs no bounds
  }
  return {};
}

// How far apart the states and parameters of two evaluations are assumed to be.
constexpr double carried_error = 1e-13;
constexpr Interval carried_range{-2, 2};
constexpr Facts carried_facts{-2, 2, carried_error, -1};
constexpr Facts carried_exact{-4, 4, 0, 1};

class ProgramWriter {
 public:
  ProgramWriter(Random& random, const GeneratorOptions& options)
      : random_(random),
        options_(options),
        next_name_(options.first_name),
        writer_(random, options_, next_name_) {
    options_.depth = random.between(2, options.depth);
    options_.special = options.special || options.wide;  // nothing may round
  }

  GeneratedProgram run() {
    declarations();
    if (options_.functions) functions();
    for (int left = random_.between(1, options_.statements); left > 0; --left) statement(scope_, 0);
    while (outputs_ == 0 || random_.chance(45)) output();
    for (int left = options_.derivatives ? random_.between(1, 2) : 0; left > 0; --left)
      derivative();
    return finish();
  }

  GeneratedProgram run_shared(const std::vector<InputSpec>& inputs, const SizeValues& sizes) {
    for (const auto& [name, value] : sizes) add_size(name, value);
    constants();
    for (const InputSpec& input : inputs) add_input(input, "");
    for (int left = random_.between(1, options_.statements); left > 0; --left) statement(scope_, 0);
    while (outputs_ == 0 || random_.chance(45)) output();
    return finish();
  }

  GeneratedFactorization run_factorization() {
    declarations();
    GeneratedFactorization result;
    const std::size_t declared = scope_.lines.size();
    // The encoders see the inputs, the decoder the merged components and nothing else.
    Scope decoder = scope_;
    std::erase_if(decoder.names, [](const Named& named) { return named.type.federated(); });
    for (int left = random_.between(1, 4); left > 0; --left) component(result, decoder);
    while (result.components.empty()) component(result, decoder);
    Want want{writer_.random_type(decoder, false), options_.depth, false, true};
    std::optional<Written> h = writer_.write(decoder, want);
    // What the decoder named on the way would be no expression.
    if (!h || decoder.lines.size() > declared) {
      const std::size_t last = result.components.size() - 1;
      h = Written{result.names[last], 10, result.components[last].shape, {}, 1};
    }
    result.decoder = h->text;
    result.result = h->type;
    scope_.lines.resize(declared);
    result.inputs = finish();
    return result;
  }

 private:
  // --- declarations

  void line(Scope& scope, std::string text) {
    if (random_.chance(4)) text += fmt::format("  # note {}", next_name_);
    scope.lines.push_back(std::move(text));
    if (random_.chance(3)) scope.lines.emplace_back("");
  }

  void add_size(const std::string& name, std::int64_t value) {
    result_.sizes[name] = value;
    scope_.least[name] = scope_.most[name] = value;
    scope_.size_names.push_back(name);
    scope_.sizes.push_back(Size::variable(name));
  }

  void constants() {
    for (const std::int64_t size : {1, 2, 3}) scope_.sizes.emplace_back(size);
  }

  void declarations() {
    constants();
    std::vector<std::string> open;  // sizes that an input must fix
    for (const char* name : {"p", "q"}) {
      if (!random_.chance(60)) continue;
      open.emplace_back(name);
    }
    if (random_.chance(40)) {
      const std::int64_t value = random_.between(1, 4);
      line(scope_, fmt::format("size k = {}", value));
      add_size("k", value);
      result_.declared["k"] = value;
    }
    std::vector<std::string> sets = {random_.chance(85) ? "" : "people"};
    if (!options_.base && random_.chance(30)) sets.emplace_back("visits");
    for (const std::string& set : sets) {
      for (int left = random_.between(1, 3); left > 0; --left) input(true, set, open);
    }
    for (int left = random_.between(options_.base || options_.derivatives ? 1 : 0, 3); left > 0;
         --left)
      input(false, "", open);
    while (!open.empty()) input(random_.chance(50), random_.pick(sets), open, true);
    polynomials();
  }

  // Sums and products of what is there, for types that no input has.
  void polynomials() {
    const std::vector<Size> known = scope_.sizes;
    for (int left = 2; left > 0; --left) {
      const Size a = random_.pick(known);
      const Size b = random_.pick(known);
      const std::optional<Size> size = random_.chance(50) ? add(a, b) : multiply(a, b);
      if (size && size->evaluate(scope_.most).value_or(99) <= 9) scope_.sizes.push_back(*size);
    }
  }

  // With `fix`, it has an axis of a size that is open still.
  void input(bool federated, const std::string& set, std::vector<std::string>& open,
             bool fix = false) {
    InputSpec spec;
    spec.name = writer_.fresh(federated ? "x" : "s");
    const int rank = random_.pick(std::vector<int>{0, 1, 1, 1, 2, 2});
    for (int i = 0; i < rank || (i == 0 && !open.empty()); ++i) {
      if (!open.empty() && (fix || random_.chance(70))) {
        add_size(open.back(), random_.between(1, 4));
        open.pop_back();
        spec.type.dims.push_back(Dim::of(scope_.sizes.back()));
        continue;
      }
      Size size = random_.pick(scope_.sizes);
      if (random_.chance(20)) size = add(size, 1).value_or(size);
      spec.type.dims.push_back(Dim::of(size));
    }
    if (federated) {
      const auto axis =
          random_.chance(45) ? 0 : random_.between(0, static_cast<int>(spec.type.rank()));
      spec.type = with_axis(spec.type, static_cast<std::size_t>(axis), Dim::record(set));
    }
    spec.values = options_.wide ? Values::wide
                  : options_.special
                      ? Values::grid
                      : random_.pick(std::vector<Values>{
                            Values::continuous, Values::continuous, Values::positive, Values::grid,
                            Values::grid, Values::label, Values::truth});
    std::string fallback;
    if (!federated && random_.chance(40)) fallback = default_of(spec);
    add_input(spec, fallback);
  }

  // A default within the facts of the input.
  std::string default_of(const InputSpec& spec) {
    const Written value = ExpressionWriter::number(random_.pick(std::vector<double>{1, 1, 2}));
    const double used = spec.values == Values::truth ? 1 : value.facts.lo;
    if (spec.type.is_scalar()) return fmt::format("{}", used);
    if (options_.base) return "";
    std::string sizes;
    for (const Dim& dim : spec.type.dims) sizes += ", " + dim.to_string();
    return fmt::format("full({}{})", used, sizes);
  }

  void add_input(InputSpec spec, const std::string& fallback) {
    spec.has_default = !fallback.empty();
    line(scope_, fmt::format("input {} : {}{}", spec.name, spec.type.to_string(),
                             fallback.empty() ? "" : " = " + fallback));
    scope_.names.push_back({spec.name, spec.type, spec.facts.value_or(facts_of(spec.values)), 0});
    if (options_.bounded && spec.type.federated() && spec.values != Values::label)
      clip(scope_.names.back());
    result_.inputs.push_back(std::move(spec));
  }

  // The name stands for what a clip leaves of it from here on.
  void clip(Named& named) {
    const std::string name = writer_.fresh("c");
    const std::string clip = random_.pick(std::vector<std::string>{
        "clip({}, -1, 2)", "clip({}, 0, 1.5)", "clip_norm({}, 2)", "clip_norm({}, 0.5)",
        "2 * tanh({})", "sigmoid({})", "min(max({}, 0.5), 2)"});
    line(scope_, fmt::format("let {} = {}", name, fmt::format(fmt::runtime(clip), named.name)));
    named.name = name;
    named.facts = {-2, 2, carried_error, -1};
  }

  // --- functions

  void functions() {
    const bool module = random_.chance(15);
    for (int left = random_.pick(std::vector<int>{0, 0, 0, 1, 1, 2}); left > 0; --left) {
      const bool inside = module && random_.chance(60);
      std::string& text = inside ? module_ : functions_;
      const std::string name = writer_.fresh("f");
      if (const std::optional<std::string> body = function(name, inside)) text += *body;
    }
  }

  Named parameter(Scope& own, Callable& callable) {
    Named param;
    param.name = writer_.fresh("v");
    const int rank = random_.below(3);
    for (int i = 0; i < rank; ++i) {
      if (random_.chance(25) || callable.sizes.size() >= 2) {
        param.type.dims.push_back(Dim::of(random_.pick(own.sizes)));
        continue;
      }
      const std::string name = callable.sizes.empty() ? "n" : "m";
      callable.sizes.push_back(name);
      own.least[name] = 1;
      own.most[name] = 4;
      own.size_names.push_back(name);
      own.sizes.push_back(Size::variable(name));
      param.type.dims.push_back(Dim::of(own.sizes.back()));
    }
    if (random_.chance(60)) {
      const std::string set = random_.chance(80) ? "" : "rows";
      if (std::find(callable.record_sets.begin(), callable.record_sets.end(), set) ==
          callable.record_sets.end()) {
        callable.record_sets.push_back(set);
      }
      const auto axis = random_.between(0, static_cast<int>(param.type.rank()));
      param.type = with_axis(param.type, static_cast<std::size_t>(axis), Dim::record(set));
    }
    param.facts = options_.special || random_.chance(25) ? carried_exact : carried_facts;
    own.names.push_back(param);
    return param;
  }

  std::optional<std::string> function(const std::string& name, bool module) {
    Callable callable;
    callable.name = module ? "tools." + name : name;
    Scope own;
    for (const std::int64_t size : {1, 2, 3}) own.sizes.emplace_back(size);
    std::vector<std::string> params;
    for (int left = random_.between(1, 3); left > 0; --left) {
      const Named param = parameter(own, callable);
      params.push_back(fmt::format("{} : {}", param.name, param.type.to_string()));
      callable.params.push_back(param);
    }
    for (int left = random_.below(3); left > 0; --left) statement(own, 1);
    const int results = random_.chance(20) ? 2 : 1;
    std::vector<std::string> texts;
    std::string declared;
    for (int i = 0; i < results; ++i) {
      const bool federated = random_.chance(50) && !callable.record_sets.empty();
      Want want{writer_.random_type(own, federated), options_.depth - 1, options_.special,
                !federated};
      if (!options_.one_round) want.folds = true;
      const std::optional<Written> e = writer_.write(own, want);
      if (!e) return std::nullopt;
      texts.push_back(e->text);
      declared = e->type.to_string();
      callable.results.push_back({"", e->type, e->facts, e->rounds});
    }
    scope_.callables.push_back(callable);
    const std::string value = results == 1 ? texts[0] : fmt::format("({})", fmt::join(texts, ", "));
    std::string head = fmt::format("fn {}({})", name, fmt::join(params, ", "));
    if (results == 1 && random_.chance(50)) head += " -> " + declared;
    if (own.lines.empty() && random_.chance(60)) return fmt::format("{} = {}\n", head, value);
    std::string text = head + " {\n";
    for (const std::string& each : own.lines) text += "  " + each + "\n";
    return text + "  " + value + "\n}\n";
  }

  // --- statements

  void statement(Scope& scope, int depth) {
    switch (random_.below(options_.loops ? 10 : 6)) {
      case 0:
      case 1:
      case 2:
        return let(scope, true);
      case 3:
      case 4:
      case 5:
        return let(scope, false);
      case 6:
        return trace(scope);
      default:
        return depth < 3 ? loop(scope, depth) : let(scope, false);
    }
  }

  Want want(Type type) const {
    const bool folds = !(options_.one_round && type.federated());
    return {std::move(type), options_.depth, options_.special, folds};
  }

  void let(Scope& scope, bool federated) {
    const std::optional<Written> e =
        writer_.write(scope, want(writer_.random_type(scope, federated)));
    if (!e) return;
    const std::string name = writer_.fresh("t");
    const std::string type = random_.chance(25) ? " : " + e->type.to_string() : "";
    line(scope, fmt::format("let {}{} = {}", name, type, e->text));
    scope.names.push_back({name, e->type, e->facts, e->rounds});
  }

  void trace(Scope& scope) {
    const std::optional<Written> e = writer_.write(scope, want(Type::scalar()));
    if (e) line(scope, fmt::format("trace {} = {}", writer_.fresh("m"), e->text));
  }

  // A state that stays in its range and does not let rounding grow, however long the loop runs.
  struct State {
    Named named;
    bool counter = false;
  };

  std::optional<State> state(Scope& scope) {
    State state;
    state.counter = random_.chance(25);
    const Type type = state.counter ? Type::scalar() : writer_.random_type(scope, false, 2);
    const bool exact = options_.special || (!state.counter && random_.chance(15));
    Want w = want(type);
    w.depth = std::min(w.depth, 2);
    w.exact = exact;
    std::optional<Written> init = state.counter ? std::optional(ExpressionWriter::number(0))
                                                : fitted(writer_.write(scope, w), exact);
    if (!init) return std::nullopt;
    state.named = {writer_.fresh("z"), type, exact ? carried_exact : carried_facts, 1};
    if (state.counter) state.named.facts = {0, 64, 0, 0};
    const std::string declared = random_.chance(50) ? " : " + type.to_string() : "";
    line(scope, fmt::format("state {}{} = {}", state.named.name, declared, init->text));
    scope.names.push_back(state.named);
    return state;
  }

  std::optional<Written> fitted(std::optional<Written> e, bool exact) {
    if (!e) return std::nullopt;
    if (!exact) {
      e = writer_.fit(*e, carried_range);
      return e->facts.error <= carried_error ? e : std::nullopt;
    }
    if (!e->facts.exact()) return std::nullopt;
    if (e->facts.grain > carried_exact.grain) {
      e->text = fmt::format("floor({})", e->text);
      e->binds = 10;
      e->facts.grain = 0;
      e->facts.lo = std::floor(e->facts.lo);
    }
    e = writer_.fit(*e, {carried_exact.lo, carried_exact.hi});
    return e->facts.grain <= carried_exact.grain ? e : std::nullopt;
  }

  void update(Scope& body, const State& state) {
    const std::string& name = state.named.name;
    if (state.counter) return line(body, fmt::format("{0} <- {0} + 1", name));
    const bool exact = state.named.facts.exact();
    if (options_.nested && !exact && random_.chance(60) && update_by_records(body, name)) return;
    Want w = want(state.named.type);
    w.exact = exact;
    const std::optional<Written> e = writer_.write(body, w);
    if (!e) return line(body, fmt::format("{0} <- -{0}", name));
    if (exact) {
      const std::optional<Written> next = fitted(e, true);
      return line(body, fmt::format("{} <- {}", name, next ? next->text : "-" + name));
    }
    const Written next = writer_.fit(*e, carried_range);
    double weight = 0.5;
    while (weight * next.facts.error > 0.4 * carried_error) weight /= 2;
    if (weight < 1e-3) return line(body, fmt::format("{0} <- 0.5 * {0}", name));
    line(body, fmt::format("{0} <- 0.5 * {0} + {1} * {2}", name, weight,
                           ExpressionWriter::operand(next, 7)));
  }

  // A round in every iteration: a fold of records that changes with the state.
  bool update_by_records(Scope& body, const std::string& name) {
    const std::vector<std::string> sets = writer_.record_sets(body);
    if (sets.empty()) return false;
    const auto e = writer_.fit(writer_.write(body, want(Type{{Dim::record(random_.pick(sets))}})),
                               carried_range);
    if (!e || e->facts.error > carried_error) return false;
    const std::string record = fmt::format("{} * sum({})", ExpressionWriter::operand(*e, 6), name);
    std::string folded = fmt::format("sum[*]({}) / {}", record, max_records);
    if (random_.chance(50)) folded += fmt::format(" + 0.1 * max[*]({})", record);
    line(body, fmt::format("{0} <- 0.5 * {0} + 0.25 * tanh({1})", name, folded));
    return true;
  }

  std::string iterations(const Scope& scope) {
    if (!scope.size_names.empty() && random_.chance(20)) return random_.pick(scope.size_names);
    return std::to_string(random_.pick(std::vector<int>{1, 2, 2, 3, 4, options_.base ? 1 : 0}));
  }

  void loop(Scope& scope, int depth) {
    std::vector<State> states;
    for (int left = random_.between(1, 2); left > 0; --left) {
      if (const std::optional<State> made = state(scope)) states.push_back(*made);
    }
    if (states.empty()) return;
    const std::string count = iterations(scope);
    Scope body = scope;
    body.lines.clear();
    for (int left = random_.below(3) + (options_.nested ? 1 : 0); left > 0; --left) {
      if (random_.chance(25)) {
        trace(body);
      } else if (depth < 2 && random_.chance(options_.nested ? 60 : 25)) {
        loop(body, depth + 1);
      } else {
        let(body, random_.chance(60));
      }
    }
    for (const State& each : states) {
      update(body, each);
      if (random_.chance(15)) let(body, random_.chance(60));
    }
    if (random_.chance(40)) trace(body);
    std::string until;
    if (!options_.base && random_.chance(50)) until = condition(body, states);
    line(scope, fmt::format("repeat {} {{", count));
    for (const std::string& each : body.lines) scope.lines.push_back("  " + each);
    scope.lines.push_back("}" + until);
  }

  // Away from ties, so that two evaluations stop together.
  std::string condition(Scope& body, const std::vector<State>& states) {
    const State& state = random_.pick(states);
    if (state.counter)
      return fmt::format(" until {} >= {}", state.named.name, random_.between(1, 3));
    Want w = want(Type::scalar());
    w.depth = 2;
    w.exact = true;
    if (random_.chance(50)) {
      if (const auto e = writer_.write(body, w)) {
        if (e->facts.exact()) return " until " + e->text;
      }
    }
    // All axes at once, or one after the other, as the base signature has it.
    const std::size_t rank = state.named.type.rank();
    const auto over_all = [&](const char* op) {
      if (rank > 0 && !options_.base) return fmt::format("{}({})", op, state.named.name);
      std::string text = state.named.name;
      for (std::size_t k = 0; k < rank; ++k) text = fmt::format("{}[1]({})", op, text);
      return text;
    };
    if (state.named.facts.exact()) return fmt::format(" until {} > 1", over_all("max"));
    const std::string size =
        rank == 0 ? fmt::format("abs({})", state.named.name) : over_all("norm");
    return fmt::format(" until {} < 0.{}", size, random_.between(100001, 899999));
  }

  void output() {
    std::vector<const Named*> shared;
    for (const Named& named : scope_.names) {
      if (!named.type.federated() && given_.count(named.name) == 0) shared.push_back(&named);
    }
    ++outputs_;
    if (!shared.empty() && random_.chance(40)) {
      const Named& named = *random_.pick(shared);
      given_.insert(named.name);
      line(scope_, "output " + named.name);
      result_.outputs[named.name] = named.facts;
      return;
    }
    std::optional<Written> e;
    if (options_.special && random_.chance(options_.wide ? 75 : 30)) e = terminal();
    if (!e) e = writer_.write(scope_, want(writer_.random_type(scope_, false)));
    if (!e) {
      --outputs_;
      return;
    }
    const std::string name = writer_.fresh("o");
    given_.insert(name);
    line(scope_, fmt::format("output {} = {}", name, e->text));
    result_.outputs[name] = e->facts;
  }

  // Folds that round, of values that do not: nothing may be computed from them.
  std::optional<Written> terminal() {
    std::vector<std::string> ops = {"mean", "var", "std", "logsumexp", "norm"};
    if (options_.wide) ops.emplace_back("sum");
    const std::string op = random_.pick(ops);
    Type type = writer_.random_type(scope_, true);
    if (!type.federated()) return std::nullopt;
    const std::optional<Written> e = writer_.write(scope_, want(type));
    if (!e) return std::nullopt;
    std::string axes = "*";
    const std::size_t star = *type.record_axis();
    type = without_axis(type, star);
    if (options_.wide && type.rank() > 0 && random_.chance(40)) {
      const auto axis = static_cast<std::size_t>(random_.below(static_cast<int>(type.rank())));
      axes += fmt::format(", {}", axis + (axis >= star ? 2 : 1));
      type = without_axis(type, axis);
    }
    return Written{fmt::format("{}[{}]({})", op, axes, e->text), 10, type, {-1e9, 1e9, 0, -1}, 1};
  }

  // The derivative of an output with respect to a shared input, both given out.
  void derivative() {
    std::vector<std::string> shared;
    for (const InputSpec& input : result_.inputs) {
      if (!input.type.federated()) shared.push_back(input.name);
    }
    const std::vector<std::string> sets = writer_.record_sets(scope_);
    if (shared.empty()) return;
    const std::string by = random_.pick(shared);
    const std::string kind =
        random_.pick(std::vector<std::string>{"grad", "grad", "jacobian", "hessian", "per record"});
    const bool federated = kind == "per record" && !sets.empty();
    Type type;
    if (federated) type = Type{{Dim::record(random_.pick(sets))}};
    if (kind == "jacobian") type = writer_.random_type(scope_, false, 2);
    std::optional<Written> e = writer_.write(scope_, want(type));
    if (!e) return;
    if (e->text.find(by) == std::string::npos)
      e->text = fmt::format("{} * (1 + sin(sum({})))", ExpressionWriter::operand(*e, 6), by);
    const std::string value = writer_.fresh("e");
    const std::string of = writer_.fresh("o");
    const std::string output = writer_.fresh("d");
    line(scope_, fmt::format("let {} = {}", value, e->text));
    const std::string derived =
        fmt::format("{}({}, {})", kind == "per record" ? "grad" : kind, value, by);
    // What there is one of per record is given out as a sum over records.
    const auto given = [&](const std::string& text) {
      return federated ? fmt::format("sum[*]({})", text) : text;
    };
    line(scope_, fmt::format("output {} = {}", of, given(value)));
    const std::string statement = fmt::format("output {} = {}", output, given(derived));
    line(scope_, statement);
    if (kind != "hessian") result_.derivatives.push_back({of, by, output, statement});
  }

  void component(GeneratedFactorization& result, Scope& decoder) {
    GeneratedComponent made;
    Scope encoders = scope_;
    Want w{Type{}, options_.depth, false, false};
    const std::size_t lines = encoders.lines.size();
    Facts facts;
    if (random_.chance(25)) {
      const Dim star = Dim::record(random_.pick(writer_.record_sets(encoders)));
      const Dim rows = Dim::of(random_.pick(encoders.sizes));
      const Dim columns = Dim::of(random_.pick(encoders.sizes));
      w.type = Type{{rows, star}};
      const auto a = writer_.fit(writer_.write(encoders, w), {-8, 8});
      w.type = Type{{star, columns}};
      const auto b = writer_.fit(writer_.write(encoders, w), {-8, 8});
      if (!a || !b || encoders.lines.size() > lines) return;
      made.encoder = a->text;
      made.right = b->text;
      made.shape = Type{{rows, columns}};
      facts = sum_facts(product_facts(a->facts, b->facts), max_records);
    } else {
      made.aggregation = random_.pick(
          std::vector<std::string>{"sum", "sum", "prod", "min", "max", "any", "all", "count"});
      w.type = writer_.random_type(encoders, true);
      w.exact = made.aggregation == "any" || made.aggregation == "all";
      auto e = writer_.write(encoders, w);
      if (e && made.aggregation == "prod") e = writer_.fit(*e, {0.95, 1.05});
      if (!e || !e->type.federated() || encoders.lines.size() > lines) return;
      made.encoder = e->text;
      made.shape = without_axis(e->type, *e->type.record_axis());
      facts = aggregation_facts(made.aggregation, e->facts, max_records);
    }
    if (!usable(facts)) return;
    const std::string name = fmt::format("y{}", result.components.size() + 1);
    decoder.names.push_back({name, made.shape, facts, 1});
    result.names.push_back(name);
    result.components.push_back(std::move(made));
  }

  GeneratedProgram finish() {
    const bool functions_first = random_.chance(50);
    std::string body;
    for (const std::string& each : scope_.lines) body += each + "\n";
    std::string text;
    if (!module_.empty()) {
      text += "import tools\n";
      result_.text.modules["tools"] = module_;
    }
    text += functions_first ? functions_ + body : body + functions_;
    result_.text.name = "law.fold";
    result_.text.text = std::move(text);
    result_.special = options_.special && !options_.wide;
    return std::move(result_);
  }

  Random& random_;
  GeneratorOptions options_;
  int next_name_;
  ExpressionWriter writer_;
  Scope scope_;
  GeneratedProgram result_;
  std::string functions_;
  std::string module_;
  std::set<std::string> given_;
  int outputs_ = 0;
};

}  // namespace

GeneratedProgram generate_program(Random& random, const GeneratorOptions& options) {
  return ProgramWriter(random, options).run();
}

GeneratedFactorization generate_factorization(Random& random, const GeneratorOptions& options) {
  return ProgramWriter(random, options).run_factorization();
}

GeneratedProgram generate_shared_program(Random& random, const std::vector<InputSpec>& inputs,
                                         const SizeValues& sizes, const GeneratorOptions& options) {
  return ProgramWriter(random, options).run_shared(inputs, sizes);
}

}  // namespace starfold::laws
