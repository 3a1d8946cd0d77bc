#include "tests/laws/typing_oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "starfold/syntax/parser.h"

namespace starfold::laws {
namespace {

struct Rejected {
  std::string why;
};
struct Beyond {};

[[noreturn]] void reject(std::string why) { throw Rejected{std::move(why)}; }

// A size as its values at two points that have nothing to do with each other: polynomials that agree
// there are equal, and a size with one value is a constant.
using Size = std::array<std::uint64_t, 2>;

Size constant(std::uint64_t value) { return {value, value}; }

Size variable(const std::string& name) {
  const auto at = [&](std::uint64_t point) {
    for (const char c : name) point = (point ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return point;
  };
  return {at(14695981039346656037ULL), at(88172645463325252ULL)};
}

// One entry of sym(T): a star of a record set, or a size (def:symbolic-shape).
struct Axis {
  std::optional<std::string> star;
  Size size = constant(0);

  bool one() const { return !star && size == constant(1); }
  friend bool operator==(const Axis&, const Axis&) = default;
};
using Type = std::vector<Axis>;

std::size_t stars(const Type& type) {
  return static_cast<std::size_t>(
      std::count_if(type.begin(), type.end(), [](const Axis& a) { return a.star.has_value(); }));
}
bool federated(const Type& type) { return stars(type) > 0; }

// Align right, pad with 1; equal axes match and 1 stretches, so that a star meets its own star or 1;
// at most one star.
Type broadcast(Type a, Type b) {
  const Axis one{std::nullopt, constant(1)};
  const std::size_t rank = std::max(a.size(), b.size());
  a.insert(a.begin(), rank - a.size(), one);
  b.insert(b.begin(), rank - b.size(), one);
  for (std::size_t i = 0; i < rank; ++i) {
    if (!(a[i] == b[i]) && !a[i].one() && !b[i].one()) reject("axes that do not broadcast");
    if (a[i].one()) a[i] = b[i];
  }
  if (stars(a) > 1) reject("two stars");
  return a;
}

// a @ b: the last axis of a with the first axis of a vector, or the one before the last of b.
Type product(const Type& a, const Type& b) {
  if (a.empty() || b.empty()) reject("a number in a matrix product");
  const std::size_t contracted = b.size() == 1 ? 0 : b.size() - 2;
  if (!(a.back() == b[contracted])) reject("contracted axes that differ");
  const auto lead = [](const Type& type) {
    return Type(type.begin(), type.size() > 2 ? type.end() - 2 : type.begin());
  };
  Type result = broadcast(lead(a), lead(b));
  if (a.size() > 1) result.push_back(a[a.size() - 2]);
  if (b.size() > 1) result.push_back(b.back());
  if (stars(result) > 1) reject("a product with two stars");
  return result;
}

const std::set<std::string> unary_maps = {
    "abs",   "sign", "sqrt",    "exp",      "expm1", "log",        "log1p",      "sin",   "cos",
    "tan",   "tanh", "sigmoid", "softplus", "relu",  "square",     "reciprocal", "floor", "ceil",
    "round", "erf",  "lgamma",  "digamma",  "isnan", "zeros_like", "ones_like"};
const std::set<std::string> binary_maps = {"min", "max", "mod", "atan2"};
const std::set<std::string> mergeable = {"sum", "prod", "min", "max", "count",     "any",
                                         "all", "mean", "var", "std", "logsumexp", "norm"};
const std::set<std::string> holistic = {"median", "argmax"};

class Judge {
 public:
  explicit Judge(const std::string& text) {
    file_ = parse(sources_, sources_.add("judged.fold", text), diagnostics_);
    if (diagnostics_.has_errors()) throw Beyond{};  // the parser's business
  }

  void run() {
    scopes_.emplace_back();
    for (const ast::Stmt& stmt : file_.items) statement(stmt);
  }

 private:
  struct Name {
    Type type;
    bool size = false;
    bool state = false;
  };

  Name* find(const std::string& name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) return &found->second;
    }
    return nullptr;
  }
  void define(const std::string& name, Name what) {
    if (!scopes_.back().emplace(name, std::move(what)).second) reject(name + " is defined twice");
  }

  // --- sizes and written types

  Size size(const ast::Expr& e, bool introduce) {
    if (e.kind == ast::ExprKind::number) {
      if (e.number < 0 || e.number != static_cast<double>(static_cast<std::uint32_t>(e.number)))
        throw Beyond{};
      return constant(static_cast<std::uint64_t>(e.number));
    }
    if (e.kind == ast::ExprKind::name) {
      const Name* known = find(e.text);
      if (known == nullptr && introduce) define(e.text, {{}, true, false});
      if (known == nullptr && !introduce) reject("an unknown size " + e.text);
      if (known != nullptr && !known->size) reject(e.text + " is no size");
      return variable(e.text);
    }
    if (e.kind != ast::ExprKind::binary) throw Beyond{};
    const Size a = size(*e.args[0], introduce);
    const Size b = size(*e.args[1], introduce);
    if (e.text == "+") return {a[0] + b[0], a[1] + b[1]};
    if (e.text == "-") return {a[0] - b[0], a[1] - b[1]};
    if (e.text == "*") return {a[0] * b[0], a[1] * b[1]};
    throw Beyond{};
  }

