#include "starfold/data/loaded_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>

#include "starfold/base/error.h"
#include "starfold/base/parallel.h"
#include "starfold/data/arrays/memory_table.h"
#include "starfold/data/arrays/plain_numbers.h"
#include "starfold/runtime/numbers.h"

namespace starfold {
namespace {

constexpr std::size_t block_records = RecordTable::kept_records;
constexpr const char* changed =
    "the table was not the same when it was read again: its file was written to, or its query "
    "gives other "
    "records every time; with more --memory it is read once";
// A table in memory of no more bytes is copied all the same: its blocks are then ready in every round.
constexpr std::int64_t worth_copying = std::int64_t{1} << 23U;
constexpr std::size_t largest_part = std::size_t{1} << 25U;

struct NoMemory : RunError {
  NoMemory()
      : RunError(
            "there is not enough memory for the records; lower --memory to read them in every "
            "round") {}
};

// Blocks in memory, allocated in parts that grow with their number.
class BlockStore {
 public:
  explicit BlockStore(std::size_t columns) : size_(columns * block_records) {}

  double* add() {
    if (left_ == 0) allocate();
    --left_;
    blocks_.push_back(next_);
    next_ += size_;
    return blocks_.back();
  }
  void clear() {
    blocks_.clear();
    parts_.clear();
    left_ = 0;
  }
  double* block(std::size_t b) const { return blocks_[b]; }
  std::size_t blocks() const { return blocks_.size(); }
  std::size_t block_bytes() const { return size_ * sizeof(double); }

 private:
  void allocate() {
    const std::size_t most = std::max<std::size_t>(1, largest_part / block_bytes());
    left_ = std::clamp<std::size_t>(blocks_.size(), 1, most);
    parts_.push_back(allocate_numbers(left_ * size_));
    if (!parts_.back()) throw NoMemory();
    next_ = parts_.back().get();
  }

  std::size_t size_;
  std::vector<Numbers> parts_;
  std::vector<double*> blocks_;
  double* next_ = nullptr;
  std::size_t left_ = 0;
};

// Tells one sequence of records from another, wherever blocks are cut.
class Digest {
 public:
  explicit Digest(std::size_t columns) : columns_(columns, 1) {}

  void add(const double* block, std::size_t stride, std::size_t count) {
    constexpr std::uint64_t factor = 0x9E3779B97F4A7C15U;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      std::uint64_t state = columns_[c];
      for (std::size_t i = 0; i < count; ++i)
        state =
            (state ^ std::bit_cast<std::uint64_t>(block[c * stride + i])) * factor + (state >> 29U);
      columns_[c] = state;
    }
  }
  bool operator==(const Digest&) const = default;

 private:
  std::vector<std::uint64_t> columns_;
};

// Cuts what a reader delivers into blocks.
class TableCursor : public RecordCursor {
 public:
  TableCursor(RecordReader reader, const std::vector<std::size_t>& order, std::size_t block,
              std::size_t stride)
      : reader_(std::move(reader)), order_(order), block_(block), stride_(stride) {}

  std::size_t next(double* to) override {
    std::size_t filled = 0;
    while (filled < block_) {
      if (at_ == reader_.records()) {
        at_ = 0;
        if (!reader_.next()) break;
      }
      const std::size_t count = std::min(block_ - filled, reader_.records() - at_);
      for (std::size_t c = 0; c < order_.size(); ++c) {
        std::memcpy(to + c * stride_ + filled, reader_.columns()[order_[c]] + at_,
                    count * sizeof(double));
      }
      at_ += count;
      filled += count;
    }
    return filled;
  }
  const Flaws& flaws() const { return reader_.flaws(); }
  // Whether there is nothing more; looks for it, so that it is the last call.
  bool at_end() { return at_ == reader_.records() && !reader_.next(); }

 private:
  RecordReader reader_;
  const std::vector<std::size_t>& order_;
  std::size_t block_;
  std::size_t stride_;
  std::size_t at_ = 0;
};

// From kept blocks to blocks of another size.
class MemoryCursor : public RecordCursor {
 public:
  MemoryCursor(const RecordTable& table, std::int64_t first, std::size_t block, std::size_t stride)
      : table_(table), at_(static_cast<std::size_t>(first)), block_(block), stride_(stride) {}

