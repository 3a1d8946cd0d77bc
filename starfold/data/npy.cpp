#include "starfold/data/npy.h"

#include <fmt/format.h>
#include <minizip/unzip.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "starfold/base/error.h"
#include "starfold/data/file.h"

namespace starfold {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

// The header of an array: a Python dictionary literal with three known keys.
struct Header {
  std::string type;
  bool fortran_order = false;
  Shape shape;
};

class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  Header read() const {
    Header header;
    header.type = quoted_after("'descr'");
    header.fortran_order = after("'fortran_order'").substr(0, 4) == "True";
    std::string_view rest = after("'shape'");
    if (rest.empty() || rest[0] != '(') fail();
    const std::size_t close = rest.find(')');
    if (close == std::string_view::npos) fail();
    std::istringstream numbers{std::string(rest.substr(1, close - 1))};
    std::string part;
    while (std::getline(numbers, part, ',')) {
      if (part.find_first_not_of(' ') == std::string::npos) continue;
      header.shape.push_back(extent(part));
    }
    return header;
  }

 private:
  [[noreturn]] void fail() const { throw RunError(what_ + ": its header cannot be read"); }

  std::string_view after(std::string_view key) const {
    std::size_t at = text_.find(key);
    if (at == std::string_view::npos) fail();
    at = text_.find(':', at);
    if (at == std::string_view::npos) fail();
    at = text_.find_first_not_of(' ', at + 1);
    return at == std::string_view::npos ? std::string_view() : text_.substr(at);
  }

  std::string quoted_after(std::string_view key) const {
    const std::string_view rest = after(key);
    if (rest.empty() || rest[0] != '\'')
      throw RunError(what_ + ": it holds structured records, not numbers");
    const std::size_t close = rest.find('\'', 1);
    if (close == std::string_view::npos) fail();
    return std::string(rest.substr(1, close - 1));
  }

  std::int64_t extent(const std::string& text) const {
    std::int64_t value = 0;
    for (const char c : text) {
      if (c == ' ' || c == 'L') continue;
      if (c < '0' || c > '9' || value > (std::int64_t{1} << 48)) fail();
      value = value * 10 + (c - '0');
    }
    return value;
  }

  std::string_view text_;
  const std::string& what_;
};

template <typename Number>
void convert(std::string_view bytes, bool swap, std::vector<double>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    unsigned char raw[sizeof(Number)];
    std::memcpy(raw, bytes.data() + i * sizeof(Number), sizeof raw);
    if (swap) std::reverse(raw, raw + sizeof raw);
    Number value;
    std::memcpy(&value, raw, sizeof value);
    out[i] = static_cast<double>(value);
  }
}

// The converter and width for a type such as <f8; null when it is not a number.
using Convert = void (*)(std::string_view, bool, std::vector<double>&);
std::pair<Convert, std::size_t> converter(const std::string& type) {
  static const std::map<std::string, std::pair<Convert, std::size_t>, std::less<>> table = {
      {"f8", {convert<double>, 8}},        {"f4", {convert<float>, 4}},
      {"i1", {convert<std::int8_t>, 1}},   {"i2", {convert<std::int16_t>, 2}},
      {"i4", {convert<std::int32_t>, 4}},  {"i8", {convert<std::int64_t>, 8}},
      {"u1", {convert<std::uint8_t>, 1}},  {"u2", {convert<std::uint16_t>, 2}},
      {"u4", {convert<std::uint32_t>, 4}}, {"u8", {convert<std::uint64_t>, 8}},
      {"b1", {convert<std::uint8_t>, 1}},
  };
  const auto found = table.find(type.size() > 1 ? type.substr(1) : "");
  return found == table.end() ? std::pair<Convert, std::size_t>{nullptr, 0} : found->second;
}

// From first-axis-fastest to last-axis-fastest.
Tensor from_fortran(const Tensor& tensor) {
  Tensor result(tensor.shape);
  const std::size_t rank = tensor.rank();
  std::vector<std::int64_t> index(rank, 0);
  for (double& value : result.data) {
    std::int64_t at = 0;
    for (std::size_t axis = rank; axis-- > 0;) at = at * tensor.shape[axis] + index[axis];
    value = tensor.data[static_cast<std::size_t>(at)];
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < tensor.shape[axis]) break;
      index[axis] = 0;
    }
  }
  return result;
}

