// The documentation says what is: codes, programs and paths in it are checked.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "starfold/compile/compile.h"
#include "starfold/diag/render.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;
const fs::path root = STARFOLD_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Docs, ListEveryCode) {
  const std::string text = read(root / "docs" / "language.md");
  std::size_t rows = 0;
  for (const CodeInfo& code : all_codes()) {
    const std::string severity = code.severity == Severity::error ? "error" : "warning";
    const std::string row =
        "| " + std::string(code.id) + " | " + severity + " | " + std::string(code.meaning) + " |\n";
    EXPECT_NE(text.find(row), std::string::npos) << "docs/language.md lacks the row\n" << row;
    ++rows;
  }
  const std::regex any("\n\\| [EW][0-9]{4} \\|");
  EXPECT_EQ(static_cast<std::size_t>(
                std::distance(std::sregex_iterator(text.begin(), text.end(), any), {})),
            rows);
}

// Blocks marked `fold` are complete programs without a mistake.
TEST(Docs, ProgramsAreRight) {
  std::size_t programs = 0;
  for (const auto& entry : fs::directory_iterator(root / "docs")) {
    if (entry.path().extension() != ".md") continue;
    const std::string text = read(entry.path());
    const std::string open = "\n```fold\n";
    for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at + 1)) {
      const std::size_t begin = at + open.size();
      const Compilation compiled =
          compile(entry.path().filename().string(),
                  text.substr(begin, text.find("\n```", begin) + 1 - begin));
      EXPECT_TRUE(compiled.diagnostics.items().empty())
          << render_text(compiled.diagnostics, compiled.sources);
      ++programs;
    }
  }
  EXPECT_GT(programs, 5u);
}

TEST(Docs, PathsExist) {
  const std::string text = read(root / "docs" / "theory.md");
  const std::regex path("(starfold|tests)/[A-Za-z0-9_/]+(\\.[a-z]+)?");
  for (auto found = std::sregex_iterator(text.begin(), text.end(), path);
       found != std::sregex_iterator(); ++found) {
    const std::string named = found->str();
    const bool pattern = named.back() == '_';  // starfold/ops/meaning_*.cpp
    EXPECT_TRUE(pattern || fs::exists(root / named)) << "docs/theory.md: " << named;
  }
}

}  // namespace
}  // namespace starfold
