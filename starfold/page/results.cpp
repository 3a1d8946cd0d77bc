#include "starfold/page/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "starfold/page/chart.h"
#include "starfold/page/html.h"
#include "starfold/page/listing.h"
#include "starfold/page/number.h"

namespace starfold::page {
namespace {

constexpr std::size_t most_rows = 200;
constexpr std::size_t most_columns = 30;
constexpr std::size_t most_bars = 200;

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

std::vector<Column> columns_of(const Group& group) {
  std::vector<Column> columns;
  const Interval* interval = nullptr;
  for (const Entry& entry : group) {
    columns.push_back({code(entry.name), entry.name, entry.value});
    if (entry.interval) interval = &*entry.interval;
    if (!entry.companion || interval == nullptr || interval->from.size() != 1) continue;
    columns.push_back({"lower", "", &interval->lower});
    columns.push_back({"upper", "", &interval->upper});
  }
  return columns;
}

// Where a table of many columns goes on below, so that a page of paper has all of them: a number stays with the ends of its interval.
std::vector<std::span<const Column>> parts_of(std::span<const Column> columns) {
  constexpr std::size_t most = 8;
  const auto belongs = [](const Column& column) {
    const std::string_view name = column.name;
    return name.empty() || name.ends_with("_lower") || name.ends_with("_upper") ||
           name.ends_with("_se");
  };
  std::vector<std::span<const Column>> parts;
  while (columns.size() > most) {
    std::size_t end = most;
    while (end > 1 && belongs(columns[end])) --end;
    if (end == 1) end = most;
    parts.push_back(columns.first(end));
    columns = columns.subspan(end);
  }
  parts.push_back(columns);
  return parts;
}

std::string columns_table(const Entry& first, std::span<const Column> columns, std::size_t rows) {
  std::vector<Field> head = {{"", true}};
  std::vector<NumberFormat> formats;
  for (const Column& column : columns) {
    head.push_back({column.title, true});
    formats.push_back(format_for(column.value->data));
  }
  std::vector<std::vector<Field>> body;
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<Field> row = {{index_html(first.rows, i), first.rows.empty()}};
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double value = columns[c].value->data[i];
      row.push_back({columns[c].name.empty() ? shown(value, formats[c])
                                             : datum(value, formats[c], columns[c].name, i),
                     true});
    }
    body.push_back(std::move(row));
  }
  return table(first.name, head, body);
}

std::string vectors_table(const Group& group) {
  const std::vector<Column> columns = columns_of(group);
  const Entry& first = group.front();
  const std::size_t all = first.value->data.size();
  const std::size_t rows = std::min(all, most_rows);
  std::string html;
  for (const std::span<const Column> part : parts_of(columns))
    html += columns_table(first, part, rows);
  html += left_out(rows, all, "rows");
  for (const Entry& entry : group) {
    if (entry.interval && entry.interval->from.size() == 1)
      html += fmt::format("<p class=\"note\">From lower to upper: {} \u00b1 1.96 {}.</p>",
                          code(entry.name), code(entry.interval->from.front()));
  }
  return html;
}

