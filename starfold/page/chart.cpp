#include "starfold/page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starfold/base/utf8.h"
#include "starfold/page/html.h"
#include "starfold/page/number.h"

namespace starfold::page {
namespace {

// In pixels of a 16-pixel font. About as wide as a phone, so that text keeps its size there.
constexpr double width = 400;
constexpr double margin_left = 58;
constexpr double margin_right = 12;
constexpr double margin_top = 12;
constexpr double margin_bottom = 44;

struct Range {
  double low = 0;
  double high = 1;
};

// From values to places along one axis, linear or by powers of ten.
struct Scale {
  Range domain;
  Range pixels;
  bool logarithmic = false;

  double operator()(double value) const {
    const double low = logarithmic ? std::log10(domain.low) : domain.low;
    const double high = logarithmic ? std::log10(domain.high) : domain.high;
    const double at = logarithmic ? std::log10(value) : value;
    return pixels.low + (at - low) / (high - low) * (pixels.high - pixels.low);
  }
};

struct Tick {
  double value = 0;
  std::string label;
};

// What can be placed along an axis: nan stands for what cannot.
std::vector<double> drawable(std::span<const double> values) {
  std::vector<double> clean;
  clean.reserve(values.size());
  for (const double value : values) {
    const double size = std::abs(value);
    clean.push_back(size < 1e-290 ? 0 : size < 1e290 ? value : std::nan(""));
  }
  return clean;
}

std::optional<Range> finite_range(std::span<const double> values) {
  std::optional<Range> range;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    if (!range) range = Range{value, value};
    range->low = std::min(range->low, value);
    range->high = std::max(range->high, value);
  }
  return range;
}

// A range that has an extent, however equal its values are.
Range widened(Range range) {
  if (range.high - range.low > 1e-12 * std::max(std::abs(range.low), std::abs(range.high)))
    return range;
  const double half = range.low == 0 ? 1 : std::abs(range.low) * 0.05;
  return {range.low - half, range.high + half};
}

double nice_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double lead = rough / power;
  return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

std::string tick_label(double value, double step) {
  const double largest = std::max(std::abs(value), step);
  if (largest >= 1e6 || step < 1e-4) return with_minus(fmt::format("{:.3g}", value));
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  return with_minus(fmt::format("{:.{}f}", value == 0 ? 0.0 : value, decimals));
}

std::vector<Tick> linear_ticks(Range range, int wanted) {
  const double step = nice_step((range.high - range.low) / wanted);
  std::vector<Tick> ticks;
  for (double k = std::ceil(range.low / step - 1e-9); k * step <= range.high + 1e-9 * step; ++k) {
    ticks.push_back({k * step, tick_label(k * step, step)});
  }
  return ticks;
}

std::string superscript(int number) {
  static constexpr const char* digits[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                           "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
  std::string text;
  for (const char c : std::to_string(number)) text += c == '-' ? "\u207b" : digits[c - '0'];
  return text;
}

std::vector<Tick> power_ticks(Range range) {
  const int first = static_cast<int>(std::ceil(std::log10(range.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(range.high) + 1e-9));
  const int step = std::max(1, (last - first + 4) / 5);
  std::vector<Tick> ticks;
  for (int power = first; power <= last; power += step)
    ticks.push_back({std::pow(10.0, power), "10" + superscript(power)});
  return ticks;
}

// Whole positions 1..count, thinned to a few.
std::vector<Tick> index_ticks(std::size_t count) {
  const double step = count <= 12 ? 1 : std::max(1.0, nice_step(static_cast<double>(count) / 6));
  std::vector<Tick> ticks;
  for (double i = step == 1 ? 1 : step; i <= static_cast<double>(count); i += step)
    ticks.push_back({i, fmt::format("{:.0f}", i)});
  return ticks;
}

std::string open_svg(std::string_view label, double w, double h) {
  return fmt::format(
      "<svg class=\"chart\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {:g} {:g}\" "
      "style=\"max-width:{:g}rem\">\n",
      escape(label), w, h, w / 16);
}

std::string text_at(double x, double y, const char* look, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, look,
                     escape(text));
}

std::string line_between(double x1, double y1, double x2, double y2, const char* look) {
  return fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", look, x1, y1, x2,
                     y2);
}

std::string y_axis(const Scale& y, const std::vector<Tick>& ticks) {
  std::string svg;
  for (const Tick& tick : ticks) {
    svg += line_between(margin_left, y(tick.value), width - margin_right, y(tick.value), "grid");
    svg += text_at(margin_left - 8, y(tick.value) + 4, "end", tick.label);
  }
  return svg;
}

std::string x_axis(const Scale& x, const std::vector<Tick>& ticks, double bottom,
                   std::string_view label, double left = margin_left) {
  std::string svg = line_between(left, bottom, width - margin_right, bottom, "axis");
  for (const Tick& tick : ticks) {
    svg += line_between(x(tick.value), bottom, x(tick.value), bottom + 4, "axis");
    svg += text_at(x(tick.value), bottom + 18, "middle", tick.label);
  }
  if (!label.empty()) svg += text_at(width - margin_right, bottom + 36, "end", label);
  return svg;
}

std::string row_label(const Labels& rows, std::size_t i) {
  return i < rows.size() ? rows[i] : std::to_string(i + 1);
}

// At most so many characters, with dots for the rest.
constexpr std::size_t most_characters = 16;
std::string shortened(const std::string& text) {
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size(); ++count) {
    if (count == most_characters) return text.substr(0, end) + "\u2026";
    const auto c = decode_utf8(text, end);
    end += c ? c->length : 1;
  }
  return text;
}

