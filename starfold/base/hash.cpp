#include "starfold/base/hash.h"

#include <openssl/sha.h>

namespace starfold {

std::string sha256_hex(std::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  constexpr const char* digits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * sizeof digest);
  for (const unsigned char byte : digest) {
    hex += digits[byte >> 4U];
    hex += digits[byte & 15U];
  }
  return hex;
}

}  // namespace starfold
