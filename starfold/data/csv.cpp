// CSV files. DuckDB parses the records; the header is read here, because DuckDB guesses where it is, and
// a wrong guess would turn a record into names of columns.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/table_format.h"

namespace starfold {
namespace {

// What stands for a missing value, unless a categorical column has a level of that name.
constexpr std::string_view missing_words[] = {"", "NA", "N/A", "NaN", "nan", "NULL", "null"};
constexpr std::size_t longest_header = std::size_t{1} << 26U;
constexpr std::size_t sample_cells = 2'000'000;
constexpr std::size_t sample_records = 20'000;

// The text up to the first line end outside quotes; also of compressed files.
std::string read_header(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw RunError(fmt::format("{} cannot be opened", path));
  std::string line;
  bool quoted = false;
  char buffer[1 << 14];
  int got = 0;
  while ((got = gzread(file.get(), buffer, sizeof buffer)) > 0 && line.size() < longest_header) {
    for (const char c : std::string_view(buffer, static_cast<std::size_t>(got))) {
      if (!quoted && (c == '\n' || c == '\r') && !line.empty()) return line;
      if (c == '"') quoted = !quoted;
      line += c;
    }
  }
  if (got < 0) throw RunError(fmt::format("{} cannot be read", path));
  return line;
}

std::vector<std::string> split_fields(std::string_view line, char delimiter) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) fields.back() += line[++i];
      if (!doubled) quoted = !quoted;
    } else if (line[i] == delimiter && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  for (std::string& field : fields) {
    const std::size_t begin = field.find_first_not_of(' ');
    const std::size_t end = field.find_last_not_of(' ');
    field = begin == std::string::npos ? "" : field.substr(begin, end - begin + 1);
  }
  return fields;
}

bool is_number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double ignored = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ignored);
  return (error == std::errc() || error == std::errc::result_out_of_range) &&
         end == text.data() + text.size();
}

// 2020-12-31, and with `time` also 2020-12-31 23:59 and what may follow.
bool is_date(std::string_view text, bool time) {
  constexpr std::string_view pattern = "0000-00-00 00:00";
  if (text.size() != 10 && (!time || text.size() < pattern.size())) return false;
  for (std::size_t i = 0; i < std::min(text.size(), pattern.size()); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    const bool fits =
        pattern[i] == '0' ? digit : text[i] == pattern[i] || (i == 10 && text[i] == 'T');
    if (!fits) return false;
  }
  return true;
}

bool is_truth(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return lower == "true" || lower == "false";
}

// What a column may still be, as its values are seen.
struct Guess {
  bool seen = false;
  bool number = true;
  bool truth = true;
  bool date = true;
  bool time = true;

  void see(std::string_view value) {
    seen = true;
    number = number && is_number(value);
    truth = truth && is_truth(value);
    date = date && is_date(value, false);
    time = time && is_date(value, true);
  }
  // The type to read it with, in DuckDB's words and ours.
  std::pair<const char*, ColumnInfo> type() const {
    if (!seen) return {"DOUBLE", {{}, ColumnKind::unknown, "empty"}};
    if (number) return {"DOUBLE", {{}, ColumnKind::number, "number"}};
    if (truth) return {"BOOLEAN", {{}, ColumnKind::number, "true/false"}};
    if (date) return {"DATE", {{}, ColumnKind::date, "date"}};
    if (time) return {"TIMESTAMP", {{}, ColumnKind::date, "date and time"}};
    return {"VARCHAR", {{}, ColumnKind::text, "text"}};
  }
};

class CsvFormat : public TableFormat {
 public:
  CsvFormat(const Database& database, std::string path, char delimiter)
      : path_(std::move(path)), delimiter_(delimiter) {
    read_names();
    guess_types(database);
  }

  std::string from(const std::vector<ColumnUse>& uses) const override {
    std::vector<std::string> types(columns.size(), "VARCHAR");
    std::set<std::string_view> missing(std::begin(missing_words), std::end(missing_words));
    for (const ColumnUse& use : uses) {
      if (!use.categorical) types[use.column] = types_[use.column];
      if (!use.categorical) continue;
      for (const std::string& level : use.categorical->levels) missing.erase(level);
    }
    return from(types, missing);
  }

