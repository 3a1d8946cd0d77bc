// What is said before a run about its messages, read back from each place where it is said: the
// table of `check` as JSON and as text, and the page. Written for the laws alone, so that a row lost
// on the way to one of them is missed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/types/size.h"

namespace starfold::laws {

// The value of a polynomial as it is shown, such as 2*p*p + 1.
std::int64_t polynomial(std::string_view text, const SizeValues& sizes);

// One round of the table of `check`.
struct AnnouncedRound {
  std::string title;                // after the number: how often
  std::string numbers;              // a polynomial
  std::vector<std::string> leaves;  // the rows, blanks between columns as one
  std::vector<std::string> sent;
};
std::vector<AnnouncedRound> read_exposure_text(const std::string& text);

// The rows of a table of a page, by the titles of its columns, without tags. Powers become products.
using PageRow = std::map<std::string, std::string>;
std::vector<PageRow> read_page_table(const std::string& page, const std::string& label);

}  // namespace starfold::laws
