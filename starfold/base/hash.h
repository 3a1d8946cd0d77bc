#pragma once

#include <string>
#include <string_view>

namespace starfold {

// SHA-256 of a text, as 64 hexadecimal digits.
std::string sha256_hex(std::string_view text);

}  // namespace starfold
