#include "starfold/page/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "starfold/page/chart.h"
#include "starfold/page/html.h"
#include "starfold/page/listing.h"
#include "starfold/page/number.h"

namespace starfold::page {
namespace {

constexpr std::size_t most_rows = 200;
constexpr std::size_t most_columns = 30;

bool correlation_like(const Tensor& value) {
  const auto n = static_cast<std::size_t>(value.shape[0]);
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < n; ++c) {
      const double entry = value.data[r * n + c];
      if (std::isnan(entry)) continue;
      if (!(std::abs(entry) <= 1 + 1e-9) || std::abs(entry - value.data[c * n + r]) > 1e-9)
        return false;
    }
    if (std::abs(value.data[r * n + r] - 1) > 1e-9) return false;  // nan: a column without variance
  }
  return true;
}

const Tensor* find(const Outputs& outputs, const std::string& name, const Shape& shape) {
  const auto found = outputs.find(name);
  return found != outputs.end() && found->second.shape == shape ? &found->second : nullptr;
}

std::string shape_text(const Tensor& value) {
  if (value.shape.empty()) return "one number";
  std::string text;
  for (const std::int64_t extent : value.shape)
    text += (text.empty() ? "" : " \u00d7 ") + grouped(extent);
  return text + (value.count() == 1 ? " number" : " numbers");
}

std::string left_out(std::size_t shown, std::size_t all, const char* what) {
  if (shown >= all) return "";
  return fmt::format(
      "<p class=\"note\">The first {} of {} {}; all of them are in outputs.json.</p>\n", shown,
      grouped(static_cast<std::int64_t>(all)), what);
}

// An output with what is known about it.
struct Entry {
  std::string name;
  const Tensor& value;
  Labels rows;     // names of its last axis but one, or of a vector's only axis
  Labels columns;  // of a matrix's last axis
  std::optional<Interval> interval;
};

// The names along an axis, when they are known and as many as its extent.
Labels labels_for(const Dim& dim, std::int64_t extent, const AxisNames& axes) {
  const auto variable = dim.size.as_variable();
  const auto found = variable ? axes.find(*variable) : axes.end();
  const bool fits =
      found != axes.end() && static_cast<std::int64_t>(found->second.size()) == extent;
  return fits ? found->second : Labels();
}

std::string index_html(const Labels& labels, std::size_t i) {
  return fmt::format("<span class=\"index\">{}</span>",
                     i < labels.size() ? escape(labels[i]) : std::to_string(i + 1));
}

// A column of a table of vectors.
struct Column {
  std::string title;  // HTML
  std::string name;   // of the output; empty for what was computed for this page
  const Tensor* value = nullptr;
};

std::string vectors_table(const Entry& entry, const std::vector<Column>& columns) {
  const std::size_t all = columns.front().value->data.size();
  const std::size_t rows = std::min(all, most_rows);
  std::vector<Cell> head = {{"", true}};
  std::vector<NumberFormat> formats;
  for (const Column& column : columns) {
    head.push_back({column.title, true});
    formats.push_back(format_for(column.value->data));
  }
  std::vector<std::vector<Cell>> body;
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<Cell> row = {{index_html(entry.rows, i), entry.rows.empty()}};
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double value = columns[c].value->data[i];
      row.push_back({columns[c].name.empty() ? shown(value, formats[c])
                                             : datum(value, formats[c], columns[c].name, i),
                     true});
    }
    body.push_back(std::move(row));
  }
  return table(entry.name, head, body) + left_out(rows, all, "rows");
}

// Rows and columns `begin` onwards of a tensor's data.
std::string matrix_table(const Entry& entry, std::size_t begin, std::size_t rows,
                         std::size_t columns) {
  const Tensor& value = entry.value;
  const std::size_t shown_rows = std::min(rows, most_rows);
  const std::size_t shown_columns = std::min(columns, most_columns);
  const NumberFormat format = format_for({value.data.data() + begin, rows * columns}, true);
  std::vector<Cell> head = {{""}};
  for (std::size_t c = 0; c < shown_columns; ++c)
    head.push_back({index_html(entry.columns, c), true});
  std::vector<std::vector<Cell>> body;
  for (std::size_t r = 0; r < shown_rows; ++r) {
    std::vector<Cell> row = {{index_html(entry.rows, r), entry.rows.empty()}};
    for (std::size_t c = 0; c < shown_columns; ++c) {
      const std::size_t index = begin + r * columns + c;
      row.push_back({datum(value.data[index], format, entry.name, index), true});
    }
    body.push_back(std::move(row));
  }
  return table(entry.name, head, body) + left_out(shown_rows, rows, "rows") +
         left_out(shown_columns, columns, "columns");
}

