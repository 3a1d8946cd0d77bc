#include "starfold/node/ledger/line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "starfold/base/json.h"
#include "starfold/base/utf8.h"

namespace starfold {
namespace {

// The members of a line in their order: the one list that writing and reading follow.
template <typename Line, typename Visit>
void visit_members(Line& line, Visit& visit) {
  auto& entry = line.entry;
  visit.always("seq", line.seq);
  visit.always("time", line.time);
  visit("clock_back", line.clock_back);
  visit.always("kind", entry.kind);
  visit("node", line.node);
  visit("format", line.format);
  visit("study", entry.study);
  visit("agreement", entry.agreement);
  visit("peer", entry.peer);
  visit("run", entry.run);
  visit("sequence", entry.sequence);
  visit("round", entry.round);
  visit("plan", entry.plan);
  visit("policy", entry.policy);
  visit("data", entry.data);
  visit("received", entry.received);
  visit("request", entry.request);
  visit("decision", entry.decision);
  visit("rule", entry.rule);
  visit("counted", entry.counted);
  visit("detail", entry.detail);
  visit("numbers", entry.numbers);
  visit("bytes", entry.bytes);
  visit("shapes", entry.shapes);
  visit("masked", entry.masked);
  visit("sent", entry.sent);
  visit("epsilon", entry.epsilon);
  visit("delta", entry.delta);
  visit("numbers_left", entry.numbers_left);
  visit("rounds_left", entry.rounds_left);
  visit("epsilon_left", entry.epsilon_left);
  visit("delta_left", entry.delta_left);
  visit.always("prev", line.prev);
}

// At most so many bytes of a text, with a mark where it was cut.
std::string bounded(const std::string& text, std::size_t most) {
  constexpr std::string_view mark = "...";
  std::string shown = printable(std::string_view(text).substr(0, 4 * most));
  if (shown.size() <= most) return shown;
  std::size_t end = most - mark.size();
  while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0U) == 0x80U) --end;
  return shown.replace(end, std::string::npos, mark);
}

class Writer {
 public:
  template <typename Value>
  void always(const char* key, const Value& value) {
    members_.emplace_back(key, value);
  }
  void always(const char* key, const std::string& value) {
    constexpr std::size_t most_detail = 1000;
    constexpr std::size_t most_text = 200;
    const bool long_text = key == std::string_view("detail") || key == std::string_view("shapes");
    members_.emplace_back(key, bounded(value, long_text ? most_detail : most_text));
  }
  template <typename Value>
  void operator()(const char* key, const Value& value) {
    if (value != Value{}) always(key, value);
  }
  template <typename Value>
  void operator()(const char* key, const std::optional<Value>& value) {
    if (value) always(key, *value);
  }
  std::string text() const {
    std::string line = json_ordered_line(members_);
    line.pop_back();
    return line;
  }

 private:
  std::vector<std::pair<std::string, nlohmann::json>> members_;
};

// Reads exactly what the writer writes. A general reader of JSON would take most of the time of opening a long ledger.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) { ok_ = take('{'); }

  template <typename Value>
  void always(std::string_view key, Value& value) {
    if (!begin(key)) ok_ = false;
    if (ok_) end(read(value));
  }
  template <typename Value>
  void operator()(std::string_view key, Value& value) {
    if (ok_ && begin(key)) end(read(value));
  }
  template <typename Value>
  void operator()(std::string_view key, std::optional<Value>& value) {
    if (ok_ && begin(key)) end(read(value.emplace()));
  }
  bool whole() const { return ok_ && closed_ && rest_.empty(); }

 private:
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Whether this is the next member; then its value is next.
  bool begin(std::string_view key) {
    const std::size_t length = key.size() + 3;
    if (closed_ || rest_.size() < length || rest_[0] != '"' || rest_.substr(1, key.size()) != key ||
        rest_[length - 2] != '"' || rest_[length - 1] != ':')
      return false;
    rest_.remove_prefix(length);
    return true;
  }
  void end(bool value_ok) {
    closed_ = take('}');
    ok_ = value_ok && (closed_ || take(','));
  }

  bool read(bool& value) {
    value = rest_.starts_with("true");
    if (value) rest_.remove_prefix(4);
    return value;
  }
  template <typename Number>
  bool read(Number& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return std::isfinite(static_cast<double>(value));
  }
  bool read(std::string& value) {
    if (!take('"')) return false;
    value.clear();
    while (true) {
      std::size_t end = 0;
      while (end < rest_.size() && rest_[end] != '"' && rest_[end] != '\\') ++end;
      if (end == rest_.size()) return false;
      value += rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
      if (rest_.data()[-1] == '"') return true;
      if (rest_.empty() || (rest_[0] != '"' && rest_[0] != '\\')) return false;
      value += rest_[0];  // nothing else needs an escape in printable text
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
  bool ok_ = false;
  bool closed_ = false;
};

}  // namespace

std::string format_line(const LedgerLine& line) {
  Writer writer;
  visit_members(line, writer);
  return writer.text();
}

std::optional<LedgerLine> parse_line(std::string_view text) {
  LedgerLine line;
  Parser parser(text);
  visit_members(line, parser);
  if (!parser.whole()) return std::nullopt;
  return line;
}

std::string format_time(std::int64_t milliseconds) {
  using namespace std::chrono;
  constexpr std::int64_t latest = 253402300799999;  // the last that has a year of four digits
  const sys_time<std::chrono::milliseconds> time{
      std::chrono::milliseconds(std::clamp<std::int64_t>(milliseconds, 0, latest))};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

}  // namespace starfold
