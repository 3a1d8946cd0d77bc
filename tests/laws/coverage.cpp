#include "tests/laws/coverage.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/ops/standard.h"

namespace starfold::laws {
namespace {

std::string row_name(const Op& op) {
  return fmt::format("row {} ({})", op.name, to_string(op.family));
}

std::string place(const Type& type) {
  const std::optional<std::size_t> star = type.record_axis();
  return star ? fmt::format("star {}", *star + 1) : "shared";
}

// A type as one letter per axis: `*` for the star, `n` for a size.
std::string letters(const Type& type) {
  std::string text;
  for (const Dim& dim : type.dims) text += dim.star ? '*' : 'n';
  return text;
}

// How the operands of a broadcast meet.
std::vector<std::string> meetings(const Type& a, const Type& b) {
  std::vector<std::string> cases;
  const std::string kinds = fmt::format("{} and {}", a.federated() ? "federated" : "shared",
                                        b.federated() ? "federated" : "shared");
  if (a == b) return {kinds + ", equal"};
  if (a.rank() != b.rank())
    cases.push_back(fmt::format("{}, {} padded", kinds, a.rank() < b.rank() ? "left" : "right"));
  const std::size_t rank = std::max(a.rank(), b.rank());
  const auto at = [&](const Type& type, std::size_t axis) {
    const std::size_t missing = rank - type.rank();
    return axis < missing ? Dim::of(1) : type.dims[axis - missing];
  };
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const Dim x = at(a, axis);
    const Dim y = at(b, axis);
    if (x == y) continue;
    const char* side = x.is_one() ? "left" : "right";
    const bool star = x.star || y.star;
    cases.push_back(
        fmt::format("{}, {} {}", kinds, side, star ? "meets the star with 1" : "stretches"));
  }
  return cases;
}

const std::vector<std::string> products = {
    // Fed Sh, Sh Fed, Fed Fed, with matrices and vectors
    "*n @ nn", "*n @ n", "nn @ n*", "n @ n*", "n* @ *n", "n* @ *", "* @ *n", "* @ *",
    // per record
    "*nn @ nn", "*nn @ *nn", "nn @ *nn", "*nn @ n", "n @ *nn", "n*n @ nn", "nnn @ n*",
    // folds under leading axes
    "nn* @ *n", "n* @ n*n", "nn* @ n*n", "nn* @ *", "* @ n*n",
    // shared
    "nn @ nn", "nn @ n", "n @ nn", "n @ n", "nnn @ nn", "nn @ nnn"};

const std::vector<std::string> statements = {"import",
                                             "size",
                                             "input, star 1",
                                             "input, star 2",
                                             "input, star 3",
                                             "input, star in the middle",
                                             "input, shared",
                                             "input with a default",
                                             "input of a named record set",
                                             "function = e",
                                             "function { }",
                                             "function with a result type",
                                             "function with a tuple",
                                             "let",
                                             "let with a type",
                                             "let of a tuple",
                                             "state",
                                             "state with a type",
                                             "update",
                                             "repeat number",
                                             "repeat name",
                                             "repeat in repeat",
                                             "repeat in a function",
                                             "until",
                                             "trace outside loops",
                                             "trace in a loop",
                                             "trace in a function",
                                             "output name",
                                             "output = e"};

const std::vector<std::string> expressions = {"number",
                                              "pi",
                                              "inf",
                                              "nan",
                                              "name",
                                              "transpose",
                                              "list",
                                              "list of lists",
                                              "call of a function",
                                              "call of a module",
                                              "axis by number",
                                              "axis by star",
                                              "axis by named star",
                                              "several axes",
                                              "no axes",
                                              "index",
                                              "range",
                                              "range from the start",
                                              "range to the end",
                                              "new axis",
                                              "computed index"};

}  // namespace

