#include "starfold/study/inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/utf8.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

bool lies_in(const fs::path& file, const fs::path& folder) {
  const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end == folder.end();
}

}  // namespace

std::vector<fs::path> input_files(const Study& study, const CompiledProgram& program) {
  std::vector<fs::path> files;
  std::error_code ignored;
  const auto add = [&](const fs::path& path) {
    if (!path.empty() && fs::exists(path, ignored)) files.push_back(path);
  };
  add(study.file);
  add(study.program);
  for (const auto& [name, text] : program.text.modules)
    add(fs::path(study.program).parent_path() / (name + ".fold"));
  for (const StudyClient& client : study.clients) add(table_file(client.data.path));
  for (const auto& [name, file] : study.value_files) add(file);
  return files;
}

std::string input_at(const fs::path& target, const std::vector<fs::path>& inputs) {
  std::error_code ignored;
  const fs::path real = fs::weakly_canonical(target, ignored);
  for (const fs::path& input : inputs) {
    if (fs::equivalent(target, input, ignored) ||
        lies_in(fs::weakly_canonical(input, ignored), real))
      return input.string();
  }
  return {};
}

void require_no_input(const std::string& target, const Study& study,
                      const CompiledProgram& program) {
  if (!input_at(target, input_files(study, program)).empty())
    throw StudyError(fmt::format("{} is read here and is not overwritten; choose another file",
                                 printable(target)));
}

}  // namespace starfold
