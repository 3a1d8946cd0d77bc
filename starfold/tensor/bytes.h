// Values as bytes, for messages and checkpoints. Numbers are little-endian; every length is checked against what
// is there.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/tensor/tensor.h"

namespace starfold {

using Bytes = std::string;

class ByteWriter {
 public:
  template <typename Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void flag(bool value) { number(static_cast<std::uint8_t>(value ? 1 : 0)); }
  void text(std::string_view value);
  void tensor(const Tensor& tensor);
  void tensors(const std::vector<Tensor>& all);
  void numbers(const std::map<std::string, std::int64_t, std::less<>>& values);
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

// Reads what ByteWriter wrote; RunError when the bytes are something else.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  bool flag();
  std::string text();
  Tensor tensor();
  std::vector<Tensor> tensors();
  // One layout per value: names ascend, so that equal maps are equal bytes.
  std::map<std::string, std::int64_t, std::less<>> numbers();
  void end() const;
  [[noreturn]] static void fail();

 private:
  std::string_view take(std::uint64_t count);

  std::string_view rest_;
};

}  // namespace starfold
