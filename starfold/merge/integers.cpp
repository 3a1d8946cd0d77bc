#include "starfold/merge/integers.h"

#include <cstring>

namespace starfold {

using wide::Word;

static_assert(sizeof(Word) == sizeof(double));

std::vector<Word> integer(const Tensor& part, std::size_t number, std::size_t words) {
  std::vector<Word> value(words);
  std::memcpy(value.data(), part.data.data() + number * words, words * sizeof(Word));
  return value;
}

void set_integer(Tensor& part, std::size_t number, std::span<const Word> value) {
  std::memcpy(part.data.data() + number * value.size(), value.data(), value.size_bytes());
}

std::vector<Word> words_of(const MergeState& state) {
  std::vector<Word> all;
  for (const Tensor& part : state) {
    const std::vector<Word> words = integer(part, 0, part.data.size());
    all.insert(all.end(), words.begin(), words.end());
  }
  return all;
}

void set_words(MergeState& state, std::span<const Word> words) {
  std::size_t first = 0;
  for (Tensor& part : state) {
    set_integer(part, 0, words.subspan(first, part.data.size()));
    first += part.data.size();
  }
}

std::vector<std::size_t> integer_sizes(const Monoid& monoid, const Shape& result) {
  std::vector<std::size_t> sizes;
  for (const Part& part : monoid.parts) {
    const auto count = static_cast<std::size_t>(element_count(extents(part, result)));
    sizes.insert(sizes.end(), count, part.words);
  }
  return sizes;
}

void merge_integers(Tensor& into, const Tensor& from, std::size_t words) {
  for (std::size_t i = 0; i < into.data.size() / words; ++i) {
    std::vector<Word> sum = integer(into, i, words);
    wide::add(sum, integer(from, i, words));
    set_integer(into, i, sum);
  }
}

}  // namespace starfold