// The room that the labels of rows need.
double labels_width(const Labels& rows) {
  std::size_t longest = 0;
  for (const std::string& row : rows) longest = std::max(longest, row.size());
  return 7.4 * static_cast<double>(std::min(longest, most_characters));
}

// A line through the finite values; long ones are thinned to the extremes of short stretches.
std::string path_of(const std::vector<double>& values, const Scale& x, const Scale& y) {
  constexpr std::size_t most = 800;
  const std::size_t stretch = std::max<std::size_t>(1, 2 * values.size() / most);
  std::string path;
  bool pen = false;
  const auto go = [&](std::size_t i) {
    const bool drawn = std::isfinite(values[i]) && (!y.logarithmic || values[i] > 0);
    if (drawn)
      path += fmt::format("{}{:.1f} {:.1f}", pen ? "L" : "M", x(static_cast<double>(i + 1)),
                          y(values[i]));
    pen = drawn;
  };
  for (std::size_t begin = 0; begin < values.size(); begin += stretch) {
    const std::size_t end = std::min(values.size(), begin + stretch);
    if (stretch == 1) {
      go(begin);
      continue;
    }
    std::size_t low = begin;
    std::size_t high = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (!(values[i] >= values[low])) low = i;
      if (!(values[i] <= values[high])) high = i;
    }
    const std::size_t first = std::min(low, high);
    const std::size_t second = std::max(low, high);
    go(first);
    if (second != first) go(second);
  }
  return path;
}

