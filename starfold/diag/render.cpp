#include "starfold/diag/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starfold/base/utf8.h"

namespace starfold {

namespace {

// Longer lines are shown through a window of this many characters.
constexpr std::size_t window_width = 120;
constexpr std::size_t window_before = 40;
constexpr std::size_t tab_width = 4;

// Terminal colours, or nothing.
struct Paint {
  bool on;

  std::string operator()(std::string_view style, std::string_view text) const {
    return on ? fmt::format("\x1b[{}m{}\x1b[0m", style, text) : std::string(text);
  }
};

constexpr std::string_view bold = "1";
constexpr std::string_view red = "1;31";
constexpr std::string_view yellow = "1;33";
constexpr std::string_view blue = "1;34";

// A label with its place worked out.
struct Mark {
  const Label* label;
  bool primary;
  Position from;
  std::uint32_t line_begin;  // offset of its first line
};

std::size_t length_at(std::string_view line, std::size_t offset) {
  const auto c = decode_utf8(line, offset);
  return c ? c->length : 1;
}

// A part of a line in bytes, cut where characters begin.
struct Window {
  std::size_t begin;
  std::size_t end;
};

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::size_t step_back(std::string_view line, std::size_t offset, std::size_t count) {
  while (offset > 0 && count-- > 0) {
    --offset;
    for (int i = 0; i < 3 && offset > 0 && continues(line[offset]); ++i) --offset;
  }
  return offset;
}

std::size_t step_on(std::string_view line, std::size_t offset, std::size_t count) {
  while (offset < line.size() && count-- > 0) offset += length_at(line, offset);
  return std::min(offset, line.size());
}

// The part of a line to show so that `offset` is seen, with as much of the rest as there is room.
Window window_around(std::string_view line, std::size_t offset) {
  if (step_on(line, 0, window_width) == line.size()) return {0, line.size()};
  const std::size_t latest = step_back(line, line.size(), window_width);
  const std::size_t begin = std::min(step_back(line, offset, window_before), latest);
  return {begin, step_on(line, begin, window_width)};
}

// What a character looks like: tabs become spaces, unprintable characters a placeholder.
std::string shown(std::string_view line, std::size_t offset) {
  if (line[offset] == '\t') return std::string(tab_width, ' ');
  return printable(line.substr(offset, length_at(line, offset)));
}

std::size_t columns(std::string_view line, std::size_t begin, std::size_t end) {
  std::size_t count = 0;
  for (std::size_t i = begin; i < end; i += length_at(line, i)) {
    count += line[i] == '\t' ? tab_width : 1;
  }
  return count;
}

class TextRenderer {
 public:
  TextRenderer(const Diagnostic& diagnostic, const SourceMap& sources, bool color)
      : diagnostic_(diagnostic), sources_(sources), paint_{color} {
    is_error_ = info(diagnostic.code).severity == Severity::error;
    collect();
  }

  std::string run();

 private:
  void collect();
  void line(std::string_view gutter, std::string_view rest);
  void bar(std::string_view rest) { line("", rest); }
  void place(std::string_view arrow, const Mark& mark);
  void snippets();
  std::size_t snippet(std::size_t first);
  void underline(const Mark& mark, std::string_view text, Window window);
  void footer(std::string_view kind, std::string_view text);
  std::string_view severity_style() const { return is_error_ ? red : yellow; }

