// A text in memory as a file that is read a few bytes at a time, so that everything is cut everywhere.
#pragma once

#include <algorithm>
#include <cstring>

#include "starfold/data/text/input.h"

namespace starfold {

class Pieces : public ByteInput {
 public:
  Pieces(std::string_view text, std::size_t piece) : text_(text), piece_(piece) {}
  std::size_t read(char* to, std::size_t size) override {
    const std::size_t count = std::min({size, piece_, text_.size()});
    std::memcpy(to, text_.data(), count);
    text_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view text_;
  std::size_t piece_;
};

}  // namespace starfold
