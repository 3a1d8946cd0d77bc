// Which names from files a message may hold. A header can be a record, an open quotation mark can make a name of
// half a file, and a name can hold what changes a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starfold {

class Table;

// Whether it is short and has only what names of columns have.
bool looks_like_name(std::string_view text);
// Whether it is rather a value: a number, a date, true, NA.
bool looks_like_value(std::string_view text);

// A name that the user wrote, shortened and without what does not belong on a terminal.
std::string shown(std::string_view name);
// "column age", or "column number 3" where its name may not be shown.
std::string shown_column(const Table& table, std::size_t index);
// Names with commas, the first twenty of those that look like names; "none" when there is none.
std::string shown_list(const std::vector<std::string>& names);

}  // namespace starfold
