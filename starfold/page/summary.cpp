// A run in short, as plain text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "starfold/base/utf8.h"
#include "starfold/page/entries.h"
#include "starfold/page/number.h"
#include "starfold/page/pages.h"
#include "starfold/page/privacy_section.h"
#include "starfold/page/words.h"

namespace starfold {
namespace {

using namespace page;

constexpr std::size_t line_width = 100;
constexpr std::size_t most_rows = 40;
constexpr std::size_t most_columns = 40;
constexpr std::size_t most_slices = 6;
constexpr std::size_t most_clients = 20;

// How wide a text is on a terminal, about.
std::size_t width_of(const std::string& text) {
  std::size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return width;
}

std::string aligned(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return right ? space + text : text + space;
}

struct Column {
  std::string title;
  std::vector<std::string> fields;
  bool right = true;

  std::size_t width() const {
    std::size_t width = width_of(title);
    for (const std::string& field : fields) width = std::max(width, width_of(field));
    return width;
  }
};

std::string some_columns(const Column& names, const Column* first, const Column* last) {
  const std::size_t rows = first->fields.size();
  std::string text;
  for (std::size_t r = 0; r <= rows; ++r) {  // the title, then the fields
    const auto field = [&](const Column& column) -> const std::string& {
      return r == 0 ? column.title : column.fields[r - 1];
    };
    std::string line = aligned(field(names), names.width(), names.right);
    for (const Column* column = first; column != last; ++column)
      line += "  " + aligned(field(*column), column->width(), column->right);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// As many columns beside each other as fit on a line, the rest below.
std::string table_text(const Column& names, const std::vector<Column>& columns) {
  std::string text;
  const Column* const end = columns.data() + columns.size();
  for (const Column* first = columns.data(); first != end;) {
    const Column* last = first;
    for (std::size_t width = names.width();
         last != end && (last == first || width + 2 + last->width() <= line_width); ++last)
      width += 2 + last->width();
    text += (text.empty() ? "" : "\n") + some_columns(names, first, last);
    first = last;
  }
  return text;
}

std::string name_at(const Labels& labels, std::size_t i) {
  return i < labels.size() ? printable(labels[i]) : std::to_string(i + 1);
}

Column name_column(const Labels& labels, std::size_t rows) {
  Column names{"", {}, labels.empty()};
  for (std::size_t i = 0; i < rows; ++i) names.fields.push_back(name_at(labels, i));
  return names;
}

std::string left_out(std::size_t shown, std::size_t all, const char* what) {
  if (shown >= all) return "";
  return fmt::format("(the first {} of {} {}; --out and --json have all)\n", shown, all, what);
}

std::string shape_text(const Tensor& value) {
  return fmt::format("{}", fmt::join(value.shape, " x "));
}

std::string scalars_text(const Group& group) {
  Column names{"", {}, false};
  Column values{"", {}, true};
  for (const Entry& entry : group) {
    names.fields.push_back(entry.name);
    values.fields.push_back(plain(entry.value->item()));
  }
  std::string text;
  for (std::size_t i = 0; i < group.size(); ++i)
    text += aligned(names.fields[i], names.width(), false) + "  " + values.fields[i] + "\n";
  return text;
}

std::string vectors_text(const Group& group) {
  const std::size_t all = group.front().value->data.size();
  const std::size_t rows = std::min(all, most_rows);
  std::vector<Column> columns;
  for (const Entry& entry : group) {
    const NumberFormat format = format_for(entry.value->data);
    columns.push_back({entry.name, {}, true});
    for (std::size_t i = 0; i < rows; ++i)
      columns.back().fields.push_back(plain(entry.value->data[i], format));
  }
  return table_text(name_column(group.front().rows, rows), columns) + left_out(rows, all, "rows");
}

std::string matrix_text(const Entry& entry, std::size_t begin, std::size_t rows,
                        std::size_t columns) {
  const std::vector<double>& data = entry.value->data;
  const NumberFormat format = format_for({data.data() + begin, rows * columns}, true);
  const std::size_t shown_rows = std::min(rows, most_rows);
  const std::size_t shown_columns = std::min(columns, most_columns);
  std::vector<Column> table;
  for (std::size_t c = 0; c < shown_columns; ++c) {
    table.push_back({name_at(entry.columns, c), {}, true});
    for (std::size_t r = 0; r < shown_rows; ++r)
      table.back().fields.push_back(plain(data[begin + r * columns + c], format));
  }
  return table_text(name_column(entry.rows, shown_rows), table) +
         left_out(shown_rows, rows, "rows") + left_out(shown_columns, columns, "columns");
}

std::string array_text(const Entry& entry) {
  const Tensor& value = *entry.value;
  std::string text = fmt::format("{}  {}\n", entry.name, shape_text(value));
  if (value.data.empty()) return text;
  const auto columns = static_cast<std::size_t>(value.shape.back());
  const auto rows = static_cast<std::size_t>(value.shape[value.rank() - 2]);
  const std::size_t slices = value.data.size() / (rows * columns);
  for (std::size_t i = 0; i < std::min(slices, most_slices); ++i) {
    if (slices > 1) text += fmt::format("slice {} of {}\n", i + 1, slices);
    text += matrix_text(entry, i * rows * columns, rows, columns);
  }
  return text + left_out(most_slices, slices, "slices");
}

std::string group_text(const Group& group) {
  const std::size_t rank = group.front().value->rank();
  if (rank == 0) return scalars_text(group);
  if (rank == 1) return vectors_text(group);
  return array_text(group.front());
}

std::string traces_text(const Results& results) {
  std::string text;
  for (const auto& [name, values] : results.traces) {
    if (values.empty()) continue;
    text += fmt::format(
        "{}: {} -> {} in {}\n", name, plain(values.front()), plain(values.back()),
        values.size() == 1 ? "1 iteration" : fmt::format("{} iterations", values.size()));
  }
  return text;
}

std::string clients_text(const RunReport& report) {
  if (report.clients.empty()) return "";
  Column names{"client", {}, false};
  std::vector<Column> columns = {
      {"records", {}, true}, {"bytes sent", {}, true}, {"received", {}, true}};
  Column dropped{"dropped", {}, true};
  bool any_dropped = false;
  const std::size_t rows = std::min(report.clients.size(), most_clients);
  for (std::size_t i = 0; i < rows; ++i) {
    const ClientReport& client = report.clients[i];
    names.fields.push_back(printable(client.name));
    columns[0].fields.push_back(client.records == unknown_records ? "not told"
                                                                  : std::to_string(client.records));
    columns[1].fields.push_back(std::to_string(client.bytes_sent));
    columns[2].fields.push_back(std::to_string(client.bytes_received));
    dropped.fields.push_back(std::to_string(client.dropped));
    any_dropped = any_dropped || client.dropped > 0;
  }
  if (any_dropped) columns.insert(columns.begin() + 1, std::move(dropped));
  return table_text(names, columns) + left_out(rows, report.clients.size(), "clients");
}

// "missing values: north bmi 3, age 1; south bmi 2".
std::string missing_text(const RunReport& report) {
  std::string text;
  std::size_t clients = 0;
  for (const ClientReport& client : report.clients) {
    if (client.missing.empty() || ++clients > most_clients) continue;
    std::vector<std::string> parts;
    for (const auto& [column, count] : client.missing)
      parts.push_back(fmt::format("{} {}", printable(column), count));
    text += fmt::format("{}{} {}", text.empty() ? "missing values: " : "; ", printable(client.name),
                        fmt::join(parts, ", "));
  }
  return text.empty() ? "" : text + "\n";
}

// "5 rounds in 12 ms: reading data 5 ms, clients 6 ms"; what took next to nothing is not listed.
std::string time_text(const RunReport& report, const Plan& plan) {
  const std::string rounds = report.rounds == 0 && plan.rounds > 0 ? "evaluated on pooled records"
                             : report.rounds == 1                  ? "1 round"
                                                  : fmt::format("{} rounds", report.rounds);
  const auto& counts = report.results.iterations;
  const std::string iterations =
      counts.empty() ? "" : fmt::format(" ({} iterations)", fmt::join(counts, ", "));
  const std::string parts = time_parts(report);
  return fmt::format("{}{} in {}{}{}\n", rounds, iterations, duration(whole_time(report)),
                     parts.empty() ? "" : ": ", parts);
}

}  // namespace

std::string report_text(const RunReport& report, const CompiledProgram& program) {
  const ir::Program& typed = program.compilation.program;
  std::string text;
  for (const Group& group :
       groups_of(typed, report.results.outputs, output_labels(typed, report.columns, report.sizes)))
    text += group_text(group) + "\n";
  for (const std::string& warning : warnings(report, typed))
    text += fmt::format("warning: {}\n\n", printable(warning));
  const std::string traces = traces_text(report.results);
  if (!traces.empty()) text += traces + "\n";
  text += clients_text(report) + missing_text(report);
  if (report.packed > 0) text += packed_note(report) + "\n";
  if (report.sample.clients > 0)
    text += fmt::format("every round was asked of {} of the {} clients, drawn for it\n",
                        report.sample.clients, report.clients.size());
  for (const Departure& departure : report.departures)
    text += fmt::format("client {} took part in the first {} of {} rounds only\n",
                        printable(report.clients[departure.client].name), departure.rounds,
                        report.rounds);
  if (report.group)
    text += fmt::format("states were masked: the server saw sums over at least {} of {} clients\n",
                        report.group->inputs(), report.group->members.size());
  const std::int64_t numbers = report.clients.empty() ? 0 : report.clients.front().numbers_sent;
  if (report.packed == 0 && report.sample.clients == 0 && numbers > 0)
    text += fmt::format("each client sent {} folded from its records\n",
                        numbers == 1 ? "1 number" : fmt::format("{} numbers", numbers));
  if (report.privacy) text += privacy_line(*report.privacy);
  return text + time_text(report, *program.plan);
}

}  // namespace starfold
