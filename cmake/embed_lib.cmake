# Writes OUTPUT, a C++ file holding LIB_DIR/<name>.fold for each of NAMES (separated by commas).
# The text travels as character constants: no compiler limits their number, and no byte needs care.

string(REPLACE "," ";" names "${NAMES}")
set(texts "")
set(rows "")
set(index 0)
foreach(name IN LISTS names)
  file(READ ${LIB_DIR}/${name}.fold bytes HEX)
  string(LENGTH "${bytes}" length)
  math(EXPR length "${length} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND texts "constexpr char kText${index}[] = {  // ${name}\n    ${bytes}'\\0'};\n")
  string(APPEND rows "      EmbeddedModule{\"${name}\", {kText${index}, ${length}}},\n")
  math(EXPR index "${index} + 1")
endforeach()

file(WRITE ${OUTPUT} "// Generated from lib/ by cmake/embed_lib.cmake.
#include \"starfold/base/embedded_lib.h\"

#include <array>

namespace starfold {
namespace {
${texts}}  // namespace

std::span<const EmbeddedModule> embedded_modules() {
  static constexpr std::array<EmbeddedModule, ${index}> kModules = {
${rows}  };
  return kModules;
}

}  // namespace starfold
")