  std::size_t next(double* to) override {
    std::size_t filled = 0;
    const auto records = static_cast<std::size_t>(table_.records());
    while (filled < block_ && at_ < records) {
      const std::size_t offset = at_ % block_records;
      const std::size_t count = std::min({block_ - filled, block_records - offset, records - at_});
      const double* from = table_.kept(at_ / block_records) + offset;
      for (std::size_t c = 0; c < table_.columns(); ++c) {
        std::memcpy(to + c * stride_ + filled, from + c * block_records, count * sizeof(double));
      }
      at_ += count;
      filled += count;
    }
    return filled;
  }

 private:
  const RecordTable& table_;
  std::size_t at_;
  std::size_t block_;
  std::size_t stride_;
};

class LoadedTable : public RecordTable {
 public:
  LoadedTable(TableLoad load, std::int64_t& room)
      : load_(std::move(load)), store_(place_inputs()), digest_(columns_) {
    if (in_memory() && load_.missing == Missing::drop && nothing_missing())
      load_.missing = Missing::nan;  // nothing to drop, so that any part can be read by itself
    if (can_split()) {
      open_in_parts(room);
    } else {
      read_through(room);
    }
    if (keep_) room -= static_cast<std::int64_t>(store_.blocks() * store_.block_bytes());
  }

  const double* kept(std::size_t block) const override {
    return keep_ && block < store_.blocks() ? store_.block(block) : nullptr;
  }
  bool seekable() const override { return keep_ || can_split(); }
  std::shared_ptr<const RecordTable> laid_out() const override;
  std::unique_ptr<RecordCursor> read(std::int64_t first, std::size_t block,
                                     std::size_t stride) const override;

  // A copy of what lies in memory.
  struct Copy {};
  LoadedTable(const LoadedTable& other, Copy)
      : load_(other.load_),
        store_(place_inputs()),
        digest_(columns_),
        dropped_(other.dropped_),
        flaws_(other.flaws_) {
    records_ = other.records_;
    for (std::size_t b = 0; b < blocks(); ++b) store_.add();
    find_plain();
    if (!plain_ || !read_plain(true)) read_in_parts();
    plain_.reset();
  }

  const std::string& client() const { return load_.client; }
  // Where records are dropped the whole table is read when it is loaded, so that their number is known.
  std::int64_t dropped() const { return dropped_; }
  // What all records were when they were read through; parts that are read by themselves are not compared, but
  // their file is.
  const Digest* digest() const { return can_split() ? nullptr : &digest_; }
  // Throws when there are flaws that may not be there, with all of them.
  void check(const Flaws& found) const {
    if (!has_flaws(found, load_.missing)) return;
    if (can_split()) read_in_parts();
    check_flaws(found, *load_.table, load_.use.uses, load_.use.design, load_.missing);
  }
  const Flaws& flaws() const { return flaws_; }
  // Its numbers where they lie, if that is all it is made of.
  const PlainNumbers* plain() const { return plain_ ? &*plain_ : nullptr; }
  bool takes_nan() const { return load_.missing != Missing::error; }
  // Some of its records, from `first` on.
  std::unique_ptr<RecordCursor> watch(std::int64_t first, std::int64_t count, std::size_t block,
                                      std::size_t stride) const;

 private:
  // Where dropping moves no record, any part can be read by itself.
  bool can_split() const {
    return load_.table->known_records().has_value() && load_.missing != Missing::drop;
  }

  bool in_memory() const {
    return dynamic_cast<const InMemoryTable*>(load_.table.get()) != nullptr;
  }
  bool nothing_missing() const {
    RecordReader reader(load_.table, load_.use.uses, Missing::drop, {}, load_.use.design);
    while (reader.next() && reader.flaws().dropped == 0) {
    }
    return reader.flaws().dropped == 0;
  }

  void find_plain() {
    const auto* const table = dynamic_cast<const InMemoryTable*>(load_.table.get());
    const std::vector<ColumnUse>& uses = load_.use.uses;
    const auto is_number = [&](const ColumnUse& use) {
      return !use.categorical && table->parts(use.column) != nullptr;
    };
    if (table == nullptr || load_.use.design.design ||
        !std::all_of(uses.begin(), uses.end(), is_number))
      return;
    std::vector<const std::vector<CellBlock>*> parts;
    for (const std::size_t place : order_) parts.push_back(table->parts(uses[place].column));
    plain_ = PlainNumbers::of(parts);
  }

  std::size_t place_inputs() {
    for (const auto& [input, columns] : load_.use.inputs) {
      inputs_.emplace(input, Place{order_.size(), columns.size()});
      order_.insert(order_.end(), columns.begin(), columns.end());
    }
    columns_ = order_.size();
    return columns_;
  }

