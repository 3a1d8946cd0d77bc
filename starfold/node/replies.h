// The last replies of each run, kept so that a request that comes again gets the same bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace starfold {

struct ReplyLimits {
  std::size_t runs = 1000;
  std::int64_t bytes = std::int64_t{1} << 30;
};

// A run's identity: 32 hexadecimal digits, and so never a path.
bool is_run_id(std::string_view text);

// Each run has two files, used in turn: while a reply is written over the one before the last, the last one stays whole. Not for
// several threads at once.
class Replies {
 public:
  // Of the folder, which is there. RunError when it cannot be read.
  explicit Replies(std::string folder, ReplyLimits limits = {});

  // Keeps the reply to a run's request of this number; when this returns, it is on the disk. To be called before the line of the
  // ledger that names it is written. RunError when it cannot be kept: then nothing may leave. Runs that were longest without a
  // reply are removed when there are too many.
  void keep(const std::string& run, std::int64_t sequence, std::string_view reply);

  // The reply to that request if it is the one with this hash, as the ledger has it; else none.
  std::optional<std::string> find(const std::string& run, std::int64_t sequence,
                                  const std::string& hash) const;
  // The same, whatever it is; none when that of this number is not there.
  std::optional<std::string> read(const std::string& run, std::int64_t sequence) const;

 private:
  struct Run {
    std::int64_t bytes[2] = {0, 0};
    std::int64_t stamp = 0;
  };

  std::string path(const std::string& run, std::int64_t sequence) const;
  void touch(const std::string& run, Run& kept);
  void make_room();

  std::string folder_;
  ReplyLimits limits_;
  std::unordered_map<std::string, Run> runs_;
  std::map<std::int64_t, std::string> order_;  // the oldest first
  std::int64_t stamp_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace starfold
