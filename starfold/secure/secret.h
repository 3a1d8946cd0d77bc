// Thirty-two bytes that nobody else may see: a key, a seed. Wiped when they are let go, never copied by accident.
#pragma once

#include <openssl/crypto.h>

#include <array>
#include <cstddef>

namespace starfold::secure {

class Secret {
 public:
  static constexpr std::size_t size = 32;

  Secret() = default;
  ~Secret() { wipe(); }
  Secret(Secret&& other) noexcept : bytes_(other.bytes_) { other.wipe(); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      bytes_ = other.bytes_;
      other.wipe();
    }
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;

  // From the operating system's generator. RunError when it gives none.
  static Secret random();

  unsigned char* data() { return bytes_.data(); }
  const unsigned char* data() const { return bytes_.data(); }

 private:
  void wipe() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

  std::array<unsigned char, size> bytes_{};
};

}  // namespace starfold::secure
