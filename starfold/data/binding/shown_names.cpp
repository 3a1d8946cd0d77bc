#include "starfold/data/binding/shown_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "starfold/base/utf8.h"
#include "starfold/data/table.h"
#include "starfold/data/text/values.h"

namespace starfold {
namespace {

constexpr std::size_t longest = 64;  // bytes

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

bool is_name_sign(char c) {
  constexpr std::string_view signs = " .-()/%:#&+=*^<>?'";
  return is_letter(c) || (c >= '0' && c <= '9') || signs.find(c) != std::string_view::npos;
}

}  // namespace

bool looks_like_name(std::string_view text) {
  return !text.empty() && text.size() <= longest && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), is_name_sign) && printable(text) == text &&
         !looks_like_value(text);
}

bool looks_like_value(std::string_view text) {
  double number = 0;
  Moment moment;
  return parse_number(text, number) != NumberFault::other || parse_moment(text, moment) ||
         parse_truth(text) >= 0 || is_missing_word(text);
}

std::string shown(std::string_view name) {
  if (name.size() <= longest) return printable(name);
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return printable(name.substr(0, end)) + "...";
}

std::string shown_column(const Table& table, std::size_t index) {
  const std::string& name = table.columns()[index].name;
  if (table.names_are_safe() && looks_like_name(name)) return "column " + name;
  return fmt::format("column number {}", index + 1);
}

std::string shown_list(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::vector<std::string_view> list;
  for (const std::string& name : names) {
    if (looks_like_name(name) && list.size() < most) list.emplace_back(name);
  }
  if (names.empty()) return "none";
  const std::size_t left = names.size() - list.size();
  if (list.empty()) return fmt::format("{} whose names do not look like names", left);
  return fmt::format("{}{}", fmt::join(list, ", "),
                     left > 0 ? fmt::format(" and {} more", left) : "");
}

}  // namespace starfold
