#include "starfold/study/look/survey.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/data/binding/identifiers.h"
#include "starfold/data/binding/shown_names.h"
#include "starfold/data/records.h"
#include "starfold/study/look/levels.h"

namespace starfold {
namespace {

// What people write where a number is missing. Those that every table knows are among them, for queries.
constexpr const char* marks = "'?', '.', '-', '', 'NA', 'N/A', 'NULL'";

constexpr std::size_t most_levels = 20;

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

class Surveyor {
 public:
  Surveyor(const std::vector<StudyClient>& clients, const ir::Program& program)
      : clients_(clients), program_(program), tables_({}) {
    for (const StudyClient& client : clients_)
      sources_.push_back(open_source(program, client.name, client.data, tables_));
  }

  Survey survey() {
    for (const DataSource& source : sources_) {
      if (source.table && !source.table->names_are_safe() && !is_header(source))
        throw RunError(
            fmt::format("client {}: the first line may be a record, so its names are not copied",
                        source.client));
    }
    find_arrays();
    find_columns();
    find_marks();
    find_levels();
    look_at_values();
    return std::move(survey_);
  }

 private:
  template <typename Has>
  bool all_have(const Has& has) const {
    return std::all_of(sources_.begin(), sources_.end(), has);
  }

  // Whether a first line of which nothing tells that it is no record is one of names after all: another client, whose names are
  // surely names, has the same, or nothing follows it and it reads like names.
  bool is_header(const DataSource& source) const {
    const auto same = [&](const DataSource& other) {
      return other.table && other.table->names_are_safe() && other.order == source.order;
    };
    if (std::any_of(sources_.begin(), sources_.end(), same)) return true;
    const std::vector<ColumnInfo>& columns = source.table->columns();
    return std::all_of(columns.begin(), columns.end(), [](const ColumnInfo& column) {
      return column.kind == ColumnKind::unknown && looks_like_name(column.name) &&
             !looks_like_value(column.name);
    });
  }

  // An input with several numbers per record is an array for all clients, or columns for all.
  void find_arrays() {
    const auto no_table = [](const DataSource& source) { return source.table == nullptr; };
    const bool arrays = all_have(no_table);
    for (const ir::Input& input : program_.inputs) {
      if (!input.type.federated()) continue;
      const auto has = [&](const DataSource& source) {
        return source.arrays.count(input.name) != 0;
      };
      if (arrays && all_have(has)) survey_.arrays.insert(input.name);
      const auto holder = std::find_if(sources_.begin(), sources_.end(), has);
      if (!arrays && input.type.rank() > 1 && holder != sources_.end()) {
        const auto other = std::find_if_not(sources_.begin(), sources_.end(), has);
        throw RunError(fmt::format(
            "client {} has an array {} for input {}, client {} has columns: nothing says which "
            "column of the array is which; give both arrays, or both columns",
            holder->client, input.name, input.name, other->client));
      }
    }
  }

  static ColumnKind kind_of(const DataSource& source, const std::string& name) {
    if (!source.table) return ColumnKind::number;
    const auto at = std::find(source.order.begin(), source.order.end(), name);
    return source.table->columns()[static_cast<std::size_t>(at - source.order.begin())].kind;
  }

  void find_columns() {
    for (const std::string& name : sources_.front().order) {
      const auto has = [&](const DataSource& source) { return source.has_column(name); };
      if (name.empty() || !all_have(has)) continue;
      SurveyColumn column{name, ColumnKind::unknown, objection_to_name(name), false};
      for (const DataSource& source : sources_) {
        const ColumnKind kind = kind_of(source, name);
        if (column.kind == ColumnKind::unknown || kind == ColumnKind::text) column.kind = kind;
        const bool apart = kind != column.kind && kind != ColumnKind::unknown;
        if (apart && column.kind != ColumnKind::text) column.kind = ColumnKind::other;
      }
      survey_.columns.push_back(std::move(column));
    }
  }

  // Whether a client's text is numbers with marks between them, for each column.
  std::vector<bool> marked_columns(std::size_t client, const std::vector<std::string>& names) {
    std::string query;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string value = fmt::format("trim({}::varchar)", quoted(names[i]));
      query += fmt::format(
          "{}case when count(try_cast({} as double)) > 0 and count(*) filter (where {} not in ({}) "
          "and try_cast({} as double) is null) = 0 then 1.0 else 0.0 end as c{}",
          query.empty() ? "select " : ", ", value, value, marks, value, i);
    }
    TableLocation location = clients_[client].data;
    location.query = query + " from data";
    const std::shared_ptr<const Table> table = tables_.open(location);
    std::vector<ColumnUse> uses;
    for (std::size_t i = 0; i < names.size(); ++i) uses.push_back({i, nullptr});
    RecordReader reader(table, uses, Missing::nan);
    std::vector<bool> result(names.size(), false);
    if (!reader.next()) return result;
    for (std::size_t i = 0; i < names.size(); ++i) result[i] = reader.columns()[i][0] == 1;
    return result;
  }

