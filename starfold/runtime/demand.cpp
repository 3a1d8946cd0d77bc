#include "starfold/runtime/demand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace starfold {
namespace {

std::vector<std::string> numbers(const std::vector<std::size_t>& entries) {
  std::vector<std::string> names;
  for (const std::size_t entry : entries) names.push_back(std::to_string(entry + 1));
  return names;
}

}  // namespace

std::string with_entries(const std::string& sentence, const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  if (names.empty()) return sentence;
  const std::vector<std::string> first(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(most, names.size())));
  const std::string more =
      names.size() > most ? fmt::format(" and {} more", names.size() - most) : "";
  return fmt::format("{}: {}{}", sentence, fmt::join(first, ", "), more);
}

Unmet::Unmet(const ir::Trace& trace, std::size_t place, std::vector<std::size_t> entries)
    : RunError(with_entries(trace.sentence, numbers(entries)), trace.span),
      place_(place),
      entries_(std::move(entries)) {}

void demand(const ir::Program& program, std::size_t place, const Tensor& value, Results& results) {
  const ir::Trace& trace = program.traces[place];
  std::vector<std::size_t> entries;
  for (std::size_t i = 0; i < value.data.size(); ++i) {
    if (value.data[i] == 0) entries.push_back(i);
  }
  if (entries.empty()) return;
  if (value.rank() == 0) entries.clear();
  if (trace.kind == ir::Trace::Kind::require) throw Unmet(trace, place, std::move(entries));
  results.unmet[place] = std::move(entries);
}

Demands demands_of(const ir::Program& program) {
  Demands demands;
  for (std::size_t i = 0; i < program.traces.size(); ++i) {
    if (program.traces[i].kind == ir::Trace::Kind::require)
      demands.emplace(program.traces[i].node, i);
  }
  return demands;
}

}  // namespace starfold
