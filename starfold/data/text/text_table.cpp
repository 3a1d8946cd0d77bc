#include "starfold/data/text/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "starfold/base/error.h"
#include "starfold/data/binding/levels.h"
#include "starfold/data/binding/shown_names.h"
#include "starfold/data/text/csv_reader.h"
#include "starfold/data/text/json_reader.h"
#include "starfold/data/text/values.h"

namespace starfold {
namespace {

using Form = Field::Form;

constexpr double missing_field = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t sample_cells = 2'000'000;
constexpr std::size_t sample_records = 20'000;

std::size_t sample_size(std::size_t columns) {
  return std::clamp(sample_cells / std::max<std::size_t>(columns, 1), std::size_t{100},
                    sample_records);
}

NumberFault number_of(const Dialect& dialect, std::string_view text, double& value) {
  return dialect.decimal_comma ? parse_comma_number(text, value) : parse_number(text, value);
}
bool moment_of(const Dialect& dialect, std::string_view text, Moment& moment) {
  return dialect.dates.empty() ? parse_moment(text, moment)
                               : parse_moment(text, dialect.dates, moment);
}
// Whether numbers are read the quick way.
bool is_usual(const Dialect& dialect) { return dialect.na.empty() && !dialect.decimal_comma; }

// What a column may still be, as its values are seen.
class Guess {
 public:
  void see(const Field& field, const Dialect& dialect, std::int64_t line) {
    const bool plain = field.form == Form::plain;
    double ignored = 0;
    if (plain && is_usual(dialect) && parse_short_number(field.written, ignored)) {
      see_number();
      return;
    }
    if (field_missing(field, dialect)) return;
    seen_ = true;
    const std::string_view text = trimmed(field.written);
    if (plain && !number_ && !truth_ && !moment_ && decided_) return;
    if (plain ? number_of(dialect, text, ignored) != NumberFault::other
              : field.form == Form::number) {
      see_number();
      return;
    }
    see_other(text, dialect, line);
    number_ = false;
    truth_ = truth_ && (plain ? parse_truth(text) >= 0 : field.form == Form::truth);
    list_ = list_ || field.form == Form::list;
    object_ = object_ || field.form == Form::object;
    see_moment(field, text, dialect);
  }

  // Of text: what it was most likely meant to be, and what would make it so.
  std::string note() const {
    if (type() != TextType::text) return "";
    if (commas_ > 0 && commas_ == others_)
      return fmt::format(
          "holds numbers with a decimal comma, first in line {}; say --decimal , (in "
          "a study: decimal = \",\")",
          first_line_);
    if (days_ > 0 && days_ == others_ && numbers_ == 0)
      return fmt::format(
          "seems to hold dates, first in line {}; say how they are written, for "
          "example --dates %d.%m.%Y (in a study: dates = \"%d.%m.%Y\")",
          first_line_);
    if (numbers_ == 0) return "";
    if (mark_.empty())
      return fmt::format(
          "holds numbers and, first in line {}, something that is none; if it stands "
          "for a missing value, say so with --na (in a study: na = [...])",
          first_line_);
    return fmt::format(
        "holds numbers and, first in line {0}, {1}; if it stands for a missing value, "
        "say --na '{1}' (in a study: na = [\"{1}\"])",
        first_line_, mark_);
  }

  TextType type() const {
    if (!seen_) return TextType::empty;
    if (object_) return TextType::object;
    if (list_) return TextType::list;
    if (number_) return TextType::number;
    if (truth_) return TextType::truth;
    if (!moment_) return TextType::text;
    return zoned_ ? TextType::zoned_time : time_ ? TextType::time : TextType::day;
  }

 private:
  // A number is nothing else.
  void see_number() {
    seen_ = true;
    ++numbers_;
    truth_ = false;
    moment_ = false;
  }
  // What is no number, as far as it may be told.
  void see_other(std::string_view text, const Dialect& dialect, std::int64_t line) {
    double ignored = 0;
    if (others_++ == 0) {
      first_line_ = line;
      if (is_common_mark(text)) mark_ = text;
    }
    commas_ +=
        !dialect.decimal_comma && parse_comma_number(text, ignored) == NumberFault::none ? 1 : 0;
    days_ += looks_like_day(text) ? 1 : 0;
    // Enough is known of a text that is neither.
    decided_ = others_ > 2 && numbers_ > 0 && commas_ < others_;
    decided_ = decided_ || (others_ > 100 && numbers_ == 0 && commas_ < others_ && days_ < others_);
  }
  // 31.12.2020, 31/12/2020: a day, but not as we write it.
  static bool looks_like_day(std::string_view text) {
    Moment ignored;
    for (const char* form : {"%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d"}) {
      if (parse_moment(text, form, ignored)) return true;
    }
    return false;
  }
  void see_moment(const Field& field, std::string_view text, const Dialect& dialect) {
    Moment moment;
    moment_ = moment_ && (field.form == Form::plain || field.form == Form::text) &&
              moment_of(dialect, text, moment);
    time_ = time_ || moment.has_time;
    zoned_ = zoned_ || moment.has_offset;
  }