  const Diagnostic& diagnostic_;
  const SourceMap& sources_;
  Paint paint_;
  bool is_error_ = true;
  std::vector<Mark> marks_;  // the primary one, then the others in the order of the text
  std::size_t gutter_ = 1;
  std::string out_;
};

void TextRenderer::collect() {
  const auto add = [&](const Label& label, bool primary) {
    if (label.span.file >= sources_.size()) return;
    const Source& source = sources_[label.span.file];
    const Position from = source.position(label.span.begin);
    const auto shown_line = source.line(from.line);
    const auto begin = static_cast<std::uint32_t>(shown_line.data() - source.text().data());
    marks_.push_back({&label, primary, from, shown_line.data() ? begin : 0});
    gutter_ = std::max(gutter_, std::to_string(from.line).size());
  };
  add(diagnostic_.primary, true);
  for (const Label& label : diagnostic_.others) add(label, false);
  // Lines of the primary file in their order, then those of other files.
  const std::uint32_t home = diagnostic_.primary.span.file;
  std::stable_sort(marks_.begin(), marks_.end(), [&](const Mark& a, const Mark& b) {
    const auto key = [&](const Mark& m) {
      const std::uint32_t file = m.label->span.file;
      return std::make_tuple(file != home, file, m.from.line, !m.primary, m.from.column);
    };
    return key(a) < key(b);
  });
}

std::string TextRenderer::run() {
  const std::string head =
      fmt::format("{}[{}]", is_error_ ? "error" : "warning", info(diagnostic_.code).id);
  out_ = paint_(severity_style(), head) +
         paint_(bold, fmt::format(": {}", printable(diagnostic_.message))) + "\n";
  if (!marks_.empty()) snippets();
  footer("note", diagnostic_.reason);
  footer("help", diagnostic_.help);
  return std::move(out_);
}

void TextRenderer::line(std::string_view gutter, std::string_view rest) {
  std::string text = paint_(blue, fmt::format(" {:>{}} |", gutter, gutter_));
  text += rest.empty() ? "" : " ";
  text += rest;
  while (text.back() == ' ') text.pop_back();
  out_ += text + "\n";
}

void TextRenderer::place(std::string_view arrow, const Mark& mark) {
  out_ += std::string(gutter_ + 1, ' ') + paint_(blue, arrow);
  out_ += fmt::format(" {}:{}:{}\n", printable(sources_[mark.label->span.file].name()),
                      mark.from.line, mark.from.column);
}

void TextRenderer::snippets() {
  const auto primary =
      std::find_if(marks_.begin(), marks_.end(), [](const Mark& m) { return m.primary; });
  place("-->", primary == marks_.end() ? marks_.front() : *primary);
  bar("");
  std::size_t i = 0;
  while (i < marks_.size()) {
    const Mark& mark = marks_[i];
    if (i > 0) {
      const Mark& last = marks_[i - 1];
      if (last.label->span.file != mark.label->span.file) {
        place(":::", mark);
        bar("");
      } else if (mark.from.line > last.from.line + 1) {
        out_ += paint_(blue, "...") + "\n";
      }
    }
    i = snippet(i);
  }
}

// One line of the program with the marks that can be seen in it; returns the next mark.
std::size_t TextRenderer::snippet(std::size_t first) {
  const Mark& mark = marks_[first];
  const std::uint32_t file = mark.label->span.file;
  const std::string_view text = sources_[file].line(mark.from.line);
  const Window window = window_around(text, mark.label->span.begin - mark.line_begin);
  std::string part = window.begin > 0 ? "…" : "";
  for (std::size_t i = window.begin; i < window.end; i += length_at(text, i)) {
    part += shown(text, i);
  }
  if (window.end < text.size()) part += "…";
  line(std::to_string(mark.from.line), part);
  std::size_t i = first;
  for (; i < marks_.size(); ++i) {
    const Mark& other = marks_[i];
    if (other.label->span.file != file || other.from.line != mark.from.line) break;
    const std::size_t offset = other.label->span.begin - other.line_begin;
    if (i > first && (offset < window.begin || offset > window.end)) break;
    underline(other, text, window);
  }
  return i;
}

void TextRenderer::underline(const Mark& mark, std::string_view text, Window window) {
  const Span span = mark.label->span;
  const std::size_t begin = std::min<std::size_t>(span.begin - mark.line_begin, window.end);
  const std::size_t end = std::clamp<std::size_t>(span.end - mark.line_begin, begin, window.end);
  const std::size_t indent = (window.begin > 0 ? 1 : 0) + columns(text, window.begin, begin);
  const std::size_t width = std::max<std::size_t>(1, columns(text, begin, end));
  const std::string_view style = mark.primary ? severity_style() : blue;
  std::string drawn(width, mark.primary ? '^' : '-');
  if (!mark.label->text.empty()) drawn += " " + printable(mark.label->text);
  bar(std::string(indent, ' ') + paint_(style, drawn));
}

void TextRenderer::footer(std::string_view kind, std::string_view text) {
  if (text.empty()) return;
  std::string lead =
      std::string(gutter_ + 2, ' ') + paint_(blue, "=") + " " + paint_(bold, kind) + ": ";
  // Further lines of a long help stand under its first.
  const std::string indent(gutter_ + 6 + kind.size(), ' ');
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out_ += lead + printable(text.substr(begin, end - begin)) + "\n";
    lead = indent;
    begin = end + 1;
  }
}

}  // namespace

std::string render_text(const Diagnostic& diagnostic, const SourceMap& sources, bool color) {
  return TextRenderer(diagnostic, sources, color).run();
}

std::string render_text(const Diagnostics& diagnostics, const SourceMap& sources, bool color) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.items()) {
    if (!out.empty()) out += "\n";
    out += render_text(diagnostic, sources, color);
  }
  return out;
}

nlohmann::json render_json(const Diagnostics& diagnostics, const SourceMap& sources) {
  nlohmann::json out = nlohmann::json::array();
  for (const Diagnostic& diagnostic : diagnostics.items()) {
    const CodeInfo& row = info(diagnostic.code);
    const Span span = diagnostic.primary.span;
    Position from;
    Position to;
    std::string file;
    if (span.file < sources.size()) {
      from = sources[span.file].position(span.begin);
      to = sources[span.file].position(span.end);
      file = sources[span.file].name();
    }
    // Programs may hold any bytes, but JSON is UTF-8.
    nlohmann::json item = {{"code", row.id},
                           {"severity", row.severity == Severity::error ? "error" : "warning"},
                           {"message", valid_utf8(diagnostic.message)},
                           {"help", valid_utf8(diagnostic.help)},
                           {"line", from.line},
                           {"column", from.column},
                           {"end_line", to.line},
                           {"end_column", to.column}};
    if (span.file != 0) item["file"] = valid_utf8(file);  // a module, not the program itself
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace starfold
