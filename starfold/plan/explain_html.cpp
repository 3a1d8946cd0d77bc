#include "starfold/plan/explain.h"

namespace starfold {

std::string explain_html(const Plan& plan, const SourceMap& sources, const std::string& title) {
  static_cast<void>(sources);
  return "<!doctype html><title>" + title + "</title><pre>" + explain_text(plan) + "</pre>";
}

}  // namespace starfold