  // Positions instead of names: nothing in a header needs care that way.
  std::string name(std::size_t column) const override { return fmt::format("c{}", column); }

 private:
  void read_names() {
    std::string line = read_header(path_);
    if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (line.find_first_not_of(" \r\n\t") == std::string::npos) {
      throw RunError(
          fmt::format("{} is empty: a CSV file begins with a line of column names", path_));
    }
    if (find_invalid_text(line) != std::string::npos) {
      throw RunError(fmt::format("{} is not UTF-8 text", path_));
    }
    const std::vector<std::string> names = split_fields(line, delimiter_);
    check_delimiter(names);
    const auto numbers = std::count_if(names.begin(), names.end(), is_number);
    if (numbers == static_cast<std::ptrdiff_t>(names.size())) {
      throw RunError(
          fmt::format("{}: its first line holds numbers, not names; a CSV file begins with a line "
                      "of column names",
                      path_));
    }
    names_are_safe = numbers == 0;
    std::set<std::string_view> seen;
    for (const std::string& name : names) {
      if (!name.empty() && !seen.insert(name).second) {
        throw RunError(names_are_safe
                           ? fmt::format("{}: two columns are named {}", path_, printable(name))
                           : fmt::format("{}: two columns have the same name", path_));
      }
      columns.push_back({name, ColumnKind::unknown, "empty"});
    }
  }

  void check_delimiter(const std::vector<std::string>& names) const {
    if (names.size() != 1) return;
    for (const auto& [other, word] :
         {std::pair(';', "semicolons"), {'\t', "tabs"}, {'|', "bars"}, {',', "commas"}}) {
      if (other == delimiter_ || names[0].find(other) == std::string::npos) continue;
      throw RunError(fmt::format("{}: its columns seem to be separated by {}, but {} are expected",
                                 path_, word, delimiter_ == ',' ? "commas" : "tabs"));
    }
  }

  void guess_types(const Database& database) {
    const std::vector<std::string> text(columns.size(), "VARCHAR");
    const std::size_t wanted =
        std::clamp(sample_cells / columns.size(), std::size_t{100}, sample_records);
    const std::set<std::string_view> missing(std::begin(missing_words), std::end(missing_words));
    const Statement sample =
        database.prepare(fmt::format("SELECT * FROM {} LIMIT {}", from(text, missing), wanted));
    std::vector<Guess> guesses(columns.size());
    const std::unique_ptr<Rows> rows = sample.stream();
    while (rows->next()) {
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const auto* values = rows->column<duckdb_string_t>(c);
        const std::uint64_t* valid = rows->valid(c);
        for (std::size_t r = 0; r < rows->size(); ++r) {
          if (is_valid(valid, r)) guesses[c].see(text_of(values[r]));
        }
      }
    }
    for (std::size_t c = 0; c < columns.size(); ++c) {
      auto [type, info] = guesses[c].type();
      types_.emplace_back(type);
      info.name = std::move(columns[c].name);
      columns[c] = std::move(info);
    }
  }

  std::string from(const std::vector<std::string>& types,
                   const std::set<std::string_view>& missing) const {
    std::string list;
    for (std::size_t c = 0; c < types.size(); ++c) {
      list += fmt::format("{}'c{}': '{}'", c == 0 ? "" : ", ", c, types[c]);
    }
    return fmt::format(
        "read_csv({}, auto_detect = false, header = true, delim = {}, quote = '\"', escape = '\"', "
        "nullstr = ['{}'], columns = {{{}}})",
        sql_text(path_), delimiter_ == '\t' ? "'\\t'" : "','", fmt::join(missing, "', '"), list);
  }

  std::string path_;
  char delimiter_;
  std::vector<std::string> types_;  // DuckDB's names for them
};

}  // namespace

std::unique_ptr<TableFormat> open_csv(const Database& database, const std::string& path,
                                      char delimiter) {
  return std::make_unique<CsvFormat>(database, path, delimiter);
}

}  // namespace starfold
