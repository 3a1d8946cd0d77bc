#include "starfold/secure/shamir.h"

#include <algorithm>
#include <cstring>

#include "starfold/secure/crypto.h"

namespace starfold::secure {

namespace field {
namespace {

__extension__ using Double = unsigned __int128;

// A number below 2 * prime, brought below the prime.
std::uint64_t reduce(std::uint64_t a) {
  const std::uint64_t less = a - prime;
  const std::uint64_t borrowed = 0 - (less >> 63);  // all ones where a was below the prime
  return (a & borrowed) | (less & ~borrowed);
}

}  // namespace

std::uint64_t add(std::uint64_t a, std::uint64_t b) { return reduce(a + b); }
std::uint64_t subtract(std::uint64_t a, std::uint64_t b) { return reduce(a + prime - b); }

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  const Double product = static_cast<Double>(a) * b;
  // 2^61 is 1 here.
  return reduce((static_cast<std::uint64_t>(product) & prime) +
                static_cast<std::uint64_t>(product >> 61));
}

std::uint64_t inverse(std::uint64_t a) {
  std::uint64_t result = 1;
  std::uint64_t power = a;
  for (std::uint64_t rest = prime - 2; rest > 0; rest >>= 1) {
    if ((rest & 1) != 0) result = multiply(result, power);
    power = multiply(power, power);
  }
  return result;
}

std::optional<std::uint64_t> element(std::uint64_t random) {
  const std::uint64_t value = random & prime;
  if (value == prime) return std::nullopt;
  return value;
}

}  // namespace field

namespace {

constexpr std::size_t pieces = std::tuple_size_v<Share>;
constexpr std::size_t piece_bytes = 7;  // of 8, so that each is below the prime

std::uint64_t point_of(std::uint64_t member) { return member + 1; }

Share pieces_of(const Secret& secret) {
  Share share{};
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t begin = i * piece_bytes;
    std::memcpy(&share[i], secret.data() + begin, std::min(piece_bytes, Secret::size - begin));
  }
  return share;
}

void random_elements(std::span<std::uint64_t> into) {
  random_bytes(into.data(), into.size_bytes());
  for (std::uint64_t& value : into) {
    std::optional<std::uint64_t> element = field::element(value);
    while (!element) {
      random_bytes(&value, sizeof value);
      element = field::element(value);
    }
    value = *element;
  }
}

}  // namespace

std::vector<Share> split(const Secret& secret, std::size_t threshold, std::size_t members) {
  Share constant = pieces_of(secret);
  std::vector<std::uint64_t> coefficients(pieces * (threshold - 1));
  random_elements(coefficients);
  std::vector<Share> shares(members);
  for (std::size_t member = 0; member < members; ++member) {
    const std::uint64_t point = point_of(member);
    for (std::size_t i = 0; i < pieces; ++i) {
      std::uint64_t value = 0;
      for (std::size_t k = 0; k + 1 < threshold; ++k)
        value = field::multiply(field::add(value, coefficients[i * (threshold - 1) + k]), point);
      shares[member][i] = field::add(value, constant[i]);
    }
  }
  OPENSSL_cleanse(constant.data(), sizeof constant);
  OPENSSL_cleanse(coefficients.data(), coefficients.size() * sizeof(std::uint64_t));
  return shares;
}

Joiner::Joiner(std::span<const std::uint32_t> members) {
  for (const std::uint32_t own : members) {
    std::uint64_t above = 1;
    std::uint64_t below = 1;
    for (const std::uint32_t other : members) {
      if (other == own) continue;
      above = field::multiply(above, point_of(other));
      below = field::multiply(below, field::subtract(point_of(other), point_of(own)));
    }
    weights_.push_back(field::multiply(above, field::inverse(below)));
  }
}

std::optional<Secret> Joiner::join(std::span<const Share> shares) const {
  Secret secret;
  bool valid = shares.size() == weights_.size();
  for (std::size_t i = 0; valid && i < pieces; ++i) {
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < shares.size(); ++k) {
      valid = valid && shares[k][i] < field::prime;
      value = field::add(value, field::multiply(weights_[k], shares[k][i] % field::prime));
    }
    const std::size_t begin = i * piece_bytes;
    const std::size_t size = std::min(piece_bytes, Secret::size - begin);
    valid = valid && value >> (8 * size) == 0;
    std::memcpy(secret.data() + begin, &value, size);
    OPENSSL_cleanse(&value, sizeof value);
  }
  if (!valid) return std::nullopt;
  return secret;
}

}  // namespace starfold::secure
