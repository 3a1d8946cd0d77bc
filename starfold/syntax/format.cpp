#include "starfold/syntax/format.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "starfold/syntax/format_expr.h"

namespace starfold {

namespace syntax {

namespace {

constexpr std::size_t line_width = 100;

// All `each client` of an expression, in the order of the text; not those inside of them.
void find_blocks(const ast::Expr& expr, std::vector<const ast::Expr*>& found) {
  if (expr.kind == ast::ExprKind::each_client) return found.push_back(&expr);
  for (const ast::ExprPtr& arg : expr.args) find_blocks(*arg, found);
  for (const ast::Subscript& subscript : expr.subscripts) {
    if (subscript.first) find_blocks(*subscript.first, found);
    if (subscript.last) find_blocks(*subscript.last, found);
  }
}

// Writes statements and the comments between them. What a comment belongs to follows from its
// place: after a statement on its line, or on a line of its own before the next. Comments inside a
// statement come to stand before it, those between `}` and `until` before the brace, and so do those behind a block
// that stands inside a statement.
class Formatter {
 public:
  Formatter(const SourceMap& sources, const ast::File& file)
      : text_(sources[file.id].text()),
        comments_(file.comments),
        blocks_([this](Layout& layout, const ast::Expr& expr) { each_client(layout, expr); }) {}

  std::string run(const ast::Block& items) {
    block(items, nullptr, static_cast<std::uint32_t>(text_.size()));
    return std::move(out_);
  }

 private:
  void block(const ast::Block& items, const ast::Fn* fn, std::uint32_t end);
  void statement(const ast::Stmt& stmt, std::uint32_t block_end);
  void before(Span piece, std::uint32_t head_end);
  void after(std::uint32_t end, std::uint32_t limit);
  void own_line_comments(std::uint32_t end);
  void comment_above();
  void write_comment();
  void body(Span open, Span close, const ast::Block& items, const ast::Fn* fn);
  std::uint32_t begin_piece(std::initializer_list<const ast::Expr*> exprs, std::uint32_t end);
  void each_client(Layout& layout, const ast::Expr& expr);
  std::string lines_of(const ast::Fn& block, std::uint32_t limit, std::size_t margin);
  bool comment_before(std::uint32_t end) const {
    return next_ < comments_.size() && comments_[next_].span.begin < end;
  }
  bool blank_between(std::uint32_t begin, std::uint32_t end) const;
  void separate(std::uint32_t begin);
  void write(const Layout& layout) { out_ += layout.print(margin_, line_width); }

  void node(const ast::Import& node);
  void node(const ast::SizeDecl& node);
  void node(const ast::Input& node);
  void node(const ast::Fn& node);
  void node(const ast::Let& node);
  void node(const ast::State& node);
  void node(const ast::Update& node);
  void node(const ast::Repeat& node, std::uint32_t end);
  void node(const ast::Trace& node);
  void node(const ast::Demand& node);
  void node(const ast::Output& node);

