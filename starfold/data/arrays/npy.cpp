#include "starfold/data/arrays/npy.h"

#include <fmt/format.h>
#include <minizip/unzip.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/binding/shown_names.h"
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

// Reads it as Python would, from one token to the next; what it may not hold is an error.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  Header read() {
    Header header;
    std::set<std::string> keys;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      if (!keys.insert(key).second) fail();
      expect(':');
      if (key == "descr") {
        header.type = type();
      } else if (key == "fortran_order") {
        header.fortran_order = truth();
      } else if (key == "shape") {
        header.shape = shape();
      } else {
        fail();
      }
      if (!take(',') && peek() != '}') fail();
    }
    if (keys.size() != 3 || peek() != '\0') fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const { throw RunError(what_ + ": its header cannot be read"); }

  // The next character that is no blank; zero at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }
  bool take_word(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string quoted() {
    const char mark = peek();
    if (mark != '\'' && mark != '"') fail();
    const std::size_t end = text_.find(mark, at_ + 1);
    if (end == std::string_view::npos) fail();
    std::string inside(text_.substr(at_ + 1, end - at_ - 1));
    if (inside.find('\\') != std::string::npos) fail();
    at_ = end + 1;
    return inside;
  }
  std::string type() {
    if (peek() == '[') throw RunError(what_ + ": it holds structured records, not numbers");
    return quoted();
  }
  bool truth() {
    if (take_word("True")) return true;
    if (!take_word("False")) fail();
    return false;
  }
  // (), (3,), (3, 4): one number alone needs its comma.
  Shape shape() {
    Shape shape;
    expect('(');
    bool comma = false;
    while (!take(')')) {
      if (!shape.empty() && !comma) fail();
      shape.push_back(extent());
      comma = take(',');
    }
    if (shape.size() == 1 && !comma) fail();
    return shape;
  }
  std::int64_t extent() {
    std::int64_t value = 0;
    const char first = peek();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (value > (std::int64_t{1} << 48)) fail();
      value = value * 10 + (text_[at_++] - '0');
    }
    const std::size_t digits = at_ - begin;
    if (digits == 0 || (digits > 1 && first == '0')) fail();
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 wrote it
    return value;
  }

  std::string_view text_;
  const std::string& what_;
  std::size_t at_ = 0;
};

// False when a whole number has no double that is equal to it.
template <typename Number>
bool convert(std::string_view bytes, bool swap, std::vector<double>& out) {
  bool exact = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if constexpr (std::is_same_v<Number, bool>) {  // any other byte than 0 is true
      out[i] = bytes[i] != 0 ? 1 : 0;
      continue;
    }
    unsigned char raw[sizeof(Number)];
    std::memcpy(raw, bytes.data() + i * sizeof(Number), sizeof raw);
    if (swap) std::reverse(raw, raw + sizeof raw);
    Number value;
    std::memcpy(&value, raw, sizeof value);
    out[i] = static_cast<double>(value);
    if constexpr (std::is_integral_v<Number> && sizeof(Number) == 8) {
      constexpr double limit = static_cast<double>(std::numeric_limits<Number>::max());
      exact = exact && out[i] < limit && static_cast<Number>(out[i]) == value;
    }
  }
  return exact;
}

