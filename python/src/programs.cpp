// Programs: compiled, checked, explained, laid out.
#include "module.h"
#include "starfold/base/embedded_lib.h"
#include "starfold/base/json.h"
#include "starfold/diag/render.h"
#include "starfold/ops/standard.h"
#include "starfold/page/pages.h"
#include "starfold/plan/explain.h"
#include "starfold/study/output/check_report.h"
#include "starfold/study/program.h"
#include "starfold/syntax/format.h"
#include "starfold/syntax/parser.h"

#include <filesystem>

namespace starfold::python {
namespace {

// Errors of a program are in it: who compiles looks.
Program compile_text(const std::string& text, const std::string& name, const std::string& folder,
                     bool base) {
  const nb::gil_scoped_release released;
  ProgramOptions options;
  options.base = base;
  options.load = modules_beside((std::filesystem::path(folder) / "program.fold").string());
  return {compile_program({name, text, {}}, options)};
}

Program open(const std::string& name, bool base) {
  try {
    const nb::gil_scoped_release released;
    ProgramOptions options;
    options.base = base;
    return {open_program(name, options)};
  } catch (...) {
    raise_trouble(nullptr);
  }
}

std::string rendered(const Program& program, bool color) {
  const Compilation& compilation = program.compiled->compilation;
  std::string text = render_text(compilation.diagnostics, compilation.sources, color);
  if (compilation.diagnostics.dropped() > 0)
    text += "\n... and " + std::to_string(compilation.diagnostics.dropped()) + " more\n";
  return text;
}

nb::list inputs_of(const Program& program) {
  nb::list inputs;
  for (const ir::Input& input : program.compiled->compilation.program.inputs) {
    nb::dict one;
    one["name"] = input.name;
    one["type"] = input.type.to_string();
    one["federated"] = input.type.federated();
    one["default"] = input.fallback != ir::no_node;
    inputs.append(one);
  }
  return inputs;
}

std::vector<std::string> sizes_of(const Program& program) {
  std::vector<std::string> sizes;
  for (const ir::SizeVariable& size : program.compiled->compilation.program.sizes)
    sizes.push_back(size.name);
  return sizes;
}

std::string page(const Program& program, const std::string& title) {
  const CompiledProgram& compiled = *program.compiled;
  return explain_html(*compiled.plan, compiled.compilation.sources, title);
}

// The text in its one layout; nothing when it is no program, whose mistakes are then in the second.
std::pair<std::string, std::string> format_text(const std::string& text, const std::string& name) {
  SourceMap sources;
  Diagnostics diagnostics;
  const std::uint32_t file = sources.add(name, text);
  const ast::File parsed = parse(sources, file, diagnostics);
  if (diagnostics.has_errors()) return {"", render_text(diagnostics, sources)};
  return {format(sources, parsed), ""};
}

nb::list operations() {
  nb::list rows;
  for (const auto& op : standard_signature().ops()) {
    nb::dict row;
    row["name"] = op->name;
    row["family"] = std::string(to_string(op->family));
    row["surface"] = op->surface;
    row["doc"] = op->doc;
    rows.append(row);
  }
  return rows;
}

nb::dict library() {
  nb::dict files;
  for (const EmbeddedModule& file : embedded_modules())
    files[std::string(file.name).c_str()] = std::string(file.text);
  return files;
}

}  // namespace

void bind_programs(nb::module_& module) {
  nb::class_<Program>(module, "Program")
      .def_prop_ro("name", [](const Program& p) { return p.compiled->text.name; })
      .def_prop_ro("text", [](const Program& p) { return p.compiled->text.text; })
      .def_prop_ro("ok", [](const Program& p) { return p.compiled->plan != nullptr; })
      .def_prop_ro("hash", [](const Program& p) { return p.compiled->hash; })
      .def("check", [](const Program& p) { return check_json(*p.compiled); })
      .def("rendered", &rendered)
      .def("inputs", &inputs_of)
      .def("sizes", &sizes_of)
      .def("exposure",
           [](const Program& p) {
             return exposure_text(*p.compiled->plan, p.compiled->compilation.sources);
           })
      .def("explain", [](const Program& p) { return explain_report(*p.compiled); })
      .def("explain_json", [](const Program& p) { return explain_report_json(*p.compiled); })
      .def("dot", [](const Program& p) { return explain_dot(*p.compiled->plan); })
      .def("page", &page);
  module.def("compile", &compile_text);
  module.def("open", &open);
  module.def("format", &format_text);
  module.def("library", &library);
  module.def("operations", &operations);
}

}  // namespace starfold::python
