// What the C++ library of emscripten 3.1 lacks and Starfold uses. Included before everything by tools/playground, and nowhere else.
#pragma once

#include <bit>
#include <cerrno>
#include <charconv>
#include <compare>
#include <cstdlib>
#include <map>
#include <string>

namespace std {

#ifndef __cpp_lib_bit_cast
template <typename To, typename From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
#endif

#ifndef __cpp_lib_to_chars
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const string text(first, last);
  char* end = nullptr;
  errno = 0;
  const double read = strtod(text.c_str(), &end);
  const char* stop = first + (end - text.c_str());
  if (stop == first) return {first, errc::invalid_argument};
  if (errno == ERANGE) return {stop, errc::result_out_of_range};
  value = read;
  return {stop, errc()};
}
#endif

#ifndef __cpp_lib_three_way_comparison
template <typename Key, typename Value, typename Order>
strong_ordering operator<=>(const map<Key, Value, Order>& a, const map<Key, Value, Order>& b) {
  if (a < b) return strong_ordering::less;
  return b < a ? strong_ordering::greater : strong_ordering::equal;
}
#endif

}  // namespace std
