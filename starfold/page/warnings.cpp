// Conditions that did not hold, and results without a value, in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "starfold/page/labels.h"
#include "starfold/page/pages.h"
#include "starfold/runtime/demand.h"

namespace starfold {
namespace {

// "beta_se, t (2 of 3)": the results that hold nan; empty when none does.
std::string without_value(const Results& results) {
  std::vector<std::string> names;
  for (const auto& [name, value] : results.outputs) {
    const auto count = std::count_if(value.data.begin(), value.data.end(),
                                     [](double number) { return std::isnan(number); });
    if (count == 0) continue;
    const bool all = static_cast<std::size_t>(count) == value.data.size();
    names.push_back(all ? name : fmt::format("{} ({} of {})", name, count, value.data.size()));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string unmet_text(const ir::Program& program, std::size_t place,
                       const std::vector<std::size_t>& entries,
                       const std::map<std::string, std::vector<std::string>>& columns,
                       const SizeValues& sizes) {
  const page::Labels labels = page::condition_labels(program, place, columns, sizes);
  std::vector<std::string> names;
  for (const std::size_t entry : entries)
    names.push_back(entry < labels.size() ? labels[entry] : std::to_string(entry + 1));
  return with_entries(program.traces.at(place).sentence, names);
}

std::vector<std::string> warnings(const RunReport& report, const ir::Program& program) {
  std::vector<std::string> texts;
  for (const auto& [place, entries] : report.results.unmet)
    texts.push_back(unmet_text(program, place, entries, report.columns, report.sizes));
  if (const std::string names = without_value(report.results); !names.empty())
    texts.push_back(fmt::format("results without a value (nan): {}", names));
  return texts;
}

}  // namespace starfold