Coverage::Coverage() {
  for (const auto& op : standard_signature().ops()) {
    if (op->family != Family::differentiation) counts_[row_name(*op)];
  }
  using F = Family;
  for (const F family : {F::unary, F::binary, F::comparison, F::aggregation, F::permutation,
                         F::matmul, F::client_local}) {
    counts_[fmt::format("{}, shared", to_string(family))];
    for (int star = 1; star <= 3; ++star)
      counts_[fmt::format("{}, star {}", to_string(family), star)];
  }
  counts_[fmt::format("{}, shared", to_string(F::shared_only))];
  for (int star = 1; star <= 3; ++star) counts_[fmt::format("fold of star {}", star)];
  for (const char* fold : {"star and ordinary axes", "several ordinary axes"})
    counts_[fmt::format("fold of {}", fold)];
  for (const std::string& product : products) counts_["product " + product];
  for (const char* kinds : {"shared and shared", "federated and shared", "shared and federated",
                            "federated and federated"}) {
    for (const char* side : {"left", "right"}) {
      counts_[fmt::format("broadcast: {}, {} padded", kinds, side)];
      counts_[fmt::format("broadcast: {}, {} stretches", kinds, side)];
    }
  }
  counts_["broadcast: federated and shared, right meets the star with 1"];
  counts_["broadcast: shared and federated, left meets the star with 1"];
  counts_["broadcast: shared and shared, equal"];
  counts_["broadcast: federated and federated, equal"];
  // A star at the same place fixes how many axes stand to its right, so two federated operands are
  // padded only on the left of it.
  for (const std::string& statement : statements) counts_["statement: " + statement];
  for (const std::string& expression : expressions) counts_["expression: " + expression];
}

void Coverage::see(const std::string& what) {
  const auto found = counts_.find(what);
  if (found != counts_.end()) ++found->second;
}

void Coverage::add(const ir::Program& program) {
  for (ir::NodeId id = 0; id < program.graph.size(); ++id) {
    const ir::Node& node = program.graph[id];
    if (node.kind == ir::Kind::apply) application(program, node);
  }
}

void Coverage::application(const ir::Program& program, const ir::Node& node) {
  const Op& op = *node.op;
  see(row_name(op));
  see(fmt::format("{}, {}", to_string(op.family), place(node.type())));
  std::vector<Type> args;
  for (const ir::NodeId arg : node.args) args.push_back(program.graph[arg].type());
  if (op.family == Family::aggregation && args[0].federated() && !node.federated()) {
    see(fmt::format("fold of {}", place(args[0])));
    if (node.attrs.axes.size() > 1) see("fold of star and ordinary axes");
  } else if (op.family == Family::aggregation && node.attrs.axes.size() > 1) {
    see("fold of several ordinary axes");
  }
  if (op.family == Family::matmul)
    see(fmt::format("product {} @ {}", letters(args[0]), letters(args[1])));
  if (op.family == Family::binary || op.family == Family::comparison) {
    for (const std::string& meeting : meetings(args[0], args[1])) see("broadcast: " + meeting);
  }
}

void Coverage::add(const ast::File& file) { block(file.items, 0, false); }

