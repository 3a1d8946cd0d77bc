#include "starfold/page/pages.h"
namespace starfold {
std::string report_html(const RunReport&, const CompiledProgram&) { return ""; }
}
