#include "starfold/page/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "starfold/page/html.h"

namespace starfold::page {
namespace {

constexpr int digits = 6;
constexpr double largest_whole = 1e15;

bool whole(double value) { return std::abs(value) < largest_whole && value == std::floor(value); }

// Whether so many decimals are all that a number has.
bool exact_in(double value, int decimals) {
  return !std::isfinite(value) ||
         std::strtod(fmt::format("{:.{}f}", value, decimals).c_str(), nullptr) == value;
}

// 1.5e-07 as 1.5·10⁻⁷.
std::string with_power(const std::string& text) {
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return with_minus(text);
  return fmt::format("{}\u00b710<sup>{}</sup>", with_minus(text.substr(0, e)),
                     with_minus(std::to_string(std::stoi(text.substr(e + 1)))));
}

}  // namespace

std::string with_minus(const std::string& text) {
  if (!text.starts_with('-')) return text;
  const bool zero = text.find_first_of("123456789") == std::string::npos;
  return (zero ? "" : "\u2212") + text.substr(1);
}

std::string exact(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);
}

NumberFormat format_for(std::span<const double> values, bool matrix) {
  double largest = 0;
  double smallest = HUGE_VAL;
  bool all_whole = true;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    all_whole = all_whole && whole(value);
    largest = std::max(largest, std::abs(value));
  }
  const double hidden = matrix ? 1e-13 * largest : 0;
  for (const double value : values) {
    if (std::isfinite(value) && std::abs(value) > hidden)
      smallest = std::min(smallest, std::abs(value));
  }
  if (all_whole) return {NumberFormat::Style::whole, 0};
  const int before = std::max(1, static_cast<int>(std::floor(std::log10(largest))) + 1);
  if (before > digits + 1) return {};
  int decimals = std::max(0, digits - before);
  // Three digits of the smallest should remain.
  while (decimals < 8 && smallest < 100 * std::pow(10.0, -decimals)) ++decimals;
  // Fewer digits where they are all there are.
  for (int fewer = 1; fewer < decimals; ++fewer) {
    if (std::all_of(values.begin(), values.end(), [&](double v) { return exact_in(v, fewer); }))
      return {NumberFormat::Style::fixed, fewer};
  }
  if (smallest < 100 * std::pow(10.0, -decimals)) return {};
  return {NumberFormat::Style::fixed, decimals};
}

std::string shown(double value, const NumberFormat& format) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "\u2212inf" : "inf";
  if (format.style == NumberFormat::Style::whole)
    return with_minus(grouped(static_cast<std::int64_t>(value)));
  if (format.style == NumberFormat::Style::fixed)
    return with_minus(fmt::format("{:.{}f}", value, format.decimals));
  return with_power(fmt::format("{:.{}g}", value, digits));
}

std::string shown(double value) { return shown(value, format_for({&value, 1})); }

std::string plain(double value, const NumberFormat& format) {
  if (!std::isfinite(value)) return exact(value);
  std::string text = format.style == NumberFormat::Style::general
                         ? fmt::format("{:.{}g}", value, digits)
                         : fmt::format("{:.{}f}", value, format.decimals);
  const bool zero = text.find_first_of("123456789") == std::string::npos;
  if (zero && text.starts_with('-')) text.erase(0, 1);
  return text;
}

std::string plain(double value) { return plain(value, format_for({&value, 1})); }

std::string duration(double seconds) {
  if (seconds < 0.001) return "under 1 ms";
  return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

std::string datum(double value, const NumberFormat& format, std::string_view name,
                  std::size_t index) {
  const std::string number = exact(value);
  return fmt::format(
      "<data value=\"{0}\" title=\"{0}\" data-name=\"{1}\" data-index=\"{2}\">{3}</data>", number,
      escape(name), index, shown(value, format));
}

}  // namespace starfold::page