std::string table_of(const Entry& entry) {
  const Tensor& value = entry.value;
  if (value.data.empty()) return "<p class=\"note\">empty</p>\n";
  const auto columns = static_cast<std::size_t>(value.shape.back());
  const auto rows = static_cast<std::size_t>(value.shape[value.rank() - 2]);
  const std::size_t slabs = value.data.size() / (rows * columns);
  constexpr std::size_t most_slabs = 12;
  std::string html;
  for (std::size_t slab = 0; slab < std::min(slabs, most_slabs); ++slab) {
    if (slabs > 1) html += fmt::format("<h4>slice {} of {}</h4>", slab + 1, slabs);
    html += matrix_table(entry, slab * rows * columns, rows, columns);
  }
  return html + left_out(most_slabs, slabs, "slices");
}

std::string figure(const std::string& svg, const std::string& caption) {
  return svg.empty()
             ? ""
             : fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", svg, caption);
}

std::string picture(const Entry& entry) {
  const std::string& name = entry.name;
  const Tensor& value = entry.value;
  const std::vector<double>& data = value.data;
  switch (picture_for(value, entry.interval.has_value())) {
    case PictureKind::none:
      return "";
    case PictureKind::dots:
      if (entry.interval)
        return figure(dot_chart(name, entry.rows, data, entry.interval->lower.data,
                                entry.interval->upper.data),
                      "Each entry with its interval.");
      return figure(dot_chart(name, entry.rows, data), "One dot per entry.");
    case PictureKind::bars:
      return figure(bar_chart(name, data), "One bar per entry.");
    case PictureKind::scree:
      return figure(line_chart(name, "entry", {{name, data}}),
                    "The entries in order, from the largest.");
    case PictureKind::curve:
      return figure(line_chart(name, "entry", {{name, data}}), "The entries in order.");
    case PictureKind::curves: {
      const auto columns = static_cast<std::size_t>(value.shape[1]);
      std::vector<Series> series(columns);
      for (std::size_t i = 0; i < data.size(); ++i) series[i % columns].values.push_back(data[i]);
      std::string keys;
      for (std::size_t c = 0; c < columns; ++c)
        keys += fmt::format(
            "<span class=\"key s{}\">{}</span> ", c % 6,
            c < entry.columns.size() ? escape(entry.columns[c]) : fmt::format("column {}", c + 1));
      return figure(line_chart(name, "row", series), keys);
    }
    case PictureKind::heat_map:
      return figure(heat_map(name, entry.rows, static_cast<std::size_t>(value.shape[0]), data),
                    "Warm above zero, cool below.");
    case PictureKind::correlation:
      return figure(heat_map(name, entry.rows, static_cast<std::size_t>(value.shape[0]), data, 1.0),
                    "Warm: together; cool: opposed.");
  }
  return "";
}

std::string scalar_tile(const Entry& entry, const Outputs& outputs) {
  const std::string& name = entry.name;
  const Tensor& value = entry.value;
  const std::optional<Interval>& interval = entry.interval;
  std::string html =
      fmt::format("<div data-output=\"{}\"><dt><code>{}</code></dt><dd>{}</dd>", escape(name),
                  escape(name), datum(value.item(), format_for(value.data), name, 0));
  if (interval) {
    std::string from;
    for (const std::string& companion : interval->from) {
      const Tensor& tensor = outputs.at(companion);
      from += fmt::format("{}{} {}", from.empty() ? "" : ", ", code(companion),
                          datum(tensor.item(), format_for(tensor.data), companion, 0));
    }
    html += fmt::format("<dd class=\"more\">{} to {} <span>({})</span></dd>",
                        shown(interval->lower.item()), shown(interval->upper.item()), from);
  }
  return html + "</div>\n";
}

// Long tables wait until they are asked for.
std::string numbers(const std::string& html, const Tensor& value) {
  constexpr std::int64_t most_open = 24;
  const bool open =
      value.rank() == 0 || value.shape[value.rank() == 1 ? 0 : value.rank() - 2] <= most_open;
  return "<div class=\"numbers\">" +
         (open ? html : "<details><summary>Numbers</summary>" + html + "</details>") + "</div>";
}