// Rows and columns `begin` onwards of a tensor's data.
std::string matrix_table(const Entry& entry, std::size_t begin, std::size_t rows,
                         std::size_t columns) {
  const Tensor& value = *entry.value;
  const std::size_t shown_rows = std::min(rows, most_rows);
  const std::size_t shown_columns = std::min(columns, most_columns);
  const NumberFormat format = format_for({value.data.data() + begin, rows * columns}, true);
  std::vector<Field> head = {{""}};
  for (std::size_t c = 0; c < shown_columns; ++c)
    head.push_back({index_html(entry.columns, c), true});
  std::vector<std::vector<Field>> body;
  for (std::size_t r = 0; r < shown_rows; ++r) {
    std::vector<Field> row = {{index_html(entry.rows, r), entry.rows.empty()}};
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
  const Tensor& value = *entry.value;
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

// Dots with intervals. An intercept is on another scale than what it stands beside: the table has it.
std::string intervals(const Entry& entry) {
  const bool skip =
      entry.rows.size() > 2 && entry.rows.front() == intercept && entry.value->data.size() > 2;
  const auto tail = [&](const std::vector<double>& values) {
    return std::span(values).subspan(skip ? 1 : 0);
  };
  const Labels rows(entry.rows.begin() + (skip ? 1 : 0), entry.rows.end());
  const auto chart = entry.name.ends_with("_ratio") ? ratio_chart : dot_chart;
  return figure(chart(entry.name, rows, tail(entry.value->data), tail(entry.interval->lower.data),
                      tail(entry.interval->upper.data)),
                fmt::format("{} with its interval{}.", code(entry.name),
                            skip ? "; the intercept is in the table" : ""));
}

// The numbers that others are given over, when an output says so by its name: "times", for curves of survival.
struct Along {
  std::string name;
  const Tensor* at = nullptr;
};
std::optional<Along> along(const Outputs& outputs, std::int64_t length) {
  for (const char* name : {"times", "thresholds", "lambda"}) {
    const auto found = outputs.find(name);
    if (found == outputs.end() || found->second.rank() != 1) continue;
    const std::vector<double>& at = found->second.data;
    const bool ordered = std::is_sorted(at.begin(), at.end()) ||
                         std::is_sorted(at.begin(), at.end(), std::greater<>());
    if (static_cast<std::int64_t>(at.size()) == length && length > 1 && ordered)
      return Along{name, &found->second};
  }
  return std::nullopt;
}

// A curve, with the ends of its interval where it has one.
std::string curve(const Entry& entry, const Along& axis) {
  std::vector<Series> series = {{entry.name, entry.value->data}};
  if (entry.interval) {
    series.push_back({"lower", entry.interval->lower.data});
    series.push_back({"upper", entry.interval->upper.data});
  }
  return figure(curve_chart(entry.name, axis.name, axis.at->data, series, axis.name == "times"),
                fmt::format("{}{} over {}.", code(entry.name),
                            entry.interval ? " with its interval" : "", code(axis.name)));
}

// The edges of the bins that an output counts, when there are such.
const Tensor* edges_of(const Outputs& outputs, const Entry& entry) {
  for (const std::string& name : {entry.name + "_edges", std::string("edges")}) {
    const auto found = outputs.find(name);
    if (found == outputs.end() || found->second.rank() != 1) continue;
    const std::vector<double>& edges = found->second.data;
    if (edges.size() != entry.value->data.size() + 1) continue;
    const auto finite = [](double v) { return std::isfinite(v); };
    if (std::all_of(edges.begin(), edges.end(), finite) &&
        std::is_sorted(edges.begin(), edges.end(), std::less_equal<>()))
      return &found->second;
  }
  return nullptr;
}

// Whether the histogram of another output shows these numbers along its axis.
bool is_edges(const Group& group, const std::vector<Group>& all, const Outputs& outputs) {
  for (const Group& other : all) {
    for (const Entry& entry : other) {
      if (picture_for(*entry.value, false) == PictureKind::bars &&
          edges_of(outputs, entry) == group.front().value)
        return true;
    }
  }
  return false;
}

std::string bars(const Entry& entry, const Outputs& outputs) {
  if (const Tensor* edges = edges_of(outputs, entry))
    return figure(histogram(entry.name, entry.value->data, edges->data), "Counts between edges.");
  return figure(bar_chart(entry.name, entry.rows, entry.value->data), "One bar per entry.");
}

std::string curves(const Entry& entry, const Outputs& outputs) {
  const auto columns = static_cast<std::size_t>(entry.value->shape[1]);
  std::vector<Series> series(columns);
  for (std::size_t i = 0; i < entry.value->data.size(); ++i)
    series[i % columns].values.push_back(entry.value->data[i]);
  std::string keys;
  for (std::size_t c = 0; c < columns; ++c)
    keys += fmt::format(
        "<span class=\"key s{}\">{}</span> ", c % 6,
        c < entry.columns.size() ? escape(entry.columns[c]) : fmt::format("column {}", c + 1));
  if (const std::optional<Along> axis = along(outputs, entry.value->shape[0]))
    return figure(
        curve_chart(entry.name, axis->name, axis->at->data, series, axis->name == "times"), keys);
  return figure(line_chart(entry.name, "row", series), keys);
}

// `alone`: no other vector is in the same table.
std::string picture(const Entry& entry, const Outputs& outputs, bool alone) {
  const std::string& name = entry.name;
  const Tensor& value = *entry.value;
  const std::vector<double>& data = value.data;
  const auto side = value.rank() == 2 ? static_cast<std::size_t>(value.shape[0]) : 0;
  const std::optional<Along> axis =
      value.rank() == 1 ? along(outputs, value.shape[0]) : std::nullopt;
  if (axis && axis->name == name) return "";
  if (axis) return curve(entry, *axis);
  PictureKind kind = picture_for(value, entry.interval.has_value());
  // Nor does one number many times over make a picture.
  const bool same = std::all_of(data.begin(), data.end(), [&](double v) { return v == data[0]; });
  if (value.rank() == 1 && same && !entry.interval) return "";
  // Between variables there is nothing to draw a line through.
  if (!entry.rows.empty() && (kind == PictureKind::scree || kind == PictureKind::curve))
    kind = data.size() <= 60 ? PictureKind::dots : PictureKind::none;
  if (!entry.rows.empty() && kind == PictureKind::curves) kind = PictureKind::none;
  switch (kind) {
    case PictureKind::none:
      return "";
    case PictureKind::dots:
      if (entry.interval) return intervals(entry);
      return alone ? figure(dot_chart(name, entry.rows, data), "One dot per entry.") : "";
    case PictureKind::bars:
      return bars(entry, outputs);
    case PictureKind::scree:
      return figure(line_chart(name, "entry", {{name, data}}),
                    "The entries in order, from the largest.");
    case PictureKind::curve:
      return figure(line_chart(name, "entry", {{name, data}}), "The entries in order.");
    case PictureKind::curves:
      return curves(entry, outputs);
    case PictureKind::heat_map:
      return figure(heat_map(name, entry.rows, entry.columns, side, data),
                    "Warm above zero, cool below.");
    case PictureKind::correlation:
      return figure(heat_map(name, entry.rows, entry.columns, side, data, 1.0),
                    "Warm: together; cool: opposed.");
  }
  return "";
}

std::string scalar_tile(const Entry& entry, const Outputs& outputs) {
  const std::string& name = entry.name;
  const Tensor& value = *entry.value;
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
std::string with_numbers(const std::string& html, const Tensor& value) {
  constexpr std::int64_t most_open = 24;
  const bool open =
      value.rank() == 0 || value.shape[value.rank() == 1 ? 0 : value.rank() - 2] <= most_open;
  return "<div class=\"numbers\">" +
         (open ? html : "<details><summary>Numbers</summary>" + html + "</details>") + "</div>";
}

std::string pictures(const Group& group, const Outputs& outputs) {
  const auto shown = std::count_if(group.begin(), group.end(),
                                   [](const Entry& entry) { return !entry.companion; });
  std::string html;
  for (const Entry& entry : group) {
    if (!entry.companion) html += picture(entry, outputs, shown == 1);
  }
  return html;
}

// "beta", "beta, z and p_value", each with its line.
std::string heading(const Group& group, const SourceMap& sources) {
  std::vector<std::string> names;
  std::vector<std::string> lines;
  for (const Entry& entry : group) {
    if (entry.companion) continue;
    names.push_back(code(entry.name));
    lines.push_back(line_link(sources, entry.span));
  }
  const Entry& first = group.front();
  return fmt::format("<h3>{} {} <span class=\"often\">{}{}, {} {}</span></h3>\n", listed(names),
                     type_tag(first.type), shape_text(*first.value),
                     names.size() > 1 ? " each" : "", lines.size() > 1 ? "lines" : "line",
                     listed(lines));
}

// Numbers that follow each other share a row.
std::string tiles(const Group& group, const Outputs& outputs) {
  std::string html = "<dl class=\"tiles\">\n";
  for (const Entry& entry : group) {
    if (!entry.companion) html += scalar_tile(entry, outputs);
  }
  return html + "</dl>\n";
}

}  // namespace

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
    if (data.size() <= most_bars &&
        std::all_of(data.begin(), data.end(), [](double v) { return v == std::floor(v); }))
      return PictureKind::bars;
    if (std::is_sorted(data.begin(), data.end(), std::greater<>())) return PictureKind::scree;
  }
  return data.size() > 40 ? PictureKind::curve : PictureKind::dots;
}

std::string results_html(const ir::Program& program, const SourceMap& sources,
                         const Outputs& outputs, const OutputLabels& labels) {
  std::string html;
  const std::vector<Group> groups = groups_of(program, outputs, labels);
  for (const Group& group : groups) {
    const Entry& first = group.front();
    if (first.value->rank() == 0) {
      html += tiles(group, outputs);
      continue;
    }
    html += fmt::format(
        "<article class=\"result\" data-output=\"{}\">{}<div class=\"pair\">{}{}</div></article>\n",
        escape(first.name), heading(group, sources),
        is_edges(group, groups, outputs) ? "" : pictures(group, outputs),
        with_numbers(first.value->rank() == 1 ? vectors_table(group) : table_of(first),
                     *first.value));
  }
  return html;
}

}  // namespace starfold::page
