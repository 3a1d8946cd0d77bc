// Written types and sizes (def:tensor-types).
#include <fmt/format.h>

#include <cmath>

#include "starfold/check/checker.h"

namespace starfold {

std::optional<Type> Checker::type_of(const ast::TypeExpr& written, TypeUse use) {
  Type type;
  bool ok = true;
  for (const ast::Dim& dim : written.dims) {
    std::optional<Dim> resolved = dim_of(dim, use);
    if (!resolved) {
      ok = false;
      continue;
    }
    if (resolved->star && type.federated()) {
      report({Code::InvalidType,
              "a type has at most one record axis",
              {dim.span, "a second star"},
              {},
              "each record lies on one client, so a value is split along one axis only",
              "keep one star; the other axes are sizes"});
      ok = false;
      continue;
    }
    type.dims.push_back(std::move(*resolved));
  }
  return ok ? std::optional(type) : std::nullopt;
}

std::optional<Dim> Checker::dim_of(const ast::Dim& written, TypeUse use) {
  if (written.star) {
    std::string set = written.record_set;
    if (frame().function && !defining_) {
      const auto found = frame().record_sets.find(set);
      if (found != frame().record_sets.end()) set = found->second;
    }
    return Dim::record(std::move(set));
  }
  std::optional<Size> size = size_of(*written.size, true, use);
  if (!size) return std::nullopt;
  if (size->is_constant() && size->constant() < 1) {
    report({Code::InvalidSize,
            fmt::format("a size must be positive, not {}", size->to_string()),
            {written.span, ""},
            {},
            "every axis but the record axis has at least one element",
            ""});
    return std::nullopt;
  }
  return Dim::of(std::move(*size));
}

std::optional<Size> Checker::size_of_name(const ast::Expr& expr, bool report_it, TypeUse use) {
  const auto own = frame().sizes.find(expr.text);
  if (own != frame().sizes.end()) return own->second;
  if (Binding* binding = find(expr.text)) {
    if (binding->kind == Binding::Kind::size) {
      binding->used = true;
      return binding->size;
    }
    if (report_it && binding->kind != Binding::Kind::broken) {
      report({Code::NotASize,
              fmt::format("`{}` is a value, not a size", expr.text),
              {expr.span, "its value is known only during the run"},
              {{binding->span, "defined here"}},
              "shapes are fixed before anything runs",
              fmt::format("declare a size: `size {} = 3`", expr.text == "k" ? "k" : "n")});
    }
    return std::nullopt;
  }
  // Sizes declared by the program itself are visible in its functions too.
  if (frame().function) {
    Scope& outermost = frames_.front().scopes.front();
    const auto found = outermost.names.find(expr.text);
    if (frame().module->name.empty() && found != outermost.names.end() && found->second.kind == Binding::Kind::size) {
      found->second.used = true;
      return found->second.size;
    }
  }
  if (use == TypeUse::input) {
    if (options_.signature->find(expr.text) != nullptr) {
      define({expr.text, expr.span}, {});  // reports the reserved name
      return std::nullopt;
    }
    Binding binding;
    binding.kind = Binding::Kind::size;
    binding.size = Size::variable(expr.text);
    if (!define({expr.text, expr.span}, binding)) return std::nullopt;
    program_.sizes.push_back({expr.text, std::nullopt, expr.span});
    return binding.size;
  }
  if (report_it) unknown_name(expr.text, expr.span);
  return std::nullopt;
}

std::optional<Size> Checker::size_of(const ast::Expr& expr, bool report_it, TypeUse use) {
  const auto fail = [&](const char* label) -> std::optional<Size> {
    if (report_it) {
      report({Code::NotASize,
              fmt::format("`{}` is not a size", text(expr.span)),
              {expr.span, label},
              {},
              "shapes are fixed before anything runs",
              "a size is a positive integer, a size variable, or sums and products of them"});
    }
    return std::nullopt;
  };
  switch (expr.kind) {
    case ast::ExprKind::number: {
      constexpr double largest = 9007199254740992.0;  // beyond it doubles skip integers
      if (!(std::abs(expr.number) <= largest) || expr.number != std::floor(expr.number)) return fail("not an integer");
      return Size(static_cast<std::int64_t>(expr.number));
    }
    case ast::ExprKind::name:
      return size_of_name(expr, report_it, use);
    case ast::ExprKind::unary: {
      if (expr.text != "-") return fail("not an integer");
      const std::optional<Size> operand = size_of(*expr.args[0], report_it, use);
      return operand ? subtract(Size(0), *operand) : std::nullopt;
    }
    case ast::ExprKind::binary: {
      if (expr.text != "+" && expr.text != "-" && expr.text != "*" && expr.text != "^") return fail("only +, - and * make sizes");
      const std::optional<Size> a = size_of(*expr.args[0], report_it, use);
      const std::optional<Size> b = size_of(*expr.args[1], report_it, use);
      if (!a || !b) return std::nullopt;
      std::optional<Size> result;
      if (expr.text == "+") result = add(*a, *b);
      if (expr.text == "-") result = subtract(*a, *b);
      if (expr.text == "*") result = multiply(*a, *b);
      if (expr.text == "^") {
        if (!b->is_constant() || b->constant() < 0 || b->constant() > 16) return fail("the power of a size is a small integer");
        result = Size(1);
        for (std::int64_t i = 0; i < b->constant() && result; ++i) result = multiply(*result, *a);
      }
      return result ? result : fail("too large");
    }
    case ast::ExprKind::invalid:
      return std::nullopt;
    default:
      return fail("not known before the run");
  }
}

std::optional<Size> Checker::positive_size(const ast::Expr& expr) {
  const std::optional<Size> size = size_of(expr, true);
  if (size && size->is_constant() && size->constant() < 1) {
    report({Code::InvalidSize,
            fmt::format("a size must be positive, not {}", size->to_string()),
            {expr.span, ""},
            {},
            "every axis but the record axis has at least one element",
            ""});
    return std::nullopt;
  }
  return size;
}

bool Checker::check_declared(const std::optional<ast::TypeExpr>& written, const Type& actual, const ast::Expr& value) {
  if (!written) return true;
  const std::optional<Type> declared = type_of(*written, TypeUse::annotation);
  if (!declared || *declared == actual) return true;
  report({Code::DeclaredType,
          fmt::format("the value is {}, but {} is declared", actual.to_string(), declared->to_string()),
          {value.span, fmt::format("this is {}", actual.to_string())},
          {{written->span, fmt::format("{} is expected here", declared->to_string())}},
          "",
          actual.is_scalar() && !declared->federated() && !declared->is_scalar() ? "use `full(v, sizes...)` to repeat a number"
                                                                                 : ""});
  return false;
}

}  // namespace starfold