bool wants_powers(std::span<const double> values, Range range) {
  return range.low > 0 && range.high / range.low >= 1000 &&
         std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

// From zero where zero is near; else as the values are.
Range with_zero(Range range) {
  const double extent = range.high - range.low;
  if (range.low > 0 && range.low <= extent) range.low = 0;
  if (range.high < 0 && -range.high <= extent) range.high = 0;
  return range;
}

Range padded(Range range, double share) {
  const double extent = (range.high - range.low) * share;
  return {range.low - extent, range.high + extent};
}

class HeatMap {
 public:
  HeatMap(const Labels& rows, const Labels& columns, std::size_t size,
          std::span<const double> given, std::optional<double> limit)
      : rows_(rows), columns_(columns), size_(size), given_(given), values_(drawable(given)) {
    const std::optional<Range> range = finite_range(values_);
    if (!range) return;
    both_ = range->low < 0;
    full_ = limit ? *limit : std::max({std::abs(range->low), std::abs(range->high), 1e-290});
    left_ = std::max(30.0, labels_width(rows) + 12);
    // Names of columns stand aslant above them, and reach over the last one.
    slant_ = columns_.empty() || size > most_named ? 0 : slope * labels_width(columns);
    square_ =
        std::clamp((width - left_ - std::max(8.0, slant_)) / static_cast<double>(size), 5.0, 54.0);
    top_ = std::max(24.0, slant_ + 14);
  }

  std::string draw(std::string_view label) const {
    if (full_ == 0) return "";
    const double side = square_ * static_cast<double>(size_);
    return open_svg(label, std::max(left_ + side + std::max(8.0, slant_), 250.0),
                    top_ + side + 44) +
           labels() + squares() + legend(top_ + side + 14) + "</svg>\n";
  }

 private:
  static constexpr double slope = 0.72;
  static constexpr std::size_t most_named = 16;

  std::string labels() const {
    std::string svg;
    const std::size_t every = size_ <= most_named ? 1 : (size_ + 7) / 8;
    for (std::size_t i = 0; i < size_; i += every) {
      const double centre = square_ * (static_cast<double>(i) + 0.5);
      svg += text_at(left_ - 7, top_ + centre + 4, "end", shortened(row_label(rows_, i)));
      if (slant_ == 0) {
        svg += text_at(left_ + centre, top_ - 8, "middle", std::to_string(i + 1));
      } else {
        svg += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-45)\">{}</text>\n",
                           left_ + centre + 2, top_ - 7, escape(shortened(columns_[i])));
      }
    }
    return svg;
  }

  // Never so dark that the numbers on it cannot be read.
  std::string swatch(double x, double y, double w, double h, double value) const {
    return fmt::format(
        "<rect class=\"{}\" fill-opacity=\"{:.2f}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\">",
        value < 0 ? "cool" : "warm", 0.04 + 0.71 * std::min(1.0, std::abs(value) / full_), x, y, w,
        h);
  }

  // A few digits of the full colour's value; empty where the squares are too small for them.
  std::vector<std::string> texts() const {
    const int decimals =
        std::clamp(2 - static_cast<int>(std::floor(std::log10(full_) + 1e-9)), 0, 9);
    std::vector<std::string> texts;
    std::size_t longest = 0;
    for (const double value : values_) {
      const std::string text =
          full_ < 1e6 ? fmt::format("{:.{}f}", value, decimals) : fmt::format("{:.2g}", value);
      const bool zero = text.find_first_of("123456789") == std::string::npos;
      texts.push_back(zero ? "0" : with_minus(text));
      longest = std::max(longest, text.size());
    }
    return 7.4 * static_cast<double>(longest) <= square_ ? texts : std::vector<std::string>();
  }

  std::string squares() const {
    const std::vector<std::string> written = texts();
    std::string svg;
    for (std::size_t i = 0; i < size_ * size_; ++i) {
      const double value = values_[i];
      if (!std::isfinite(value)) continue;
      const std::size_t row = i / size_;
      const std::size_t column = i % size_;
      const double x = left_ + square_ * static_cast<double>(column);
      const double y = top_ + square_ * static_cast<double>(row);
      svg += swatch(x + 0.5, y + 0.5, square_ - 1, square_ - 1, value) +
             fmt::format("<title>{}, {}: {}</title></rect>\n", escape(row_label(rows_, row)),
                         escape(row_label(columns_, column)), exact(given_[i]));
      if (!written.empty())
        svg += text_at(x + square_ / 2, y + square_ / 2 + 4, "middle strong", written[i]);
    }
    return svg;
  }

  std::string legend(double y) const {
    constexpr int steps = 9;
    std::string svg;
    for (int i = 0; i < steps; ++i) {
      const double share =
          both_ ? -1 + 2.0 * i / (steps - 1) : static_cast<double>(i) / (steps - 1);
      svg += swatch(left_ + 16.0 * i, y, 16, 8, share * full_) + "</rect>\n";
    }
    svg += text_at(left_, y + 24, "start", both_ ? fmt::format("\u2212{:.3g}", full_) : "0");
    if (both_) svg += text_at(left_ + 8.0 * steps, y + 24, "middle", "0");
    return svg + text_at(left_ + 16.0 * steps, y + 24, "end", fmt::format("{:.3g}", full_));
  }

  const Labels& rows_;
  const Labels& columns_;
  std::size_t size_;
  std::span<const double> given_;
  std::vector<double> values_;
  bool both_ = false;
  double full_ = 0;  // 0: nothing to draw
  double left_ = 0;
  double top_ = 0;
  double slant_ = 0;  // how far the last column's name reaches; 0: columns are numbered
  double square_ = 0;
};

}  // namespace

