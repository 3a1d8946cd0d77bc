#include "starfold/base/cases.h"

namespace starfold {
namespace {

using Values = std::vector<std::vector<double>>;

// Those of `left` more choices, from number `from` on, beside what is chosen already.
void add_cases(const Values& values, std::size_t from, std::size_t left, ChoiceCase& chosen,
               std::vector<ChoiceCase>& found) {
  if (left == 0) {
    found.push_back(chosen);
    return;
  }
  for (std::size_t i = from; i < values.size(); ++i) {
    for (const double value : values[i]) {
      chosen[i] = value;
      add_cases(values, i + 1, left - 1, chosen, found);
    }
    chosen[i].reset();
  }
}

// The sums of products of two and of three of these numbers.
struct Products {
  std::size_t pairs = 0;
  std::size_t triples = 0;
};
Products products(const Values& values) {
  Products of;
  std::size_t sum = 0;
  for (const std::vector<double>& each : values) {
    of.triples += of.pairs * each.size();
    of.pairs += sum * each.size();
    sum += each.size();
  }
  return of;
}

}  // namespace

std::vector<ChoiceCase> joint_cases(const Values& values, std::size_t most) {
  const Products of = products(values);
  std::vector<ChoiceCase> found;
  ChoiceCase chosen(values.size());
  add_cases(values, 0, 2, chosen, found);
  if (of.pairs + of.triples <= most) add_cases(values, 0, 3, chosen, found);
  return found;
}

std::size_t pair_cases(const Values& values) { return products(values).pairs; }

}  // namespace starfold
