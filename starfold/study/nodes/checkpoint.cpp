#include "starfold/study/nodes/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
#include "starfold/base/utf8.h"

namespace starfold {
namespace {

constexpr std::string_view title = "starfold checkpoint 1\n";
constexpr std::size_t hash_length = 64;
constexpr std::size_t longest = std::size_t{1} << 32;

}  // namespace

Checkpoint::Checkpoint(std::string folder) : folder_(std::move(folder)) {
  make_private_folder(folder_);
  lock_ = Descriptor(open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_)
    throw RunError(fmt::format("{} cannot be written: {}", printable(folder_), system_reason()));
  if (flock(lock_.number(), LOCK_EX | LOCK_NB) != 0)
    throw RunError(fmt::format("another run keeps its checkpoint in {}", printable(folder_)));
}

std::optional<Bytes> Checkpoint::read() const {
  if (!std::filesystem::exists(file())) return std::nullopt;
  const std::string text = read_regular(file(), longest);
  if (text.size() < title.size() + hash_length || !text.starts_with(title))
    throw RunError(fmt::format("{} is not a checkpoint", printable(file())));
  Bytes state = text.substr(title.size() + hash_length);
  if (text.substr(title.size(), hash_length) != sha256_hex(state))
    throw RunError(fmt::format("{} is damaged", printable(file())));
  return state;
}

void Checkpoint::write(const Bytes& state) const {
  write_lasting(file(), fmt::format("{}{}{}", title, sha256_hex(state), state));
}

void Checkpoint::put_aside() const {
  std::error_code ignored;
  std::filesystem::rename(file(), file() + ".before", ignored);
}

void Checkpoint::finish() {
  unlink(file().c_str());
  unlink((folder_ + "/lock").c_str());
  rmdir(folder_.c_str());
}

}  // namespace starfold
