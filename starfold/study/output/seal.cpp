#include "starfold/study/output/seal.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
#include "starfold/base/json.h"
#include "starfold/base/utf8.h"
#include "starfold/study/output/files.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

constexpr const char* record_name = "run.json";

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string page_seal(std::string_view html) {
  return fmt::format("<!-- written by starfold: {} -->\n", sha256_hex(html));
}

bool is_sealed_page(const std::string& text) {
  const std::size_t length = page_seal("").size();
  if (text.size() < length) return false;
  const std::string_view html(text.data(), text.size() - length);
  return text.ends_with(page_seal(html));
}

// The hashes that an untouched run.json holds, its own among them; nothing where it is none.
std::map<std::string, std::string> recorded_hashes(const fs::path& folder) {
  const std::string text = read_all(folder / record_name);
  nlohmann::json record = parse_json(text);
  if (!record.is_object() || !record.contains("files") || !record.contains("seal")) return {};
  const nlohmann::json seal = record["seal"];
  record.erase("seal");
  if (seal != sha256_hex(json_pretty(record))) return {};
  std::map<std::string, std::string> hashes = record["files"];
  hashes[record_name] = sha256_hex(text);
  return hashes;
}

}  // namespace

std::map<std::string, std::string> hashes_of(const std::map<std::string, std::string>& files) {
  std::map<std::string, std::string> hashes;
  for (const auto& [name, content] : files) hashes[name] = sha256_hex(content);
  return hashes;
}

std::string sealed_record(nlohmann::json record, const std::map<std::string, std::string>& hashes) {
  record["files"] = hashes;
  // The seal is that of what a reader will have: names that were no text have been replaced.
  record = parse_json(json_pretty(record));
  record["seal"] = sha256_hex(json_pretty(record));
  return json_pretty(record);
}

std::string stranger_in(const fs::path& folder) {
  std::error_code error;
  if (fs::is_empty(folder, error)) return {};
  const std::map<std::string, std::string> hashes = recorded_hashes(folder);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
    const std::string name = entry.path().lexically_relative(folder).generic_string();
    const auto found = hashes.find(name);
    // A folder is ours when a file of ours lies in it.
    const auto inside = hashes.lower_bound(name + "/");
    if (!entry.is_symlink(error) && entry.is_directory(error) && inside != hashes.end() &&
        inside->first.starts_with(name + "/"))
      continue;
    if (found == hashes.end() || entry.is_symlink(error) || !entry.is_regular_file(error) ||
        sha256_hex(read_all(entry.path())) != found->second)
      return name;
  }
  return error ? error.message() : "";
}

bool only_result_files(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
    const fs::path name = entry.path().filename();
    const fs::path within = entry.path().lexically_relative(folder);
    if (!entry.is_symlink(error) && entry.is_directory(error) && *within.begin() == "clients")
      continue;
    const bool ours = name == record_name || name == "outputs.json" || name == "report.html" ||
                      name.extension() == ".npy";
    if (!ours || entry.is_symlink(error) || !entry.is_regular_file(error)) return false;
  }
  return !error;
}

void write_page(const std::string& path, const std::string& html) {
  std::error_code error;
  const bool regular = fs::is_regular_file(path, error);
  const std::string before = regular ? read_all(path) : "";
  if (!before.empty() && !is_sealed_page(before))
    throw RunError(fmt::format(
        "{} exists and is not a page as Starfold wrote it; choose another file", printable(path)));
  const std::string page = html + page_seal(html);
  if (regular) {
    replace_text(path, page);
    return;
  }
  const bool fresh = fs::symlink_status(path, error).type() == fs::file_type::not_found;
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out << page;
  out.flush();
  if (out) return;
  const std::string reason = std::generic_category().message(errno);
  if (fresh) fs::remove(path, error);  // half a page is none
  throw RunError(fmt::format("{} cannot be written: {}", printable(path), reason));
}

}  // namespace starfold
