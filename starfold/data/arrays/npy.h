// NumPy's array files: .npy, and .npz archives of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "starfold/tensor/tensor.h"

namespace starfold {

// The array in these bytes, of at most `room` bytes; RunError beginning with `what` when they are no array of
// numbers.
Tensor parse_npy(std::string_view bytes, const std::string& what, std::int64_t room);
// The array of a file that takes no more than `room` bytes while it is read; RunError otherwise.
Tensor read_npy(const std::string& path, std::int64_t room);
// All arrays of an archive, by name, likewise: how large they are is known before they are unpacked.
std::map<std::string, Tensor> read_npz(const std::string& path, std::int64_t room);

// The bytes of a .npy file of doubles.
std::string format_npy(const Tensor& tensor);

}  // namespace starfold
