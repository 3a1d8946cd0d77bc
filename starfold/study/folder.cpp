#include "starfold/study/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "starfold/base/error.h"
#include "starfold/data/npy.h"
#include "starfold/page/pages.h"
#include "starfold/study/results.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, const std::string& content) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out << content;
  out.close();
  if (!out) {
    const std::error_code reason(errno != 0 ? errno : EIO, std::generic_category());
    throw fs::filesystem_error("write", path, reason);
  }
}

// Whether results may go where something is already: an empty folder, or earlier results.
bool replaceable(const fs::path& target) {
  std::error_code error;
  if (!fs::is_directory(target, error)) return false;
  if (fs::is_empty(target, error)) return true;
  for (const fs::directory_entry& entry : fs::directory_iterator(target, error)) {
    const fs::path name = entry.path().filename();
    const bool ours = name == "run.json" || name == "outputs.json" || name == "report.html" ||
                      name.extension() == ".npy";
    if (!ours || !entry.is_regular_file(error)) return false;
  }
  return !error && fs::exists(target / "run.json", error);
}

fs::path target_of(const std::string& folder) {
  const fs::path path = fs::weakly_canonical(fs::absolute(folder));
  return path.has_filename() ? path : path.parent_path();  // results/ is results
}

fs::path aside_of(const fs::path& target) {
  return target.string() + fmt::format(".partial-{}", getpid());
}

// Puts a folder into the place of another, or of none.
void move_into_place(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(to, error)) {
    fs::rename(from, to);
    return;
  }
  // Exchanged in one step, so that there is always one whole set of results.
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    const fs::path old = from.string() + "-old";
    fs::rename(to, old);
    fs::rename(from, to, error);
    if (error) {
      std::error_code ignored;
      fs::rename(old, to, ignored);
      throw fs::filesystem_error("rename", to, error);
    }
    fs::remove_all(old, error);
  }
  fs::remove_all(from, error);
}

}  // namespace

void check_results_folder(const std::string& folder) {
  const fs::path target = target_of(folder);
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error)) && !replaceable(target)) {
    throw RunError(fmt::format(
        "{} exists and holds something other than earlier results; choose another folder", folder));
  }
  // A try is the only sure way to know, and better made before a long run than after it.
  const fs::path aside = aside_of(target);
  std::vector<fs::path> made = {aside};  // folders that are not there yet, the innermost first
  while (made.back().has_parent_path() && !fs::exists(made.back().parent_path(), error))
    made.push_back(made.back().parent_path());
  fs::create_directories(aside, error);
  const std::error_code failure = error;
  for (const fs::path& folder_made : made) fs::remove(folder_made, error);
  if (failure) throw RunError(fmt::format("{} cannot be written: {}", folder, failure.message()));
}

void write_results(const std::string& folder, const StudyRun& run) {
  const fs::path target = target_of(folder);
  const fs::path aside = aside_of(target);
  std::error_code error;
  try {
    fs::create_directories(aside);
    write_file(aside / "outputs.json", outputs_file(run));
    for (const auto& [name, tensor] : run.report.results.outputs)
      write_file(aside / (name + ".npy"), format_npy(tensor));
    write_file(aside / "run.json", record_file(run));
    write_file(aside / "report.html", report_html(run.report, *run.program));
    move_into_place(aside, target);
  } catch (const fs::filesystem_error& failure) {
    fs::remove_all(aside, error);
    throw RunError(fmt::format("{} cannot be written: {}", folder, failure.code().message()));
  }
}

}  // namespace starfold
