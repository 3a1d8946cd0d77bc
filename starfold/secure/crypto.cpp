#include "starfold/secure/crypto.h"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

#include "starfold/base/error.h"

namespace starfold::secure {
namespace {

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeKeyContext {
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};
struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct FreeKdf {
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
};
struct FreeKdfContext {
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};
struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using KeyPointer = std::unique_ptr<EVP_PKEY, FreeKey>;

void succeed(bool done) {
  if (!done) throw RunError("a cryptographic operation failed");
}

const unsigned char* octets(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

KeyPointer private_key(int kind, const Secret& own) {
  KeyPointer key(EVP_PKEY_new_raw_private_key(kind, nullptr, own.data(), Secret::size));
  succeed(key != nullptr);
  return key;
}

Key public_part(int kind, const Secret& own) {
  const KeyPointer key = private_key(kind, own);
  Key bytes{};
  std::size_t size = bytes.size();
  succeed(EVP_PKEY_get_raw_public_key(key.get(), bytes.data(), &size) == 1 && size == bytes.size());
  return bytes;
}

constexpr std::size_t tag_size = 16;
constexpr unsigned char no_nonce[12] = {};

using CipherPointer = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

CipherPointer gcm(const Secret& key, bool encrypt) {
  CipherPointer context(EVP_CIPHER_CTX_new());
  succeed(context != nullptr && EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr,
                                                  key.data(), no_nonce, encrypt ? 1 : 0) == 1);
  return context;
}

}  // namespace

void random_bytes(void* into, std::size_t count) {
  if (RAND_priv_bytes(static_cast<unsigned char*>(into), static_cast<int>(count)) != 1)
    throw RunError("the machine gives no random numbers");
}

Secret Secret::random() {
  Secret secret;
  random_bytes(secret.data(), size);
  return secret;
}

std::string key_text(const Key& key) {
  std::string text;
  for (const unsigned char byte : key) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<Key> parse_key(std::string_view text) {
  Key key{};
  if (text.size() != 2 * key.size()) return std::nullopt;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (std::size_t i = 0; i < key.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    key[i] = static_cast<unsigned char>(16 * high + low);
  }
  return key;
}

Key sha256(std::string_view bytes) {
  Key digest{};
  SHA256(octets(bytes), bytes.size(), digest.data());
  return digest;
}

Key agreement_key(const Secret& own) { return public_part(EVP_PKEY_X25519, own); }

Secret agree(const Secret& own, const Key& other) {
  const KeyPointer mine = private_key(EVP_PKEY_X25519, own);
  const KeyPointer theirs(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, other.data(), other.size()));
  succeed(theirs != nullptr);
  const std::unique_ptr<EVP_PKEY_CTX, FreeKeyContext> context(
      EVP_PKEY_CTX_new(mine.get(), nullptr));
  Secret shared;
  std::size_t size = Secret::size;
  succeed(context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
          EVP_PKEY_derive_set_peer(context.get(), theirs.get()) == 1 &&
          EVP_PKEY_derive(context.get(), shared.data(), &size) == 1 && size == Secret::size);
  return shared;
}

Key signing_key(const Secret& own) { return public_part(EVP_PKEY_ED25519, own); }

Signature sign(const Secret& own, std::string_view text) {
  const KeyPointer key = private_key(EVP_PKEY_ED25519, own);
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  Signature signature{};
  std::size_t size = signature.size();
  succeed(context != nullptr &&
          EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
          EVP_DigestSign(context.get(), signature.data(), &size, octets(text), text.size()) == 1 &&
          size == signature.size());
  return signature;
}

bool verify(const Key& key, std::string_view text, const Signature& signature) {
  const KeyPointer signer(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.data(), key.size()));
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  return signer != nullptr && context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, signer.get()) == 1 &&
         EVP_DigestVerify(context.get(), signature.data(), signature.size(), octets(text),
                          text.size()) == 1;
}

