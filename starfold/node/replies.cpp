#include "starfold/node/replies.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
#include "starfold/base/utf8.h"
#include "starfold/node/disk.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t id_digits = 32;

// Of two files of a run, which one a request's reply is in.
std::size_t slot_of(std::int64_t sequence) { return static_cast<std::size_t>(sequence & 1); }

}  // namespace

bool is_run_id(std::string_view text) {
  return text.size() == id_digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Replies::Replies(std::string folder, ReplyLimits limits)
    : folder_(std::move(folder)), limits_(limits) {
  struct Found {
    fs::file_time_type time;
    std::string run;
    std::size_t slot;
    std::int64_t bytes;
  };
  std::vector<Found> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code gone;
    if (name.size() != id_digits + 2 || !is_run_id(name.substr(0, id_digits)) ||
        (!name.ends_with(".0") && !name.ends_with(".1")) || !entry->is_regular_file(gone))
      continue;
    const auto bytes = static_cast<std::int64_t>(entry->file_size(gone));
    found.push_back({entry->last_write_time(gone), name.substr(0, id_digits),
                     name.back() == '1' ? std::size_t{1} : 0, bytes});
  }
  if (error)
    throw RunError(fmt::format("{} cannot be read: {}", printable(folder_), error.message()));
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.time < b.time; });
  for (const Found& file : found) {
    Run& run = runs_[file.run];
    run.bytes[file.slot] = file.bytes;
    bytes_ += file.bytes;
    touch(file.run, run);
  }
  make_room();
}

std::string Replies::path(const std::string& run, std::int64_t sequence) const {
  if (!is_run_id(run) || sequence < 0) throw Bug("a reply of something that is no run");
  return fmt::format("{}/{}.{}", folder_, run, slot_of(sequence));
}

void Replies::touch(const std::string& run, Run& kept) {
  order_.erase(kept.stamp);
  kept.stamp = ++stamp_;
  order_.emplace(kept.stamp, run);
}

void Replies::keep(const std::string& run, std::int64_t sequence, std::string_view reply) {
  const std::string file_path = path(run, sequence);
  const bool fresh = ::access(file_path.c_str(), F_OK) != 0;
  const Descriptor file(
      ::open(file_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!file || !write_all(file.number(), reply) ||
      ::ftruncate(file.number(), static_cast<off_t>(reply.size())) != 0 ||
      ::fdatasync(file.number()) != 0)
    throw RunError(fmt::format("a reply cannot be kept in {}: {}; nothing leaves this node",
                               printable(folder_), system_reason()));
  if (fresh) sync_folder(folder_);
  Run& kept = runs_[run];
  std::int64_t& bytes = kept.bytes[slot_of(sequence)];
  bytes_ += static_cast<std::int64_t>(reply.size()) - bytes;
  bytes = static_cast<std::int64_t>(reply.size());
  touch(run, kept);
  make_room();
}

std::optional<std::string> Replies::find(const std::string& run, std::int64_t sequence,
                                         const std::string& hash) const {
  try {
    std::string reply = read_regular(path(run, sequence), static_cast<std::size_t>(limits_.bytes));
    if (sha256_hex(reply) == hash) return reply;
  } catch (const RunError&) {
    // Gone or damaged: then there is none to give.
  }
  return std::nullopt;
}

std::optional<std::string> Replies::read(const std::string& run, std::int64_t sequence) const {
  try {
    return read_regular(path(run, sequence), static_cast<std::size_t>(limits_.bytes));
  } catch (const RunError&) {
    return std::nullopt;
  }
}

void Replies::make_room() {
  while (runs_.size() > 1 && (runs_.size() > limits_.runs || bytes_ > limits_.bytes)) {
    const std::string oldest = order_.begin()->second;
    for (const std::int64_t slot : {0, 1}) ::unlink(path(oldest, slot).c_str());
    const Run& run = runs_.at(oldest);
    bytes_ -= run.bytes[0] + run.bytes[1];
    runs_.erase(oldest);
    order_.erase(order_.begin());
  }
}

}  // namespace starfold
