#include "starfold/study/output/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/arrays/npy.h"
#include "starfold/page/pages.h"
#include "starfold/study/inputs.h"
#include "starfold/study/output/results.h"
#include "starfold/study/output/seal.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view aside_mark = ".partial-";

fs::path target_of(const std::string& folder) {
  const fs::path path = fs::weakly_canonical(fs::absolute(folder));
  return path.has_filename() ? path : path.parent_path();  // results/ is results
}

fs::path aside_of(const fs::path& target) {
  return fmt::format("{}{}{}", target.string(), aside_mark, getpid());
}

// RunError unless there is nothing at the target, an empty folder, or earlier results as they were written.
void require_replaceable(const fs::path& target, const std::string& folder) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(target, error))) return;
  const std::string stranger =
      fs::is_directory(target, error) ? stranger_in(target) : target.filename().string();
  if (stranger.empty()) return;
  throw RunError(fmt::format(
      "{} exists and holds something other than earlier results as they were written ({}); choose "
      "another folder",
      folder, printable(stranger)));
}

// Removes a folder of ours, also where its owner may not write into it.
void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, ignored);
  fs::remove_all(folder, ignored);
}

// A run that was killed while it wrote leaves its folder. Its number says whether it still runs.
void remove_abandoned(const fs::path& target) {
  const std::string prefix = target.filename().string() + std::string(aside_mark);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(target.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    const std::string number = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
    if (number.empty() || number.size() > 9 ||
        number.find_first_not_of("0123456789") != std::string::npos || !entry.is_directory(error))
      continue;
    const auto process = static_cast<pid_t>(std::stol(number));
    const bool gone = process > 0 && kill(process, 0) != 0 && errno == ESRCH;
    if (gone && only_result_files(entry.path())) remove_folder(entry.path());
  }
}

// The name of a client as that of a folder: one step down, whatever it is called, and its own.
std::string folder_name(const std::string& client, std::set<std::string>& taken) {
  std::string name = client;
  for (char& c : name) {
    if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = '_';
  }
  if (name.empty() || name == "." || name == "..") name = "_" + name;
  constexpr std::size_t longest = 200;
  name = name.substr(0, longest);
  std::string own = name;
  for (int number = 2; !taken.insert(own).second; ++number)
    own = fmt::format("{}_{}", name, number);
  return own;
}

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

// What people may do with a file or folder stays when another takes its place.
void keep_permissions(const fs::path& from, const fs::path& to) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) {
    const fs::path fresh = to / entry.path().filename();
    if (fs::exists(fresh, error)) fs::permissions(fresh, entry.status().permissions(), error);
  }
  const fs::perms before = fs::status(from, error).permissions();
  if (!error) fs::permissions(to, before, error);
}

// Puts a folder into the place of another, or of none.
void move_into_place(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(to, error)) {
    fs::rename(from, to);
    return;
  }
  keep_permissions(to, from);
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
    remove_folder(old);
  }
  remove_folder(from);
}

}  // namespace

void check_results_folder(const Study& study, const CompiledProgram& program) {
  const std::string& folder = study.out;
  const fs::path target = target_of(folder);
  const std::string input = input_at(target, input_files(study, program));
  if (!input.empty()) {
    throw RunError(
        fmt::format("{} is read by this run, and results in {} would take its place; choose "
                    "another folder",
                    printable(input), folder));
  }
  require_replaceable(target, folder);
  remove_abandoned(target);
  // A try is the only sure way to know, and better made before a long run than after it.
  std::error_code error;
  const fs::path aside = aside_of(target);
  std::vector<fs::path> made = {aside};  // folders that are not there yet, the innermost first
  while (made.back().has_parent_path() && !fs::exists(made.back().parent_path(), error))
    made.push_back(made.back().parent_path());
  fs::create_directories(aside, error);
  const std::error_code failure = error;
  for (const fs::path& folder_made : made) fs::remove(folder_made, error);
  if (failure) throw RunError(fmt::format("{} cannot be written: {}", folder, failure.message()));
}

void write_results(const StudyRun& run) {
  const std::string& folder = run.study.out;
  const fs::path target = target_of(folder);
  const fs::path aside = aside_of(target);
  std::map<std::string, std::string> files = {
      {"outputs.json", outputs_file(run)}, {"report.html", report_html(run.report, *run.program)}};
  for (const auto& [name, tensor] : run.report.results.outputs)
    files[name + ".npy"] = format_npy(tensor);
  std::set<std::string> taken;
  for (std::size_t i = 0; i < run.report.clients.size() && !run.report.results.kept.empty(); ++i) {
    const std::string own = folder_name(run.report.clients[i].name, taken);
    for (const auto& [name, parts] : run.report.results.kept)
      files[fmt::format("clients/{}/{}.npy", own, name)] = format_npy(parts.at(i));
  }
  files["run.json"] = record_file(run, hashes_of(files));
  try {
    fs::create_directories(aside);
    for (const auto& [name, content] : files) {
      fs::create_directories((aside / name).parent_path());
      write_file(aside / name, content);
    }
    require_replaceable(target, folder);  // someone may have put something there meanwhile
    move_into_place(aside, target);
  } catch (const fs::filesystem_error& failure) {
    remove_folder(aside);
    throw RunError(fmt::format("{} cannot be written: {}", folder, failure.code().message()));
  } catch (const RunError&) {
    remove_folder(aside);
    throw;
  }
}

}  // namespace starfold
