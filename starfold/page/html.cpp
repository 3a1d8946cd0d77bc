#include "starfold/page/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/utf8.h"

namespace starfold::page {
namespace {

// A product such as 2*p*p*q, with equal factors gathered into powers.
std::string product(std::string_view text) {
  std::vector<std::pair<std::string, int>> factors;
  std::string number;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('*'), text.size());
    const std::string factor(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!factor.empty() && factor[0] >= '0' && factor[0] <= '9') {
      number = factor;
      continue;
    }
    const auto known = std::find_if(factors.begin(), factors.end(),
                                    [&](const auto& f) { return f.first == factor; });
    if (known != factors.end()) {
      ++known->second;
    } else {
      factors.emplace_back(factor, 1);
    }
  }
  std::string html = escape(number);
  for (const auto& [name, power] : factors) {
    if (!html.empty()) html += "\u2009";
    html += "<i>" + escape(name) + "</i>";
    if (power > 1) html += fmt::format("<sup>{}</sup>", power);
  }
  return html;
}

std::string field(const Field& content, const char* tag) {
  return fmt::format("<{}{}>{}</{}>", tag, content.number ? " class=\"n\"" : "", content.html, tag);
}

}  // namespace

std::string escape(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto c = decode_utf8(text, i);
    const std::size_t length = c ? c->length : 1;
    const std::string_view bytes = text.substr(i, length);
    i += length;
    if (!c) {
      html += replacement_character;
    } else if (c->value == '&') {
      html += "&amp;";
    } else if (c->value == '<') {
      html += "&lt;";
    } else if (c->value == '>') {
      html += "&gt;";
    } else if (c->value == '"') {
      html += "&quot;";
    } else if (c->value == '\'') {
      html += "&#39;";
    } else if (c->value != '\n' && disguises_text(c->value)) {
      html += fmt::format("\u27e8U+{:04X}\u27e9", static_cast<std::uint32_t>(c->value));
    } else {
      html += bytes;
    }
  }
  return html;
}

std::string code(std::string_view text) { return "<code>" + escape(text) + "</code>"; }

std::string type_tag(const Type& type) {
  return fmt::format("<span class=\"type {}\">{}</span>", type.federated() ? "stays" : "shared",
                     escape(type.to_string()));
}

std::string formula(std::string_view polynomial) {
  std::string html;
  while (!polynomial.empty()) {
    const std::size_t end = std::min(polynomial.find(' '), polynomial.size());
    const std::string_view word = polynomial.substr(0, end);
    polynomial.remove_prefix(std::min(end + 1, polynomial.size()));
    if (word == "+" || word == "-") {
      html += word == "+" ? "\u00a0+ " : "\u00a0\u2212 ";
    } else if (word[0] == '-') {
      html += "\u2212" + product(word.substr(1));
    } else {
      html += product(word);
    }
  }
  return "<span class=\"formula\">" + html + "</span>";
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > (number < 0 ? 1 : 0);
       i -= 3) {
    digits.insert(static_cast<std::size_t>(i), "\u202f");
  }
  return digits;
}

std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

std::string table(std::string_view label, const std::vector<Field>& head,
                  const std::vector<std::vector<Field>>& rows) {
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table><thead><tr>",
      escape(label));
  for (const Field& title : head) html += field(title, "th");
  html += "</tr></thead><tbody>\n";
  for (const std::vector<Field>& row : rows) {
    html += "<tr>";
    for (const Field& entry : row) html += field(entry, "td");
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string document(const Document& document) {
  // The policy lets nothing in but the style below, whatever the text of a program holds.
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{} \u00b7 "
      "{}</title>\n<style>{}</style>\n</head>\n<body>\n",
      escape(document.title), escape(document.kind), style());
  html +=
      fmt::format("<header>\n<p class=\"kind\">Starfold \u00b7 {}</p>\n<h1>{}</h1>\n{}</header>\n",
                  escape(document.kind), escape(document.title), document.lead);
  html += "<nav aria-label=\"On this page\"><ul>";
  for (const Section& section : document.sections) {
    html += fmt::format("<li><a href=\"#{}\">{}</a></li>", section.id, escape(section.title));
  }
  html += "</ul></nav>\n<main>\n";
  for (const Section& section : document.sections) {
    html += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", section.id,
                        escape(section.title), section.body);
  }
  return html + "</main>\n<footer>" + document.footer + "</footer>\n</body>\n</html>\n";
}

}  // namespace starfold::page
