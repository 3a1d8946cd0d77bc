// Sums of products of whole numbers that are cut into bytes, by the instructions for tiles of bytes that some processors have
// (AMX): sixteen by sixteen columns and 64 records at a time, in integers of 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starfold::kernels::byte_tiles {

inline constexpr std::size_t columns = 16;  // of a tile
inline constexpr std::size_t records = 64;
inline constexpr std::size_t size = columns * records;
// A number is cut into three slices of 24 bits, and these into bytes between -128 and 127: nine digits, from the lowest.
inline constexpr std::size_t slices = 3;
inline constexpr std::size_t bytes = 3;
inline constexpr std::size_t digits = slices * bytes;
inline constexpr int slice_bits = 24;
// Products of two digits go to the place that their numbers add up to, and three such places into one sum.
inline constexpr std::size_t places = 2 * digits - 1;
inline constexpr std::size_t sums = (places + 2) / 3;

// Whether this process may use them.
bool available();

// Sixteen columns: tiles by digit, then by records; a tile has the records of its first column, then those of the next.
struct Panel {
  const std::int8_t* tiles = nullptr;
  unsigned present = 0;  // a bit for each digit that is not 0 throughout
};

// Three slices of x as Slices::cut has them, from the highest, each times its scale a whole number of at most 2^23, the first
// of at most 2^22. Those of a digit are at out + digit * stride, 64 records in a row and then those of the next tile; zeros follow
// up to a multiple of 64. Bits of the result: those of digits that are not 0 throughout, and after them one where there is a rest,
// or something is not finite.
unsigned cut(const double* x, const double* shifts, const double* scales, std::int8_t* out,
             std::size_t stride, double* top, std::size_t n);

// The same tiles as the right side of a product needs them.
void turn(const std::int8_t* tiles, std::int8_t* turned, std::size_t count);

// For the `rows` first columns of panel a and the `across` first of panel b, whose tiles are turned: the sum of a_i * b_j, in six
// integers with out[k * plane + i * row + j] to be multiplied by 2^(24 k), is added. For at most so many records.
inline constexpr std::size_t most_records = 4096;
struct Product {
  Panel a;
  Panel b;
  std::size_t rows = 0;
  std::size_t across = 0;
  std::int64_t* out = nullptr;
};
void multiply(const Product& product, std::size_t tiles, std::size_t plane, std::size_t row);

}  // namespace starfold::kernels::byte_tiles
