#include "starfold/node/ledger/fingerprint.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
#include "starfold/base/utf8.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

std::string file_hash(const fs::path& path) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  std::ifstream in(path, std::ios::binary);
  if (!context || !in || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1)
    throw RunError(fmt::format("{} cannot be read", printable(path.string())));
  std::vector<char> piece(1 << 20);
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    EVP_DigestUpdate(context.get(), piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) throw RunError(fmt::format("{} cannot be read", printable(path.string())));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_DigestFinal_ex(context.get(), digest, &length);
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string path_hash(const std::string& path) {
  if (!fs::is_directory(path)) return file_hash(path);
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file()) files[entry.path().filename().string()] = file_hash(entry.path());
  }
  std::string all;
  for (const auto& [name, hash] : files) all += hash + " " + name + "\n";
  return sha256_hex(all);
}

}  // namespace

std::string data_hash(const TableLocation& location) {
  // A database file may be followed by the name of one of its tables.
  const std::string file =
      fs::exists(location.path) ? location.path : location.path.substr(0, location.path.rfind('#'));
  const std::string content = file.empty() ? "" : path_hash(file);
  const std::string dialect = dialect_text(location.dialect);
  if (location.query.empty() && dialect.empty()) return content;
  return sha256_hex(location.query + "\n" + (dialect.empty() ? "" : dialect + "\n") + content);
}

}  // namespace starfold
