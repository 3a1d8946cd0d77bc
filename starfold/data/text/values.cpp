#include "starfold/data/text/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace starfold {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

bool same_letters(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         });
}

// The parts of a decimal number without its sign.
struct Decimal {
  std::string_view whole;
  std::string_view fraction;
  std::int64_t exponent = 0;
  bool has_exponent = false;
};

std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_decimal(text[end])) ++end;
  return end - at;
}

bool split_decimal(std::string_view text, Decimal& parts) {
  std::size_t at = digits_at(text, 0);
  parts.whole = text.substr(0, at);
  if (at < text.size() && text[at] == '.') {
    const std::size_t count = digits_at(text, at + 1);
    parts.fraction = text.substr(at + 1, count);
    at += 1 + count;
  }
  if (parts.whole.empty() && parts.fraction.empty()) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    parts.has_exponent = true;
    ++at;
    const bool minus = at < text.size() && text[at] == '-';
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const std::size_t count = digits_at(text, at);
    if (count == 0) return false;
    constexpr std::int64_t far = 1'000'000'000;
    for (const char c : text.substr(at, count))
      parts.exponent = std::min(far, parts.exponent * 10 + (c - '0'));
    if (minus) parts.exponent = -parts.exponent;
    at += count;
  }
  return at == text.size();
}

// Whether a whole number equals the double that is nearest to it.
bool is_exact(std::string_view digits, double value) {
  constexpr std::size_t most = 38;  // of what fits in 128 bits
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.size() > most) return false;
  __extension__ using Wide = unsigned __int128;
  Wide number = 0;
  for (const char c : digits) number = number * 10 + static_cast<unsigned>(c - '0');
  return static_cast<Wide>(std::fabs(value)) == number;
}

// Beyond the range of doubles: whether it is above the largest, or below the smallest.
bool is_huge(const Decimal& parts) {
  const std::size_t first = parts.whole.find_first_not_of('0');
  if (first != std::string_view::npos)
    return static_cast<std::int64_t>(parts.whole.size() - first) + parts.exponent > 0;
  const std::size_t zeros = parts.fraction.find_first_not_of('0');
  return parts.exponent - static_cast<std::int64_t>(zeros) > 0;
}

NumberFault parse_slowly(std::string_view text, double& value) {
  const bool minus = text.front() == '-';
  if (text.front() == '-' || text.front() == '+') text.remove_prefix(1);
  const double sign = minus ? -1.0 : 1.0;
  if (!text.empty() && (is_decimal(text.front()) || text.front() == '.')) {
    constexpr double exact = 9007199254740992.0;  // no whole number below it lacks a double
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value < exact) {
      value *= sign;
      return NumberFault::none;
    }
  }
  if (same_letters(text, "inf") || same_letters(text, "infinity")) {
    value = sign * HUGE_VAL;
    return NumberFault::none;
  }
  Decimal parts;
  if (!split_decimal(text, parts)) return NumberFault::other;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    value = sign * 0.0;
    return is_huge(parts) ? NumberFault::too_large : NumberFault::none;
  }
  if (error != std::errc() || end != text.data() + text.size()) return NumberFault::other;
  const bool whole =
      !parts.has_exponent && parts.fraction.find_first_not_of('0') == std::string_view::npos;
  if (whole && !is_exact(parts.whole, value)) return NumberFault::not_exact;
  value *= sign;
  return NumberFault::none;
}

// The number that eight digits make; false when they are none. The first is in the lowest byte.
bool eight_digits(std::uint64_t word, std::uint64_t& number) {
  constexpr std::uint64_t zeros = 0x3030303030303030U;
  constexpr std::uint64_t sixes = 0x0606060606060606U;
  constexpr std::uint64_t tens = 0xF0F0F0F0F0F0F0F0U;
  if (((word & tens) | ((word + sixes) & tens) >> 4U) != 0x3333333333333333U) return false;
  word -= zeros;
  word = (word * 10 + (word >> 8U)) & 0x00FF00FF00FF00FFU;  // two digits, four, eight
  word = (word * 100 + (word >> 16U)) & 0x0000FFFF0000FFFFU;
  number = (word * 10000 + (word >> 32U)) & 0xFFFFFFFFU;
  return true;
}

// Adds digits from `at` on to a number; how many there were. With more than nineteen the number is wrong.
std::size_t take_digits(std::string_view text, std::size_t& at, std::uint64_t& number) {
  const std::size_t begin = at;
  std::uint64_t word = 0;
  std::uint64_t eight = 0;
  for (; text.size() - at >= 8; at += 8) {
    std::memcpy(&word, text.data() + at, 8);
    if (!eight_digits(word, eight)) break;
    number = number * 100000000 + eight;
  }
  while (at < text.size() && is_decimal(text[at]))
    number = number * 10 + static_cast<unsigned>(text[at++] - '0');
  return at - begin;
}

constexpr double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                             1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