  TableCursor cursor(RecordRange range, std::size_t block, std::size_t stride) const {
    return {RecordReader(load_.table, load_.use.uses, load_.missing, range, load_.use.design),
            order_, block, stride};
  }

  // From the beginning to the end; gives up keeping it when there is no more room.
  void read_through(std::int64_t room) {
    TableCursor blocks = cursor({}, block_records, block_records);
    std::vector<double> passing;
    std::size_t count = block_records;
    while (count == block_records) {
      if (keep_ && static_cast<std::int64_t>((store_.blocks() + 1) * store_.block_bytes()) > room) {
        keep_ = false;
        for (std::size_t b = 0; b < store_.blocks(); ++b)
          digest_.add(store_.block(b), block_records, block_records);
        store_.clear();
        passing.resize(columns_ * block_records);
      }
      count = blocks.next(keep_ ? store_.add() : passing.data());
      if (!keep_) digest_.add(passing.data(), block_records, count);
      records_ += static_cast<std::int64_t>(count);
    }
    flaws_ = blocks.flaws();
    check_flaws(flaws_, *load_.table, load_.use.uses, load_.use.design, load_.missing);
    dropped_ = flaws_.dropped;
  }

  // Reads and keeps it when there is room. A file that is read in every round anyway is not read here: who
  // reads it looks for flaws.
  void open_in_parts(std::int64_t room) {
    records_ = *load_.table->known_records();
    const auto bytes = static_cast<std::int64_t>(blocks() * store_.block_bytes());
    keep_ = bytes <= room && (!in_memory() || bytes <= worth_copying);
    if (!keep_) {
      if (in_memory()) look_through();
      return;
    }
    for (std::size_t b = 0; b < blocks(); ++b) store_.add();
    flaws_ = read_in_parts();
  }

  // What may not be there is found before the first round, which is quick where nothing is converted.
  void look_through() {
    find_plain();
    if (!plain_) {
      read_in_parts();
      return;
    }
    if (takes_nan() && plain_->is_exact()) return;
    if (!read_plain(false)) read_in_parts();
  }

  // Reads all numbers, to keep them or to look at them; whether nothing is there that may not be.
  bool read_plain(bool keep) const {
    std::atomic<bool> found = false;
    in_parts([&](std::size_t first, std::size_t last) {
      std::vector<double> passing(keep ? 0 : columns_ * block_records);
      for (std::size_t b = first; b < last && !found; ++b) {
        const std::size_t start = b * block_records;
        const PlainNumbers::Seen seen =
            plain_->read(start, std::min(block_records, static_cast<std::size_t>(records_) - start),
                         keep ? store_.block(b) : passing.data(), block_records);
        if (seen.inexact || (seen.nan && !takes_nan())) found = true;
      }
    });
    return !found;
  }

  std::size_t blocks() const {
    return (static_cast<std::size_t>(records_) + block_records - 1) / block_records;
  }

  // All parts at once, to its end, so that a message can count all flaws.
  Flaws read_in_parts() const {
    Flaws flaws(load_.use.uses.size(), load_.use.design.variables());
    std::mutex mutex;
    in_parts([&](std::size_t first, std::size_t last) {
      const Flaws found = read_blocks(first, last);
      const std::lock_guard lock(mutex);
      flaws.add(found);
    });
    check_flaws(flaws, *load_.table, load_.use.uses, load_.use.design, load_.missing);
    return flaws;
  }

  // Blocks first, ..., last - 1 by each thread.
  template <typename Work>
  void in_parts(const Work& work) const {
    const std::size_t blocks = this->blocks();
    const std::size_t parts = std::clamp<std::size_t>(
        blocks / 64, 1, static_cast<std::size_t>(std::max(load_.threads, 1)));
    in_parallel(parts, parts, [&](std::size_t part) {
      work(part * blocks / parts, (part + 1) * blocks / parts);
    });
  }

  Flaws read_blocks(std::size_t first, std::size_t last) const {
    const auto record = [](std::size_t block) {
      return static_cast<std::int64_t>(block * block_records);
    };
    TableCursor blocks = cursor({record(first), record(last)}, block_records, block_records);
    std::vector<double> passing(keep_ ? 0 : columns_ * block_records);
    for (std::size_t b = first; b < last; ++b) {
      const std::size_t count = blocks.next(keep_ ? store_.block(b) : passing.data());
      if (count != std::min(block_records, static_cast<std::size_t>(records_) - b * block_records))
        throw RunError(changed);
    }
    return blocks.flaws();
  }

