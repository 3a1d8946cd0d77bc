// States as integers: the numbers of a part with `words` are integers modulo 2^(64 words), each of which lies bit by bit
// in as many doubles. Rows with Monoid::integers merge by adding them, so they can be masked by adding others.
#pragma once

#include "starfold/merge/monoid.h"
#include "starfold/merge/wide.h"

namespace starfold {

// Integer `number` of a part of which each has `words` words.
std::vector<wide::Word> integer(const Tensor& part, std::size_t number, std::size_t words);
void set_integer(Tensor& part, std::size_t number, std::span<const wide::Word> value);

// The words of all integers of a state, part by part, and back. The row has Monoid::integers.
std::vector<wide::Word> words_of(const MergeState& state);
void set_words(MergeState& state, std::span<const wide::Word> words);
// How many words each of these integers has, in the same order.
std::vector<std::size_t> integer_sizes(const Monoid& monoid, const Shape& result);

// into += from, integer by integer.
void merge_integers(Tensor& into, const Tensor& from, std::size_t words);

}  // namespace starfold
