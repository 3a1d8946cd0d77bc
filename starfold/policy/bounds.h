// How large the terms of records can be, from where the values they are made of lie: what needs no look at the records.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "starfold/policy/derive.h"

namespace starfold::policy {

// Where the values of each input lie, by name.
using InputRanges = std::map<std::string, Interval, std::less<>>;

// Where the entries of a tensor lie; nothing is known where one is nan.
Interval range_of(const Tensor& tensor);

// The largest absolute value that each list of terms can have; inf where nobody knows.
std::vector<double> largest_terms(const SupportProgram& support, const SizeValues& sizes,
                                  const InputRanges& inputs);

}  // namespace starfold::policy