  bool seen_ = false;
  bool number_ = true;
  bool truth_ = true;
  bool list_ = false;
  bool object_ = false;
  bool moment_ = true;
  bool time_ = false;
  bool zoned_ = false;
  std::int64_t numbers_ = 0;
  std::int64_t others_ = 0;  // of them, with a decimal comma, or days
  std::int64_t commas_ = 0;
  std::int64_t days_ = 0;
  std::int64_t first_line_ = 0;
  std::string mark_;  // the first of them, where it may be shown
  bool decided_ = false;
};

ColumnInfo describe(const std::string& name, TextType type, const std::string& note) {
  switch (type) {
    case TextType::empty:
      return {name, ColumnKind::unknown, "empty"};
    case TextType::number:
      return {name, ColumnKind::number, "number"};
    case TextType::truth:
      return {name, ColumnKind::number, "true/false"};
    case TextType::day:
      return {name, ColumnKind::date, "date"};
    case TextType::time:
    case TextType::zoned_time:
      return {name, ColumnKind::date, "date and time"};
    case TextType::text:
      return {name, ColumnKind::text, "text", note};
    case TextType::list:
      return {name, ColumnKind::other, "list"};
    default:
      return {name, ColumnKind::other, "nested record"};
  }
}

// --- the header of a CSV file

// A name that holds lines with delimiters is what an open quotation mark makes of records.
bool holds_records(const std::string& name, char delimiter) {
  return name.find_first_of("\r\n") != std::string::npos &&
         name.find(delimiter) != std::string::npos;
}

void check_header(const std::string& path, const std::vector<std::string>& names, char delimiter) {
  if (names.size() == 1) {
    for (const auto& [other, word] :
         {std::pair(';', "semicolons"), {'\t', "tabs"}, {'|', "bars"}, {',', "commas"}}) {
      if (other == delimiter || names[0].find(other) == std::string::npos) continue;
      throw RunError(fmt::format(
          "{}: its columns seem to be separated by {}, but {} expected; say --delimiter "
          "{} (in a study: delimiter = \"{}\")",
          path, word,
          delimiter == ','    ? "commas are"
          : delimiter == '\t' ? "tabs are"
                              : fmt::format("{} is", delimiter),
          other == '\t' ? "tab" : fmt::format("'{}'", other),
          other == '\t' ? "tab" : std::string(1, other)));
    }
  }
  double ignored = 0;
  if (std::all_of(names.begin(), names.end(), [&](const std::string& name) {
        return parse_number(name, ignored) != NumberFault::other;
      })) {
    throw RunError(
        fmt::format("{}: its first line holds numbers, not names; a CSV file begins with a line "
                    "of column names",
                    path));
  }
  constexpr std::size_t longest_name = 1000;
  for (const std::string& name : names) {
    if (name.size() > longest_name)
      throw RunError(
          fmt::format("{}, line 1: a name is longer than {} bytes; is a quotation mark left open?",
                      path, longest_name));
  }
}

// Names are shown only where they are surely none of the records: none looks like a value, and the column of
// at least one that has a name holds what its name is not.
bool names_are_safe(const TextSource& source, char delimiter) {
  bool contrast = false;
  for (std::size_t c = 0; c < source.names.size(); ++c) {
    const std::string& name = source.names[c];
    if (name.empty()) continue;
    if (looks_like_value(name) || holds_records(name, delimiter)) return false;
    contrast =
        contrast || (source.types[c] != TextType::text && source.types[c] != TextType::empty);
  }
  return contrast;
}

void check_duplicates(const std::string& path, const TextSource& source) {
  std::map<std::string_view, std::size_t> seen;
  for (std::size_t c = 0; c < source.names.size(); ++c) {
    const std::string& name = source.names[c];
    if (name.empty() || seen.emplace(name, c).second) continue;
    throw RunError(source.names_are_safe && looks_like_name(name)
                       ? fmt::format("{}: two columns are named {}", path, name)
                       : fmt::format("{}: two columns have the same name", path));
  }
}

// --- values

double level_number(const LevelNumbers& levels, const Field& field, const Dialect& dialect) {
  if (field.form == Form::missing) return missing_field;
  if (const double place = levels.of(field.written); place != 0) return place;
  if (field_missing(field, dialect)) return missing_field;
  double number = 0;
  const bool is_number =
      levels.by_number() && number_of(dialect, trimmed(field.written), number) == NumberFault::none;
  return is_number ? levels.of(number) : 0;
}

class TextScan : public TableScan {
 public:
  TextScan(const TextSource& source, const std::vector<ColumnUse>& uses)
      : source_(source), uses_(uses), records_(source.open()), columns_(uses.size()) {
    for (std::vector<double>& column : columns_) column.resize(most);
    for (const ColumnUse& use : uses) {
      const bool number = source.types[use.column] == TextType::number;
      levels_.push_back(use.categorical ? std::make_unique<LevelNumbers>(*use.categorical, number)
                                        : nullptr);
    }
  }

