#include "starfold/data/arrays/arrow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "starfold/base/error.h"

namespace starfold {
namespace {

// A structure that is released at the end.
template <typename Struct>
struct Held : Struct {
  Held() : Struct{} {}
  ~Held() {
    if (this->release != nullptr) this->release(this);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
};

struct Format {
  Cells cells = Cells::other;
  int after_point = 0;
};

Format decimal_format(std::string_view digits) {
  // d:19,4 or d:19,4,64
  const std::size_t comma = digits.find(',');
  if (comma == std::string_view::npos) return {};
  const std::string_view rest = digits.substr(comma + 1);
  const int scale = std::atoi(std::string(rest).c_str());
  const std::size_t next = rest.find(',');
  const int bits =
      next == std::string_view::npos ? 128 : std::atoi(std::string(rest.substr(next + 1)).c_str());
  if (scale < 0 || scale > 38) return {};
  if (bits == 32) return {Cells::decimal32, scale};
  if (bits == 64) return {Cells::decimal64, scale};
  return {bits == 128 ? Cells::decimal128 : Cells::other, scale};
}

Format read_format(std::string_view format) {
  static const std::map<std::string_view, Cells> known = {
      {"n", Cells::none},       {"b", Cells::bits},   {"c", Cells::i8},
      {"C", Cells::u8},         {"s", Cells::i16},    {"S", Cells::u16},
      {"i", Cells::i32},        {"I", Cells::u32},    {"l", Cells::i64},
      {"L", Cells::u64},        {"e", Cells::f16},    {"f", Cells::f32},
      {"g", Cells::f64},        {"u", Cells::text32}, {"U", Cells::text64},
      {"vu", Cells::text_view}, {"tdD", Cells::days}, {"tdm", Cells::day_millis}};
  if (const auto found = known.find(format); found != known.end()) return {found->second, 0};
  if (format.starts_with("d:")) return decimal_format(format.substr(2));
  if (format.starts_with("tss")) return {Cells::seconds, 0};
  if (format.starts_with("tsm")) return {Cells::millis, 0};
  if (format.starts_with("tsu")) return {Cells::micros, 0};
  if (format.starts_with("tsn")) return {Cells::nanos, 0};
  return {};
}

std::int64_t width_of(Cells cells) {
  switch (cells) {
    case Cells::i8:
    case Cells::u8:
      return 1;
    case Cells::i16:
    case Cells::u16:
    case Cells::f16:
      return 2;
    case Cells::i32:
    case Cells::u32:
    case Cells::f32:
    case Cells::days:
    case Cells::decimal32:
      return 4;
    case Cells::decimal128:
    case Cells::text_view:
      return 16;
    default:
      return 8;
  }
}

const void* buffer(const ArrowArray& array, std::int64_t index) {
  return index < array.n_buffers ? array.buffers[index] : nullptr;
}

// The values of one array from `offset` on, `length` of them: those of a column of records may be a part of their array.
CellBlock block_of(const Format& format, const ArrowArray& array, std::int64_t offset,
                   std::int64_t length, const std::shared_ptr<const void>& owner) {
  CellBlock block;
  block.cells = format.cells;
  block.after_point = format.after_point;
  block.count = static_cast<std::size_t>(length);
  block.owner = owner;
  if (length == 0 || format.cells == Cells::none || format.cells == Cells::other) return block;
  const auto first = static_cast<std::size_t>(offset);
  if (array.null_count != 0 && array.n_buffers > 0 && array.buffers[0] != nullptr) {
    block.valid = static_cast<const std::uint8_t*>(array.buffers[0]);
    block.valid_first = first;
  }
  block.data = buffer(array, 1);
  if (block.data == nullptr) throw RunError("a table holds a column without its values");
  block.stride = width_of(format.cells);
  switch (format.cells) {
    case Cells::bits:
      block.first = first;
      break;
    case Cells::text32:
    case Cells::text64:
      block.first = first;
      block.bytes = static_cast<const char*>(buffer(array, 2));
      if (block.bytes == nullptr) block.bytes = "";
      break;
    case Cells::text_view:
      block.first = first;
      for (std::int64_t b = 2; b + 1 < array.n_buffers; ++b)
        block.buffers.push_back(static_cast<const char*>(array.buffers[b]));
      break;
    default:
      block.data = static_cast<const char*>(block.data) + offset * block.stride;
  }
  return block;
}

class StreamReader {
 public:
  StreamReader(ArrowArrayStream& stream, std::string name) : stream_(stream) {
    call(stream_.get_schema(&stream_, &schema_), "its columns cannot be read");
    records_ = std::string_view(schema_.format) == "+s";
    if (!records_) {
      add_column(schema_, std::move(name));
      return;
    }
    for (std::int64_t c = 0; c < schema_.n_children; ++c) {
      const char* own = schema_.children[c]->name;
      add_column(*schema_.children[c], own == nullptr ? "" : own);
    }
  }

