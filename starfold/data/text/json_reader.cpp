#include "starfold/data/text/json_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/utf8.h"

namespace starfold {
namespace {

constexpr std::size_t deepest = 1000;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

JsonReader::JsonReader(const TextFile& file, std::vector<std::string> keys) : TextRecords(file) {
  for (const std::string& key : keys) column(key);
}

bool JsonReader::next() {
  if (!started_) begin();
  if (!find_object()) return false;
  // An object is read from its beginning until all of it is there.
  while (true) {
    try {
      read_object();
      return true;
    } catch (const Cut&) {
      if (!input_.more()) fail(": this is not JSON: it is cut short");
    }
  }
}

// Moves over blanks and counts lines; false at the end of the file.
bool JsonReader::skip_blanks() {
  while (true) {
    const char* at = input_.at();
    while (at < input_.end() && is_blank(*at)) {
      if (*at == '\n') {
        ++next_line_;
        line_break_ = true;
      }
      ++at;
    }
    line_ = next_line_;
    input_.move_to(at);
    if (at < input_.end()) return true;
    if (!input_.more() && input_.at() == input_.end()) return false;
  }
}

void JsonReader::begin() {
  started_ = true;
  if (!skip_blanks() || *input_.at() != '[') return;
  array_ = true;
  input_.move_to(input_.at() + 1);
}

// Moves to the next object, over what stands between two.
bool JsonReader::find_object() {
  const bool there = skip_blanks();
  if (!array_) {
    if (!there) return false;
    if (*input_.at() != '{' || !line_break_) not_json();
    line_break_ = false;
    return true;
  }
  if (!there) fail(": this is not JSON: the array is not closed");
  if (*input_.at() == ']') {
    input_.move_to(input_.at() + 1);
    if (skip_blanks()) not_json();
    array_ = false;
    return false;
  }
  if (!first_) {
    if (*input_.at() != ',') not_json();
    input_.move_to(input_.at() + 1);
    if (!skip_blanks()) fail(": this is not JSON: the array is not closed");
  }
  first_ = false;
  if (*input_.at() != '{') fail(": this is not a JSON object");
  return true;
}

void JsonReader::read_object() {
  // Not all of them: a file may have many keys and few in each object.
  for (const std::size_t key : written_) values_[key] = Field{};
  written_.clear();
  unescaped_.clear();
  expected_ = 0;
  ++attempt_;
  const char* at = input_.at() + 1;
  blanks(at);
  if (peek(at) != '}') {
    while (true) {
      const std::size_t key = column(string(at));
      if (seen_[key] == attempt_) fail(": an object has two values for one key");
      seen_[key] = attempt_;
      blanks(at);
      expect(at, ':');
      blanks(at);
      values_[key] = value(at);
      written_.push_back(key);
      blanks(at);
      if (peek(at) != ',') break;
      ++at;
      blanks(at);
    }
  }
  expect(at, '}');
  fields_ = values_;
  next_line_ += std::count(static_cast<const char*>(input_.at()), at, '\n');
  input_.move_to(at);
}

char JsonReader::peek(const char* at) const {
  if (at == input_.end()) throw Cut();
  return *at;
}

void JsonReader::blanks(const char*& at) const {
  while (is_blank(peek(at))) ++at;
}

void JsonReader::expect(const char*& at, char c) const {
  if (peek(at) != c) not_json();
  ++at;
}

std::string_view JsonReader::string(const char*& at) {
  expect(at, '"');
  const char* begin = at;
  while (peek(at) != '"' && *at != '\\') {
    if (static_cast<unsigned char>(*at) < ' ') not_json();
    ++at;
  }
  if (*at == '"') return {begin, static_cast<std::size_t>(at++ - begin)};
  std::string& text = unescaped_.emplace_back(begin, at);
  while (peek(at) != '"') {
    if (static_cast<unsigned char>(*at) < ' ') not_json();
    if (*at == '\\') {
      escape(++at, text);
    } else {
      text += *at++;
    }
  }
  ++at;
  return text;
}

void JsonReader::escape(const char*& at, std::string& text) const {
  constexpr std::string_view signs = "\"\\/bfnrt";
  constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  const char sign = peek(at);
  ++at;
  const std::size_t known = signs.find(sign);
  if (known != std::string_view::npos) {
    text += meanings[known];
    return;
  }
  if (sign != 'u') not_json();
  char32_t c = hexadecimal(at);
  if (c >= 0xD800 && c < 0xDC00) {
    expect(at, '\\');
    expect(at, 'u');
    const char32_t low = hexadecimal(at);
    if (low < 0xDC00 || low > 0xDFFF) not_json();
    c = 0x10000 + ((c - 0xD800) << 10U) + (low - 0xDC00);
  } else if (c >= 0xDC00 && c < 0xE000) {
    not_json();
  }
  text += encode_utf8(c);
}

char32_t JsonReader::hexadecimal(const char*& at) const {
  char32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = peek(at);
    const int digit = is_digit(c)              ? c - '0'
                      : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                      : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                               : -1;
    if (digit < 0) not_json();
    value = value * 16 + static_cast<char32_t>(digit);
    ++at;
  }
  return value;
}

Field JsonReader::value(const char*& at) {
  const char* begin = at;
  const auto written = [&] {
    return std::string_view(begin, static_cast<std::size_t>(at - begin));
  };
  switch (peek(at)) {
    case '"':
      return {string(at), Field::Form::text};
    case 't':
      word(at, "true");
      return {written(), Field::Form::truth};
    case 'f':
      word(at, "false");
      return {written(), Field::Form::truth};
    case 'n':
      word(at, "null");
      return {};
    case '[':
      skip_nested(at);
      return {written(), Field::Form::list};
    case '{':
      skip_nested(at);
      return {written(), Field::Form::object};
    default:
      number(at);
      return {written(), Field::Form::number};
  }
}

void JsonReader::number(const char*& at) const {
  const auto digits = [&] {
    if (!is_digit(peek(at))) not_json();
    while (is_digit(peek(at))) ++at;
  };
  if (peek(at) == '-') ++at;
  if (peek(at) == '0') {
    ++at;
  } else {
    digits();
  }
  if (peek(at) == '.') {
    ++at;
    digits();
  }
  if (peek(at) == 'e' || *at == 'E') {
    ++at;
    if (peek(at) == '+' || *at == '-') ++at;
    digits();
  }
}

void JsonReader::word(const char*& at, std::string_view text) const {
  for (const char c : text) expect(at, c);
}

// Checks a list or an object inside a record. The brackets that are open are kept in a list of our own: files
// can be nested deeper than functions can call themselves.
void JsonReader::skip_nested(const char*& at) {
  std::string open;
  while (true) {
    blanks(at);
    const char c = peek(at);
    if (c == '[' || c == '{') {
      if (open.size() == deepest) fail(": a value is nested too deeply");
      open += c;
      ++at;
      blanks(at);
      const bool empty = peek(at) == (c == '[' ? ']' : '}');
      if (!empty && c == '{') {
        string(at);
        blanks(at);
        expect(at, ':');
      }
      if (!empty) continue;
    } else {
      value(at);
    }
    // After a value: close what ends here, or go on to the next.
    while (true) {
      blanks(at);
      const char close = open.back() == '[' ? ']' : '}';
      if (peek(at) != close) break;
      ++at;
      open.pop_back();
      if (open.empty()) return;
    }
    expect(at, ',');
    if (open.back() == '{') {
      blanks(at);
      string(at);
      blanks(at);
      expect(at, ':');
    }
  }
}

std::size_t JsonReader::column(std::string_view key) {
  if (expected_ < keys_.size() && keys_[expected_] == key) return expected_++;
  const auto found = index_.find(key);
  if (found != index_.end()) {
    expected_ = found->second + 1;
    return found->second;
  }
  const std::size_t fresh = keys_.size();
  constexpr std::size_t most_keys = 100'000;
  if (fresh == most_keys)
    fail(fmt::format(": its objects have more than {} different keys", most_keys));
  keys_.emplace_back(key);
  index_.emplace(names_.emplace_back(key), fresh);
  values_.resize(keys_.size());
  seen_.resize(keys_.size(), 0);
  return fresh;
}

}  // namespace starfold