// The converter and width for a type such as <f8; null when it is not a number.
using Convert = bool (*)(std::string_view, bool, std::vector<double>&);
std::pair<Convert, std::size_t> converter(const std::string& type) {
  static const std::map<std::string, std::pair<Convert, std::size_t>, std::less<>> table = {
      {"f8", {convert<double>, 8}},        {"f4", {convert<float>, 4}},
      {"i1", {convert<std::int8_t>, 1}},   {"i2", {convert<std::int16_t>, 2}},
      {"i4", {convert<std::int32_t>, 4}},  {"i8", {convert<std::int64_t>, 8}},
      {"u1", {convert<std::uint8_t>, 1}},  {"u2", {convert<std::uint16_t>, 2}},
      {"u4", {convert<std::uint32_t>, 4}}, {"u8", {convert<std::uint64_t>, 8}},
      {"b1", {convert<bool>, 1}},
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

[[noreturn]] void too_large(const std::string& what) {
  throw RunError(what + " is too large for the memory given; raise --memory");
}

// What an array of so many bytes takes while it is read, and what of it stays: its bytes and its numbers.
constexpr std::int64_t cost_of_bytes = 2;

// An entry of an archive that is open.
class ArchiveEntry {
 public:
  ArchiveEntry(void* archive, const std::string& path) : archive_(archive), path_(path) {
    if (unzGetCurrentFileInfo64(archive_, &info_, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK)
      damaged();
    // One byte more than the longest that is taken, so that a longer one is seen and its end is always there.
    constexpr std::size_t longest = 512;
    if (info_.size_filename > longest)
      throw RunError(path_ + ": an entry of the archive has a name that is too long");
    std::string name(longest + 1, '\0');
    if (unzGetCurrentFileInfo64(archive_, &info_, name.data(), name.size(), nullptr, 0, nullptr,
                                0) != UNZ_OK)
      damaged();
    name.resize(info_.size_filename);
    if (find_invalid_text(name) != std::string::npos) damaged();
    if (name.size() > 4 && name.ends_with(".npy")) name.resize(name.size() - 4);
    name_ = std::move(name);
  }

  const std::string& name() const { return name_; }
  std::uint64_t size() const { return info_.uncompressed_size; }

  // All of it, with its checksum. It may not be longer than was said.
  std::string read() const {
    if (unzOpenCurrentFile(archive_) != UNZ_OK) damaged();
    std::string bytes(size(), '\0');
    std::size_t filled = 0;
    while (filled < bytes.size()) {
      constexpr std::size_t most = std::size_t{1} << 30U;
      const int got =
          unzReadCurrentFile(archive_, bytes.data() + filled,
                             static_cast<unsigned>(std::min(most, bytes.size() - filled)));
      if (got <= 0) damaged();
      filled += static_cast<std::size_t>(got);
    }
    char beyond = 0;
    if (unzReadCurrentFile(archive_, &beyond, 1) != 0 || unzCloseCurrentFile(archive_) != UNZ_OK)
      damaged();
    return bytes;
  }

 private:
  [[noreturn]] void damaged() const { throw RunError(path_ + ": the archive is damaged"); }

  void* archive_;
  const std::string& path_;
  unz_file_info64 info_ = {};
  std::string name_;
};

}  // namespace

Tensor parse_npy(std::string_view bytes, const std::string& what, std::int64_t room) {
  if (bytes.substr(0, magic.size()) != magic || bytes.size() < 10)
    throw RunError(what + ": not a NumPy array file");
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const std::size_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0)
    throw RunError(what + ": it is of a version of the format that is not known");
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
        fmt::format("{}: its element type '{}' is not a number type", what, shown(header.type)));
  }
  std::uint64_t count = 1;
  for (const std::int64_t extent : header.shape) {
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count))
      throw RunError(what + ": its shape is absurd");
  }
  const std::string_view data = bytes.substr(begin + length);
  if (count > data.size() / width)
    throw RunError(fmt::format("{}: cut short; its shape needs {} values", what, count));
  if (count * width != data.size()) throw RunError(what + ": it is longer than its shape");
  if (count > static_cast<std::uint64_t>(std::max<std::int64_t>(room, 0)) / sizeof(double))
    too_large(what);
  const bool big_endian = header.type[0] == '>';
  Tensor tensor(header.shape, std::vector<double>(count));
  const bool exact = convert_to(
      data, big_endian == (std::endian::native == std::endian::little) && big_endian, tensor.data);
  if (!exact)
    throw RunError(what +
                   ": it holds a whole number that no double is equal to; numbers are doubles, "
                   "which hold whole numbers up to 2^53");
  return header.fortran_order ? from_fortran(tensor) : tensor;
}

Tensor read_npy(const std::string& path, std::int64_t room) {
  const std::string shown = printable(path);
  const DataFile file(path);
  if (file.size() > room / cost_of_bytes) too_large(shown);
  const std::string bytes = read_whole(file, room);
  return parse_npy(bytes, shown, room - file.size());
}

std::map<std::string, Tensor> read_npz(const std::string& path, std::int64_t room) {
  const DataFile file(path);
  const OpenFile held = file.open();
  const std::string shown = printable(path);
  const std::unique_ptr<void, int (*)(void*)> archive(unzOpen64(held.exact_path().c_str()),
                                                      unzClose);
  if (!archive) throw RunError(shown + ": not an archive of NumPy arrays");
  std::map<std::string, Tensor> arrays;
  int status = unzGoToFirstFile(archive.get());
  for (; status == UNZ_OK; status = unzGoToNextFile(archive.get())) {
    const ArchiveEntry entry(archive.get(), shown);
    const std::string what = fmt::format(
        "{}, array {}", shown,
        looks_like_name(entry.name()) ? entry.name() : fmt::format("{}", arrays.size() + 1));
    if (entry.size() > static_cast<std::uint64_t>(room / cost_of_bytes)) too_large(what);
    const auto bytes = static_cast<std::int64_t>(entry.size());
    Tensor array = parse_npy(entry.read(), what, room - bytes);
    room -= array.count() * static_cast<std::int64_t>(sizeof(double));
    if (!arrays.emplace(entry.name(), std::move(array)).second)
      throw RunError(shown + ": two arrays of the archive have the same name");
  }
  if (status != UNZ_END_OF_LIST_OF_FILE) throw RunError(shown + ": the archive is damaged");
  held.require_unchanged();
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
