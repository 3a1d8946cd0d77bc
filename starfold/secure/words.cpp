#include "starfold/secure/words.h"

#include <algorithm>
#include <array>

namespace starfold::secure {
namespace {

__extension__ using Double = unsigned __int128;

// Numbers of one word need no carries, and the compiler makes whole vectors of them.
void combine_single(std::span<std::uint64_t> into, std::span<const std::uint64_t> from,
                    Direction direction) {
  if (direction == Direction::add) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
  } else {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] -= from[i];
  }
}

void add_wide(std::uint64_t* into, const std::uint64_t* from, std::uint32_t width) {
  Double carry = 0;
  for (std::uint32_t i = 0; i < width; ++i) {
    carry += static_cast<Double>(into[i]) + from[i];
    into[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
}

void subtract_wide(std::uint64_t* into, const std::uint64_t* from, std::uint32_t width) {
  std::uint64_t borrow = 0;
  for (std::uint32_t i = 0; i < width; ++i) {
    const Double less = static_cast<Double>(into[i]) - from[i] - borrow;
    into[i] = static_cast<std::uint64_t>(less);
    borrow = static_cast<std::uint64_t>(less >> 64) & 1;
  }
}

}  // namespace

bool fits(const Layout& layout, const Words& words) {
  if (layout.size() != words.size()) return false;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (words[i].size() != layout[i].count * layout[i].width) return false;
  }
  return true;
}

Words zeros(const Layout& layout) {
  Words words;
  for (const Piece& piece : layout) words.emplace_back(piece.count * piece.width);
  return words;
}

std::uint64_t word_count(const Layout& layout) {
  std::uint64_t count = 0;
  for (const Piece& piece : layout) count += piece.count * piece.width;
  return count;
}

void combine(std::span<std::uint64_t> into, std::span<const std::uint64_t> from,
             std::uint32_t width, Direction direction) {
  if (width == 1) return combine_single(into, from, direction);
  for (std::size_t i = 0; i < into.size(); i += width)
    (direction == Direction::add ? add_wide : subtract_wide)(&into[i], &from[i], width);
}

void combine(Words& into, const Words& from, const Layout& layout, Direction direction) {
  for (std::size_t i = 0; i < layout.size(); ++i)
    combine(into[i], from[i], layout[i].width, direction);
}

void combine_mask(Words& into, const Layout& layout, const Secret& seed, std::string_view salt,
                  std::string_view info, Direction direction) {
  // As many whole numbers at a time as the first cache holds beside what they are added to.
  std::array<std::uint64_t, 1024> mask{};
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const Piece& piece = layout[i];
    ByteWriter purpose;
    purpose.text(info);
    purpose.text(piece.name);
    purpose.number(piece.width);
    purpose.number(piece.count);
    KeyStream stream(derive(seed, salt, purpose.take()));
    std::vector<std::uint64_t> long_number(piece.width > mask.size() ? piece.width : 0);
    const std::span<std::uint64_t> room = long_number.empty()
                                              ? std::span<std::uint64_t>(mask)
                                              : std::span<std::uint64_t>(long_number);
    const std::size_t step = room.size() / piece.width * piece.width;
    const std::span<std::uint64_t> words(into[i]);
    for (std::size_t done = 0; done < words.size(); done += step) {
      const std::size_t size = std::min(step, words.size() - done);
      stream.next(room.first(size));
      combine(words.subspan(done, size), room.first(size), piece.width, direction);
    }
    OPENSSL_cleanse(room.data(), room.size_bytes());
  }
}

}  // namespace starfold::secure
