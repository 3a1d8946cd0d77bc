#include "starfold/syntax/layout.h"

namespace starfold::syntax {

void Layout::text(std::string_view words) {
  if (!pieces_.empty() && pieces_.back().op == Op::text) {
    pieces_.back().words += words;
  } else {
    add(Op::text, words);
  }
}

void Layout::lines(std::string_view words, std::function<std::string(std::size_t margin)> write) {
  pieces_.push_back({Op::lines, std::string(words), std::move(write)});
}

std::string Layout::print_flat() const {
  std::string out;
  for (const Piece& piece : pieces_) out += piece.words;
  return out;
}

Layout::Measure Layout::measure() const {
  const std::size_t count = pieces_.size();
  Measure m{std::vector<std::size_t>(count + 1), std::vector<std::size_t>(count + 1),
            std::vector<std::size_t>(count)};
  std::vector<std::size_t> groups;
  for (std::size_t i = 0; i < count; ++i) {
    // Lines of their own fit on none.
    constexpr std::size_t endless = 1 << 20;
    m.before[i + 1] =
        m.before[i] + (pieces_[i].op == Op::lines ? endless : pieces_[i].words.size());
    if (pieces_[i].op == Op::open) groups.push_back(i);
    if (pieces_[i].op == Op::close) {
      m.group_end[groups.back()] = i;
      groups.pop_back();
    }
  }
  for (std::size_t i = count; i-- > 0;) {
    const bool breaks =
        pieces_[i].op == Op::line || pieces_[i].op == Op::fill || pieces_[i].op == Op::lines;
    m.to_break[i] = breaks ? 0 : m.to_break[i + 1] + pieces_[i].words.size();
  }
  return m;
}

std::string Layout::print(std::size_t margin, std::size_t width) const {
  const Measure m = measure();
  std::string out(margin, ' ');
  std::size_t column = margin;
  std::vector<bool> broken = {true};  // of the groups around the piece at hand
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    bool breaks = false;
    switch (piece.op) {
      case Op::text:
        break;
      case Op::lines:
        out += piece.write(margin);
        column = margin;
        continue;
      case Op::line:
        breaks = broken.back();
        break;
      case Op::fill:
        breaks = broken.back() && column + 1 + m.to_break[i + 1] > width;
        break;
      case Op::indent:
        margin += 2;
        break;
      case Op::dedent:
        margin -= 2;
        break;
      case Op::close:
        broken.pop_back();
        break;
      case Op::open: {
        const std::size_t end = m.group_end[i];
        const std::size_t needed = m.before[end] - m.before[i] + m.to_break[end];
        broken.push_back(broken.back() && column + needed > width);
        break;
      }
    }
    if (breaks) {
      out += "\n" + std::string(margin, ' ');
      column = margin;
    } else {
      out += piece.words;
      column += piece.words.size();
    }
  }
  return out;
}

}  // namespace starfold::syntax
