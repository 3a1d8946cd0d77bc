// Choices of the generators: from a seed, or from the bytes a fuzzer hands in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace starfold::laws {

// Deterministic on every machine. Out of bytes, every choice is the first one, so that what is
// generated from bytes comes to an end.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  explicit Random(std::span<const std::uint8_t> choices) : from_bytes_(true), bytes_(choices) {}

  // A number in [0, n).
  int below(int n) {
    if (n <= 1) return 0;
    return static_cast<int>(next() % static_cast<std::uint64_t>(n));
  }
  // A number in [first, last].
  int between(int first, int last) { return first + below(last - first + 1); }
  // True in so many of a hundred cases.
  bool chance(int percent) { return below(100) >= 100 - percent; }
  double uniform(double lo, double hi) {
    if (from_bytes_) return lo + (hi - lo) * static_cast<double>(next()) / 255.0;
    return lo + (hi - lo) * (static_cast<double>(next() >> 11U) * 0x1p-53);
  }
  template <typename T>
  const T& pick(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<int>(choices.size())))];
  }
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[static_cast<std::size_t>(below(static_cast<int>(i)))]);
    }
  }
  // A seed for another source of choices.
  std::uint64_t fork() { return next() ^ (next() << 32U); }

 private:
  // splitmix64 (Steele, Lea, Flood 2014).
  std::uint64_t next() {
    if (from_bytes_) return at_ < bytes_.size() ? bytes_[at_++] : 0;
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }

  std::uint64_t state_ = 0;
  bool from_bytes_ = false;
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

}  // namespace starfold::laws
