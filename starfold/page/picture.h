// The paper's picture (fig:shared-state-factorization), drawn for one plan: in each round local
// inputs, local encoders, the merge into shared state and the shared-only decoder; loops as frames
// around what they repeat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "starfold/plan/plan.h"

namespace starfold::page {

struct PictureClient {
  std::string name;
  std::optional<std::int64_t> records;  // where that may be shown
};

// What is known after a run; before it, the picture shows clients 1, 2, ..., m and symbolic sizes.
struct PictureFacts {
  std::vector<PictureClient> clients;
  SizeValues sizes;
  std::vector<std::int64_t> runs;        // by round number: how often it ran
  std::vector<std::int64_t> iterations;  // by loop
  std::int64_t sampled = 0;              // so many clients were drawn for each round; 0: all
};

std::string rounds_picture(const Plan& plan, const PictureFacts& facts = {});

// The first sentences about a round.
std::string round_sentence(const Plan& plan, const Step& step, const PictureFacts& facts);

}  // namespace starfold::page
