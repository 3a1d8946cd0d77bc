// Text that may be broken into lines: what is to be written, and where a line may end.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace starfold::ast {
struct Expr;
}

namespace starfold::syntax {

// A group is written on one line if it fits; otherwise all its own line ends are taken, and each
// group inside it is tried again. So text breaks at the outermost place first.
class Layout {
 public:
  // How `each client { ... }` is written: the statements in it are lines of their own.
  using Blocks = std::function<void(Layout&, const ast::Expr&)>;
  explicit Layout(Blocks blocks = nullptr) : blocks_(std::move(blocks)) {}
  const Blocks& blocks() const { return blocks_; }

  void text(std::string_view words);
  void line() { add(Op::line, " "); }  // a space, or the end of a line
  void soft() { add(Op::line, ""); }   // nothing, or the end of a line
  void fill() { add(Op::fill, " "); }  // a space if what follows up to the next line end fits
  void open() { add(Op::open, ""); }   // a group
  void close() { add(Op::close, ""); }
  void indent() { add(Op::indent, ""); }
  void dedent() { add(Op::dedent, ""); }
  // Lines of their own between what stands before and after; `write` gets their margin. On one line: `words`.
  void lines(std::string_view words, std::function<std::string(std::size_t margin)> write);

  // The text with lines of at most `width` columns where possible, indented by `margin`.
  std::string print(std::size_t margin, std::size_t width) const;
  // The text on one line.
  std::string print_flat() const;

 private:
  enum class Op { text, line, fill, open, close, indent, dedent, lines };
  struct Piece {
    Op op;
    std::string words;  // of a line end: what stands for it when it is not taken
    std::function<std::string(std::size_t)> write = nullptr;  // of lines
  };
  // Widths of the text on one line, before each piece.
  struct Measure {
    std::vector<std::size_t> before;
    std::vector<std::size_t> to_break;   // from each piece to the next possible line end
    std::vector<std::size_t> group_end;  // of each opening piece
  };

  void add(Op op, std::string_view words) { pieces_.push_back({op, std::string(words)}); }
  Measure measure() const;

  Blocks blocks_;
  std::vector<Piece> pieces_;
};

}  // namespace starfold::syntax
