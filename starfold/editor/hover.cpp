#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "starfold/editor/features.h"
#include "starfold/ops/standard.h"

namespace starfold::editor {
namespace {

using nlohmann::json;

std::string code(const std::string& text) { return fmt::format("```starfold\n{}\n```\n", text); }

std::string type_text(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + type.to_string();
  return types.size() == 1 ? text : "(" + text + ")";
}

// Who knows a value.
std::string sharing(const std::vector<Type>& types) {
  if (types.size() != 1) return "";
  return types[0].federated() ? "Split across clients by its record axis: it does not leave them.\n"
                              : "Shared: every client and the server know it.\n";
}

std::string exposure_text(const std::vector<const Exposure*>& exposures) {
  std::string text;
  for (const Exposure* exposure : exposures) {
    text += fmt::format("\nLeaves each client in round {}{}: `{}` as {}, merged by {}. Shows {}",
                        exposure->round, exposure->repeated ? ", in every iteration" : "",
                        on_one_line(exposure->expression), exposure->shape, exposure->merge,
                        exposure->shows);
    text += exposure->reason.empty() ? ".\n" : fmt::format(": {}.\n", exposure->reason);
  }
  return text;
}

std::string_view word_of(Definition::Kind kind) {
  switch (kind) {
    case Definition::Kind::input:
      return "input ";
    case Definition::Kind::size:
      return "size ";
    case Definition::Kind::state:
      return "state ";
    case Definition::Kind::trace:
      return "trace ";
    case Definition::Kind::output:
      return "output ";
    case Definition::Kind::function:
      return "fn ";
    case Definition::Kind::module:
      return "import ";
    case Definition::Kind::let:
      return "let ";
    case Definition::Kind::parameter:
      break;
  }
  return "";
}

// What the version of the text says that is the newest to know something.
struct Known {
  const Analysis* in = nullptr;
  std::uint32_t offset = 0;
};

std::string definition_text(const Known& known, const Definition& definition, Span span) {
  const Source& source = known.in->compilation.sources[definition.span.file];
  std::string text;
  if (definition.kind == Definition::Kind::function) {
    text = code("fn " + on_one_line(source.text(definition.says)));
  } else if (definition.kind == Definition::Kind::module) {
    text = code("import " + definition.name);
  } else {
    // Inside each client a value has another type than where it is defined.
    std::vector<Type> types = definition.types;
    const TypedWord* word = word_at(*known.in, span.begin);
    if (word != nullptr && word->span == span) types = word->types;
    text = code(fmt::format("{}{}{}", word_of(definition.kind), definition.name,
                            types.empty() ? "" : " : " + type_text(types)));
    if (definition.kind != Definition::Kind::size) text += sharing(types);
  }
  const std::string comment = comment_above(source.text(), definition.span.begin);
  if (!comment.empty()) text += "\n" + comment + "\n";
  if (definition.span.file != 0) text += fmt::format("\nFrom {}.\n", source.name());
  return text;
}

std::string operation_text(const Analysis& analysis, const TypedWord& word) {
  const std::string name(analysis.compilation.sources.text(word.span));
  std::string text = code(fmt::format("{} : {}", name, type_text(word.types)));
  for (const auto& op : standard_signature().ops()) {
    if (op->name != name) continue;
    text += fmt::format("\n`{}`: {}  \n{}\n", op->surface, op->rule, op->doc);
  }
  return text + "\n" + sharing(word.types);
}

// The places to ask, from the newest text to the oldest.
std::vector<Known> places(const View& view, std::uint32_t offset) {
  std::vector<Known> known = {{&view.now, offset}};
  for (const Analysis* older : {view.read, view.planned}) {
    if (older == nullptr || older == known.back().in) continue;
    const std::optional<std::uint32_t> then = Change(older->text(), view.text.bytes()).back(offset);
    if (then) known.push_back({older, *then});
  }
  return known;
}

}  // namespace

json hover(const View& view, std::uint32_t offset) {
  for (const Known& known : places(view, offset)) {
    Span span;
    std::string text;
    const Definition* definition = definition_of(*known.in, known.offset, span);
    const TypedWord* word = word_at(*known.in, known.offset);
    // A name that a mistake keeps from having a type may have had one before.
    const bool value = definition != nullptr && definition->kind != Definition::Kind::function &&
                       definition->kind != Definition::Kind::module;
    if (value && definition->types.empty() && view.planned != nullptr && known.in != view.planned)
      continue;
    std::uint32_t leaves = known.offset;
    if (definition != nullptr) {
      text = definition_text(known, *definition, span);
      if (value) leaves = definition->span.begin;
    } else if (word != nullptr) {
      span = word->span;
      text = operation_text(*known.in, *word);
    } else {
      continue;
    }
    if (view.planned != nullptr) {
      const std::optional<std::uint32_t> then =
          Change(view.planned->text(), known.in->text()).back(leaves);
      if (then) text += exposure_text(exposures_in_statement(*view.planned, *then));
    }
    const std::optional<Span> shown = Change(known.in->text(), view.text.bytes()).forward(span);
    json answer = {{"contents", {{"kind", "markdown"}, {"value", text}}}};
    if (shown) answer["range"] = range_of(view.text, *shown, view.encoding);
    return answer;
  }
  return nullptr;
}

}  // namespace starfold::editor
