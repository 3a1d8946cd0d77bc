#include "starfold/page/entries.h"

#include <algorithm>
#include <set>

namespace starfold::page {
namespace {

const Tensor* find(const Outputs& outputs, const std::string& name, const Shape& shape) {
  const auto found = outputs.find(name);
  return found != outputs.end() && found->second.shape == shape ? &found->second : nullptr;
}

// The names along an axis, when they are as many as its extent.
Labels fitting(const std::vector<Labels>& labels, std::size_t axis, std::int64_t extent) {
  const bool fits =
      axis < labels.size() && static_cast<std::int64_t>(labels[axis].size()) == extent;
  return fits ? labels[axis] : Labels();
}

Entry entry_of(const ir::Program& program, const ir::Output& output, const Tensor& value,
               const std::vector<Labels>& labels) {
  Entry entry;
  entry.name = output.name;
  entry.value = &value;
  entry.type = program.graph[output.node].type();
  entry.span = output.span;
  const std::size_t rank = value.rank();
  const std::size_t row_axis = rank == 1 ? 0 : rank - 2;
  if (rank > 0) entry.rows = fitting(labels, row_axis, value.shape[row_axis]);
  if (rank > 1) entry.columns = fitting(labels, rank - 1, value.shape.back());
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
                             const OutputLabels& labels) {
  std::map<std::string, Entry> entries;
  std::set<std::string> candidates;
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const ir::Output& output = program.outputs[i];
    const auto value = outputs.find(output.name);
    if (value == outputs.end()) continue;
    Entry entry = entry_of(program, output, value->second,
                           i < labels.size() ? labels[i] : std::vector<Labels>());
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