  TableLoad load_;
  std::vector<std::size_t> order_;  // for each column of a block, which of the reader's it is
  BlockStore store_;
  Digest digest_;
  std::optional<PlainNumbers> plain_;
  bool keep_ = true;
  std::int64_t dropped_ = 0;
  Flaws flaws_;
};

// Says who it was when reading fails in the middle of a run, finds flaws, and sees when the table is not
// what it was.
class WatchedCursor : public RecordCursor {
 public:
  WatchedCursor(const LoadedTable& table, TableCursor cursor, std::int64_t left, std::size_t block,
                std::size_t stride)
      : table_(table),
        cursor_(std::move(cursor)),
        left_(left),
        block_(block),
        stride_(stride),
        digest_(table.columns()) {}

  std::size_t next(double* to) override {
    try {
      const std::size_t count = cursor_.next(to);
      table_.check(cursor_.flaws());
      if (count != std::min<std::size_t>(block_, static_cast<std::size_t>(left_)))
        throw RunError(changed);
      left_ -= static_cast<std::int64_t>(count);
      if (table_.digest() != nullptr) compare(to, count);
      return count;
    } catch (const RunError& error) {
      throw RunError(fmt::format("client {}: {}", table_.client(), error.what()));
    }
  }

 private:
  void compare(const double* block, std::size_t count) {
    digest_.add(block, stride_, count);
    if (left_ == 0 && (digest_ != *table_.digest() || !cursor_.at_end())) throw RunError(changed);
  }

  const LoadedTable& table_;
  TableCursor cursor_;
  std::int64_t left_;
  std::size_t block_;
  std::size_t stride_;
  Digest digest_;
};

// Numbers from where they lie. What may not be there is met again by who counts it and says so.
class PlainCursor : public RecordCursor {
 public:
  PlainCursor(const LoadedTable& table, std::int64_t first, std::size_t block, std::size_t stride)
      : table_(table), at_(first), block_(block), stride_(stride) {}

  std::size_t next(double* to) override {
    const std::int64_t count = std::min(static_cast<std::int64_t>(block_), table_.records() - at_);
    const PlainNumbers::Seen seen = table_.plain()->read(
        static_cast<std::size_t>(at_), static_cast<std::size_t>(count), to, stride_);
    if (seen.inexact || (seen.nan && !table_.takes_nan()))
      table_.watch(at_, count, block_, stride_)->next(to);
    at_ += count;
    return static_cast<std::size_t>(count);
  }

 private:
  const LoadedTable& table_;
  std::int64_t at_;
  std::size_t block_;
  std::size_t stride_;
};

std::unique_ptr<RecordCursor> LoadedTable::read(std::int64_t first, std::size_t block,
                                                std::size_t stride) const {
  if (keep_) return std::make_unique<MemoryCursor>(*this, first, block, stride);
  if (plain_) return std::make_unique<PlainCursor>(*this, first, block, stride);
  return watch(first, records_ - first, block, stride);
}

std::shared_ptr<const RecordTable> LoadedTable::laid_out() const {
  if (keep_ || !in_memory() || !can_split()) return nullptr;
  try {
    return std::make_shared<const LoadedTable>(*this, Copy{});
  } catch (const NoMemory&) {
    return nullptr;  // it is still where it is
  } catch (const RunError& error) {
    throw RunError(fmt::format("client {}: {}", load_.client, error.what()));
  }
}

std::unique_ptr<RecordCursor> LoadedTable::watch(std::int64_t first, std::int64_t count,
                                                 std::size_t block, std::size_t stride) const {
  // Records that are dropped have numbers too, so that where dropping is asked for all are read.
  const RecordRange range = can_split() ? RecordRange{first, first + count} : RecordRange{};
  try {
    return std::make_unique<WatchedCursor>(*this, cursor(range, block, stride), count, block,
                                           stride);
  } catch (const RunError& error) {
    throw RunError(fmt::format("client {}: {}", load_.client, error.what()));
  }
}

}  // namespace

LoadedRecords load_table(const TableLoad& load, std::int64_t& room) {
  auto table = std::make_shared<const LoadedTable>(load, room);
  const std::int64_t dropped = table->dropped();
  Flaws flaws = table->flaws();
  return {std::move(table), dropped, std::move(flaws)};
}

}  // namespace starfold