  std::string_view text_;
  const std::vector<ast::Comment>& comments_;
  std::size_t next_ = 0;        // the first comment not written yet
  std::uint32_t last_end_ = 0;  // where the last written thing ends in the text
  bool first_in_block_ = true;
  std::size_t margin_ = 0;
  Layout::Blocks blocks_;
  std::vector<const ast::Expr*> piece_;  // the blocks of the piece at hand
  std::uint32_t piece_end_ = 0;
  std::string out_;
};

// Whether the next thing is set off by an empty line.
bool Formatter::blank_between(std::uint32_t begin, std::uint32_t end) const {
  int lines = 0;
  for (std::uint32_t i = begin; i < end; ++i) {
    const char c = text_[i];
    if (c == '\n') ++lines;
    if (c != '\n' && c != ' ' && c != '\t' && c != '\r') break;
  }
  return lines > 1;
}

void Formatter::separate(std::uint32_t begin) {
  if (!first_in_block_ && blank_between(last_end_, begin)) out_ += "\n";
  first_in_block_ = false;
}

// The next comment and the end of its line.
void Formatter::write_comment() {
  const Span span = comments_[next_++].span;
  const std::string_view words = text_.substr(span.begin, span.end - span.begin);
  out_ += words.substr(0, words.find_last_not_of(" \t") + 1);
  out_ += "\n";
}

void Formatter::comment_above() {
  out_ += std::string(margin_, ' ');
  write_comment();
}

// Comments on lines of their own, up to a place in the text.
void Formatter::own_line_comments(std::uint32_t end) {
  while (comment_before(end)) {
    const Span span = comments_[next_].span;
    separate(span.begin);
    comment_above();
    last_end_ = span.end;
  }
}

// What stands above a statement: the comments before it and those inside its head.
void Formatter::before(Span piece, std::uint32_t head_end) {
  own_line_comments(piece.begin);
  separate(piece.begin);
  while (comment_before(head_end)) comment_above();
}

// The rest of a line that ends at `end` in the text: its comment, and the line end.
void Formatter::after(std::uint32_t end, std::uint32_t limit) {
  last_end_ = end;
  if (comment_before(limit)) {
    const Span span = comments_[next_].span;
    const std::string_view between = text_.substr(end, span.begin - end);
    if (between.find('\n') == std::string_view::npos) {
      out_ += "  ";
      write_comment();
      last_end_ = span.end;
      return;
    }
  }
  out_ += "\n";
}

void Formatter::block(const ast::Block& items, const ast::Fn* fn, std::uint32_t end) {
  first_in_block_ = true;
  for (const ast::Stmt& stmt : items) statement(stmt, end);
  if (fn) {
    before(fn->value_span, begin_piece({fn->value.get()}, fn->value_span.end));
    Layout layout(blocks_);
    lay_out(layout, *fn->value);
    write(layout);
    after(fn->value_span.end, end);
  }
  own_line_comments(end);
}

// Notes the blocks of what is written next, and gives the place of the first: comments before it stand above.
std::uint32_t Formatter::begin_piece(std::initializer_list<const ast::Expr*> exprs,
                                     std::uint32_t end) {
  piece_.clear();
  piece_end_ = end;
  for (const ast::Expr* expr : exprs) {
    if (expr != nullptr) find_blocks(*expr, piece_);
  }
  return piece_.empty() ? end : piece_.front()->block->open.begin;
}

void Formatter::statement(const ast::Stmt& stmt, std::uint32_t block_end) {
  const auto head = [&](const auto& n) {
    using Node = std::decay_t<decltype(n)>;
    if constexpr (std::is_same_v<Node, ast::Fn>) {
      return n.braces ? begin_piece({}, n.open.begin) : begin_piece({n.value.get()}, stmt.span.end);
    } else if constexpr (std::is_same_v<Node, ast::Repeat>) {
      return begin_piece({n.count.get(), n.seed.get()}, n.open.begin);
    } else if constexpr (std::is_same_v<Node, ast::Input>) {
      return begin_piece({n.fallback.get()}, stmt.span.end);
    } else if constexpr (std::is_same_v<Node, ast::Import>) {
      return begin_piece({}, stmt.span.end);
    } else {
      return begin_piece({n.value.get()}, stmt.span.end);
    }
  };
  before(stmt.span, std::visit(head, stmt.node));
  const auto write_node = [&](const auto& n) {
    if constexpr (std::is_same_v<decltype(n), const ast::Repeat&>) {
      node(n, stmt.span.end);
    } else {
      node(n);
    }
  };
  std::visit(write_node, stmt.node);
  after(stmt.span.end, block_end);
}

// The lines between braces; the opening brace is written, the closing one is not.
void Formatter::body(Span open, Span close, const ast::Block& items, const ast::Fn* fn) {
  const std::uint32_t first = !items.empty() ? items[0].span.begin
                              : fn           ? fn->value_span.begin
                                             : close.begin;
  after(open.end, first);
  margin_ += 2;
  block(items, fn, close.begin);
  margin_ -= 2;
}

// A block without statements and comments may stand on one line.
void Formatter::each_client(Layout& layout, const ast::Expr& expr) {
  const ast::Fn& block = *expr.block;
  std::uint32_t limit = piece_end_;
  for (const ast::Expr* other : piece_) {
    const std::uint32_t begin = other->block->open.begin;
    if (begin > block.open.begin) limit = std::min(limit, begin);
  }
  bool lines = !block.body.empty();
  for (const ast::Comment& comment : comments_)
    lines = lines || (comment.span.begin > block.open.begin && comment.span.begin < limit);
  std::vector<const ast::Expr*> inner;
  if (!lines) find_blocks(*block.value, inner);
  layout.text("each client {");
  if (lines || !inner.empty())
    return layout.lines(" ... }", [this, &block, limit](std::size_t margin) {
      return lines_of(block, limit, margin);
    });
  layout.open();
  layout.indent();
  layout.line();
  lay_out(layout, *block.value);
  layout.dedent();
  layout.line();
  layout.close();
  layout.text("}");
}

// What stands between the braces of a block, from the end of its first line to the closing brace.
std::string Formatter::lines_of(const ast::Fn& block, std::uint32_t limit, std::size_t margin) {
  std::string outer = std::exchange(out_, {});
  const std::size_t outer_margin = std::exchange(margin_, margin);
  body(block.open, block.close, block.body, &block);
  margin_ += 2;
  while (comment_before(limit)) comment_above();
  margin_ = outer_margin;
  out_.swap(outer);
  return outer + std::string(margin, ' ') + "}";
}

// `head = value` in one layout.
void assign(Layout& layout, std::string_view sign, const ast::Expr& value) {
  layout.text(" ");
  layout.text(sign);
  layout.text(" ");
  lay_out(layout, value);
}

void typed(Layout& layout, const ast::TypeExpr& type) {
  layout.text(" : ");
  lay_out(layout, type);
}

void Formatter::node(const ast::Import& node) {
  Layout layout(blocks_);
  layout.text("import " + node.module.text);
  write(layout);
}

void Formatter::node(const ast::SizeDecl& node) {
  Layout layout(blocks_);
  layout.text("size " + node.name.text);
  assign(layout, "=", *node.value);
  write(layout);
}

void Formatter::node(const ast::Input& node) {
  Layout layout(blocks_);
  layout.text("input " + node.name.text);
  typed(layout, node.type);
  if (node.fallback) assign(layout, "=", *node.fallback);
  write(layout);
}

void Formatter::node(const ast::Fn& node) {
  Layout layout(blocks_);
  layout.text("fn " + node.name.text);
  lay_out_list(layout, "(", node.params, ")", [&](const ast::Param& param) {
    layout.text(param.name.text);
    typed(layout, param.type);
  });
  if (node.result) {
    layout.text(" -> ");
    lay_out(layout, *node.result);
  }
  if (!node.braces) {
    assign(layout, "=", *node.value);
    return write(layout);
  }
  layout.text(" {");
  write(layout);
  body(node.open, node.close, node.body, &node);
  out_ += std::string(margin_, ' ') + "}";
}

void Formatter::node(const ast::Let& node) {
  Layout layout(blocks_);
  layout.text("let ");
  if (node.tuple) {
    lay_out_list(layout, "(", node.names, ")",
                 [&](const ast::Name& name) { layout.text(name.text); });
  } else {
    layout.text(node.names[0].text);
  }
  if (node.type) typed(layout, *node.type);
  assign(layout, "=", *node.value);
  write(layout);
}

void Formatter::node(const ast::State& node) {
  Layout layout(blocks_);
  layout.text((node.at_client ? "private state " : "state ") + node.name.text);
  if (node.type) typed(layout, *node.type);
  assign(layout, "=", *node.value);
  write(layout);
}

void Formatter::node(const ast::Update& node) {
  Layout layout(blocks_);
  layout.text(node.name.text);
  assign(layout, "<-", *node.value);
  write(layout);
}

void Formatter::node(const ast::Repeat& node, std::uint32_t end) {
  Layout head(blocks_);
  head.text("repeat ");
  if (node.seed) head.text("batches(");
  lay_out(head, *node.count);
  if (node.seed) {
    head.text(", ");
    lay_out(head, *node.seed);
    head.text(")");
  }
  head.text(" {");
  write(head);
  body(node.open, node.close, node.body, nullptr);
  Layout foot(blocks_);
  foot.text("}");
  if (node.until) {
    margin_ += 2;
    const std::uint32_t head_end = begin_piece({node.until.get()}, end);
    while (comment_before(head_end)) comment_above();
    margin_ -= 2;
    foot.text(" until ");
    lay_out(foot, *node.until);
  }
  write(foot);
}

void Formatter::node(const ast::Trace& node) {
  Layout layout(blocks_);
  layout.text("trace " + node.name.text);
  assign(layout, "=", *node.value);
  write(layout);
}

void Formatter::node(const ast::Demand& node) {
  Layout layout;
  layout.text(node.must ? "require " : "expect ");
  lay_out(layout, *node.value);
  layout.text(", \"" + node.sentence + "\"");
  write(layout);
}

void Formatter::node(const ast::Output& node) {
  Layout layout(blocks_);
  layout.text((node.kept ? "keep " : "output ") + node.name.text);
  if (node.value) assign(layout, "=", *node.value);
  write(layout);
}

}  // namespace

}  // namespace syntax

std::string format(const SourceMap& sources, const ast::File& file) {
  return syntax::Formatter(sources, file).run(file.items);
}

}  // namespace starfold