std::string line_chart(std::string_view label, std::string_view x_label,
                       const std::vector<Series>& series) {
  constexpr double height = 236;
  constexpr std::size_t most_dots = 40;
  std::vector<double> all;
  std::size_t count = 0;
  std::vector<std::vector<double>> lines;
  for (const Series& one : series) {
    lines.push_back(drawable(one.values));
    all.insert(all.end(), lines.back().begin(), lines.back().end());
    count = std::max(count, one.values.size());
  }
  const std::optional<Range> range = finite_range(all);
  if (!range || count < 2) return "";
  const bool powers = wants_powers(all, *range);
  const Range domain =
      powers ? Range{range->low / 1.3, range->high * 1.3} : padded(widened(*range), 0.05);
  const double bottom = height - margin_bottom;
  const Scale y{domain, {bottom, margin_top}, powers};
  const Scale x{{1, static_cast<double>(count)}, {margin_left + 8, width - margin_right - 8}};
  std::string svg = open_svg(label, width, height) +
                    y_axis(y, powers ? power_ticks(domain) : linear_ticks(domain, 4)) +
                    x_axis(x, index_ticks(count), bottom, x_label);
  for (std::size_t s = 0; s < series.size(); ++s) {
    const std::vector<double>& values = lines[s];
    svg += fmt::format("<path class=\"curve s{}\" d=\"{}\"/>\n", s % 6, path_of(values, x, y));
    if (series.size() > 1 || values.size() > most_dots) continue;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i]) || (powers && values[i] <= 0)) continue;
      svg += fmt::format(
          "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{} {}: "
          "{}</title></circle>\n",
          x(static_cast<double>(i + 1)), y(values[i]), escape(x_label), i + 1,
          exact(series[s].values[i]));
    }
  }
  return svg + "</svg>\n";
}

std::string curve_chart(std::string_view label, std::string_view x_label,
                        std::span<const double> at, const std::vector<Series>& series, bool steps) {
  constexpr double height = 236;
  std::vector<double> all;
  std::vector<std::vector<double>> lines;
  for (const Series& one : series) {
    lines.push_back(drawable(one.values));
    all.insert(all.end(), lines.back().begin(), lines.back().end());
  }
  const std::optional<Range> range = finite_range(all);
  const std::optional<Range> along = finite_range(at);
  if (!range || !along || at.size() < 2) return "";
  const bool powers = wants_powers(at, *along);
  const Range across = powers ? Range{along->low / 1.2, along->high * 1.2} : widened(*along);
  const Range domain = padded(widened(with_zero(*range)), 0.04);
  const double bottom = height - margin_bottom;
  const Scale y{domain, {bottom, margin_top}};
  const Scale x{across, {margin_left + 8, width - margin_right - 8}, powers};
  std::string svg =
      open_svg(label, width, height) + y_axis(y, linear_ticks(domain, 4)) +
      x_axis(x, powers ? power_ticks(across) : linear_ticks(across, 6), bottom, x_label);
  for (std::size_t s = 0; s < lines.size(); ++s) {
    std::string path;
    bool pen = false;
    for (std::size_t i = 0; i < std::min(at.size(), lines[s].size()); ++i) {
      if (!std::isfinite(lines[s][i])) {
        pen = false;
        continue;
      }
      const double px = x(at[i]);
      if (pen && steps) path += fmt::format("H{:.1f}", px);
      path += fmt::format("{}{:.1f} {:.1f}", pen ? "L" : "M", px, y(lines[s][i]));
      pen = true;
    }
    svg += fmt::format("<path class=\"curve s{}\" d=\"{}\"/>\n", s % 6, path);
  }
  return svg + "</svg>\n";
}

