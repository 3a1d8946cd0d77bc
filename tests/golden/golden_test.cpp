// Programs with their expectations inside.
//
// Every tests/golden/**/*.fold is checked. The lines at its end that start with `#!` hold what must
// come out: the diagnostics as `starfold check` shows them, then, for a program without errors, the
// type of every name. A file called fail_* must fail, any other must not. A first line `#! --base`
// asks for the base signature only, `#! --privacy` (or `#! --privacy --unit client`) for what bounds each
// release. STARFOLD_UPDATE_GOLDEN=1 rewrites the
// expectations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "starfold/compile/compile.h"
#include "starfold/diag/render.h"
#include "starfold/ops/standard.h"
#include "starfold/privacy/report.h"
#include "starfold/syntax/format.h"
#include "starfold/syntax/parser.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

const fs::path root = fs::path(STARFOLD_SOURCE_DIR) / "tests" / "golden";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A golden file cut in two.
struct Golden {
  fs::path path;
  bool must_fail = false;
  bool base = false;
  std::optional<privacy::Unit> privacy;
  std::string program;
  std::string expected;
};

constexpr std::string_view mark = "#!";

Golden load(const fs::path& path) {
  Golden golden;
  golden.path = path;
  golden.must_fail = path.filename().string().rfind("fail_", 0) == 0;
  const std::string text = read(path);
  golden.base = text.rfind("#! --base\n", 0) == 0;
  if (text.rfind("#! --privacy\n", 0) == 0) golden.privacy = privacy::Unit::record;
  if (text.rfind("#! --privacy --unit client\n", 0) == 0) golden.privacy = privacy::Unit::client;
  const bool asks = golden.base || golden.privacy.has_value();
  // The expectation starts at the first line of the last run of marked lines.
  std::size_t cut = text.size();
  while (cut > 0) {
    const std::size_t line = text.rfind('\n', cut - 2) + 1;  // npos + 1 is 0
    if (text.compare(line, mark.size(), mark) != 0 || (line == 0 && asks)) break;
    cut = line;
  }
  golden.program = text.substr(0, cut);
  golden.expected = text.substr(cut);
  return golden;
}

std::vector<fs::path> golden_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".fold") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

CheckOptions options_of(const Golden& golden) {
  CheckOptions options;
  options.base = golden.base;
  // Modules are found beside the program, without the expectations at their ends.
  options.load =
      [&](std::string_view module) -> std::optional<std::pair<std::string, std::string>> {
    const fs::path path = golden.path.parent_path() / (std::string(module) + ".fold");
    if (!fs::exists(path)) return std::nullopt;
    return std::make_pair(path.filename().string(), load(path).program);
  };
  return options;
}

// With privacy also what cannot be released; `table` is what can.
Compilation compile_golden(const Golden& golden, std::string text, std::string* table = nullptr) {
  Compilation compiled =
      compile(golden.path.filename().string(), std::move(text), options_of(golden));
  if (!golden.privacy || !compiled.ok()) return compiled;
  const Plan plan = make_plan(compiled.program, {true, true});
  const auto found = privacy::sensitivities(plan, *golden.privacy, privacy::Neighbours::add_remove,
                                            privacy::with_defaults(plan.program));
  privacy::report_unbounded(plan, found, compiled.diagnostics);
  if (table != nullptr) *table = privacy::sensitivity_text(plan, compiled.sources, found);
  return compiled;
}

// As checked: derivatives are not yet written out.
ir::Program check_golden(const Golden& golden) {
  SourceMap sources;
  Diagnostics diagnostics;
  const std::uint32_t file = sources.add(golden.path.filename().string(), golden.program);
  const ast::File parsed = parse(sources, file, diagnostics);
  return check(sources, parsed, options_of(golden), diagnostics);
}

std::string types_of(const Compilation& compiled) {
  std::string text;
  for (const ir::NameType& row : compiled.program.name_types) {
    text += row.name + " : " + row.type.to_string() + "\n";
  }
  return text;
}

