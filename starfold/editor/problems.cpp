#include <nlohmann/json.hpp>

#include "starfold/editor/features.h"

namespace starfold::editor {
namespace {

using nlohmann::json;

std::string sentence(const Diagnostic& diagnostic) {
  std::string text = diagnostic.message;
  if (!diagnostic.primary.text.empty()) text += "\n" + diagnostic.primary.text;
  if (!diagnostic.reason.empty()) text += "\n" + diagnostic.reason;
  if (!diagnostic.help.empty()) text += "\nhelp: " + diagnostic.help;
  return text;
}

// Where the document shows a problem: its own place, or, for one inside a module, the first place in the document that leads
// there.
Span shown_at(const View& view, const Diagnostic& diagnostic) {
  if (diagnostic.primary.span.file == 0) return diagnostic.primary.span;
  for (const Label& other : diagnostic.others) {
    if (other.span.file == 0) return other.span;
  }
  for (const Use& use : view.now.names.uses) {
    if (use.definition.file == diagnostic.primary.span.file) return use.span;
  }
  return {0, 0, 0};
}

json related(const View& view, const Label& label, const AddressOf& address) {
  const Source& source = view.now.compilation.sources[label.span.file];
  const std::string uri = address(source.name());
  if (uri.empty()) return nullptr;
  const Text other{std::string(source.text())};
  return {{"location", {{"uri", uri}, {"range", range_of(other, label.span, view.encoding)}}},
          {"message", label.text.empty() ? "here" : label.text}};
}

}  // namespace

json range_of(const Text& text, Span span, Encoding encoding) {
  const Place start = text.place(span.begin, encoding);
  const Place end = text.place(span.end, encoding);
  return {{"start", {{"line", start.line}, {"character", start.character}}},
          {"end", {{"line", end.line}, {"character", end.character}}}};
}

json problems(const View& view, const AddressOf& address) {
  json list = json::array();
  for (const Diagnostic& diagnostic : view.now.compilation.diagnostics.items()) {
    const CodeInfo& row = info(diagnostic.code);
    const Span span = shown_at(view, diagnostic);
    json problem = {{"range", range_of(view.text, span, view.encoding)},
                    {"severity", row.severity == Severity::error ? 1 : 2},
                    {"code", row.id},
                    {"source", "starfold"},
                    {"message", sentence(diagnostic)}};
    if (diagnostic.code == Code::UnusedLet) problem["tags"] = {1};  // shown faded
    json others = json::array();
    std::vector<Label> labels = diagnostic.others;
    if (!(span == diagnostic.primary.span)) labels.insert(labels.begin(), diagnostic.primary);
    for (const Label& label : labels) {
      json other = related(view, label, address);
      if (!other.is_null()) others.push_back(std::move(other));
    }
    if (!others.empty()) problem["relatedInformation"] = std::move(others);
    list.push_back(std::move(problem));
  }
  return list;
}

}  // namespace starfold::editor
