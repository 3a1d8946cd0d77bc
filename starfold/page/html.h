// The parts every page is made of. Text from outside (programs, names of files and clients) goes
// through escape() before it becomes part of a page; nothing else may carry it there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starfold/types/type.h"

namespace starfold::page {

// Text as HTML, for content and for double-quoted attributes. Bytes that are not UTF-8 are replaced;
// characters that would change how the text around them looks are spelled out.
std::string escape(std::string_view text);

// Program text inside a sentence.
std::string code(std::string_view text);
// A type as written, in the colour of what stays (federated) or of what is shared.
std::string type_tag(const Type& type);
// A polynomial as people write it: "p*p + 2*p" becomes p² + 2p, with variables in italics.
std::string formula(std::string_view polynomial);
// A whole number with its digits in groups of three.
std::string grouped(std::int64_t number);
// "a", "a and b", "a, b and c"; items are HTML already.
std::string listed(const std::vector<std::string>& items);

// One entry of a table, HTML already, with its alignment.
struct Field {
  std::string html;
  bool number = false;
};
// A table that scrolls inside itself where the screen is narrow. `label` names it for screen readers.
std::string table(std::string_view label, const std::vector<Field>& head,
                  const std::vector<std::vector<Field>>& rows);

struct Section {
  std::string id;
  std::string title;  // plain text
  std::string body;   // HTML
};

struct Document {
  std::string kind;   // what the page is, in a few words
  std::string title;  // plain text
  std::string lead;   // HTML: the first sentences
  std::vector<Section> sections;
  std::string footer;  // HTML
};
std::string document(const Document& document);

// The style sheet of all pages.
std::string_view style();

}  // namespace starfold::page