std::string result(const Entry& entry, const Outputs& outputs) {
  const std::string& name = entry.name;
  const Tensor& value = entry.value;
  const std::optional<Interval>& interval = entry.interval;
  const std::string html = picture(entry);
  if (value.rank() != 1) return html + numbers(table_of(entry), value);
  std::vector<Column> columns = {{code(name), name, &value}};
  if (interval) {
    for (const std::string& companion : interval->from)
      columns.push_back({code(companion), companion, &outputs.at(companion)});
    if (interval->from.size() == 1) {
      columns.push_back({"lower", "", &interval->lower});
      columns.push_back({"upper", "", &interval->upper});
    }
  }
  std::string rows = vectors_table(entry, columns);
  if (interval && interval->from.size() == 1)
    rows += fmt::format("<p class=\"note\">From lower to upper: {} \u00b1 1.96 {}.</p>", code(name),
                        code(interval->from.front()));
  return html + numbers(rows, value);
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

PictureKind picture_for(const Tensor& value, bool interval) {
  const std::vector<double>& data = value.data;
  if (value.rank() == 2) {
    if (value.shape[0] == value.shape[1] && value.shape[0] >= 2 && value.shape[0] <= 64) {
      return correlation_like(value) ? PictureKind::correlation : PictureKind::heat_map;
    }
    return value.shape[0] >= 12 && value.shape[1] <= 6 ? PictureKind::curves : PictureKind::none;
  }
  if (value.rank() != 1 || data.size() < 2) return PictureKind::none;
  if (interval && data.size() <= 60) return PictureKind::dots;
  const bool never_negative =
      std::all_of(data.begin(), data.end(), [](double v) { return v >= 0 && std::isfinite(v); });
  if (data.size() >= 3 && never_negative) {
    if (std::all_of(data.begin(), data.end(), [](double v) { return v == std::floor(v); }))
      return PictureKind::bars;
    if (std::is_sorted(data.begin(), data.end(), std::greater<>())) return PictureKind::scree;
  }
  return data.size() > 40 ? PictureKind::curve : PictureKind::dots;
}

AxisNames axis_names(const ir::Program& program,
                     const std::map<std::string, std::vector<std::string>>& columns) {
  AxisNames names;
  std::set<std::string> disputed;
  for (const ir::Input& input : program.inputs) {
    const auto own = columns.find(input.name);
    if (own == columns.end() || input.type.rank() != 2 || !input.type.federated()) continue;
    const auto variable = input.type.dims[1 - *input.type.record_axis()].size.as_variable();
    if (!variable) continue;
    const auto [known, fresh] = names.emplace(*variable, own->second);
    if (!fresh && known->second != own->second) disputed.insert(known->first);
  }
  for (const std::string& size : disputed) names.erase(size);
  return names;
}

std::string results_html(const Plan& plan, const SourceMap& sources, const Outputs& outputs,
                         const AxisNames& axes) {
  std::set<std::string> companions;
  for (const auto& [name, value] : outputs) {
    if (const std::optional<Interval> interval = interval_of(outputs, name))
      companions.insert(interval->from.begin(), interval->from.end());
  }
  std::string html;
  bool tiles = false;
  for (const ir::Output& output : plan.program.outputs) {
    const auto found = outputs.find(output.name);
    if (found == outputs.end() || companions.count(output.name) != 0) continue;
    const Type& type = plan.program.graph[output.node].type();
    Entry entry{output.name, found->second, {}, {}, interval_of(outputs, output.name)};
    const std::size_t rank = entry.value.rank();
    const std::size_t row_axis = rank == 1 ? 0 : rank - 2;
    if (rank > 0) entry.rows = labels_for(type.dims[row_axis], entry.value.shape[row_axis], axes);
    if (rank > 1) entry.columns = labels_for(type.dims[rank - 1], entry.value.shape.back(), axes);
    if (rank == 0) {
      // Numbers that follow each other share a row.
      html += tiles ? "" : "<dl class=\"tiles\">\n";
      tiles = true;
      html += scalar_tile(entry, outputs);
      continue;
    }
    html += tiles ? "</dl>\n" : "";
    tiles = false;
    html += fmt::format(
        "<article class=\"result\" data-output=\"{}\"><h3>{} {} <span class=\"often\">{}, line "
        "{}</span></h3>\n<div class=\"pair\">{}</div></article>\n",
        escape(output.name), code(output.name), type_tag(type), shape_text(entry.value),
        line_link(sources, output.span), result(entry, outputs));
  }
  return html + (tiles ? "</dl>\n" : "");
}

}  // namespace starfold::page
