// The functions that compute with columns inside a formula. Private to starfold/formula.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace starfold::formula {

// One row for each: it computes `count` values from as many of each argument.
struct Function {
  std::string_view name;
  std::size_t least = 1;  // arguments
  std::size_t most = 1;
  bool truth = false;  // its values are true or false
  // The one of these that is there.
  double (*one)(double) = nullptr;
  double (*two)(double, double) = nullptr;
  void (*several)(std::span<const double* const> args, std::size_t count, double* to) = nullptr;

  void compute(std::span<const double* const> args, std::size_t count, double* to) const;
};

// Null when there is none of this name that takes so many arguments.
const Function* find_function(std::string_view name, std::size_t arguments);

// What to write for a function that is not there, in words.
std::string function_help(std::string_view name, std::size_t arguments);

}  // namespace starfold::formula
