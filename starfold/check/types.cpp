// Written types and sizes (def:tensor-types).
#include <fmt/format.h>

#include <cmath>

#include "starfold/check/checker.h"

namespace starfold {
namespace {

// What would make a value fit its declared type, where that is plain.
std::string help_for_declared(const Type& declared, const Type& actual, const std::string& value,
                              bool repeats) {
  const auto full = [&](const std::string& number, const Type& type) {
    std::string sizes;
    for (const Dim& dim : type.dims) sizes += ", " + dim.to_string();
    return type.is_scalar() ? number : fmt::format("full({}{})", number, sizes);
  };
  const bool number = actual.is_scalar() && value.size() < 20;
  if (repeats && declared.federated() && !actual.federated()) {
    const Type row = without_axis(declared, *declared.record_axis());
    return fmt::format("a first value for all has the type of one record, {}: write `{}`",
                       row.to_string(), full(number ? value : "0", row));
  }
  if (declared.federated() || actual.federated()) {
    return declared.federated() == actual.federated()
               ? ""
               : (actual.federated()
                      ? "fold the record axis first, for example with `sum[*]`"
                      : "a shared value is not split across clients: leave the star out");
  }
  return number ? fmt::format("to repeat the number, write `{}`", full(value, declared)) : "";
}

}  // namespace

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
  if (type.rank() > max_rank) ok = check_ranks({type}, written.span);
  return ok ? std::optional(type) : std::nullopt;
}

std::optional<Dim> Checker::dim_of(const ast::Dim& written, TypeUse use) {
  if (written.star) {
    const auto found = frame().record_sets.find(written.record_set);
    return Dim::record(found == frame().record_sets.end() ? written.record_set : found->second);
  }
  std::optional<Size> size = size_of(*written.size, true, use);
  if (!size || !check_positive(*size, written.span)) return std::nullopt;
  return Dim::of(std::move(*size));
}

bool Checker::check_positive(const Size& size, Span span) {
  if (!size.is_constant() || size.constant() >= 1) return true;
  report({Code::InvalidSize,
          fmt::format("a size must be positive, not {}", size.to_string()),
          {span, "less than 1"},
          {},
          "every axis but the record axis has at least one element",
          ""});
  return false;
}

std::optional<Size> Checker::size_of_name(const ast::Expr& expr, bool report_it, TypeUse use) {
  if (Binding* binding = find(expr.text)) {
    if (binding->kind == Binding::Kind::size) {
      binding->used = true;
      record_use(expr.span, binding->span);
      return binding->size;
    }
    if (report_it) binding->used = true;
    if (report_it && binding->kind != Binding::Kind::broken) {
      report({Code::NotASize,
              fmt::format("`{}` is a value, not a size", expr.text),
              {expr.span, "its value is known only during the run"},
              {{binding->span, "defined here"}},
              "shapes are fixed before anything runs",
              "declare a size, for example `size k = 3`; `--set k=5` changes it"});
    }
    return std::nullopt;
  }
  const auto own = frame().sizes.find(expr.text);
  if (own != frame().sizes.end()) {
    for (const ir::SizeVariable& size :
         (blocks_.empty() ? program_ : blocks_.front().outer).sizes) {
      if (size.name == expr.text) record_use(expr.span, size.span);
    }
    return own->second;
  }
  // Sizes declared by the program itself are visible in its functions too.
  if (frame().function && frame().module->name.empty()) {
    const auto& outermost = frames_.front().scopes.front().names;
    const auto found = outermost.find(expr.text);
    if (found != outermost.end() && found->second.kind == Binding::Kind::size) {
      record_use(expr.span, found->second.span);
      return found->second.size;
    }
  }
  if (use == TypeUse::input) {
    Binding binding;
    binding.kind = Binding::Kind::size;
    binding.size = Size::variable(expr.text);
    if (!define({expr.text, expr.span}, binding)) return std::nullopt;
    program_.sizes.push_back({expr.text, std::nullopt, expr.span});
    return binding.size;
  }
  if (report_it) unknown_name(expr.text, expr.span, "size");
  return std::nullopt;
}

std::optional<Size> Checker::fail_size(const ast::Expr& expr, bool report_it, const char* label) {
  if (!report_it) return std::nullopt;
  report({Code::NotASize,
          fmt::format("`{}` is not a size", text(expr.span)),
          {expr.span, label},
          {},
          "shapes are fixed before anything runs",
          "a size is a positive integer, a size variable, or sums and products of them"});
  return std::nullopt;
}

std::optional<Size> Checker::size_of_operator(const ast::Expr& expr, bool report_it, TypeUse use) {
  const std::string& op = expr.text;
  if (op != "+" && op != "-" && op != "*" && op != "^") {
    return fail_size(expr, report_it, "only +, - and * make sizes");
  }
  const std::optional<Size> a = size_of(*expr.args[0], report_it, use);
  const std::optional<Size> b = size_of(*expr.args[1], report_it, use);
  if (!a || !b) return std::nullopt;
  std::optional<Size> result;
  if (op == "+") result = add(*a, *b);
  if (op == "-") result = subtract(*a, *b);
  if (op == "*") result = multiply(*a, *b);
  if (op == "^") {
    constexpr std::int64_t largest_power = 16;
    if (!b->is_constant() || b->constant() < 0 || b->constant() > largest_power) {
      return fail_size(expr, report_it, "the power of a size is a whole number up to 16");
    }
    result = Size(1);
    for (std::int64_t i = 0; i < b->constant() && result; ++i) result = multiply(*result, *a);
  }
  return result ? result
                : fail_size(expr, report_it, "too large a number, or too long a polynomial");
}

std::optional<Size> Checker::size_of(const ast::Expr& expr, bool report_it, TypeUse use) {
  switch (expr.kind) {
    case ast::ExprKind::number: {
      constexpr double largest = 9007199254740992.0;  // from here on doubles skip integers
      const bool whole = std::abs(expr.number) < largest && expr.number == std::floor(expr.number);
      if (!whole) return fail_size(expr, report_it, "not a whole number");
      return Size(static_cast<std::int64_t>(expr.number));
    }
    case ast::ExprKind::name:
      return size_of_name(expr, report_it, use);
    case ast::ExprKind::unary: {
      if (expr.text != "-") return fail_size(expr, report_it, "not a whole number");
      const std::optional<Size> operand = size_of(*expr.args[0], report_it, use);
      return operand ? subtract(Size(0), *operand) : std::nullopt;
    }
    case ast::ExprKind::binary:
      return size_of_operator(expr, report_it, use);
    case ast::ExprKind::invalid:
      return std::nullopt;
    default:
      return fail_size(expr, report_it, "not known before the run");
  }
}

std::optional<Size> Checker::positive_size(const ast::Expr& expr) {
  const std::optional<Size> size = size_of(expr, true);
  return size && check_positive(*size, expr.span) ? size : std::nullopt;
}

bool Checker::check_declared(const ast::TypeExpr& written, const Type& actual,
                             const ast::Expr& value, bool repeats) {
  const std::optional<Type> declared = type_of(written, TypeUse::annotation);
  if (!declared || *declared == actual) return true;
  report({Code::DeclaredType,
          fmt::format("the value is {}, but {} is declared", actual.to_string(),
                      declared->to_string()),
          {value.span, fmt::format("this is {}", actual.to_string())},
          {{written.span, fmt::format("{} is declared here", declared->to_string())}},
          "",
          help_for_declared(*declared, actual, text(value.span), repeats)});
  return false;
}

}  // namespace starfold
