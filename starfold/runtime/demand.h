// Conditions of a program on shared values: `require` and `expect`.
#pragma once

#include "starfold/base/error.h"
#include "starfold/runtime/reference.h"

namespace starfold {

// A condition that must hold and does not. Its message numbers the entries it fails for; who knows the columns can
// name them.
class Unmet : public RunError {
 public:
  Unmet(const ir::Trace& trace, std::size_t place, std::vector<std::size_t> entries);

  std::size_t place() const { return place_; }  // among the traces of the program
  const std::vector<std::size_t>& entries() const { return entries_; }

 private:
  std::size_t place_;
  std::vector<std::size_t> entries_;
};

// "sentence: a, b", with these names for the entries; the sentence alone where there are none.
std::string with_entries(const std::string& sentence, const std::vector<std::string>& names);

// Asks the condition at a place among the traces. Throws Unmet when it must hold and does not, notes it in the results
// when it should.
void demand(const ir::Program& program, std::size_t place, const Tensor& value, Results& results);

// By node: the places of the conditions on it that must hold.
using Demands = std::multimap<ir::NodeId, std::size_t>;
Demands demands_of(const ir::Program& program);

}  // namespace starfold
