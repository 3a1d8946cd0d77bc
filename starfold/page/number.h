// Numbers on a page: rounded to read, exact underneath.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace starfold::page {

// The shortest text that gives exactly this number back, as in outputs.json; nan, inf and -inf in words.
std::string exact(double value);

// How the numbers of one column are written, so that they line up.
struct NumberFormat {
  enum class Style { whole, fixed, general } style = Style::general;
  int decimals = 0;
};
// Whole numbers as such; else six significant digits of the largest, unless that hides a small one.
// In a matrix, what is beyond the precision of its largest entry is rounding and may be hidden.
NumberFormat format_for(std::span<const double> values, bool matrix = false);
std::string shown(double value, const NumberFormat& format);
std::string shown(double value);
// The same as plain text, for a terminal.
std::string plain(double value, const NumberFormat& format);
std::string plain(double value);

// The number that a text shows with a true minus sign, unless nothing but zeros is left of it.
std::string with_minus(const std::string& text);

// "under 1 ms", "12 ms", "3.4 s".
std::string duration(double seconds);

// A rounded number that carries the exact one, and which entry of which output it is (row-major, from 0).
std::string datum(double value, const NumberFormat& format, std::string_view name,
                  std::size_t index);

}  // namespace starfold::page
