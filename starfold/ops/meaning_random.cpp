// Random tensors: entry i depends on the seed and on i only, so every machine draws the same bits.
#include "starfold/base/error.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/special.h"
#include "starfold/tensor/gather.h"
#include "starfold/tensor/random_bits.h"

namespace starfold::meaning {
namespace {

// A multiple of 2^-53 in [0, 1).
double to_uniform(std::uint64_t x) { return static_cast<double>(x >> 11) * 0x1p-53; }

// By inversion, at an odd multiple of 2^-53: never 0 or 1, and symmetric about 1/2.
double to_normal(std::uint64_t x) {
  return special::normal_quantile((static_cast<double>(x >> 12) + 0.5) * 0x1p-52);
}

Results draw(const Application& a, Stream stream, double (*map)(std::uint64_t), const char* op) {
  require_reasonable(a.sizes, op);
  const Seed seed = seed_of(a.arg(0).item(), op);
  Tensor result(a.sizes);
  for (std::size_t i = 0; i < result.data.size(); ++i)
    result.data[i] = map(random_bits(seed, stream, i));
  return {std::move(result)};
}

}  // namespace

Results uniform(const Application& a) { return draw(a, Stream::uniform, to_uniform, "uniform"); }

Results normal(const Application& a) { return draw(a, Stream::normal, to_normal, "normal"); }

}  // namespace starfold::meaning