namespace {

// 0.5, 1, 2, 5, ...: at most a handful between the ends of a range by powers.
std::vector<Tick> ratio_ticks(Range range) {
  if (range.high / range.low > 1e4) return power_ticks(range);
  std::vector<Tick> ticks;
  for (int power = -5; power <= 5; ++power) {
    for (const double lead : {1.0, 2.0, 5.0}) {
      const double value = lead * std::pow(10.0, power);
      if (value >= range.low && value <= range.high)
        ticks.push_back({value, fmt::format("{:g}", value)});
    }
  }
  return ticks;
}

// One row per value with its interval; `reference` is where nothing differs.
struct Dots {
  std::vector<double> values;
  std::vector<double> lower;
  std::vector<double> upper;
  double reference = 0;
  bool ratios = false;

  bool intervals() const { return lower.size() == values.size() && upper.size() == values.size(); }
  std::optional<Range> domain() const {
    std::vector<double> all = values;
    if (intervals()) all.insert(all.end(), lower.begin(), lower.end());
    if (intervals()) all.insert(all.end(), upper.begin(), upper.end());
    std::optional<Range> range = finite_range(all);
    if (!range) return range;
    if (!ratios) return padded(widened(with_zero(*range)), 0.04);
    return Range{std::min(range->low, 1.0) / 1.1, std::max(range->high, 1.0) * 1.1};
  }
};

std::string draw(const Dots& dots, std::string_view label, const Labels& rows,
                 std::span<const double> given) {
  constexpr double row = 24;
  const std::optional<Range> domain = dots.domain();
  if (!domain) return "";
  const double bottom = margin_top + row * static_cast<double>(dots.values.size());
  const double left = std::max(40.0, labels_width(rows) + 12);
  const Scale x{*domain, {left, width - margin_right}, dots.ratios};
  std::string svg = open_svg(label, width, bottom + margin_bottom - 14);
  const std::vector<Tick> ticks = dots.ratios ? ratio_ticks(*domain) : linear_ticks(*domain, 5);
  for (const Tick& tick : ticks)
    svg += line_between(x(tick.value), margin_top, x(tick.value), bottom,
                        tick.value == dots.reference ? "zero" : "grid");
  svg += x_axis(x, ticks, bottom, "", left);
  for (std::size_t i = 0; i < dots.values.size(); ++i) {
    const double y = margin_top + row * (static_cast<double>(i) + 0.5);
    svg += text_at(left - 8, y + 4, "end", shortened(row_label(rows, i)));
    if (dots.intervals() && std::isfinite(dots.lower[i]) && std::isfinite(dots.upper[i]))
      svg += line_between(x(dots.lower[i]), y, x(dots.upper[i]), y, "interval");
    if (!std::isfinite(dots.values[i])) continue;
    svg += fmt::format(
        "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"><title>{}: "
        "{}</title></circle>\n",
        x(dots.values[i]), y, escape(row_label(rows, i)), exact(given[i]));
  }
  return svg + "</svg>\n";
}

// What can be placed by powers.
std::vector<double> positive(std::span<const double> given) {
  std::vector<double> values = drawable(given);
  for (double& value : values) value = value > 0 ? value : std::nan("");
  return values;
}

}  // namespace