void Coverage::block(const ast::Block& block_statements, int loops, bool function) {
  const auto statement = [&](const std::string& what) { see("statement: " + what); };
  for (const ast::Stmt& stmt : block_statements) {
    if (std::holds_alternative<ast::Import>(stmt.node)) statement("import");
    if (std::holds_alternative<ast::SizeDecl>(stmt.node)) statement("size");
    if (const auto* input = std::get_if<ast::Input>(&stmt.node)) {
      std::string kind = "shared";
      for (std::size_t k = 0; k < input->type.dims.size(); ++k) {
        if (input->type.dims[k].star) kind = fmt::format("star {}", k + 1);
        const bool inside = k > 0 && k + 1 < input->type.dims.size();
        if (input->type.dims[k].star && inside) statement("input, star in the middle");
        if (!input->type.dims[k].record_set.empty()) statement("input of a named record set");
      }
      statement("input, " + kind);
      if (input->fallback) statement("input with a default");
    }
    if (const auto* fn = std::get_if<ast::Fn>(&stmt.node)) {
      statement(fn->braces ? "function { }" : "function = e");
      if (fn->result) statement("function with a result type");
      if (fn->value->kind == ast::ExprKind::tuple) statement("function with a tuple");
      block(fn->body, 0, true);
      expression(*fn->value);
    }
    if (const auto* let = std::get_if<ast::Let>(&stmt.node)) {
      statement(let->tuple ? "let of a tuple" : let->type ? "let with a type" : "let");
      expression(*let->value);
    }
    if (const auto* state = std::get_if<ast::State>(&stmt.node)) {
      statement(state->type ? "state with a type" : "state");
      expression(*state->value);
    }
    if (const auto* update = std::get_if<ast::Update>(&stmt.node)) {
      statement("update");
      expression(*update->value);
    }
    if (const auto* repeat = std::get_if<ast::Repeat>(&stmt.node)) {
      statement(repeat->count->kind == ast::ExprKind::name ? "repeat name" : "repeat number");
      if (loops > 0) statement("repeat in repeat");
      if (function) statement("repeat in a function");
      if (repeat->until) statement("until");
      if (repeat->until) expression(*repeat->until);
      block(repeat->body, loops + 1, function);
    }
    if (const auto* trace = std::get_if<ast::Trace>(&stmt.node)) {
      statement(loops > 0 ? "trace in a loop" : "trace outside loops");
      if (function) statement("trace in a function");
      expression(*trace->value);
    }
    if (const auto* output = std::get_if<ast::Output>(&stmt.node)) {
      statement(output->value ? "output = e" : "output name");
      if (output->value) expression(*output->value);
    }
  }
}

void Coverage::expression(const ast::Expr& expr) {
  const auto seen = [&](const std::string& what) { see("expression: " + what); };
  using Kind = ast::Subscript::Kind;
  if (expr.kind == ast::ExprKind::number) {
    seen(std::isalpha(static_cast<unsigned char>(expr.text[0])) != 0 ? expr.text : "number");
  }
  if (expr.kind == ast::ExprKind::name) seen("name");
  if (expr.kind == ast::ExprKind::transpose) seen("transpose");
  if (expr.kind == ast::ExprKind::list)
    seen(expr.args[0]->kind == ast::ExprKind::list ? "list of lists" : "list");
  if (expr.kind == ast::ExprKind::call) {
    const Op* op = standard_signature().find(expr.text);
    if (expr.module) {
      seen("call of a module");
    } else if (op == nullptr) {
      seen("call of a function");
    } else if (op->axes == Op::Axes::optional && !expr.has_subscripts) {
      seen("no axes");
    }
    if (expr.subscripts.size() > 1) seen("several axes");
    for (const ast::Subscript& s : expr.subscripts) {
      const bool star = s.kind == Kind::star;
      seen(!star ? "axis by number" : s.record_set.empty() ? "axis by star" : "axis by named star");
    }
  }
  if (expr.kind == ast::ExprKind::index) {
    for (const ast::Subscript& s : expr.subscripts) {
      if (s.kind == Kind::new_axis) seen("new axis");
      if (s.kind == Kind::range)
        seen(!s.first ? "range from the start" : !s.last ? "range to the end" : "range");
      if (s.kind == Kind::index) {
        seen(s.first->kind == ast::ExprKind::number ? "index" : "computed index");
        expression(*s.first);
      }
    }
  }
  for (const ast::ExprPtr& arg : expr.args) expression(*arg);
}

std::vector<std::string> Coverage::rare(int least) const {
  std::vector<std::string> lines;
  for (const auto& [what, count] : counts_) {
    if (count < least) lines.push_back(fmt::format("{}: {} times", what, count));
  }
  return lines;
}

}  // namespace starfold::laws
