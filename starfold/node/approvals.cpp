#include "starfold/node/approvals.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "starfold/base/error.h"
#include "starfold/base/json.h"
#include "starfold/base/utf8.h"
#include "starfold/node/disk.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_pending = 1000;
constexpr std::size_t most_bytes = 1 << 16;
constexpr std::size_t most_exposure = 30'000;
constexpr std::string_view ending = ".json";

bool is_hash(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string file_of(const std::string& folder, const std::string& agreement) {
  if (!is_hash(agreement)) throw Bug("a study is identified by a hash");
  return fmt::format("{}/{}{}", folder, agreement, ending);
}

// The objects in files named like studies, with those names.
std::vector<std::pair<std::string, nlohmann::json>> objects_in(const std::string& folder) {
  std::vector<std::pair<std::string, nlohmann::json>> objects;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.ends_with(ending) || !is_hash(name.substr(0, name.size() - ending.size()))) continue;
    try {
      nlohmann::json object = parse_json(read_regular(entry->path().string(), most_bytes), 4);
      if (object.is_object())
        objects.emplace_back(name.substr(0, name.size() - ending.size()), std::move(object));
    } catch (const RunError&) {
      continue;  // gone meanwhile, or none of ours
    }
  }
  return objects;
}

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string cut(const std::string& text, std::size_t most) {
  return printable_lines(text.size() <= most ? text : text.substr(0, most) + " ...");
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    throw RunError(fmt::format("{} cannot be removed: {}", printable(path), system_reason()));
}

}  // namespace

Approvals::Approvals(const std::string& folder)
    : pending_(folder + "/pending"), decided_(folder + "/approvals") {}

bool Approvals::ask(const PendingStudy& study) const {
  const std::string path = file_of(pending_, study.agreement);
  std::error_code error;
  if (fs::exists(path, error)) return true;
  const auto waiting = std::distance(fs::directory_iterator(pending_, error), {});
  if (!error && static_cast<std::size_t>(waiting) >= most_pending) return false;
  write_lasting(path, json_pretty({{"study", cut(study.study, 200)},
                                   {"peer", cut(study.peer, 200)},
                                   {"plan", cut(study.plan, 200)},
                                   {"time", study.time},
                                   {"reason", cut(study.reason, 1000)},
                                   {"exposure", cut(study.exposure, most_exposure)}}));
  return true;
}

std::vector<PendingStudy> Approvals::pending() const {
  std::vector<PendingStudy> studies;
  for (const auto& [agreement, object] : objects_in(pending_)) {
    studies.push_back({agreement, text_of(object, "study"), text_of(object, "peer"),
                       text_of(object, "plan"), text_of(object, "time"), text_of(object, "reason"),
                       text_of(object, "exposure")});
  }
  std::sort(studies.begin(), studies.end(), [](const PendingStudy& a, const PendingStudy& b) {
    return std::tie(a.time, a.agreement) < std::tie(b.time, b.agreement);
  });
  return studies;
}

void Approvals::decide(const OwnersDecision& decision) const {
  struct stat info {};
  if (::stat(decided_.c_str(), &info) == 0 && info.st_uid != ::geteuid())
    throw RunError(
        fmt::format("{} belongs to another user, as whom the node runs: decide as that "
                    "user",
                    printable(decided_)));
  write_lasting(
      file_of(decided_, decision.agreement),
      json_pretty({{"decision", decision.approved ? "approve" : "deny"}, {"time", decision.time}}));
}

std::vector<OwnersDecision> Approvals::decisions() const {
  std::vector<OwnersDecision> decisions;
  for (const auto& [agreement, object] : objects_in(decided_)) {
    const std::string word = text_of(object, "decision");
    if (word == "approve" || word == "deny")
      decisions.push_back({agreement, word == "approve", text_of(object, "time")});
  }
  std::sort(decisions.begin(), decisions.end(), [](const auto& a, const auto& b) {
    return std::tie(a.time, a.agreement) < std::tie(b.time, b.agreement);
  });
  return decisions;
}

void Approvals::taken_up(const OwnersDecision& decision) const {
  for (const OwnersDecision& now : decisions()) {
    // The owner may have said something else meanwhile, which is to be taken up next.
    if (now.agreement == decision.agreement &&
        (now.approved != decision.approved || now.time != decision.time))
      return;
  }
  remove_file(file_of(pending_, decision.agreement));
  remove_file(file_of(decided_, decision.agreement));
  sync_folder(decided_);
}

}  // namespace starfold
