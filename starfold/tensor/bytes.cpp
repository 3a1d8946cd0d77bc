#include "starfold/tensor/bytes.h"

#include <bit>

#include "starfold/base/error.h"

namespace starfold {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are written as they lie in memory");

constexpr std::size_t max_rank = 32;

}  // namespace

void ByteWriter::text(std::string_view value) {
  number(static_cast<std::uint64_t>(value.size()));
  bytes_.append(value);
}

void ByteWriter::tensor(const Tensor& tensor) {
  number(static_cast<std::uint8_t>(tensor.rank()));
  for (const std::int64_t extent : tensor.shape) number(extent);
  bytes_.append(reinterpret_cast<const char*>(tensor.data.data()),
                tensor.data.size() * sizeof(double));
}

void ByteWriter::tensors(const std::vector<Tensor>& all) {
  number(static_cast<std::uint32_t>(all.size()));
  for (const Tensor& one : all) tensor(one);
}

void ByteWriter::numbers(const std::map<std::string, std::int64_t, std::less<>>& values) {
  number(static_cast<std::uint32_t>(values.size()));
  for (const auto& [name, value] : values) {
    text(name);
    number(value);
  }
}

bool ByteReader::flag() {
  const auto value = number<std::uint8_t>();
  if (value > 1) fail();
  return value != 0;
}

std::string ByteReader::text() { return std::string(take(number<std::uint64_t>())); }

Tensor ByteReader::tensor() {
  const std::size_t rank = number<std::uint8_t>();
  if (rank > max_rank) fail();
  Shape shape;
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto extent = number<std::int64_t>();
    if (extent < 0 || __builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count))
      fail();
    shape.push_back(extent);
  }
  if (count > rest_.size() / sizeof(double)) fail();
  const std::string_view data = take(count * sizeof(double));
  std::vector<double> values(count);
  if (count > 0) std::memcpy(values.data(), data.data(), data.size());
  return {std::move(shape), std::move(values)};
}

std::vector<Tensor> ByteReader::tensors() {
  std::vector<Tensor> all;
  for (auto left = number<std::uint32_t>(); left > 0; --left) all.push_back(tensor());
  return all;
}

std::map<std::string, std::int64_t, std::less<>> ByteReader::numbers() {
  std::map<std::string, std::int64_t, std::less<>> values;
  for (auto left = number<std::uint32_t>(); left > 0; --left) {
    std::string name = text();
    if (!values.empty() && values.rbegin()->first >= name) fail();
    values[std::move(name)] = number<std::int64_t>();
  }
  return values;
}

void ByteReader::end() const {
  if (!rest_.empty()) fail();
}

void ByteReader::fail() {
  throw RunError("a message is malformed: a length or an order does not fit");
}

std::string_view ByteReader::take(std::uint64_t count) {
  if (count > rest_.size()) fail();
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

}  // namespace starfold