  bool next() override {
    count_ = 0;
    while (count_ < most && records_->next()) {
      for (std::size_t u = 0; u < uses_.size(); ++u) columns_[u][count_] = value(u);
      ++count_;
    }
    return count_ > 0;
  }
  std::size_t records() const override { return count_; }
  const double* column(std::size_t index) const override { return columns_[index].data(); }
  const std::uint64_t* valid(std::size_t /*index*/) const override { return nullptr; }

 private:
  double value(std::size_t use) {
    const std::size_t column = uses_[use].column;
    if (levels_[use])
      return level_number(*levels_[use], records_->fields()[column], source_.dialect);
    return field_number(*records_, source_, column);
  }

  static constexpr std::size_t most = 2048;
  const TextSource& source_;
  std::vector<ColumnUse> uses_;
  std::unique_ptr<TextRecords> records_;
  std::vector<std::unique_ptr<LevelNumbers>> levels_;
  std::vector<std::vector<double>> columns_;
  std::size_t count_ = 0;
};

class TextTable : public Table {
 public:
  explicit TextTable(TextSource source) : source_(std::move(source)) {
    for (std::size_t c = 0; c < source_.names.size(); ++c)
      columns_.push_back(describe(source_.names[c], source_.types[c], source_.notes[c]));
  }
  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  bool names_are_safe() const override { return source_.names_are_safe; }
  std::unique_ptr<TableScan> scan(const std::vector<ColumnUse>& uses,
                                  RecordRange /*range*/) const override {
    return std::make_unique<TextScan>(source_, uses);
  }
  LevelCounts levels(std::size_t column, std::size_t most) const override {
    LevelCounts counts;
    const std::unique_ptr<TextRecords> records = source_.open();
    const bool numbers = source_.types[column] == TextType::number;
    while (records->next()) {
      const Field& field = records->fields()[column];
      if (field_missing(field, source_.dialect)) continue;
      ++counts[numbers ? level_text(field_number(*records, source_, column))
                       : std::string(field.written)];
      if (counts.size() > most) throw too_many_levels(most);
    }
    return counts;
  }

