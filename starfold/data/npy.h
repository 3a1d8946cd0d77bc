// NumPy's array files: .npy, and .npz archives of them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "starfold/tensor/tensor.h"

namespace starfold {

// The array in these bytes; RunError beginning with `what` when they are no array of numbers.
Tensor parse_npy(std::string_view bytes, const std::string& what);
Tensor read_npy(const std::string& path);
// All arrays of an archive, by name.
std::map<std::string, Tensor> read_npz(const std::string& path);

// The bytes of a .npy file of doubles.
std::string format_npy(const Tensor& tensor);

}  // namespace starfold
