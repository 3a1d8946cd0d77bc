// Programs put together from parts: texts in, one text out, checked like anything a user writes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "starfold/compile/compile.h"
#include "starfold/compile/factorization.h"
#include "starfold/syntax/parser.h"

namespace starfold {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

ir::Program checked(const std::string& text, const std::string& what, const Signature& signature) {
  CheckOptions options;
  options.signature = &signature;
  Compilation compilation = compile(what, text, options);
  for (const Diagnostic& d : compilation.diagnostics.items()) {
    if (info(d.code).severity == Severity::error) refuse(fmt::format("{}: {}", what, d.message));
  }
  return std::move(compilation.program);
}

struct Parsed {
  SourceMap sources;
  ast::File file;

  Parsed(const std::string& text, const std::string& what) {
    Diagnostics diagnostics;
    file = parse(sources, sources.add(what, text), diagnostics);
    if (diagnostics.has_errors())
      refuse(fmt::format("{}: {}", what, diagnostics.items().front().message));
  }
  std::string text(Span span) const { return std::string(sources.text(span)); }
};

// --- realize

// An expression and nothing else, so that parts cannot run into each other.
void require_expression(const std::string& text, const std::string& what) {
  const Parsed parsed("let part = (" + text + "\n)", what);
  const bool one =
      parsed.file.items.size() == 1 && std::holds_alternative<ast::Let>(parsed.file.items[0].node);
  if (!one) refuse(what + " must be one expression");
}

bool mentions(const ast::Expr& expr, const std::set<std::string>& names) {
  if (expr.kind == ast::ExprKind::name && names.count(expr.text) != 0) return true;
  const auto in = [&](const ast::ExprPtr& part) { return part && mentions(*part, names); };
  return std::any_of(expr.args.begin(), expr.args.end(), in) ||
         std::any_of(expr.subscripts.begin(), expr.subscripts.end(),
                     [&](const ast::Subscript& s) { return in(s.first) || in(s.last); });
}

void require_shared_only(const std::string& decoder, const ir::Program& program) {
  std::set<std::string> federated;
  for (const ir::Input& input : program.inputs) {
    if (input.type.federated()) federated.insert(input.name);
  }
  const Parsed parsed("let part = (" + decoder + "\n)", "the decoder");
  if (mentions(*std::get<ast::Let>(parsed.file.items[0].node).value, federated)) {
    refuse("the decoder uses a federated input: it must be shared-only");
  }
}

// No fold stands behind the operands of another.
void require_one_round(const ir::Program& program) {
  std::vector<bool> folded(program.graph.size());
  for (ir::NodeId id = 0; id < program.graph.size(); ++id) {
    const ir::Node& node = program.graph[id];
    const bool takes_federated =
        std::any_of(node.args.begin(), node.args.end(),
                    [&](ir::NodeId arg) { return program.graph[arg].federated(); });
    folded[id] = std::any_of(node.args.begin(), node.args.end(),
                             [&](ir::NodeId arg) { return folded[arg]; });
    if (node.federated() && folded[id]) refuse("an encoder folds records: it must be client-local");
    folded[id] = folded[id] || (takes_federated && !node.federated());
  }
}

// --- compose

std::string name_of(const ast::Stmt& stmt) {
  if (const auto* input = std::get_if<ast::Input>(&stmt.node)) return input->name.text;
  if (const auto* size = std::get_if<ast::SizeDecl>(&stmt.node)) return size->name.text;
  if (const auto* fn = std::get_if<ast::Fn>(&stmt.node)) return fn->name.text;
  if (const auto* state = std::get_if<ast::State>(&stmt.node)) return state->name.text;
  return {};
}

std::set<std::string> names_defined(const ast::File& file) {
  std::set<std::string> names;
  for (const ast::Stmt& stmt : file.items) {
    names.insert(name_of(stmt));
    if (const auto* let = std::get_if<ast::Let>(&stmt.node)) {
      for (const ast::Name& name : let->names) names.insert(name.text);
    }
  }
  return names;
}

// The text of a program whose outputs have become names.
std::string outputs_as_names(const Parsed& program) {
  std::string text =
      program.text({program.file.id, 0,
                    static_cast<std::uint32_t>(program.sources[program.file.id].text().size())});
  for (auto stmt = program.file.items.rbegin(); stmt != program.file.items.rend(); ++stmt) {
    const auto* output = std::get_if<ast::Output>(&stmt->node);
    if (output == nullptr) continue;
    const std::string let = output->value ? fmt::format("let {} = {}", output->name.text,
                                                        program.text(output->value->span))
                                          : "";
    text.replace(stmt->span.begin, stmt->span.end - stmt->span.begin, let);
  }
  return text + "\n";
}

// A shared-only program as a function: inputs are its parameters, outputs its results. A function's
// names are its own, and its sizes are found from its arguments.
struct Postprocessing {
  std::vector<std::string> imports;
  std::vector<std::string> before;  // sizes, functions, inputs of the composed program
  std::vector<std::string> params;
  std::vector<std::string> args;
  std::vector<std::string> body;
  std::vector<std::string> results;
};

Postprocessing as_function(const Parsed& post, const std::set<std::string>& given,
                           const std::set<std::string>& taken) {
  Postprocessing fn;
  const auto only_here = [&](const std::string& name) {
    if (taken.count(name) != 0) refuse(fmt::format("both programs define {}", name));
  };
  for (const ast::Stmt& stmt : post.file.items) {
    const std::string text = post.text(stmt.span);
    if (std::holds_alternative<ast::Import>(stmt.node)) {
      fn.imports.push_back(text);
    } else if (std::holds_alternative<ast::SizeDecl>(stmt.node) ||
               std::holds_alternative<ast::Fn>(stmt.node)) {
      only_here(name_of(stmt));
      fn.before.push_back(text);
    } else if (const auto* input = std::get_if<ast::Input>(&stmt.node)) {
      fn.params.push_back(fmt::format("{} : {}", input->name.text, post.text(input->type.span)));
      fn.args.push_back(input->name.text);
      if (given.count(input->name.text) != 0) continue;
      only_here(input->name.text);
      fn.before.push_back(text);
    } else if (const auto* output = std::get_if<ast::Output>(&stmt.node)) {
      // What `first` gave out is now a name; giving the same value out again is no conflict.
      if (given.count(output->name.text) == 0 || output->value) only_here(output->name.text);
      fn.results.push_back(output->name.text);
      if (output->value)
        fn.body.push_back(
            fmt::format("let {} = {}", output->name.text, post.text(output->value->span)));
    } else {
      fn.body.push_back(text);
    }
  }
  return fn;
}

std::string unused(std::string name, const std::string& texts) {
  while (texts.find(name) != std::string::npos) name += "_";
  return name;
}

}  // namespace

