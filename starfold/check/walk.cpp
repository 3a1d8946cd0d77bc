#include "starfold/check/walk.h"

#include <type_traits>

namespace starfold {

void walk(const ast::Expr& expr, const Visit& visit) {
  visit(expr);
  for (const ast::ExprPtr& arg : expr.args) walk(*arg, visit);
  for (const ast::Subscript& subscript : expr.subscripts) {
    if (subscript.first) walk(*subscript.first, visit);
    if (subscript.last) walk(*subscript.last, visit);
  }
  if (expr.block) walk(*expr.block, visit);
}

void walk(const ast::Block& block, const Visit& visit) {
  for (const ast::Stmt& stmt : block) {
    const auto inside = [&](const auto& node) {
      using Node = std::decay_t<decltype(node)>;
      if constexpr (std::is_same_v<Node, ast::Repeat>) {
        if (node.seed) {
          walk(*node.count, visit);
          walk(*node.seed, visit);
        }
        walk(node.body, visit);
        if (node.until) walk(*node.until, visit);
      } else if constexpr (std::is_same_v<Node, ast::Input>) {
        if (node.fallback) walk(*node.fallback, visit);
      } else if constexpr (!std::is_same_v<Node, ast::Fn> && !std::is_same_v<Node, ast::Import>) {
        if (node.value) walk(*node.value, visit);
      }
    };
    std::visit(inside, stmt.node);
  }
}

void walk(const ast::Fn& fn, const Visit& visit) {
  walk(fn.body, visit);
  if (fn.value) walk(*fn.value, visit);
}

}  // namespace starfold
