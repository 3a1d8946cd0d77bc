// The cryptography of secure aggregation, all of it OpenSSL's: this file only says what is called, and with what. What OpenSSL
// cannot do is a RunError without details.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "starfold/secure/secret.h"
#include "starfold/tensor/bytes.h"

namespace starfold::secure {

using Key = std::array<unsigned char, 32>;  // a public key, or a hash
using Signature = std::array<unsigned char, 64>;

// As hexadecimal digits, the way people compare them; none when a text is no key.
std::string key_text(const Key& key);
std::optional<Key> parse_key(std::string_view text);

Key sha256(std::string_view bytes);

// X25519: agreeing on a secret with somebody whose public key is known. RunError for a key of low order.
Key agreement_key(const Secret& own);
Secret agree(const Secret& own, const Key& other);

// Ed25519.
Key signing_key(const Secret& own);
Signature sign(const Secret& own, std::string_view text);
bool verify(const Key& key, std::string_view text, const Signature& signature);

// HKDF-SHA256: a key for one purpose. The salt says for which run it is, `info` for what in it.
Secret derive(const Secret& from, std::string_view salt, std::string_view info);

// AES-256-GCM under a key that encrypts one text and no other, so that its nonce can be 0. None when the text was changed, or
// sealed under another key or for another purpose.
Bytes seal(const Secret& key, std::string_view purpose, std::string_view text);
std::optional<Bytes> open(const Secret& key, std::string_view purpose, std::string_view sealed);

// AES-256-CTR as a stream of words, the same on every machine.
class KeyStream {
 public:
  explicit KeyStream(const Secret& key);
  // The next words, any of 2^64 alike.
  void next(std::span<std::uint64_t> words);

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

// Fills with bytes of the operating system's generator. RunError when it gives none.
void random_bytes(void* into, std::size_t count);

}  // namespace starfold::secure
