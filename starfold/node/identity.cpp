#include "starfold/node/identity.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

#include <cstring>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/node/disk.h"

namespace starfold {
namespace {

constexpr std::string_view title = "starfold node key 1\n";

std::string file_of(const NodeConfig& config) { return config.folder + "/identity"; }

void require_private(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0)
    throw RunError(fmt::format("{} cannot be read: {}", printable(path), system_reason()));
  if (!S_ISREG(info.st_mode) || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw RunError(
        fmt::format("{}, the key of this node, must be a file for its owner alone; `chmod 600` it, "
                    "and make a new one if others may have read it",
                    printable(path)));
}

// The file's text, wiped at the end of a scope.
struct Text {
  std::string text;
  ~Text() { OPENSSL_cleanse(text.data(), text.size()); }
};

std::shared_ptr<secure::Secret> read(const std::string& path) {
  require_private(path);
  const Text file{read_regular(path, title.size() + secure::Secret::size)};
  if (file.text.size() != title.size() + secure::Secret::size || !file.text.starts_with(title))
    throw RunError(fmt::format("{} is not the key of a node", printable(path)));
  auto secret = std::make_shared<secure::Secret>();
  std::memcpy(secret->data(), file.text.data() + title.size(), secure::Secret::size);
  return secret;
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

}  // namespace

secure::Identity load_identity(const NodeConfig& config) {
  const std::string path = file_of(config);
  if (exists(path)) return read(path);
  const secure::Secret fresh = secure::Secret::random();
  Text file{std::string(title)};
  file.text.append(reinterpret_cast<const char*>(fresh.data()), secure::Secret::size);
  write_lasting(path, file.text);
  return read(path);
}

std::optional<secure::Key> known_key(const NodeConfig& config) {
  if (!exists(file_of(config))) return std::nullopt;
  return secure::signing_key(*read(file_of(config)));
}

}  // namespace starfold
