// Files of text as tables: what their columns are, and their values as numbers. Private to starfold/data.
#pragma once

#include <functional>

#include "starfold/data/table.h"
#include "starfold/data/text/records.h"

namespace starfold {

// What a column holds, by its first records. A later value that does not fit is an error.
enum class TextType { empty, number, truth, day, time, zoned_time, text, list, object };

// A file of text whose columns are known.
struct TextSource {
  std::vector<std::string> names;
  std::vector<TextType> types;
  std::vector<std::string> notes = {};  // by column, as in ColumnInfo
  Dialect dialect = {};
  bool names_are_safe = true;
  std::function<std::unique_ptr<TextRecords>()> open;
};

// Reads names, and as many records as tell what the columns are. RunError when it cannot be read.
TextSource open_csv(const TextFile& file, char delimiter, const Dialect& dialect = {});
TextSource open_json(const TextFile& file, const Dialect& dialect = {});

// The numbers of such a file.
std::shared_ptr<const Table> text_table(TextSource source);

// RunError about a column of the record: what it holds does not fit.
// `written` is shown where it is a common mark of missing values.
[[noreturn]] void fail_value(const TextRecords& records, const TextSource& source,
                             std::size_t column, std::string_view what,
                             std::string_view written = {});
// What a field is as a number: days since 1970 for dates, nan where it is missing. RunError when it is none.
double field_number(const TextRecords& records, const TextSource& source, std::size_t column);
// Whether a field is missing.
bool field_missing(const Field& field, const Dialect& dialect);
// A date. RunError when it is none.
struct Moment;
Moment field_moment(const TextRecords& records, const TextSource& source, std::size_t column);

}  // namespace starfold