  void find_marks() {
    std::map<std::string, std::size_t> numbers;  // by column: clients for whom it is
    for (std::size_t c = 0; c < sources_.size(); ++c) {
      std::vector<std::string> texts;
      for (const SurveyColumn& column : survey_.columns) {
        if (column.kind != ColumnKind::text) continue;
        const ColumnKind kind = kind_of(sources_[c], column.name);
        if (kind == ColumnKind::text) texts.push_back(column.name);
        if (kind == ColumnKind::number || kind == ColumnKind::unknown) ++numbers[column.name];
      }
      if (texts.empty() || !can_query(c)) continue;
      const std::vector<bool> marked = marked_columns(c, texts);
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (!marked[i]) continue;
        ++numbers[texts[i]];
        survey_.marked[sources_[c].client].push_back(texts[i]);
      }
    }
    for (SurveyColumn& column : survey_.columns) {
      if (column.kind != ColumnKind::text) continue;
      if (numbers[column.name] == sources_.size()) {
        column.kind = ColumnKind::number;
        continue;
      }
      for (auto& [client, names] : survey_.marked) std::erase(names, column.name);
    }
    std::erase_if(survey_.marked, [](const auto& entry) { return entry.second.empty(); });
  }

  // Text that groups records, rather than naming them, has few values, and each several records.
  void find_levels() {
    for (SurveyColumn& column : survey_.columns) {
      if (column.kind != ColumnKind::text || !column.objection.empty()) continue;
      LevelCounts counts;
      for (const DataSource& source : sources_) {
        const auto at = std::find(source.order.begin(), source.order.end(), column.name);
        try {
          for (const auto& [level, count] : source.table->levels(
                   static_cast<std::size_t>(at - source.order.begin()), most_levels))
            counts[level] += count;
        } catch (const RunError&) {  // too many
          counts.clear();
          break;
        }
      }
      std::int64_t records = 0;
      for (const auto& [level, count] : counts) {
        records += count;
        column.levels.push_back(level);
      }
      constexpr std::int64_t least = 5;  // records for each level, on the average
      const auto count = static_cast<std::int64_t>(counts.size());
      if (counts.size() > most_levels || records < least * count) column.levels.clear();
      column.levels = in_order(column.levels);
    }
  }

  // A query over a database sees its tables, over other files the table `data`.
  bool can_query(std::size_t client) const {
    const std::string& path = clients_[client].data.path;
    const auto ends = [&](const char* end) { return path.ends_with(end); };
    return ends(".csv") || ends(".csv.gz") || ends(".tsv") || ends(".parquet") || ends(".jsonl") ||
           ends(".ndjson") || ends(".json");
  }

  void look_at_values() {
    std::vector<SurveyColumn*> numbers;
    for (SurveyColumn& column : survey_.columns) {
      if (column.kind == ColumnKind::number || column.kind == ColumnKind::unknown)
        numbers.push_back(&column);
    }
    std::vector<ColumnEvidence> evidence(numbers.size());
    for (std::size_t c = 0; c < sources_.size() && !numbers.empty(); ++c) {
      for (ColumnEvidence& column : evidence) column.start_client();
      read(c, numbers, evidence);
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i]->missing = evidence[i].missing();
      if (numbers[i]->objection.empty()) numbers[i]->objection = evidence[i].objection();
    }
  }

  void read(std::size_t client, const std::vector<SurveyColumn*>& numbers,
            std::vector<ColumnEvidence>& evidence) {
    const DataSource& source = sources_[client];
    if (!source.table) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::vector<double>& data = source.arrays.at(numbers[i]->name).data;
        evidence[i].add(data.data(), data.size());
      }
      return;
    }
    try {
      std::shared_ptr<const Table> table = source.table;
      if (const auto marked = survey_.marked.find(source.client); marked != survey_.marked.end()) {
        TableLocation location = clients_[client].data;
        location.query = without_marks(marked->second);
        table = tables_.open(location);
      }
      std::vector<ColumnUse> uses;
      for (const SurveyColumn* column : numbers) {
        const auto at =
            std::find_if(table->columns().begin(), table->columns().end(),
                         [&](const ColumnInfo& info) { return info.name == column->name; });
        uses.push_back({static_cast<std::size_t>(at - table->columns().begin()), nullptr});
      }
      RecordReader reader(table, uses, Missing::nan);
      while (reader.next()) {
        for (std::size_t i = 0; i < numbers.size(); ++i)
          evidence[i].add(reader.columns()[i], reader.records());
      }
    } catch (const RunError& error) {
      throw RunError(fmt::format("client {}: {}", source.client, error.what()));
    }
  }

  const std::vector<StudyClient>& clients_;
  const ir::Program& program_;
  Tables tables_;
  std::vector<DataSource> sources_;
  Survey survey_;
};

}  // namespace

const SurveyColumn* Survey::find(const std::string& name) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const SurveyColumn& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

Survey survey_clients(const std::vector<StudyClient>& clients, const ir::Program& program) {
  return Surveyor(clients, program).survey();
}

std::string without_marks(const std::vector<std::string>& columns) {
  std::string replaced;
  for (const std::string& column : columns) {
    const std::string name = quoted(column);
    replaced += fmt::format(
        "{}cast(case when trim({}::varchar) not in ({}) then trim({}::varchar) end as double) as "
        "{}",
        replaced.empty() ? "" : ", ", name, marks, name, name);
  }
  return fmt::format("select * replace ({}) from data", replaced);
}

}  // namespace starfold
