#include "starfold/page/entries.h"

#include <algorithm>
#include <set>

namespace starfold::page {
namespace {

const Tensor* find(const Outputs& outputs, const std::string& name, const Shape& shape) {
  const auto found = outputs.find(name);
  return found != outputs.end() && found->second.shape == shape ? &found->second : nullptr;
}

// The names along an axis, when they are known and as many as its extent.
Labels labels_for(const Dim& dim, std::int64_t extent, const AxisNames& axes) {
  const auto found = axes.find(dim.size);
  const bool fits =
      found != axes.end() && static_cast<std::int64_t>(found->second.size()) == extent;
  return fits ? found->second : Labels();
}

Entry entry_of(const ir::Program& program, const ir::Output& output, const Tensor& value,
               const AxisNames& axes, const std::vector<char>& numbered) {
  Entry entry;
  entry.name = output.name;
  entry.value = &value;
  entry.type = program.graph[output.node].type();
  entry.span = output.span;
  const std::size_t rank = value.rank();
  const std::size_t row_axis = rank == 1 ? 0 : rank - 2;
  if (rank > 0 && numbered[row_axis] == 0)
    entry.rows = labels_for(entry.type.dims[row_axis], value.shape[row_axis], axes);
  if (rank > 1 && numbered[rank - 1] == 0)
    entry.columns = labels_for(entry.type.dims[rank - 1], value.shape.back(), axes);
  return entry;
}

// Whether an entry is shown beside the one before it.
bool together(const Entry& before, const Entry& entry) {
  if (before.value->rank() != entry.value->rank() || entry.value->rank() > 1) return false;
  if (entry.value->rank() == 0) return true;
  return before.type == entry.type && before.rows == entry.rows &&
         !entry.type.dims[0].size.is_constant();
}

}  // namespace

std::optional<Interval> interval_of(const Outputs& outputs, const std::string& name) {
  const auto own = outputs.find(name);
  if (own == outputs.end() || own->second.rank() > 1) return std::nullopt;
  const Shape& shape = own->second.shape;
  const Tensor* lower = find(outputs, name + "_lower", shape);
  const Tensor* upper = find(outputs, name + "_upper", shape);
  if (lower != nullptr && upper != nullptr)
    return Interval{*lower, *upper, {name + "_lower", name + "_upper"}};
  for (const std::string& candidate : {name + "_se", "se_" + name}) {
    const Tensor* se = find(outputs, candidate, shape);
    if (se == nullptr) continue;
    Interval interval{own->second, own->second, {candidate}};
    for (std::size_t i = 0; i < se->data.size(); ++i) {
      interval.lower.data[i] -= 1.96 * se->data[i];
      interval.upper.data[i] += 1.96 * se->data[i];
    }
    return interval;
  }
  return std::nullopt;
}

std::vector<Group> groups_of(const ir::Program& program, const Outputs& outputs,
                             const AxisNames& axes) {
  std::map<std::string, Entry> entries;
  std::set<std::string> candidates;
  const std::vector<std::vector<char>> numbered = numbered_axes(program);
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const ir::Output& output = program.outputs[i];
    const auto value = outputs.find(output.name);
    if (value == outputs.end()) continue;
    Entry entry = entry_of(program, output, value->second, axes, numbered[i]);
    entry.interval = interval_of(outputs, output.name);
    if (entry.interval) candidates.insert(entry.interval->from.begin(), entry.interval->from.end());
    entries.emplace(output.name, std::move(entry));
  }
  // What makes an interval has none itself.
  std::set<std::string> companions;
  for (auto& [name, entry] : entries) {
    if (candidates.count(name) != 0) entry.interval.reset();
    if (entry.interval) companions.insert(entry.interval->from.begin(), entry.interval->from.end());
  }
  std::vector<Group> groups;
  for (const ir::Output& output : program.outputs) {
    const auto found = entries.find(output.name);
    if (found == entries.end() || companions.count(output.name) != 0) continue;
    const Entry& entry = found->second;
    if (groups.empty() || !together(groups.back().front(), entry)) groups.emplace_back();
    groups.back().push_back(entry);
    if (!entry.interval) continue;
    for (const std::string& name : entry.interval->from) {
      groups.back().push_back(entries.at(name));
      groups.back().back().companion = true;
    }
  }
  return groups;
}

}  // namespace starfold::page
