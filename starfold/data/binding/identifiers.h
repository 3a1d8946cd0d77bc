// Columns that tell records apart rather than describe them: row numbers and identifiers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

namespace starfold {

// Why a column of this name is hardly one to compute with: "looks like an identifier"; empty: it may be.
std::string objection_to_name(const std::string& name);

// What the values of one column say, over all clients.
class ColumnEvidence {
 public:
  void start_client();
  void add(const double* values, std::size_t count);

  std::int64_t records() const { return records_; }
  bool missing() const { return missing_ > 0; }
  // As above, from the values.
  std::string objection() const;

 private:
  void add(double value);

  std::unordered_set<double> seen_;  // of this client
  std::int64_t records_ = 0;
  std::int64_t missing_ = 0;
  std::optional<double> next_;  // of row numbers
  bool whole_ = true;
  bool distinct_ = true;
  bool consecutive_ = true;
};

}  // namespace starfold
