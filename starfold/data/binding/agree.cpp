#include "starfold/data/binding/agree.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/binding/shown_names.h"

namespace starfold {
namespace {

constexpr std::size_t most_rows = 20;
constexpr const char* absent = "absent";

ColumnInfo info_of(const DataSource& source, const std::string& name) {
  if (!source.has_column(name)) return {name, ColumnKind::other, absent};
  if (!source.table) return {name, ColumnKind::number, "number"};
  const std::vector<ColumnInfo>& columns = source.table->columns();
  return *std::find_if(columns.begin(), columns.end(),
                       [&](const ColumnInfo& info) { return info.name == name; });
}

// The names of a group of clients, the first few written out.
std::string group_title(const std::vector<std::string>& clients) {
  constexpr std::size_t most = 3;
  std::string title;
  for (std::size_t i = 0; i < std::min(most, clients.size()); ++i)
    title += (i == 0 ? "" : ", ") + clients[i];
  return clients.size() > most ? fmt::format("{} and {} more", title, clients.size() - most)
                               : title;
}

// Rows are columns of the data; clients that have the same stand together.
std::string comparison(const std::vector<DataSource>& sources,
                       const std::vector<std::string>& names) {
  const std::vector<std::string> shown(
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most_rows)));
  std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>
      groups;  // types, clients
  for (const DataSource& source : sources) {
    std::vector<std::string> types;
    for (const std::string& name : shown) types.push_back(info_of(source, name).type);
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == types; });
    if (group == groups.end()) group = groups.insert(groups.end(), {types, {}});
    group->second.push_back(source.client);
  }
  std::vector<std::vector<std::string>> cells(shown.size() + 1);
  cells[0].emplace_back("column");
  for (std::size_t r = 0; r < shown.size(); ++r) cells[r + 1].push_back(printable(shown[r]));
  for (const auto& [types, clients] : groups) {
    cells[0].push_back(group_title(clients));
    for (std::size_t r = 0; r < shown.size(); ++r) cells[r + 1].push_back(types[r]);
  }
  std::string text;
  for (const std::vector<std::string>& row : cells) {
    text += "\n ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      std::size_t width = 0;
      for (const auto& other : cells) width = std::max(width, other[c].size());
      text += c + 1 == row.size() ? " " + row[c] : fmt::format(" {:<{}} ", row[c], width);
    }
  }
  if (names.size() > shown.size())
    text += fmt::format("\n  and {} more columns", names.size() - shown.size());
  return text;
}

[[noreturn]] void disagree(const std::vector<DataSource>& sources, std::vector<std::string> names) {
  // Where a file seems to have no header, its first record must not be shown.
  std::erase_if(names, [&](const std::string& name) {
    return !looks_like_name(name) ||
           std::none_of(sources.begin(), sources.end(), [&](const DataSource& source) {
             return source.has_column(name) && (!source.table || source.table->names_are_safe());
           });
  });
  if (names.empty()) {
    throw RunError(
        "the clients have different columns, and names that may be records: do all files begin "
        "with a line of names?");
  }
  throw RunError("the clients disagree on columns:" + comparison(sources, names));
}

// Whether two kinds can stand in one column.
bool compatible(ColumnKind a, ColumnKind b) {
  return a == b || a == ColumnKind::unknown || b == ColumnKind::unknown;
}

bool all_agree(const std::vector<DataSource>& sources, const BoundColumn& column) {
  ColumnKind kind = ColumnKind::unknown;
  for (const DataSource& source : sources) {
    const ColumnInfo info = info_of(source, column.name);
    if (info.type == absent) return false;
    if (column.categorical) continue;  // levels are looked up in any of them
    if (!compatible(kind, info.kind)) return false;
    if (kind == ColumnKind::unknown) kind = info.kind;
  }
  return true;
}

}  // namespace

void check_same_columns(const std::vector<DataSource>& sources,
                        const std::set<std::string>& taken) {
  std::vector<std::string> names;
  for (const DataSource& source : sources) {
    for (const std::string& name : source.order) {
      if (taken.count(name) == 0 && source.has_column(name) &&
          std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  std::erase_if(names, [&](const std::string& name) {
    return std::all_of(sources.begin(), sources.end(),
                       [&](const DataSource& source) { return source.has_column(name); });
  });
  if (!names.empty()) disagree(sources, std::move(names));
}

void check_agreement(const std::vector<DataSource>& sources,
                     const std::vector<BoundColumn>& needed) {
  std::vector<std::string> names;
  for (const BoundColumn& column : needed) {
    if (!all_agree(sources, column)) names.push_back(column.name);
  }
  // Numbers for one, text for another: most likely one has a mark in a column of numbers.
  for (const BoundColumn& column : needed) {
    const bool all = std::all_of(sources.begin(), sources.end(), [&](const DataSource& source) {
      return source.has_column(column.name);
    });
    const auto noted = [&](const DataSource& source) {
      return !info_of(source, column.name).note.empty();
    };
    if (all && !column.categorical && std::any_of(sources.begin(), sources.end(), noted))
      check_kind(sources, column);
  }
  if (!names.empty()) disagree(sources, std::move(names));
}

void check_kind(const std::vector<DataSource>& sources, const BoundColumn& column) {
  for (const DataSource& source : sources) {
    const ColumnInfo info = info_of(source, column.name);
    const std::string name = shown(column.name);
    if (info.kind == ColumnKind::other) {
      const bool vowel =
          std::string_view("aeiou").find(info.type.front()) != std::string_view::npos;
      throw RunError(fmt::format("client {}: column {} is {} {} and cannot become a number",
                                 source.client, name, vowel ? "an" : "a", info.type));
    }
    if (info.kind != ColumnKind::text || column.categorical) continue;
    if (!info.note.empty())
      throw RunError(
          fmt::format("client {}: column {} is text: it {}", source.client, name, info.note));
    throw RunError(fmt::format(
        "client {0}: column {1} is text; declare its levels with --levels {1}=a,b, or in "
        "a study file, for example [categorical.{1}] with levels = [\"a\", \"b\"]",
        source.client, name));
  }
}

}  // namespace starfold
