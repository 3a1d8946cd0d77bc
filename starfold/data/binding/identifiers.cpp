#include "starfold/data/binding/identifiers.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <string_view>

namespace starfold {
namespace {

bool is_word(const std::string& name, std::initializer_list<std::string_view> words) {
  std::string lower;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return std::find(words.begin(), words.end(), lower) != words.end();
}

// id, patient_id, patientId, PatientID; not paid.
bool ends_with_id(const std::string& name) {
  if (name.size() < 3) return false;
  const std::string end = name.substr(name.size() - 2);
  const auto before = static_cast<unsigned char>(name[name.size() - 3]);
  if (end == "id") return std::isalnum(before) == 0;
  return (end == "Id" || end == "ID") && (std::islower(before) != 0 || std::isalnum(before) == 0);
}

}  // namespace

std::string objection_to_name(const std::string& name) {
  if (name.empty() || is_word(name, {"row", "rows", "rownum", "rownumber", "rownames", "rowname",
                                     "index", "idx", "unnamed0", "recordnumber", "obs"}))
    return "looks like row numbers";
  if (ends_with_id(name) || is_word(name, {"id", "ids", "rowid", "uuid", "guid", "recordid"}))
    return "looks like an identifier";
  return "";
}

void ColumnEvidence::start_client() {
  seen_.clear();
  next_.reset();
}

void ColumnEvidence::add(const double* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) add(values[i]);
}

std::string ColumnEvidence::objection() const {
  if (records_ > 0 && 2 * missing_ > records_) return "mostly has no value";
  if (missing_ > 0 || !whole_) return "";
  // A few records may differ by chance.
  if (consecutive_ && records_ >= 5) return "looks like row numbers";
  if (distinct_ && records_ >= 20) return "looks like an identifier: every number is another";
  return "";
}

void ColumnEvidence::add(double value) {
  constexpr std::size_t most_seen = 1'000'000;
  ++records_;
  if (std::isnan(value)) {
    ++missing_;
    return;
  }
  whole_ = whole_ && value == std::floor(value) && std::isfinite(value);
  consecutive_ = consecutive_ && (next_ ? value == *next_ : value == 0 || value == 1);
  next_ = value + 1;
  if (distinct_ && whole_ && seen_.size() < most_seen) distinct_ = seen_.insert(value).second;
  if (!distinct_) seen_.clear();
}

}  // namespace starfold