Secret derive(const Secret& from, std::string_view salt, std::string_view info) {
  // Looked up once: it takes longer than the derivation.
  static const std::unique_ptr<EVP_KDF, FreeKdf> hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  succeed(hkdf != nullptr);
  const std::unique_ptr<EVP_KDF_CTX, FreeKdfContext> context(EVP_KDF_CTX_new(hkdf.get()));
  char digest[] = "SHA256";
  const auto bytes = [](const char* name, const void* data, std::size_t size) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<void*>(data), size);
  };
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      bytes(OSSL_KDF_PARAM_KEY, from.data(), Secret::size),
      bytes(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      bytes(OSSL_KDF_PARAM_INFO, info.data(), info.size()), OSSL_PARAM_construct_end()};
  Secret key;
  succeed(context != nullptr &&
          EVP_KDF_derive(context.get(), key.data(), Secret::size, parameters) == 1);
  return key;
}

Bytes seal(const Secret& key, std::string_view purpose, std::string_view text) {
  const CipherPointer context = gcm(key, true);
  Bytes sealed(text.size() + tag_size, '\0');
  auto* out = reinterpret_cast<unsigned char*>(sealed.data());
  int count = 0;
  succeed(
      EVP_EncryptUpdate(context.get(), nullptr, &count, octets(purpose),
                        static_cast<int>(purpose.size())) == 1 &&
      EVP_EncryptUpdate(context.get(), out, &count, octets(text), static_cast<int>(text.size())) ==
          1 &&
      EVP_EncryptFinal_ex(context.get(), out + count, &count) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, tag_size, out + text.size()) == 1);
  return sealed;
}

std::optional<Bytes> open(const Secret& key, std::string_view purpose, std::string_view sealed) {
  if (sealed.size() < tag_size) return std::nullopt;
  const CipherPointer context = gcm(key, false);
  const std::size_t size = sealed.size() - tag_size;
  Bytes text(size, '\0');
  unsigned char tag[tag_size];
  std::memcpy(tag, sealed.data() + size, tag_size);
  auto* out = reinterpret_cast<unsigned char*>(text.data());
  int count = 0;
  const bool whole =
      EVP_DecryptUpdate(context.get(), nullptr, &count, octets(purpose),
                        static_cast<int>(purpose.size())) == 1 &&
      EVP_DecryptUpdate(context.get(), out, &count, octets(sealed), static_cast<int>(size)) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, tag_size, tag) == 1 &&
      EVP_DecryptFinal_ex(context.get(), out + count, &count) == 1;
  if (whole) return text;
  OPENSSL_cleanse(text.data(), text.size());
  return std::nullopt;
}

void KeyStream::Free::operator()(void* context) const {
  EVP_CIPHER_CTX_free(static_cast<EVP_CIPHER_CTX*>(context));
}

KeyStream::KeyStream(const Secret& key) : context_(EVP_CIPHER_CTX_new()) {
  constexpr unsigned char start[16] = {};
  succeed(context_ != nullptr &&
          EVP_EncryptInit_ex(static_cast<EVP_CIPHER_CTX*>(context_.get()), EVP_aes_256_ctr(),
                             nullptr, key.data(), start) == 1);
}

void KeyStream::next(std::span<std::uint64_t> words) {
  constexpr std::size_t most = std::size_t{1} << 27;  // bytes at once, as OpenSSL counts in int
  auto* out = reinterpret_cast<unsigned char*>(words.data());
  std::memset(out, 0, words.size_bytes());
  for (std::size_t done = 0; done < words.size_bytes();) {
    const std::size_t piece = std::min(most, words.size_bytes() - done);
    int count = 0;
    succeed(EVP_EncryptUpdate(static_cast<EVP_CIPHER_CTX*>(context_.get()), out + done, &count,
                              out + done, static_cast<int>(piece)) == 1);
    done += piece;
  }
}

}  // namespace starfold::secure