  std::vector<MemoryColumn> read() {
    while (true) {
      auto array = std::make_shared<Held<ArrowArray>>();
      call(stream_.get_next(&stream_, array.get()), "it cannot be read");
      if (array->release == nullptr) break;
      take(array);
    }
    for (std::size_t c = 0; c < columns_.size(); ++c) finish(c);
    return std::move(columns_);
  }

 private:
  void call(int status, const char* what) const {
    if (status == 0) return;
    // What the producer says may quote records: only what it could not do is told.
    throw RunError(fmt::format("a table was handed over, but {} (error {})", what, status));
  }

  void add_column(const ArrowSchema& schema, std::string name) {
    formats_.push_back(read_format(schema.format));
    dictionaries_.push_back(schema.dictionary != nullptr ? read_format(schema.dictionary->format)
                                                         : Format{});
    const bool levels = schema.dictionary != nullptr;
    const Cells values = dictionaries_.back().cells;
    const bool texts = levels && is_text(values);
    const Cells cells = levels ? values : formats_.back().cells;
    columns_.push_back({memory_column_info(std::move(name), cells, texts,
                                           levels && !texts &&
                                               memory_column_info("", values, false, false).kind ==
                                                   ColumnKind::number),
                        {}});
    has_levels_.push_back(levels);
  }

  static bool is_text(Cells cells) {
    return cells == Cells::text32 || cells == Cells::text64 || cells == Cells::text_view;
  }

  void take(const std::shared_ptr<Held<ArrowArray>>& array) {
    if (!records_) {
      add_block(0, *array, array->offset, array->length, array);
      return;
    }
    if (array->n_children != static_cast<std::int64_t>(columns_.size()))
      throw RunError("a table was handed over whose parts differ in columns");
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const ArrowArray& child = *array->children[c];
      add_block(c, child, child.offset + array->offset, array->length, array);
    }
  }

  void add_block(std::size_t c, const ArrowArray& array, std::int64_t offset, std::int64_t length,
                 const std::shared_ptr<const void>& owner) {
    CellBlock block = block_of(formats_[c], array, offset, length, owner);
    if (has_levels_[c]) {
      if (array.dictionary == nullptr) throw RunError("a table holds levels without their names");
      add_levels(c, block, *array.dictionary, owner);
    }
    columns_[c].blocks.push_back(std::move(block));
  }

  // Small: as many as there are different values.
  void add_levels(std::size_t c, CellBlock& block, const ArrowArray& dictionary,
                  const std::shared_ptr<const void>& owner) {
    const CellBlock values =
        block_of(dictionaries_[c], dictionary, dictionary.offset, dictionary.length, owner);
    if (is_text(values.cells)) {
      auto texts = std::make_shared<std::vector<std::string>>();
      for (std::size_t i = 0; i < values.count; ++i) {
        texts->push_back(memory_text(values, i));
        if (std::find(levels_[c].begin(), levels_[c].end(), texts->back()) == levels_[c].end())
          levels_[c].push_back(texts->back());
      }
      block.level_texts = std::move(texts);
      return;
    }
    auto numbers = std::make_shared<std::vector<double>>(values.count);
    memory_numbers(values, numbers->data());
    block.level_numbers = std::move(numbers);
  }

  void finish(std::size_t c) {
    const auto found = levels_.find(c);
    if (found == levels_.end()) return;
    auto categorical = std::make_shared<Categorical>();
    categorical->levels = found->second;
    columns_[c].levels = std::move(categorical);
  }

  ArrowArrayStream& stream_;
  Held<ArrowSchema> schema_;
  bool records_ = true;
  std::vector<Format> formats_;
  std::vector<Format> dictionaries_;
  std::vector<bool> has_levels_;
  std::map<std::size_t, std::vector<std::string>> levels_;
  std::vector<MemoryColumn> columns_;
};

}  // namespace

std::vector<MemoryColumn> arrow_columns(ArrowArrayStream& stream, const std::string& name) {
  struct Release {
    ArrowArrayStream& stream;
    ~Release() {
      if (stream.release != nullptr) stream.release(&stream);
    }
  } release{stream};
  return StreamReader(stream, name).read();
}

}  // namespace starfold
