#include "starfold/privacy/noise/random.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "starfold/base/error.h"

namespace starfold::privacy {
namespace {

constexpr std::size_t buffer_words = 1024;

std::array<unsigned char, 32> system_key() {
  std::array<unsigned char, 32> key;
  std::size_t have = 0;
  while (have < key.size()) {
    const ssize_t got = getrandom(key.data() + have, key.size() - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw RunError("the operating system gives no random numbers");
    have += static_cast<std::size_t>(got);
  }
  return key;
}

std::array<unsigned char, 32> seed_key(std::uint64_t seed) {
  std::array<unsigned char, 32> key = {'s', 't', 'a', 'r', 'f', 'o', 'l', 'd', ' ', 't',
                                       'e', 's', 't', 's', ' ', 'o', 'n', 'l', 'y'};
  for (std::size_t i = 0; i < 8; ++i) key[24 + i] = static_cast<unsigned char>(seed >> (8 * i));
  return key;
}

}  // namespace

RandomBits::RandomBits() : RandomBits(system_key(), false) {}

RandomBits::RandomBits(const Key& key, bool predictable)
    : key_(key), predictable_(predictable), buffer_(buffer_words), next_(buffer_words) {}

RandomBits RandomBits::for_tests(std::uint64_t seed) { return RandomBits(seed_key(seed), true); }

RandomBits::~RandomBits() {
  OPENSSL_cleanse(key_.data(), key_.size());
  if (!buffer_.empty()) OPENSSL_cleanse(buffer_.data(), buffer_.size() * sizeof(std::uint64_t));
}

// Every refill begins with the key of the next one, so that what was used cannot be found out later.
void RandomBits::refill() {
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
      EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const std::array<unsigned char, 16> start = {};
  auto* const bytes = reinterpret_cast<unsigned char*>(buffer_.data());
  const int size = static_cast<int>(buffer_.size() * sizeof(std::uint64_t));
  std::memset(bytes, 0, static_cast<std::size_t>(size));
  int written = 0;
  if (!context ||
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_ctr(), nullptr, key_.data(), start.data()) !=
          1 ||
      EVP_EncryptUpdate(context.get(), bytes, &written, bytes, size) != 1 || written != size)
    throw RunError("random numbers cannot be made");
  std::memcpy(key_.data(), bytes, key_.size());
  OPENSSL_cleanse(bytes, key_.size());
  next_ = key_.size() / sizeof(std::uint64_t);
}

}  // namespace starfold::privacy