 private:
  TextSource source_;
  std::vector<ColumnInfo> columns_;
};

void add_types(const std::vector<Guess>& guesses, TextSource& source) {
  for (const Guess& guess : guesses) {
    source.types.push_back(guess.type());
    source.notes.push_back(guess.note());
  }
}

double other_number(const TextRecords& records, const TextSource& source, std::size_t column,
                    const Field& field) {
  const std::string_view text = trimmed(field.written);
  double value = 0;
  const bool may_be = field.form == Form::plain || field.form == Form::number;
  switch (may_be ? number_of(source.dialect, text, value) : NumberFault::other) {
    case NumberFault::none:
      return value;
    case NumberFault::too_large:
      fail_value(records, source, column, "larger than any double");
    case NumberFault::not_exact:
      fail_value(records, source, column,
                 "a whole number that no double is equal to; numbers are doubles, which hold whole "
                 "numbers up to 2^53");
    default:
      fail_value(records, source, column, "not a number", text);
  }
}

}  // namespace

bool field_missing(const Field& field, const Dialect& dialect) {
  if (!dialect.na.empty() && (field.form == Form::plain || field.form == Form::text) &&
      dialect.is_missing(trimmed(field.written)))
    return true;
  if (field.form != Form::plain) return field.form == Form::missing;
  return is_missing_word(trimmed(field.written));
}

void fail_value(const TextRecords& records, const TextSource& source, std::size_t column,
                std::string_view what, std::string_view written) {
  const std::string& name = source.names[column];
  const std::string mark = is_common_mark(written) ? std::string(written) : "";
  records.fail(fmt::format(
      ": column {} holds {} that is {}{}",
      source.names_are_safe && looks_like_name(name) ? name : fmt::format("number {}", column + 1),
      mark.empty() ? "something" : mark, what,
      mark.empty()
          ? ""
          : fmt::format("; if it stands for a missing value, say --na '{0}' (in a study: na "
                        "= [\"{0}\"])",
                        mark)));
}

Moment field_moment(const TextRecords& records, const TextSource& source, std::size_t column) {
  const Field& field = records.fields()[column];
  const TextType type = source.types[column];
  Moment moment;
  const bool may_be = field.form == Form::plain || field.form == Form::text;
  const std::string_view text = trimmed(field.written);
  if (!may_be || !moment_of(source.dialect, text, moment))
    fail_value(records, source, column,
               type == TextType::day ? "not a date" : "not a date and time", text);
  // Two moments can only be compared when both say where, or neither.
  if (moment.has_time && moment.has_offset != (type == TextType::zoned_time))
    fail_value(records, source, column,
               moment.has_offset ? "a time with an offset from UTC, unlike those before"
                                 : "a time without an offset from UTC, unlike others");
  return moment;
}

double field_number(const TextRecords& records, const TextSource& source, std::size_t column) {
  const Field& field = records.fields()[column];
  double value = 0;
  switch (source.types[column]) {
    case TextType::number:
    case TextType::empty:
      if (field.form == Form::plain && is_usual(source.dialect) &&
          (parse_short_number(field.written, value) ||
           parse_number(field.written, value) == NumberFault::none))
        return value;
      return field_missing(field, source.dialect) ? missing_field
                                                  : other_number(records, source, column, field);
    case TextType::truth: {
      if (field_missing(field, source.dialect)) return missing_field;
      const bool may_be = field.form == Form::plain || field.form == Form::truth;
      const int truth = may_be ? parse_truth(trimmed(field.written)) : -1;
      if (truth < 0)
        fail_value(records, source, column, "neither true nor false", trimmed(field.written));
      return truth;
    }
    case TextType::day:
    case TextType::time:
    case TextType::zoned_time:
      return field_missing(field, source.dialect) ? missing_field
                                                  : field_moment(records, source, column).days();
    default:
      if (field_missing(field, source.dialect)) return missing_field;
      fail_value(records, source, column, "not a number");
  }
}

TextSource open_csv(const TextFile& file, char usual, const Dialect& dialect) {
  const char delimiter = dialect.delimiter == '\0' ? usual : dialect.delimiter;
  auto reader = std::make_unique<CsvReader>(file, delimiter);
  const std::string& path = file.path;
  TextSource source;
  source.dialect = dialect;
  source.names = reader->names();
  check_header(path, source.names, delimiter);
  std::vector<Guess> guesses(source.names.size());
  const std::size_t wanted = sample_size(guesses.size());
  for (std::size_t r = 0; r < wanted && reader->next(); ++r) {
    for (std::size_t c = 0; c < guesses.size(); ++c)
      guesses[c].see(reader->fields()[c], dialect, reader->line());
  }
  add_types(guesses, source);
  source.names_are_safe = names_are_safe(source, delimiter);
  check_duplicates(path, source);
  source.open = [file, delimiter] { return std::make_unique<CsvReader>(file, delimiter); };
  return source;
}

TextSource open_json(const TextFile& file, const Dialect& dialect) {
  // To its end: the last record may have a key that no other has.
  JsonReader reader(file, {});
  std::vector<Guess> guesses;
  std::size_t records = 0;
  for (; reader.next(); ++records) {
    if (records >= sample_size(guesses.size())) continue;
    guesses.resize(reader.keys().size());
    for (std::size_t c = 0; c < guesses.size(); ++c)
      guesses[c].see(reader.fields()[c], dialect, reader.line());
  }
  if (reader.keys().empty()) throw RunError(file.path + " holds no records as JSON objects");
  guesses.resize(reader.keys().size());
  TextSource source;
  source.dialect = dialect;
  source.names = reader.keys();
  add_types(guesses, source);
  source.open = [file, keys = source.names] { return std::make_unique<JsonReader>(file, keys); };
  return source;
}

std::shared_ptr<const Table> text_table(TextSource source) {
  return std::make_shared<TextTable>(std::move(source));
}

}  // namespace starfold
