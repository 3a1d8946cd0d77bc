// Records that come from a table instead of arrays: column blocks, kept in memory or read again in every
// round. Where they are read from is not the engine's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace starfold {

// Reads blocks of records, one after the other.
class RecordCursor {
 public:
  virtual ~RecordCursor() = default;
  // The next block into `to`, column after column; how many records it has. RunError when the table
  // cannot be read; a cursor that has failed or ended is of no more use.
  virtual std::size_t next(double* to) = 0;
};

class RecordTable {
 public:
  // What a kept block holds.
  static constexpr std::size_t kept_records = 512;

  // The columns of an input stand beside each other in every block.
  struct Place {
    std::size_t first = 0;
    std::size_t count = 0;
  };

  virtual ~RecordTable() = default;
  std::int64_t records() const { return records_; }
  // How many columns a block has, for all inputs together.
  std::size_t columns() const { return columns_; }
  const std::map<std::string, Place, std::less<>>& inputs() const { return inputs_; }

  // A block in memory, its columns kept_records apart; null when the table is read again every time.
  virtual const double* kept(std::size_t block) const = 0;
  // Whether reading can begin anywhere.
  virtual bool seekable() const = 0;
  // Reads from record `first` on (0 unless seekable), `block` records at a time, columns `stride` apart.
  virtual std::unique_ptr<RecordCursor> read(std::int64_t first, std::size_t block,
                                             std::size_t stride) const = 0;
  // The same records in kept blocks, for who reads them often; null when it has no such copy to give.
  virtual std::shared_ptr<const RecordTable> laid_out() const { return nullptr; }

 protected:
  std::int64_t records_ = 0;
  std::size_t columns_ = 0;
  std::map<std::string, Place, std::less<>> inputs_;
};

}  // namespace starfold
