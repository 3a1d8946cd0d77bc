// Random bits for noise: AES-256 in counter mode, keyed by the operating system's generator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace starfold::privacy {

class RandomBits {
 public:
  // Bits that nobody can foretell. RunError when the operating system gives none.
  RandomBits();
  // The same bits for the same seed: for tests. What is noised with them is not private.
  static RandomBits for_tests(std::uint64_t seed);
  ~RandomBits();
  RandomBits(RandomBits&&) noexcept = default;
  RandomBits& operator=(RandomBits&&) noexcept = default;
  RandomBits(const RandomBits&) = delete;
  RandomBits& operator=(const RandomBits&) = delete;

  bool predictable() const { return predictable_; }

  // 64 bits.
  std::uint64_t word() {
    if (next_ == buffer_.size()) refill();
    return buffer_[next_++];
  }
  // So many bits, at most 64, as a number.
  std::uint64_t bits(unsigned count) {
    if (count > 32) return word() >> (64U - count);
    if (left_ < count) {
      pool_ = word();
      left_ = 64;
    }
    const std::uint64_t taken = pool_ & ((std::uint64_t{1} << count) - 1);
    pool_ >>= count;
    left_ -= count;
    return taken;
  }

 private:
  using Key = std::array<unsigned char, 32>;
  explicit RandomBits(const Key& key, bool predictable);
  void refill();

  Key key_;  // of the next refill
  bool predictable_ = false;
  std::vector<std::uint64_t> buffer_;
  std::size_t next_ = 0;
  std::uint64_t pool_ = 0;  // of which `left_` bits are not used yet
  unsigned left_ = 0;
};

}  // namespace starfold::privacy