std::string dot_chart(std::string_view label, const Labels& rows, std::span<const double> given,
                      std::span<const double> lower, std::span<const double> upper) {
  return draw({drawable(given), drawable(lower), drawable(upper)}, label, rows, given);
}

std::string ratio_chart(std::string_view label, const Labels& rows, std::span<const double> given,
                        std::span<const double> lower, std::span<const double> upper) {
  return draw({positive(given), positive(lower), positive(upper), 1, true}, label, rows, given);
}

namespace {

// A bar from zero to its value, with the value above it where there is room.
std::string bar(double left, double right, double value, const Scale& y, const std::string& title) {
  const double top = std::min(y(value), y(0));
  std::string svg = fmt::format(
      "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{:.1f}\"><title>{}</title></rect>\n",
      left, top, std::max(1.0, right - left), std::abs(y(value) - y(0)), escape(title));
  const std::string number = with_minus(fmt::format("{:.6g}", value));
  if (7.5 * static_cast<double>(number.size()) < right - left + 6)
    svg += text_at((left + right) / 2, top - 5, "middle strong", number);
  return svg;
}

Scale bar_scale(const Range& range, double height) {
  const Range domain{std::min(0.0, range.low), std::max(0.0, range.high)};
  return {widened(domain), {height - margin_bottom, margin_top + 12}};
}

constexpr double bars_height = 230;

// Their names below the bars, or numbers when one is too long.
std::vector<Tick> bar_ticks(const Labels& names, std::size_t count, double slot) {
  if (names.size() != count || labels_width(names) > slot) return index_ticks(count);
  std::vector<Tick> ticks;
  for (std::size_t i = 0; i < count; ++i)
    ticks.push_back({static_cast<double>(i + 1), shortened(names[i])});
  return ticks;
}

}  // namespace

std::string bar_chart(std::string_view label, const Labels& names, std::span<const double> given) {
  const std::vector<double> values = drawable(given);
  const std::optional<Range> range = finite_range(values);
  if (!range) return "";
  const Scale y = bar_scale(*range, bars_height);
  const auto count = static_cast<double>(values.size());
  const Scale x{{0.5, count + 0.5}, {margin_left + 4, width - margin_right}};
  const double slot = x(2) - x(1);
  const double half = slot * (slot > 6 ? 0.39 : 0.5);
  std::string svg = open_svg(label, width, bars_height) + y_axis(y, linear_ticks(y.domain, 4));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const double centre = x(static_cast<double>(i + 1));
    svg += bar(centre - half, centre + half, values[i], y,
               fmt::format("{}: {}", row_label(names, i), exact(given[i])));
  }
  return svg + x_axis(x, bar_ticks(names, values.size(), slot), y.pixels.low, "") + "</svg>\n";
}

std::string histogram(std::string_view label, std::span<const double> given,
                      std::span<const double> edges) {
  const std::vector<double> values = drawable(given);
  const std::optional<Range> range = finite_range(values);
  const std::vector<double> places = drawable(edges);
  const std::optional<Range> along = finite_range(places);
  const auto hidden = [](double place) { return std::isnan(place); };
  if (!range || !along || std::any_of(places.begin(), places.end(), hidden)) return "";
  const Scale y = bar_scale(*range, bars_height);
  const Scale x{widened(*along), {margin_left + 4, width - margin_right - 8}};
  std::string svg = open_svg(label, width, bars_height) + y_axis(y, linear_ticks(y.domain, 4));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    svg += bar(x(edges[i]) + 0.5, x(edges[i + 1]) - 0.5, values[i], y,
               fmt::format("{} to {}: {}", exact(edges[i]), exact(edges[i + 1]), exact(given[i])));
  }
  return svg + x_axis(x, linear_ticks(x.domain, 5), y.pixels.low, "") + "</svg>\n";
}

std::string heat_map(std::string_view label, const Labels& rows, const Labels& columns,
                     std::size_t size, std::span<const double> values,
                     std::optional<double> limit) {
  return HeatMap(rows, columns, size, values, limit).draw(label);
}

}  // namespace starfold::page
