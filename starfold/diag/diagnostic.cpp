#include "starfold/diag/diagnostic.h"

#include <algorithm>
#include <tuple>

namespace starfold {

const std::vector<CodeInfo>& all_codes() {
  static const std::vector<CodeInfo> rows = {
#define STARFOLD_CODE(code, severity, name, meaning) \
  {Code::name, #code, Severity::severity, meaning},
#include "starfold/diag/codes.def"
#undef STARFOLD_CODE
  };
  return rows;
}

const CodeInfo& info(Code code) { return all_codes()[static_cast<std::size_t>(code)]; }

void Diagnostics::report(Diagnostic diagnostic) {
  const bool is_error = info(diagnostic.code).severity == Severity::error;
  // The same mistake seen twice (a function body checked at each call, say) is said once.
  const bool repeated = std::any_of(items_.begin(), items_.end(), [&](const Diagnostic& item) {
    return item.code == diagnostic.code && item.primary.span == diagnostic.primary.span;
  });
  if (is_error) ++errors_;
  if (repeated) return;
  if (full()) {
    ++dropped_;
    const auto warning = std::find_if(items_.begin(), items_.end(), [](const Diagnostic& item) {
      return info(item.code).severity == Severity::warning;
    });
    if (!is_error || warning == items_.end()) return;
    items_.erase(warning);
  }
  items_.push_back(std::move(diagnostic));
}

void Diagnostics::sort() {
  const auto place = [](const Diagnostic& d) {
    return std::make_tuple(d.primary.span.file, d.primary.span.begin, d.primary.span.end);
  };
  std::stable_sort(items_.begin(), items_.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) { return place(a) < place(b); });
}

}  // namespace starfold
