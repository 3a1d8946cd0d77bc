// What the checker finds out about names, written down where editors can look it up.
#include "starfold/check/name_index.h"

#include <algorithm>

#include "starfold/check/checker.h"

namespace starfold {
namespace {

bool before(Span a, Span b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; }

bool inside(Span part, Span whole) {
  return part.file == whole.file && part.begin >= whole.begin && part.end <= whole.end;
}

// By place, and what was written down several times once: types are read more than once.
template <typename Entry>
void in_order(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return before(a.span, b.span); });
  const auto same = [](const Entry& a, const Entry& b) { return a.span == b.span; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
}

}  // namespace

// Only in the text of the program itself, and not again at every call of a function.
bool Checker::records_names() const {
  return names_ != nullptr && says_warnings() && frame().module->name.empty();
}

void Checker::record_definition(Definition::Kind kind, const ast::Name& name,
                                std::vector<Type> types) {
  if (!records_names()) return;
  names_->definitions.push_back(
      {kind, name.text, name.span, name.span, {name.span.file, 0, 0}, std::move(types)});
}

void Checker::record_definition(const ast::Name& name, Binding& binding) {
  if (!records_names()) return;
  const Definition::Kind kind = binding.kind == Binding::Kind::size    ? Definition::Kind::size
                                : binding.kind == Binding::Kind::state ? Definition::Kind::state
                                : binding.is_let || binding.kind == Binding::Kind::broken
                                    ? Definition::Kind::let
                                : frame().function ? Definition::Kind::parameter
                                                   : Definition::Kind::input;
  std::vector<Type> types;
  if (binding.node != ir::no_node) types.push_back(type(binding.node));
  if (binding.kind == Binding::Kind::size) types.push_back(Type::scalar());
  record_definition(kind, name, std::move(types));
  binding.definition = names_->definitions.size();
}

void Checker::record_function(const Module& module, const ast::Fn& fn) {
  if (names_ == nullptr) return;
  const std::uint32_t file = fn.name.span.file;
  Span header = fn.name.span;
  for (const ast::Param& param : fn.params) header = cover(header, param.type.span);
  // The closing parenthesis is not in the tree.
  const std::string_view text = sources_[file].text();
  const std::size_t close = text.find(')', header.end);
  if (close != std::string_view::npos) header.end = static_cast<std::uint32_t>(close) + 1;
  if (fn.result) header = cover(header, fn.result->span);
  const auto size = static_cast<std::uint32_t>(text.size());
  names_->definitions.push_back({Definition::Kind::function,
                                 fn.name.text,
                                 fn.name.span,
                                 header,
                                 {file, 0, module.name.empty() ? size : 0},
                                 {}});
}

void Checker::record_module(const Module& module, const ast::Name& name, std::uint32_t file) {
  if (names_ == nullptr || !module.name.empty()) return;
  const Span beginning{file, 0, 0};
  const auto size = static_cast<std::uint32_t>(sources_[name.span.file].text().size());
  names_->definitions.push_back({Definition::Kind::module,
                                 name.text,
                                 beginning,
                                 beginning,
                                 {name.span.file, name.span.end, size},
                                 {}});
  names_->uses.push_back({name.span, beginning});
}

void Checker::record_use(Span span, Span definition) {
  if (records_names() && !(span == definition)) names_->uses.push_back({span, definition});
}

void Checker::record_word(const ast::Expr& expr, const Value& value) {
  if (value.empty() || !records_names()) return;
  const bool has_word = expr.kind == ast::ExprKind::name || expr.kind == ast::ExprKind::call ||
                        expr.kind == ast::ExprKind::unary || expr.kind == ast::ExprKind::binary;
  if (!has_word) return;
  TypedWord word{expr.text_span, {}};
  for (const ir::NodeId id : value) word.types.push_back(type(id));
  names_->words.push_back(std::move(word));
}

// The names of a scope that ends can be used up to here; so can the sizes of a function.
void Checker::end_visible(const Scope& scope, Span whole) {
  if (!records_names()) return;
  std::vector<Definition>& definitions = names_->definitions;
  const auto show = [&](Definition& definition) {
    definition.visible = {whole.file, definition.span.end,
                          std::max(whole.end, definition.visible.end)};
  };
  for (const auto& [name, binding] : scope.names) {
    if (binding.definition != 0) show(definitions[binding.definition - 1]);
  }
  if (!frame().function || frame().scopes.size() != 1) return;
  for (auto at = definitions.rbegin(); at != definitions.rend() && inside(at->span, whole); ++at) {
    if (at->kind == Definition::Kind::size && at->visible.end == 0) show(*at);
  }
}

void Checker::finish_names(const ast::File& file) {
  if (names_ == nullptr) return;
  names_->complete = !file.damaged;
  in_order(names_->uses);
  in_order(names_->words);
}

ir::Program check(SourceMap& sources, const ast::File& file, const CheckOptions& options,
                  Diagnostics& diagnostics, NameIndex& names) {
  return Checker(sources, options, diagnostics, &names).run(file);
}

// Where a node belongs: for an editor, what a module's function does belongs to the call in the program.
Span Checker::place(Span span) const {
  if (names_ == nullptr || span.file == 0 || frames_.size() < 2 || defining_) return span;
  return frames_[1].call;
}

}  // namespace starfold
