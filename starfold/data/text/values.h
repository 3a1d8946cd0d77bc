// How text becomes numbers: the same in every file of text and in settings.
#pragma once

#include <cstdint>
#include <string_view>

namespace starfold {

// Why a text is not taken for a number.
enum class NumberFault { none, other, too_large, not_exact };

// 12, -3.5, +2e-3, inf: decimal digits with a sign, a point, an exponent. A whole number that no double is equal
// to is not exact; one beyond the largest double is too large.
NumberFault parse_number(std::string_view text, double& value);

// The same for up to eight characters, quickly. False: parse_number must tell. The eight bytes from text.data() on must be
// there to be read, whatever is in them.
bool parse_short_number(std::string_view text, double& value);

// The double nearest to (high * 2^64 + low) / 10^after_point.
double decimal_number(std::int64_t high, std::uint64_t low, int after_point);

// A day, with a time of day or without: 2020-12-31, 2020-12-31 23:59:59.5, 2020-12-31T23:59Z, ...+02:00.
struct Moment {
  std::int64_t microseconds = 0;  // since 1970-01-01 UTC
  bool has_time = false;
  bool has_offset = false;

  double days() const { return static_cast<double>(microseconds) / 86400000000.0; }
};
bool parse_moment(std::string_view text, Moment& moment);
// The same by a form such as %d.%m.%Y, in which numbers may lack leading zeros.
bool parse_moment(std::string_view text, std::string_view form, Moment& moment);

// A number with a comma where others have a point: 1,5. One with a point is none.
NumberFault parse_comma_number(std::string_view text, double& value);

// true and false, in letters of any size; -1 for everything else.
int parse_truth(std::string_view text);

// What stands for a missing value in a CSV file: nothing, NA, N/A, NaN, nan, NULL, null.
bool is_missing_word(std::string_view text);

// Without blanks at its ends.
inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace starfold
