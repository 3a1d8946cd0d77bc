#include "tests/laws/announced.h"

#include <fmt/format.h>

#include <cctype>
#include <sstream>
#include <stdexcept>

namespace starfold::laws {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The text between two marks from a place on; moves behind the second.
std::string between(const std::string& text, std::size_t& at, std::string_view open,
                    std::string_view close) {
  const std::size_t begin = text.find(open, at);
  if (begin == std::string::npos) throw std::logic_error(fmt::format("the page has no {}", open));
  const std::size_t end = text.find(close, begin + open.size());
  if (end == std::string::npos) throw std::logic_error(fmt::format("the page has no {}", close));
  at = end + close.size();
  return text.substr(begin + open.size(), end - begin - open.size());
}

// p<sup>3</sup> as p*p*p.
std::string without_powers(std::string html) {
  for (std::size_t at = html.find("<sup>"); at != std::string::npos; at = html.find("<sup>")) {
    const std::size_t end = html.find("</sup>", at);
    const int power = std::stoi(html.substr(at + 5, end - at - 5));
    const std::size_t base = html.rfind("<i>", at);
    const std::string factor = html.substr(base + 3, html.find("</i>", base) - base - 3);
    std::string product;
    for (int i = 1; i < power; ++i) product += "*" + factor;
    html.replace(at, end + 6 - at, product);
  }
  return html;
}

std::string plain(std::string html) {
  html = without_powers(std::move(html));
  std::string text;
  bool tag = false;
  for (const char c : html) {
    if (c == '<') tag = true;
    if (!tag) text += c;
    if (c == '>') tag = false;
  }
  // Thin spaces stand for products in formulas, and group the digits of numbers.
  text = replaced(std::move(text), "\u2009", "*");
  text = replaced(std::move(text), "\u202f", "");
  text = replaced(std::move(text), "\u00a0", " ");
  text = replaced(std::move(text), "\u2212", "-");
  for (const auto& [entity, character] :
       {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}}) {
    text = replaced(std::move(text), entity, character);
  }
  return text;
}

std::vector<std::string> cells(const std::string& row, const std::string& tag) {
  std::vector<std::string> found;
  for (std::size_t at = 0; row.find("<" + tag, at) != std::string::npos;) {
    std::string cell = between(row, at, "<" + tag, "</" + tag + ">");
    found.push_back(plain(cell.substr(cell.find('>') + 1)));
  }
  return found;
}

}  // namespace

std::int64_t polynomial(std::string_view text, const SizeValues& sizes) {
  std::int64_t total = 0;
  std::int64_t product = 1;
  std::int64_t sign = 1;
  bool open = false;  // a term has begun
  const auto close = [&] {
    if (open) total += sign * product;
    open = false;
    product = sign = 1;
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    std::size_t end = i + 1;
    if (std::isalnum(c) != 0 || c == '_') {
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
        ++end;
      const std::string word(text.substr(i, end - i));
      product *= std::isdigit(c) != 0 ? std::stoll(word) : sizes.at(word);
      open = true;
    } else if (c == '+' || c == '-') {
      close();
      if (c == '-') sign = -1;
    } else if (c != '*' && c != ' ') {
      throw std::logic_error(fmt::format("{} is no polynomial", text));
    }
    i = end;
  }
  close();
  return total;
}

std::vector<AnnouncedRound> read_exposure_text(const std::string& text) {
  std::vector<AnnouncedRound> rounds;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string number = fmt::format("round {}", rounds.size() + 1);
    if (line.rfind(number, 0) == 0) {
      const std::size_t colon = line.rfind(": ");
      const std::string amount = line.substr(colon + 2);
      rounds.push_back({line.substr(number.size(), colon - number.size()),
                        amount.substr(0, amount.find(" number")),
                        {},
                        {}});
      continue;
    }
    std::string row;
    std::istringstream words(line);
    for (std::string word; words >> word;) row += (row.empty() ? "" : " ") + word;
    if (row.rfind("leaves ", 0) == 0) rounds.at(rounds.size() - 1).leaves.push_back(row.substr(7));
    if (row.rfind("is sent ", 0) == 0) rounds.at(rounds.size() - 1).sent.push_back(row.substr(8));
  }
  return rounds;
}

std::vector<PageRow> read_page_table(const std::string& page, const std::string& label) {
  std::size_t at = page.find(fmt::format("aria-label=\"{}\"><table>", label));
  if (at == std::string::npos) return {};
  const std::vector<std::string> titles = cells(between(page, at, "<thead>", "</thead>"), "th");
  const std::string body = between(page, at, "<tbody>", "</tbody>");
  std::vector<PageRow> rows;
  for (std::size_t row = 0; body.find("<tr>", row) != std::string::npos;) {
    const std::vector<std::string> entries = cells(between(body, row, "<tr>", "</tr>"), "td");
    if (entries.size() != titles.size()) throw std::logic_error("a row of another length");
    PageRow& made = rows.emplace_back();
    for (std::size_t i = 0; i < titles.size(); ++i) made[titles[i]] = entries[i];
  }
  return rows;
}

}  // namespace starfold::laws
