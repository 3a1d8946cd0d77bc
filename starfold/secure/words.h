// What is masked: lists of numbers of a fixed width in 64-bit words, little end first, added modulo 2^(64 width). Anything whose
// merge is such an addition can be masked: integers on a grid (one word), exact sums of doubles (many).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "starfold/secure/crypto.h"

namespace starfold::secure {

// One tensor of a round's states as it is masked.
struct Piece {
  std::string name;         // which: part of the keys of its masks
  std::uint32_t width = 1;  // words of a number
  std::uint64_t count = 0;  // numbers
  friend bool operator==(const Piece&, const Piece&) = default;
};
using Layout = std::vector<Piece>;
// By piece: its numbers, one after the other.
using Words = std::vector<std::vector<std::uint64_t>>;

bool fits(const Layout& layout, const Words& words);
Words zeros(const Layout& layout);
// How many words that is.
std::uint64_t word_count(const Layout& layout);

enum class Direction { add, subtract };
// into += from, or into -= from, number by number with carries.
void combine(std::span<std::uint64_t> into, std::span<const std::uint64_t> from,
             std::uint32_t width, Direction direction);
void combine(Words& into, const Words& from, const Layout& layout, Direction direction);

// Adds or subtracts the mask that grows from a seed. Its keys are derived for `salt` (the run), `info` (the moment in it) and the
// name, width and length of each piece.
void combine_mask(Words& into, const Layout& layout, const Secret& seed, std::string_view salt,
                  std::string_view info, Direction direction);

}  // namespace starfold::secure
