// thm:one-round-realization: from the parts of a factorization to the program that computes it. Each part
// is checked for what the theorem asks of it, in the context that the theorem gives it.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/theory/factorization.h"
#include "starfold/theory/program_text.h"

namespace starfold {
namespace {

using program_text::checked;
using program_text::first_used;
using program_text::Parsed;
using program_text::refuse;

// An expression and nothing else, so that parts cannot run into each other.
ast::ExprPtr expression(const std::string& text, const std::string& what) {
  Parsed parsed("let part = (" + text + "\n)", what);
  const bool one =
      parsed.file.items.size() == 1 && std::holds_alternative<ast::Let>(parsed.file.items[0].node);
  if (!one) refuse(what + " must be one expression");
  return std::move(std::get<ast::Let>(parsed.file.items[0].node).value);
}

void require_name(const std::string& name, const std::string& what) {
  const Parsed parsed("let " + name + " = 0\n", what);
  const auto* let =
      parsed.file.items.size() == 1 ? std::get_if<ast::Let>(&parsed.file.items[0].node) : nullptr;
  if (let == nullptr || let->names.size() != 1 || let->names[0].text != name)
    refuse(fmt::format("{} must be one name", what));
}

class Realization {
 public:
  Realization(const FactorizationText& parts, const Signature& signature)
      : parts_(parts), signature_(signature), declared_(parts.inputs, "the inputs") {}

  std::string run() {
    if (parts_.components.empty()) refuse("a factorization has at least one component");
    read_declarations();
    std::string text = parts_.inputs;
    if (!text.empty() && text.back() != '\n') text += '\n';
    for (const ComponentText& component : parts_.components) {
      text += fmt::format("let {} = {}\n", component.name, fold_text(component));
      check_component(component);
    }
    require_name(parts_.output, "the output");
    check_decoder();
    text += fmt::format("output {} = {}\n", parts_.output, parts_.decoder);
    checked(text, "the realized program", signature_);
    return text;
  }

 private:
  // Declarations only: a statement would be part of no encoder, merge or decoder.
  void read_declarations() {
    for (const ast::Stmt& stmt : declared_.file.items) {
      const auto* input = std::get_if<ast::Input>(&stmt.node);
      const bool definition = std::holds_alternative<ast::Import>(stmt.node) ||
                              std::holds_alternative<ast::SizeDecl>(stmt.node) ||
                              std::holds_alternative<ast::Fn>(stmt.node);
      if (!input && !definition) refuse("the inputs must be declarations only");
      if (!input) definitions_ += declared_.text(stmt.span) + "\n";
    }
    const ir::Program program = checked(parts_.inputs, "the inputs", signature_);
    sizes_ = program.sizes;
    for (const ir::Input& input : program.inputs) {
      if (input.type.federated()) {
        federated_.insert(input.name);
      } else {
        shared_ += fmt::format("input {} : {}\n", input.name, input.type.to_string());
      }
    }
  }

  // g_i as it is written.
  std::string fold_text(const ComponentText& component) const {
    require_name(component.name, "the name of a component");
    const std::string what = "the encoder of " + component.name;
    check_encoder(component.encoder, what);
    if (component.aggregation.empty()) {
      check_encoder(component.right, what);
      return fmt::format("({}) @ ({})", component.encoder, component.right);
    }
    const Op* op = signature_.find(component.aggregation, 1, true);
    if (op == nullptr || op->family != Family::aggregation)
      refuse(fmt::format("the aggregation of {} must be the name of one", component.name));
    return fmt::format("{}[*]({})", component.aggregation, component.encoder);
  }

  // A client-local expression of the inputs. Other components are not among its variables.
  void check_encoder(const std::string& text, const std::string& what) const {
    std::set<std::string> components;
    for (const ComponentText& component : parts_.components) components.insert(component.name);
    const std::string used = first_used(*expression(text, what), components);
    if (!used.empty()) refuse(fmt::format("{} uses the component {}", what, used));
  }

  // The fold of a federated value, or the product of two that contracts their records.
  void check_component(const ComponentText& component) {
    const std::string fold = fold_text(component);
    const ir::Program program = checked(parts_.inputs + "\nlet _component = " + fold + "\nlet " +
                                            component.name + " = _component\n",
                                        "the component " + component.name, signature_);
    const ir::NodeId id =
        std::find_if(program.names.begin(), program.names.end(), [](const auto& row) {
          return row.second == "_component";
        })->first;
    const ir::Node& node = program.graph[id];
    if (node.federated())
      refuse(
          fmt::format("the component {} is federated: its records must be folded", component.name));
    const auto is_federated = [&](ir::NodeId arg) { return program.graph[arg].federated(); };
    if (!std::all_of(node.args.begin(), node.args.end(), is_federated))
      refuse(fmt::format("the encoder of {} is shared: it must be client-local", component.name));
    for (ir::NodeId other = 0; other < id; ++other) {
      const ir::Node& inner = program.graph[other];
      if (!inner.federated() && std::any_of(inner.args.begin(), inner.args.end(), is_federated))
        refuse(fmt::format("the encoder of {} folds records: it must be client-local",
                           component.name));
    }
    component_inputs_ += fmt::format("input {} : {}\n", component.name, node.type().to_string());
  }

  // A shared-only expression: it means something where there are components and shared inputs alone.
  void check_decoder() const {
    const ast::ExprPtr decoder = expression(parts_.decoder, "the decoder");
    const std::string used = first_used(*decoder, federated_);
    if (!used.empty())
      refuse(fmt::format("the decoder uses the federated input {}: it must be shared-only", used));
    std::string text = definitions_;
    for (const ir::SizeVariable& size : sizes_) {
      if (!size.value) text += fmt::format("size {} = 2\n", size.name);
    }
    text += shared_ + component_inputs_;
    text += fmt::format("output {} = {}\n", parts_.output, parts_.decoder);
    checked(text, "the decoder", signature_);
  }

  const FactorizationText& parts_;
  const Signature& signature_;
  Parsed declared_;
  std::string definitions_;       // sizes, functions and imports of the inputs
  std::string shared_;            // the shared inputs
  std::string component_inputs_;  // the components as inputs of the decoder
  std::vector<ir::SizeVariable> sizes_;
  std::set<std::string> federated_;
};

}  // namespace

std::string realize(const FactorizationText& factorization, const Signature& signature) {
  return Realization(factorization, signature).run();
}

}  // namespace starfold
