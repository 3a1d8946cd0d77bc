#include "starfold/data/arrays/memory_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "starfold/base/error.h"
#include "starfold/data/binding/levels.h"
#include "starfold/data/binding/shown_names.h"
#include "starfold/data/text/values.h"
#include "starfold/tensor/axis_view.h"

namespace starfold {
namespace {

constexpr double missing_value = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t piece =
    1024;  // records at a time: what was read is still in the cache when it is used

double half(std::uint16_t bits) {
  const int exponent = bits >> 10U & 0x1FU;
  const int fraction = bits & 0x3FFU;
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : missing_value;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// A whole number has a double that is equal to it, or it is not taken.
struct NotExact {};
constexpr const char* not_exact =
    "a whole number is there that no double is equal to; numbers are doubles, which hold whole "
    "numbers up to 2^53";

template <typename Number>
double whole(Number value) {
  const auto number = static_cast<double>(value);
  if constexpr (sizeof(Number) == 8) {
    const double limit = std::ldexp(1.0, std::numeric_limits<Number>::digits);
    if (!(number < limit) || static_cast<Number>(number) != value) throw NotExact{};
  }
  return number;
}

template <typename T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

bool is_there(const CellBlock& block, std::size_t i) {
  if (block.hidden != nullptr &&
      block.hidden[static_cast<std::int64_t>(i) * block.hidden_stride] != 0)
    return false;
  if (block.valid == nullptr) return true;
  const std::size_t bit = block.valid_first + i;
  return (block.valid[bit / 8] >> (bit % 8) & 1U) != 0;
}

bool has_gaps(const CellBlock& block) {
  return block.valid != nullptr || block.hidden != nullptr || block.has_absent;
}

// Calls `take(i, value)` for each value that is there, `gap(i)` for each other. `T` is what lies in memory.
template <typename T, typename Take, typename Gap>
void each_value(const CellBlock& block, std::size_t first, std::size_t count, const Take& take,
                const Gap& gap) {
  const char* at =
      static_cast<const char*>(block.data) + static_cast<std::int64_t>(first) * block.stride;
  const bool gaps = has_gaps(block);
  for (std::size_t i = 0; i < count; ++i, at += block.stride) {
    const T value = load<T>(at);
    bool there = !gaps || is_there(block, first + i);
    if constexpr (std::is_integral_v<T>) {
      if (block.has_absent && static_cast<std::int64_t>(value) == block.absent) there = false;
    }
    if (there) {
      take(i, value);
    } else {
      gap(i);
    }
  }
}

struct Wide {
  std::uint64_t low;
  std::int64_t high;
};

std::string_view text_at(const CellBlock& block, std::size_t i) {
  const std::size_t place = block.first + i;
  if (block.cells == Cells::text32) {
    const auto* offsets = static_cast<const std::int32_t*>(block.data) + place;
    return {block.bytes + offsets[0], static_cast<std::size_t>(offsets[1] - offsets[0])};
  }
  if (block.cells == Cells::text64) {
    const auto* offsets = static_cast<const std::int64_t*>(block.data) + place;
    return {block.bytes + offsets[0], static_cast<std::size_t>(offsets[1] - offsets[0])};
  }
  const char* view = static_cast<const char*>(block.data) + 16 * place;
  const auto length = static_cast<std::size_t>(load<std::int32_t>(view));
  if (length <= 12) return {view + 4, length};
  return {block.buffers.at(static_cast<std::size_t>(load<std::int32_t>(view + 8))) +
              load<std::int32_t>(view + 12),
          length};
}

bool is_text(Cells cells) {
  return cells == Cells::text32 || cells == Cells::text64 || cells == Cells::text_view;
}

// Numbers of a block, nan where one is missing.
template <typename T, typename Convert>
void fill(const CellBlock& block, std::size_t first, std::size_t count, double* to,
          const Convert& convert) {
  each_value<T>(
      block, first, count, [&](std::size_t i, T value) { to[i] = convert(value); },
      [&](std::size_t i) { to[i] = missing_value; });
}

double days_of(double microseconds) { return microseconds / 86400000000.0; }

void read_numbers(const CellBlock& block, std::size_t first, std::size_t count, double* to) {
  const auto cast = [](auto value) { return static_cast<double>(value); };
  const auto exact = [](auto value) { return whole(value); };
  const auto scaled = [](std::int64_t factor) {
    return [factor](std::int64_t value) {
      std::int64_t micros = 0;
      if (__builtin_mul_overflow(value, factor, &micros)) throw NotExact{};
      return days_of(static_cast<double>(micros));
    };
  };
  switch (block.cells) {
    case Cells::f64:
      return fill<double>(block, first, count, to, cast);
    case Cells::f32:
      return fill<float>(block, first, count, to, cast);
    case Cells::f16:
      return fill<std::uint16_t>(block, first, count, to, half);
    case Cells::i8:
      return fill<std::int8_t>(block, first, count, to, cast);
    case Cells::i16:
      return fill<std::int16_t>(block, first, count, to, cast);
    case Cells::i32:
    case Cells::days:
      return fill<std::int32_t>(block, first, count, to, cast);
    case Cells::i64:
      return fill<std::int64_t>(block, first, count, to, exact);
    case Cells::u8:
      return fill<std::uint8_t>(block, first, count, to, cast);
    case Cells::u16:
      return fill<std::uint16_t>(block, first, count, to, cast);
    case Cells::u32:
      return fill<std::uint32_t>(block, first, count, to, cast);
    case Cells::u64:
      return fill<std::uint64_t>(block, first, count, to, exact);
    case Cells::truths:
      return fill<std::uint8_t>(block, first, count, to,
                                [](std::uint8_t value) { return value != 0 ? 1.0 : 0.0; });
    case Cells::bits: {
      const auto* bits = static_cast<const std::uint8_t*>(block.data);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t bit = block.first + first + i;
        to[i] = !is_there(block, first + i)              ? missing_value
                : (bits[bit / 8] >> (bit % 8) & 1U) != 0 ? 1.0
                                                         : 0.0;
      }
      return;
    }
    case Cells::day_millis:
      return fill<std::int64_t>(block, first, count, to, [](std::int64_t value) {
        return std::floor(static_cast<double>(value) / 86400000.0);
      });
    case Cells::seconds:
      return fill<std::int64_t>(block, first, count, to, scaled(1'000'000));
    case Cells::millis:
      return fill<std::int64_t>(block, first, count, to, scaled(1'000));
    case Cells::micros:
      return fill<std::int64_t>(block, first, count, to, scaled(1));
    case Cells::nanos:  // as files are read: to the microsecond
      return fill<std::int64_t>(block, first, count, to, [](std::int64_t value) {
        return days_of(static_cast<double>(value / 1000));
      });
    case Cells::decimal32:
      return fill<std::int32_t>(block, first, count, to, [&](std::int32_t value) {
        return decimal_number(value < 0 ? -1 : 0, static_cast<std::uint64_t>(std::int64_t{value}),
                              block.after_point);
      });
    case Cells::decimal64:
      return fill<std::int64_t>(block, first, count, to, [&](std::int64_t value) {
        return decimal_number(value < 0 ? -1 : 0, static_cast<std::uint64_t>(value),
                              block.after_point);
      });
    case Cells::decimal128:
      return fill<Wide>(block, first, count, to, [&](Wide value) {
        if (block.after_point == 0) {
          const auto low = static_cast<std::int64_t>(value.low);
          if (value.high != (low < 0 ? -1 : 0)) throw NotExact{};
          return whole(low);
        }
        return decimal_number(value.high, value.low, block.after_point);
      });
    default:
      std::fill_n(to, count, missing_value);
  }
}

// Places in the levels of a block, -1 where a value is missing.
void read_places(const CellBlock& block, std::size_t first, std::size_t count, std::int64_t* to) {
  const auto store = [&](std::size_t i, auto value) { to[i] = static_cast<std::int64_t>(value); };
  const auto gap = [&](std::size_t i) { to[i] = -1; };
  switch (block.cells) {
    case Cells::i8:
      return each_value<std::int8_t>(block, first, count, store, gap);
    case Cells::i16:
      return each_value<std::int16_t>(block, first, count, store, gap);
    case Cells::i32:
      return each_value<std::int32_t>(block, first, count, store, gap);
    case Cells::i64:
      return each_value<std::int64_t>(block, first, count, store, gap);
    case Cells::u8:
      return each_value<std::uint8_t>(block, first, count, store, gap);
    case Cells::u16:
      return each_value<std::uint16_t>(block, first, count, store, gap);
    case Cells::u32:
      return each_value<std::uint32_t>(block, first, count, store, gap);
    default:
      return each_value<std::uint64_t>(block, first, count, store, gap);
  }
}

class MemoryTable : public InMemoryTable {
 public:
  explicit MemoryTable(std::vector<MemoryColumn> columns) : columns_(std::move(columns)) {
    std::map<std::string, std::size_t> names;
    for (const MemoryColumn& column : columns_) {
      std::int64_t count = 0;
      for (const CellBlock& block : column.blocks) count += static_cast<std::int64_t>(block.count);
      if (infos_.empty()) records_ = count;
      if (count != records_)
        throw RunError(fmt::format("columns {} and {} have {} and {} records",
                                   shown(infos_.front().name), shown(column.info.name), records_,
                                   count));
      if (++names[column.info.name] > 1)
        throw RunError(fmt::format("two columns are named {}", shown(column.info.name)));
      infos_.push_back(column.info);
    }
  }

  const std::vector<ColumnInfo>& columns() const override { return infos_; }
  std::optional<std::int64_t> known_records() const override { return records_; }
  std::shared_ptr<const Categorical> own_levels(std::size_t column) const override {
    return columns_[column].levels;
  }
  const std::vector<CellBlock>* parts(std::size_t column) const override {
    return &columns_[column].blocks;
  }
  std::unique_ptr<TableScan> scan(const std::vector<ColumnUse>& uses,
                                  RecordRange range) const override;
  LevelCounts levels(std::size_t column, std::size_t most) const override;

 private:
  std::vector<MemoryColumn> columns_;
  std::vector<ColumnInfo> infos_;
  std::int64_t records_ = 0;
};

LevelCounts MemoryTable::levels(std::size_t column, std::size_t most) const {
  LevelCounts counts;
  const auto add = [&](std::string level) {
    ++counts[std::move(level)];
    if (counts.size() > most) throw too_many_levels(most);
  };
  std::vector<std::int64_t> places;
  std::vector<double> numbers;
  for (const CellBlock& block : columns_[column].blocks) {
    if (block.level_texts) {
      places.resize(block.count);
      read_places(block, 0, block.count, places.data());
      for (const std::int64_t place : places) {
        if (place >= 0 && place < static_cast<std::int64_t>(block.level_texts->size()))
          add((*block.level_texts)[static_cast<std::size_t>(place)]);
      }
    } else if (is_text(block.cells)) {
      for (std::size_t i = 0; i < block.count; ++i) {
        if (is_there(block, i)) add(std::string(text_at(block, i)));
      }
    } else {
      numbers.resize(block.count);
      memory_numbers(block, numbers.data());
      for (const double number : numbers) {
        if (!std::isnan(number)) add(level_text(number));
      }
    }
  }
  return counts;
}

// One column on its way.
class ColumnScan {
 public:
  ColumnScan(const MemoryColumn& column, const ColumnUse& use, std::int64_t first)
      : column_(column) {
    if (use.categorical)
      levels_ =
          std::make_unique<LevelNumbers>(*use.categorical, column.info.kind == ColumnKind::number);
    at_ = static_cast<std::size_t>(first);
    settle();
  }

  // How many values follow each other in memory from here.
  std::size_t together() const {
    return block_ < column_.blocks.size() ? column_.blocks[block_].count - at_ : 0;
  }

  void read(std::size_t count) {
    const CellBlock& block = column_.blocks[block_];
    const bool direct = !levels_ && block.cells == Cells::f64 && !block.level_numbers &&
                        block.stride == sizeof(double) && !has_gaps(block);
    if (direct) {
      values_ = static_cast<const double*>(block.data) + at_;
    } else {
      numbers_.resize(std::max(numbers_.size(), count));
      convert(block, count);
      values_ = numbers_.data();
    }
    at_ += count;
    settle();
  }

  const double* values() const { return values_; }

 private:
  void settle() {
    while (block_ < column_.blocks.size() && at_ >= column_.blocks[block_].count) {
      at_ -= column_.blocks[block_].count;
      ++block_;
    }
  }

  void convert(const CellBlock& block, std::size_t count) {
    try {
      if (block.level_texts || block.level_numbers) {
        look_up(block, count);
      } else if (is_text(block.cells)) {
        for (std::size_t i = 0; i < count; ++i)
          numbers_[i] = levels_ && is_there(block, at_ + i) ? levels_->of(text_at(block, at_ + i))
                                                            : missing_value;
      } else {
        read_numbers(block, at_, count, numbers_.data());
        if (levels_) {
          for (std::size_t i = 0; i < count; ++i)
            if (!std::isnan(numbers_[i])) numbers_[i] = levels_->of(numbers_[i]);
        }
      }
    } catch (const NotExact&) {
      throw RunError(fmt::format(
          "column {} holds a whole number that no double is equal to; numbers are doubles, which "
          "hold whole numbers up to 2^53",
          shown(column_.info.name)));
    }
  }

  // What each level of a block becomes is found once.
  void look_up(const CellBlock& block, std::size_t count) {
    if (meanings_of_ != block_) {
      meanings_.clear();
      if (block.level_texts) {
        for (const std::string& text : *block.level_texts)
          meanings_.push_back(levels_ ? levels_->of(text) : missing_value);
      } else {
        for (const double number : *block.level_numbers)
          meanings_.push_back(levels_ && !std::isnan(number) ? levels_->of(number) : number);
      }
      meanings_of_ = block_;
    }
    places_.resize(std::max(places_.size(), count));
    read_places(block, at_, count, places_.data());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t place = places_[i];
      const bool there = place >= 0 && place < static_cast<std::int64_t>(meanings_.size());
      numbers_[i] = there ? meanings_[static_cast<std::size_t>(place)] : missing_value;
    }
  }

  const MemoryColumn& column_;
  std::unique_ptr<LevelNumbers> levels_;
  std::size_t block_ = 0;
  std::size_t at_ = 0;  // in the block
  const double* values_ = nullptr;
  std::vector<double> numbers_;
  std::vector<std::int64_t> places_;
  std::vector<double> meanings_;
  std::size_t meanings_of_ = std::numeric_limits<std::size_t>::max();
};

class MemoryScan : public TableScan {
 public:
  MemoryScan(std::vector<ColumnScan> columns, std::int64_t left)
      : columns_(std::move(columns)), left_(left) {}

  bool next() override {
    records_ = static_cast<std::size_t>(std::min<std::int64_t>(left_, piece));
    for (const ColumnScan& column : columns_) records_ = std::min(records_, column.together());
    if (records_ == 0) return false;
    for (ColumnScan& column : columns_) column.read(records_);
    left_ -= static_cast<std::int64_t>(records_);
    return true;
  }
  std::size_t records() const override { return records_; }
  const double* column(std::size_t index) const override { return columns_[index].values(); }
  const std::uint64_t* valid(std::size_t) const override { return nullptr; }

 private:
  std::vector<ColumnScan> columns_;
  std::int64_t left_;
  std::size_t records_ = 0;
};

std::unique_ptr<TableScan> MemoryTable::scan(const std::vector<ColumnUse>& uses,
                                             RecordRange range) const {
  std::vector<ColumnScan> scans;
  for (const ColumnUse& use : uses) scans.emplace_back(columns_[use.column], use, range.first);
  const std::int64_t last = std::min(range.last, records_);
  return std::make_unique<MemoryScan>(std::move(scans),
                                      std::max<std::int64_t>(last - range.first, 0));
}

}  // namespace

std::string memory_text(const CellBlock& block, std::size_t i) {
  return is_there(block, i) ? std::string(text_at(block, i)) : "";
}

void memory_numbers(const CellBlock& block, double* to) {
  try {
    read_numbers(block, 0, block.count, to);
  } catch (const NotExact&) {
    throw RunError(not_exact);
  }
}

ColumnInfo memory_column_info(std::string name, Cells cells, bool text_levels, bool number_levels) {
  ColumnInfo info;
  info.name = std::move(name);
  const auto say = [&](ColumnKind kind, const char* type) {
    info.kind = kind;
    info.type = type;
    return info;
  };
  if (text_levels) return say(ColumnKind::text, "text");
  if (number_levels) return say(ColumnKind::number, "number");
  switch (cells) {
    case Cells::none:
      return say(ColumnKind::unknown, "empty");
    case Cells::other:
      return say(ColumnKind::other, "unknown type");
    case Cells::text32:
    case Cells::text64:
    case Cells::text_view:
      return say(ColumnKind::text, "text");
    case Cells::bits:
    case Cells::truths:
      return say(ColumnKind::number, "true/false");
    case Cells::days:
    case Cells::day_millis:
      return say(ColumnKind::date, "date");
    case Cells::seconds:
    case Cells::millis:
    case Cells::micros:
    case Cells::nanos:
      return say(ColumnKind::date, "date and time");
    case Cells::f64:
    case Cells::f32:
    case Cells::f16:
    case Cells::decimal32:
    case Cells::decimal64:
    case Cells::decimal128:
      return say(ColumnKind::number, "number");
    default:
      return say(ColumnKind::number, "integer");
  }
}

std::shared_ptr<const Table> memory_table(std::vector<MemoryColumn> columns) {
  return std::make_shared<MemoryTable>(std::move(columns));
}

GivenArrays::GivenArrays(std::map<std::string, ArrayView> arrays) : arrays_(std::move(arrays)) {
  for (const auto& [name, view] : arrays_) {
    if (view.shape.size() == 1) infos_.push_back({name, ColumnKind::number, "number"});
  }
}

std::unique_ptr<TableScan> GivenArrays::scan(const std::vector<ColumnUse>& uses,
                                             RecordRange range) const {
  std::vector<MemoryColumn> columns;
  for (const ColumnInfo& info : infos_)
    columns.push_back({info, {column_of(arrays_.at(info.name), 0, 0)}});
  // The scan keeps what it reads from.
  class Scan : public TableScan {
   public:
    Scan(std::shared_ptr<const Table> table, const std::vector<ColumnUse>& uses, RecordRange range)
        : table_(std::move(table)), scan_(table_->scan(uses, range)) {}
    bool next() override { return scan_->next(); }
    std::size_t records() const override { return scan_->records(); }
    const double* column(std::size_t index) const override { return scan_->column(index); }
    const std::uint64_t* valid(std::size_t index) const override { return scan_->valid(index); }

   private:
    std::shared_ptr<const Table> table_;
    std::unique_ptr<TableScan> scan_;
  };
  return std::make_unique<Scan>(memory_table(std::move(columns)), uses, range);
}

LevelCounts GivenArrays::levels(std::size_t column, std::size_t most) const {
  const ColumnInfo& info = infos_[column];
  return memory_table({{info, {column_of(arrays_.at(info.name), 0, 0)}}})->levels(0, most);
}

CellBlock column_of(const ArrayView& view, std::size_t axis, std::size_t place) {
  CellBlock block;
  block.cells = view.cells;
  block.count = static_cast<std::size_t>(view.shape[axis]);
  block.stride = view.strides[axis];
  block.owner = view.owner;
  const char* data = static_cast<const char*>(view.data);
  for (std::size_t a = view.shape.size(); a-- > 0;) {
    if (a == axis || view.shape[a] == 0) continue;
    const auto extent = static_cast<std::size_t>(view.shape[a]);
    data += static_cast<std::int64_t>(place % extent) * view.strides[a];
    place /= extent;
  }
  block.data = data;
  return block;
}

Tensor copy_of(const ArrayView& view) {
  Tensor tensor(view.shape);
  if (tensor.data.empty()) return tensor;
  if (view.shape.empty()) {
    CellBlock one;
    one.cells = view.cells;
    one.count = 1;
    one.data = view.data;
    read_numbers(one, 0, 1, tensor.data.data());
    return tensor;
  }
  const std::size_t last = view.shape.size() - 1;
  const auto row = static_cast<std::size_t>(view.shape[last]);
  try {
    for (std::size_t place = 0; place * row < tensor.data.size(); ++place)
      read_numbers(column_of(view, last, place), 0, row, tensor.data.data() + place * row);
  } catch (const NotExact&) {
    throw RunError(not_exact);
  }
  return tensor;
}

}  // namespace starfold
