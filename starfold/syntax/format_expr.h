// Expressions and types in canonical layout; used by the formatter only.
#pragma once

#include "starfold/syntax/ast.h"
#include "starfold/syntax/layout.h"

namespace starfold::syntax {

void lay_out(Layout& layout, const ast::Expr& expr);
void lay_out(Layout& layout, const ast::TypeExpr& type);

// Elements between brackets, separated by commas; a line may end beside each.
template <typename Elements, typename Element>
void lay_out_list(Layout& layout, std::string_view opener, const Elements& elements,
                  std::string_view closer, Element element, bool fill = false) {
  layout.text(opener);
  if (!elements.empty()) {
    layout.open();
    layout.indent();
    layout.soft();
    bool first = true;
    for (const auto& each : elements) {
      if (!first) layout.text(",");
      if (!first && fill) layout.fill();
      if (!first && !fill) layout.line();
      first = false;
      element(each);
    }
    layout.dedent();
    layout.soft();
    layout.close();
  }
  layout.text(closer);
}

}  // namespace starfold::syntax