std::string realize(const FactorizationText& factorization, const Signature& signature) {
  std::string text = factorization.inputs;
  if (!text.empty() && text.back() != '\n') text += '\n';
  for (const ComponentText& component : factorization.components) {
    require_expression(component.encoder, "the encoder of " + component.name);
    if (!component.aggregation.empty()) {
      text += fmt::format("let {} = {}[*]({})\n", component.name, component.aggregation,
                          component.encoder);
      continue;
    }
    require_expression(component.right, "the encoder of " + component.name);
    text +=
        fmt::format("let {} = ({}) @ ({})\n", component.name, component.encoder, component.right);
  }
  require_expression(factorization.decoder, "the decoder");
  text += fmt::format("output {} = {}\n", factorization.output, factorization.decoder);
  const ir::Program program = checked(text, "the realized program", signature);
  require_one_round(program);
  require_shared_only(factorization.decoder, program);
  return text;
}

std::string compose(const std::string& first, const std::string& post, const Signature& signature) {
  const ir::Program before = checked(first, "the first program", signature);
  const ir::Program after = checked(post, "the post-processing program", signature);
  for (const ir::Input& input : after.inputs) {
    if (input.type.federated())
      refuse(fmt::format("input {} of the post-processing program is federated", input.name));
  }
  const Parsed parsed_first(first, "the first program");
  const Parsed parsed_post(post, "the post-processing program");
  std::set<std::string> given;
  for (const ir::Output& output : before.outputs) given.insert(output.name);
  std::set<std::string> taken = names_defined(parsed_first.file);
  taken.insert(given.begin(), given.end());
  const Postprocessing fn = as_function(parsed_post, given, taken);
  if (fn.results.empty()) refuse("the post-processing program has no output");

  const std::string name = unused("post", first + post);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fn.results.size(); ++i)
    names.push_back(fmt::format("{}_{}", name, i + 1));
  const bool several = names.size() > 1;
  const std::string list =
      several ? fmt::format("({})", fmt::join(fn.results, ", ")) : fn.results[0];
  std::string text;
  for (const std::string& line : fn.imports) {
    if (first.find(line) == std::string::npos) text += line + "\n";
  }
  text += outputs_as_names(parsed_first);
  for (const std::string& line : fn.before) text += line + "\n";
  text += fmt::format("fn {}({}) {{\n", name, fmt::join(fn.params, ", "));
  for (const std::string& line : fn.body) text += "  " + line + "\n";
  text += fmt::format("  {}\n}}\n", list);
  const std::string bound = several ? fmt::format("({})", fmt::join(names, ", ")) : names[0];
  text += fmt::format("let {} = {}({})\n", bound, name, fmt::join(fn.args, ", "));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool same_name = taken.count(fn.results[i]) != 0;
    text += same_name ? fmt::format("output {}\n", fn.results[i])
                      : fmt::format("output {} = {}\n", fn.results[i], names[i]);
  }
  checked(text, "the composed program", signature);
  return text;
}

}  // namespace starfold