std::string actual(const Compilation& compiled, const std::string& table) {
  std::string text = render_text(compiled.diagnostics, compiled.sources);
  if (compiled.ok()) text += (text.empty() ? "" : "\n") + types_of(compiled);
  if (!table.empty()) text += "\n" + table;
  if (text.empty()) text = "nothing to say\n";
  std::string marked;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    marked += std::string(mark) + (line.empty() ? "" : " ") + line + "\n";
  }
  return marked;
}

class GoldenTest : public testing::TestWithParam<fs::path> {};

TEST_P(GoldenTest, SaysWhatItMust) {
  const Golden golden = load(GetParam());
  std::string table;
  const Compilation compiled = compile_golden(golden, golden.program, &table);
  EXPECT_EQ(compiled.ok(), !golden.must_fail)
      << render_text(compiled.diagnostics, compiled.sources);
  const std::string found = actual(compiled, table);
  if (std::getenv("STARFOLD_UPDATE_GOLDEN") != nullptr) {
    if (found != golden.expected)
      std::ofstream(golden.path, std::ios::binary) << golden.program << found;
    return;
  }
  if (found == golden.expected) return;
  const std::size_t same = static_cast<std::size_t>(
      std::mismatch(found.begin(), found.end(), golden.expected.begin(), golden.expected.end())
          .first -
      found.begin());
  const auto line = [&](const std::string& text) {
    const std::size_t begin = same == 0 ? 0 : text.rfind('\n', same - 1) + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  ADD_FAILURE() << golden.path.string() << "\nexpected: " << line(golden.expected)
                << "\nfound:    " << line(found) << "\n\nAll that came out:\n"
                << found << "\nIf this is right, run `make golden-update`.";
}

// Layout does not change meaning, and laying out twice changes nothing.
TEST_P(GoldenTest, SurvivesFormatting) {
  const Golden golden = load(GetParam());
  const auto formatted = [](const std::string& text) {
    SourceMap sources;
    Diagnostics diagnostics;
    const std::uint32_t file = sources.add("program.fold", text);
    const ast::File parsed = parse(sources, file, diagnostics);
    return diagnostics.has_errors() ? text : format(sources, parsed);
  };
  const std::string once = formatted(golden.program);
  EXPECT_EQ(formatted(once), once);
  const Compilation before = compile_golden(golden, golden.program);
  const Compilation after = compile_golden(golden, once);
  EXPECT_EQ(types_of(after), types_of(before));
  EXPECT_EQ(after.ok(), before.ok());
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) {
  std::string name = fs::relative(info.param, root).replace_extension().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, testing::ValuesIn(golden_files()), test_name);

// Every error has a name, and a name that no program provokes fails the build.
TEST(GoldenCoverage, EveryCodeOccurs) {
  // A golden file is short UTF-8 text; these are tested in tests/unit.
  const std::set<std::string_view> elsewhere = {"E0102", "E0106"};
  std::set<std::string> seen;
  for (const fs::path& path : golden_files()) {
    const Golden golden = load(path);
    const Compilation compiled = compile_golden(golden, golden.program);
    for (const Diagnostic& diagnostic : compiled.diagnostics.items())
      seen.emplace(info(diagnostic.code).id);
  }
  for (const CodeInfo& code : all_codes()) {
    if (elsewhere.count(code.id) == 0) {
      EXPECT_TRUE(seen.count(std::string(code.id)) != 0) << code.id << ": " << code.meaning;
    } else {
      EXPECT_TRUE(seen.count(std::string(code.id)) == 0) << code.id << " is no longer an exception";
    }
  }
}

TEST(GoldenCoverage, EveryOperationOccurs) {
  std::set<const Op*> used;
  for (const fs::path& path : golden_files()) {
    const Golden golden = load(path);
    if (golden.must_fail) continue;
    const ir::Program program = check_golden(golden);
    for (ir::NodeId id = 0; id < program.graph.size(); ++id) used.insert(program.graph[id].op);
  }
  for (const auto& op : standard_signature().ops()) {
    EXPECT_TRUE(used.count(op.get()) != 0) << op->name << " (" << to_string(op->family) << ")";
  }
}

}  // namespace
}  // namespace starfold