  // A size that stands alone: known to be no less than 1 where it is a number.
  Size positive(const ast::Expr& e, bool introduce) {
    const Size value = size(e, introduce);
    const bool number = value[0] == value[1];
    if (number && (value[0] == 0 || value[0] >> 63U != 0)) reject("a size below 1");
    return value;
  }

  Type written(const ast::TypeExpr& type, bool introduce) {
    Type result;
    for (const ast::Dim& dim : type.dims) {
      Axis axis;
      if (dim.star) axis.star = dim.record_set;
      if (!dim.star) axis.size = positive(*dim.size, introduce);
      result.push_back(axis);
    }
    if (stars(result) > 1) reject("a type with two stars");
    return result;
  }

  // --- statements

  void statement(const ast::Stmt& stmt) {
    std::visit([&](const auto& node) { run(node); }, stmt.node);
  }
  void run(const ast::Import&) { throw Beyond{}; }
  void run(const ast::Fn&) { throw Beyond{}; }
  void run(const ast::SizeDecl& n) {
    positive(*n.value, false);
    define(n.name.text, {{}, true, false});
  }
  void run(const ast::Input& n) {
    const Type type = written(n.type, true);
    if (n.fallback) {
      if (federated(type)) reject("a federated default");
      if (expression(*n.fallback) != type) reject("a default of another type");
    }
    define(n.name.text, {type});
  }
  void run(const ast::Let& n) {
    if (n.tuple) throw Beyond{};
    const Type type = expression(*n.value);
    if (n.type && written(*n.type, false) != type) reject("a let of another type");
    define(n.names[0].text, {type});
  }
  void run(const ast::State& n) {
    const Type type = shared(*n.value, "a state");
    if (n.type && written(*n.type, false) != type) reject("a state of another type");
    define(n.name.text, {type, false, true});
  }
  void run(const ast::Update& n) {
    const Type type = shared(*n.value, "a state");
    const Name* state = find(n.name.text);
    if (state == nullptr || !state->state) reject("an update of no state");
    if (loops_ == 0) reject("an update outside loops");
    if (state->type != type) reject("an update of another type");
  }
  void run(const ast::Repeat& n) {
    number(*n.count, "a count");
    scopes_.emplace_back();
    ++loops_;
    for (const ast::Stmt& stmt : n.body) statement(stmt);
    if (n.until) number(*n.until, "a condition");
    --loops_;
    scopes_.pop_back();
  }
  void run(const ast::Trace& n) { number(*n.value, "a trace"); }
  void run(const ast::Demand& n) { shared(*n.value, "a demand"); }
  void run(const ast::Output& n) {
    if (n.value) {
      shared(*n.value, "an output");
    } else {
      const Name* named = find(n.name.text);
      if (named == nullptr) reject("an output of nothing");
      if (federated(named->type)) reject("a federated output");
    }
    if (!outputs_.insert(n.name.text).second) reject("an output given twice");
  }

  // --- expressions

  Type shared(const ast::Expr& e, const std::string& what) {
    Type type = expression(e);
    if (federated(type)) reject(what + " that is federated");
    return type;
  }
  void number(const ast::Expr& e, const std::string& what) {
    if (!expression(e).empty()) reject(what + " that is no shared number");
  }

  Type expression(const ast::Expr& e) {
    switch (e.kind) {
      case ast::ExprKind::number:
        return {};
      case ast::ExprKind::name: {
        const Name* name = find(e.text);
        if (name == nullptr) reject("an unknown name " + e.text);
        return name->type;  // a size is a shared number
      }
      case ast::ExprKind::unary:
        return expression(*e.args[0]);
      case ast::ExprKind::binary: {
        const Type a = expression(*e.args[0]);
        const Type b = expression(*e.args[1]);
        return e.text == "@" ? product(a, b) : broadcast(a, b);
      }
      case ast::ExprKind::transpose: {
        Type type = expression(*e.args[0]);
        if (type.size() != 2) reject("a transpose of no matrix");
        std::swap(type[0], type[1]);
        return type;
      }
      case ast::ExprKind::list:
        return list(e);
      case ast::ExprKind::index:
        return index(e);
      case ast::ExprKind::call:
        return call(e);
      default:
        throw Beyond{};
    }
  }

  Type list(const ast::Expr& e) {
    Type type = expression(*e.args[0]);
    for (const ast::ExprPtr& arg : e.args) {
      if (expression(*arg) != type || federated(type)) throw Beyond{};
    }
    type.insert(type.begin(), Axis{std::nullopt, constant(e.args.size())});
    return type;
  }

