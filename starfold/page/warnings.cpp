// Conditions that did not hold, in words.
#include "starfold/page/labels.h"
#include "starfold/page/pages.h"
#include "starfold/runtime/demand.h"

namespace starfold {

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
  return texts;
}

}  // namespace starfold