std::string read_file(const std::string& path) {
  require_readable(path);
  std::ifstream in(path, std::ios::binary);
  if (!in) throw RunError(fmt::format("{} cannot be opened", path));
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) throw RunError(fmt::format("{} cannot be read", path));
  return text.str();
}

}  // namespace

Tensor parse_npy(std::string_view bytes, const std::string& what) {
  if (bytes.substr(0, magic.size()) != magic || bytes.size() < 10)
    throw RunError(what + ": not a NumPy array file");
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const std::size_t major = byte(6);
  std::size_t length = byte(8) | byte(9) << 8U;
  std::size_t begin = 10;
  if (major >= 2) {
    if (bytes.size() < 12) throw RunError(what + ": cut short");
    length |= byte(10) << 16U | byte(11) << 24U;
    begin = 12;
  }
  if (length > bytes.size() - begin) throw RunError(what + ": cut short");
  const Header header = HeaderReader(bytes.substr(begin, length), what).read();
  const auto [convert_to, width] = converter(header.type);
  if (convert_to == nullptr) {
    throw RunError(
        fmt::format("{}: its element type '{}' is not a number type", what, header.type));
  }
  std::uint64_t count = 1;
  for (const std::int64_t extent : header.shape) {
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count))
      throw RunError(what + ": its shape is absurd");
  }
  const std::string_view data = bytes.substr(begin + length);
  if (count > data.size() / width) {
    throw RunError(fmt::format("{}: cut short; its shape needs {} values", what, count));
  }
  const bool big_endian = header.type[0] == '>';
  Tensor tensor(header.shape, std::vector<double>(count));
  convert_to(data, big_endian == (std::endian::native == std::endian::little) && big_endian,
             tensor.data);
  return header.fortran_order ? from_fortran(tensor) : tensor;
}

Tensor read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

std::map<std::string, Tensor> read_npz(const std::string& path) {
  require_readable(path);
  const std::unique_ptr<void, int (*)(void*)> archive(unzOpen64(path.c_str()), unzClose);
  if (!archive) throw RunError(fmt::format("{}: not an archive of NumPy arrays", path));
  std::map<std::string, Tensor> arrays;
  for (int status = unzGoToFirstFile(archive.get()); status == UNZ_OK;
       status = unzGoToNextFile(archive.get())) {
    unz_file_info64 info;
    char name[512];
    if (unzGetCurrentFileInfo64(archive.get(), &info, name, sizeof name, nullptr, 0, nullptr, 0) !=
            UNZ_OK ||
        unzOpenCurrentFile(archive.get()) != UNZ_OK) {
      throw RunError(fmt::format("{}: the archive is damaged", path));
    }
    std::string bytes;
    char buffer[1 << 16];
    int got = 0;
    while ((got = unzReadCurrentFile(archive.get(), buffer, sizeof buffer)) > 0)
      bytes.append(buffer, static_cast<std::size_t>(got));
    if (got < 0 || unzCloseCurrentFile(archive.get()) != UNZ_OK)
      throw RunError(fmt::format("{}: the archive is damaged", path));
    std::string array = name;
    if (array.size() > 4 && array.ends_with(".npy")) array.resize(array.size() - 4);
    arrays.emplace(array, parse_npy(bytes, fmt::format("{}, array {}", path, array)));
  }
  return arrays;
}

std::string format_npy(const Tensor& tensor) {
  std::string shape;
  for (const std::int64_t extent : tensor.shape) shape += fmt::format("{},", extent);
  std::string header =
      fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}), }}", shape);
  const std::size_t unpadded = magic.size() + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';
  std::string bytes(magic);
  bytes += '\x01';
  bytes += '\x00';
  bytes += static_cast<char>(header.size() & 0xFFU);
  bytes += static_cast<char>(header.size() >> 8U);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(tensor.data.data()),
               tensor.data.size() * sizeof(double));
  return bytes;
}

}  // namespace starfold