  // e[:, 2, new]: all of an axis, one place on an ordinary one, or an axis of 1 put in.
  Type index(const ast::Expr& e) {
    const Type type = expression(*e.args[0]);
    using Kind = ast::Subscript::Kind;
    Type result;
    std::size_t axis = 0;
    for (const ast::Subscript& s : e.subscripts) {
      if (s.kind == Kind::new_axis) {
        result.push_back({std::nullopt, constant(1)});
        continue;
      }
      const bool number = s.kind == Kind::index && s.first->kind == ast::ExprKind::number;
      if (s.kind != Kind::all && !number) throw Beyond{};
      if (axis >= type.size()) reject("more indices than axes");
      const Axis& at = type[axis++];
      if (s.kind == Kind::all) {
        result.push_back(at);
        continue;
      }
      if (at.star) reject("an index along the star");
      const bool known = at.size[0] == at.size[1];
      if (s.first->number < 1 || (known && s.first->number > static_cast<double>(at.size[0])))
        reject("an index outside");
    }
    result.insert(result.end(), type.begin() + static_cast<std::ptrdiff_t>(axis), type.end());
    return result;
  }

  Type call(const ast::Expr& e) {
    const std::string& name = e.text;
    if (e.module) throw Beyond{};
    if (name == "zeros" || name == "ones") return made(e, 0);
    if (name == "full" || name == "normal" || name == "uniform") {
      number(*e.args[0], "a value to repeat");
      return made(e, 1);
    }
    std::vector<Type> args;
    for (const ast::ExprPtr& arg : e.args) args.push_back(expression(*arg));
    if (args.size() == 2 && !e.has_subscripts && binary_maps.count(name) != 0)
      return broadcast(args[0], args[1]);
    if (args.size() != 1) throw Beyond{};
    if (!e.has_subscripts && unary_maps.count(name) != 0) return args[0];
    if (name == "records" && !e.has_subscripts) {
      if (!federated(args[0])) reject("records of a shared value");
      return {};
    }
    if (name == "permute" && e.has_subscripts) return permuted(args[0], axes(e, args[0]));
    if (mergeable.count(name) != 0 || holistic.count(name) != 0) return aggregated(e, args[0]);
    throw Beyond{};
  }

  Type made(const ast::Expr& e, std::size_t first) {
    Type type;
    for (std::size_t i = first; i < e.args.size(); ++i)
      type.push_back({std::nullopt, positive(*e.args[i], false)});
    return type;
  }

  // The axes that were written, each once, counted from 0.
  std::vector<std::size_t> axes(const ast::Expr& e, const Type& of) {
    std::vector<std::size_t> found;
    for (const ast::Subscript& s : e.subscripts) {
      std::size_t axis = of.size();
      if (s.kind == ast::Subscript::Kind::star) {
        for (std::size_t k = 0; k < of.size(); ++k) {
          if (of[k].star && (s.record_set.empty() || s.record_set == *of[k].star)) axis = k;
        }
      } else if (s.kind == ast::Subscript::Kind::index && s.first->kind == ast::ExprKind::number &&
                 s.first->number >= 1) {
        axis = static_cast<std::size_t>(s.first->number) - 1;
      } else {
        throw Beyond{};
      }
      if (axis >= of.size()) reject("an axis that is not there");
      if (std::find(found.begin(), found.end(), axis) != found.end()) reject("an axis twice");
      found.push_back(axis);
    }
    return found;
  }

  static Type permuted(const Type& of, const std::vector<std::size_t>& order) {
    if (order.size() != of.size()) reject("a permutation without all axes");
    Type type;
    for (const std::size_t axis : order) type.push_back(of[axis]);
    return type;
  }

  // def:typing-aggregation, for one axis after the other.
  Type aggregated(const ast::Expr& e, const Type& of) {
    if (!e.has_subscripts) {
      if (federated(of)) reject("axes of a federated value that are not written");
      return {};
    }
    std::vector<std::size_t> folded = axes(e, of);
    if (folded.empty()) reject("no axes");
    Type type;
    for (std::size_t k = 0; k < of.size(); ++k) {
      const bool goes = std::find(folded.begin(), folded.end(), k) != folded.end();
      if (goes && of[k].star && holistic.count(e.text) != 0) reject("a holistic fold of records");
      if (!goes) type.push_back(of[k]);
    }
    return type;
  }

  SourceMap sources_;
  Diagnostics diagnostics_;
  ast::File file_;
  std::vector<std::map<std::string, Name>> scopes_;
  std::set<std::string> outputs_;
  int loops_ = 0;
};

}  // namespace

Judgement judge(const std::string& text, std::string* why) {
  try {
    Judge(text).run();
    return Judgement::accepted;
  } catch (const Rejected& rejected) {
    if (why != nullptr) *why = rejected.why;
    return Judgement::rejected;
  } catch (const Beyond&) {
    return Judgement::beyond;
  }
}

}  // namespace starfold::laws