// digits / 10^decimals, rounded once; false where that takes more care, or a whole number may have no double.
bool divide(std::uint64_t digits, std::size_t count, std::size_t decimals, double& value) {
  constexpr std::size_t exact = 15;  // digits, and powers of ten
  if (count + decimals == 0 || count + decimals > 19) return false;
  if (count + decimals <= exact) {
    value = static_cast<double>(digits) / powers[decimals];
    return true;
  }
  // Sixty-four bits hold nineteen digits and powers of ten up to 27. Their quotient is rounded to as many and then to
  // those of a double, which is the same as rounding once, unless it lies halfway between two doubles.
  using Wide = long double;
  if constexpr (std::numeric_limits<Wide>::digits == 64) {
    static constexpr Wide wide_powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                           1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                           1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L};
    const Wide quotient = static_cast<Wide>(digits) / wide_powers[decimals];
    std::uint64_t bits = 0;
    std::memcpy(&bits, &quotient, sizeof bits);
    constexpr std::uint64_t behind = 0x7FFU;  // what a double does not hold
    constexpr Wide limit = 9007199254740992.0L;
    if (quotient >= limit || (bits & behind) == 0x400U) return false;
    value = static_cast<double>(quotient);
    return true;
  }
  return false;
}

// The first day of 1970 is 0; the calendar of today, for all times.
std::int64_t days_from_civil(std::int64_t year, std::int64_t month, std::int64_t day) {
  const std::int64_t y = month <= 2 ? year - 1 : year;  // years begin in March
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t in_era = y - era * 400;
  const std::int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

bool is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int last_day(int year, int month) {
  constexpr int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return lengths[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

// Reads one part of a moment after the other.
class MomentReader {
 public:
  explicit MomentReader(std::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Exactly `digits` digits, between `least` and `most`.
  bool number(std::size_t digits, int least, int most, int& value) {
    if (digits_at(text_, 0) < digits) return false;
    value = 0;
    for (std::size_t i = 0; i < digits; ++i) value = value * 10 + (text_[i] - '0');
    text_.remove_prefix(digits);
    return value >= least && value <= most;
  }
  // One to `digits` digits, between `least` and `most`.
  bool short_number(std::size_t digits, int least, int most, int& value) {
    const std::size_t count = std::min(digits, digits_at(text_, 0));
    return count > 0 && number(count, least, most, value);
  }
  // Up to nine digits after the point, cut to microseconds.
  bool fraction(int& microseconds) {
    const std::size_t count = digits_at(text_, 0);
    if (count == 0 || count > 9) return false;
    microseconds = 0;
    for (std::size_t i = 0; i < 6; ++i)
      microseconds = microseconds * 10 + (i < count ? text_[i] - '0' : 0);
    text_.remove_prefix(count);
    return true;
  }

 private:
  std::string_view text_;
};

bool read_day(MomentReader& reader, Moment& moment) {
  int year = 0;
  int month = 0;
  int day = 0;
  if (!reader.number(4, 0, 9999, year) || !reader.take('-') || !reader.number(2, 1, 12, month) ||
      !reader.take('-'))
    return false;
  if (!reader.number(2, 1, last_day(year, month), day)) return false;
  moment.microseconds = days_from_civil(year, month, day) * 86400000000;
  return true;
}

bool read_time(MomentReader& reader, Moment& moment) {
  int hour = 0;
  int minute = 0;
  int second = 0;
  int fraction = 0;
  if (!reader.number(2, 0, 23, hour) || !reader.take(':') || !reader.number(2, 0, 59, minute))
    return false;
  if (reader.take(':')) {
    if (!reader.number(2, 0, 59, second)) return false;
    if (reader.take('.') && !reader.fraction(fraction)) return false;
  }
  moment.has_time = true;
  moment.microseconds += (hour * 3600LL + minute * 60LL + second) * 1000000 + fraction;
  return true;
}

// Z, +02, +02:00, +0200, also after a blank.
bool read_offset(MomentReader& reader, Moment& moment) {
  reader.take(' ');
  moment.has_offset = true;
  if (reader.take('Z') || reader.take('z')) return reader.done();
  const bool west = reader.take('-');
  if (!west && !reader.take('+')) return false;
  int hours = 0;
  int minutes = 0;
  if (!reader.number(2, 0, 15, hours)) return false;
  if (!reader.done()) {
    reader.take(':');
    if (!reader.number(2, 0, 59, minutes)) return false;
  }
  const std::int64_t offset = (hours * 3600LL + minutes * 60LL) * 1000000;
  moment.microseconds += west ? offset : -offset;
  return reader.done();
}

}  // namespace

NumberFault parse_number(std::string_view text, double& value) {
  const bool minus = !text.empty() && text.front() == '-';
  std::size_t at = minus || (!text.empty() && text.front() == '+') ? 1 : 0;
  std::uint64_t digits = 0;
  const std::size_t count = take_digits(text, at, digits);
  std::size_t decimals = 0;
  if (at < text.size() && text[at] == '.') decimals = take_digits(text, ++at, digits);
  double result = 0;
  if (at < text.size() || !divide(digits, count, decimals, result))
    return text.empty() ? NumberFault::other : parse_slowly(text, value);
  value = minus ? -result : result;
  return NumberFault::none;
}

double decimal_number(std::int64_t high, std::uint64_t low, int after_point) {
  __extension__ using Wide = unsigned __int128;
  const bool minus = high < 0;
  Wide digits = static_cast<Wide>(static_cast<std::uint64_t>(high)) << 64U | low;
  if (minus) digits = ~digits + 1;
  constexpr Wide exact = Wide{1} << 53U;
  double value = 0;
  if (digits <= exact && after_point < static_cast<int>(std::size(powers))) {
    value = static_cast<double>(static_cast<std::uint64_t>(digits)) / powers[after_point];
  } else {
    std::string text = fmt::format("{}e-{}", digits, after_point);
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
  return minus ? -value : value;
}

bool parse_short_number(std::string_view text, double& value) {
  // Bytes of a word are looked at all at once: fields differ in length and sign, and each branch on that would be
  // guessed wrongly half of the time. The first character is in the lowest byte.
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t zeros = 0x3030303030303030U;  // the digit 0 in each byte
  constexpr std::uint64_t ones = 0x0101010101010101U;
  constexpr std::uint64_t high = 0x8080808080808080U;
  if (text.empty() || text.size() > 8) return false;
  std::uint64_t word = 0;
  std::memcpy(&word, text.data(), 8);
  const std::uint64_t minus = (word & 0xFFU) == '-' ? 1 : 0;
  const std::size_t size = text.size() - minus;
  if (size == 0) return false;
  // Digits at the end, zeros before them; shifted twice, since a word cannot be shifted by its whole length.
  word >>= 8 * minus;
  const std::size_t gap = 8 * (8 - size);
  word = word << gap | (zeros >> 1U) >> (63 - gap);
  // The point goes out, and what is before it takes its place. No borrow comes from below the lowest match.
  const std::uint64_t points = word ^ (ones * '.');
  const std::uint64_t found = (points - ones) & ~points & high;
  const auto place = static_cast<unsigned>(std::countr_zero(found | std::uint64_t{1} << 63U)) / 8;
  const bool has_point = found != 0;
  const std::uint64_t before = ((std::uint64_t{1} << (8 * place)) - 1);
  const std::uint64_t without = (word & ~(before << 8U | 0xFFU)) | (word & before) << 8U | '0';
  word = has_point ? without : word;
  const std::size_t decimals = has_point ? 7 - place : 0;
  if (has_point && size == 1) return false;
  std::uint64_t digits = 0;
  if (!eight_digits(word, digits)) return false;
  const double result = static_cast<double>(digits) / powers[decimals];
  value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(result) ^ minus << 63U);
  return true;
}

bool parse_moment(std::string_view text, Moment& moment) {
  MomentReader reader(text);
  moment = {};
  if (!read_day(reader, moment)) return false;
  if (reader.done()) return true;
  if (!reader.take(' ') && !reader.take('T') && !reader.take('t')) return false;
  if (!read_time(reader, moment)) return false;
  return reader.done() || read_offset(reader, moment);
}

bool parse_moment(std::string_view text, std::string_view form, Moment& moment) {
  MomentReader reader(text);
  moment = {};
  int year = 1970;
  int month = 1;
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') {
      if (!reader.take(form[i])) return false;
      continue;
    }
    const char part = i + 1 < form.size() ? form[++i] : ' ';
    moment.has_time = moment.has_time || part == 'H' || part == 'M' || part == 'S';
    const bool read = part == 'Y'   ? reader.number(4, 0, 9999, year)
                      : part == 'm' ? reader.short_number(2, 1, 12, month)
                      : part == 'd' ? reader.short_number(2, 1, 31, day)
                      : part == 'H' ? reader.short_number(2, 0, 23, hour)
                      : part == 'M' ? reader.short_number(2, 0, 59, minute)
                      : part == 'S' ? reader.short_number(2, 0, 59, second)
                                    : false;
    if (!read) return false;
  }
  if (!reader.done() || day > last_day(year, month)) return false;
  moment.microseconds = days_from_civil(year, month, day) * 86400000000 +
                        (hour * 3600LL + minute * 60LL + second) * 1000000;
  return true;
}

NumberFault parse_comma_number(std::string_view text, double& value) {
  if (text.find('.') != std::string_view::npos) return NumberFault::other;
  std::string written(text);
  if (const std::size_t comma = written.find(','); comma != std::string::npos) written[comma] = '.';
  return parse_number(written, value);
}

int parse_truth(std::string_view text) {
  if (same_letters(text, "true")) return 1;
  return same_letters(text, "false") ? 0 : -1;
}

bool is_missing_word(std::string_view text) {
  if (text.size() > 4) return false;
  for (const std::string_view word : {"", "NA", "N/A", "NaN", "nan", "NULL", "null"}) {
    if (text == word) return true;
  }
  return false;
}

}  // namespace starfold
