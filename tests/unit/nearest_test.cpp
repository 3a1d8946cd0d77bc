// The nearest of some points is the one with the smallest distance, however it is found.
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "starfold/runtime/engine_layout.h"
#include "starfold/runtime/kernels/kernels.h"

namespace starfold {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

struct Case {
  std::size_t records;
  std::size_t columns;
  std::size_t points;
};

// By the distances themselves, as the kernels give them.
std::vector<double> by_distances(const std::vector<const double*>& columns,
                                 const std::vector<const double*>& points, std::size_t n) {
  engine::Buffer room((points.size() + 1) * kernels::padded(n));
  std::vector<double*> to;
  for (std::size_t j = 0; j < points.size(); ++j)
    to.push_back(room.data() + j * kernels::padded(n));
  double* const out = room.data() + points.size() * kernels::padded(n);
  kernels::products().distances(columns.data(), columns.size(), points.data(), 1, to.data(),
                                points.size(), n);
  const std::vector<const double*> from(to.begin(), to.end());
  kernels::extremes().smallest(from.data(), from.size(), out, n);
  return {out, out + n};
}

// What is different about the numbers of a case.
enum class Kind { ordinary, far, ties, tiny, huge, special };

void check(std::mt19937_64& random, const Case& size, Kind kind) {
  std::normal_distribution<double> normal;
  const double shift = kind == Kind::far ? 1e9 : 0;
  const double scale = kind == Kind::tiny ? 1e-160 : kind == Kind::huge ? 1e160 : 1;
  const auto number = [&] {
    // Whole numbers lie as near to one point as to another now and then.
    if (kind == Kind::ties) return static_cast<double>(random() % 3);
    if (kind == Kind::special && random() % 40 == 0)
      return std::vector<double>{inf, -inf, std::nan("")}[random() % 3];
    return shift + scale * normal(random);
  };
  std::vector<double> points(size.points * size.columns);
  for (double& x : points)
    x = kind == Kind::special && random() % 2 == 0 ? normal(random) : number();
  std::vector<const double*> of_points;
  for (std::size_t j = 0; j < size.points; ++j)
    of_points.push_back(points.data() + j * size.columns);
  const std::size_t stride = kernels::padded(size.records);
  engine::Buffer room((size.columns + 1) * stride);
  std::vector<const double*> columns;
  for (std::size_t k = 0; k < size.columns; ++k) {
    double* x = room.data() + k * stride;
    for (std::size_t i = 0; i < size.records; ++i) x[i] = number();
    columns.push_back(x);
  }
  double* const out = room.data() + size.columns * stride;
  kernels::nearest()(columns.data(), size.columns, of_points.data(), 1, size.points, out,
                              size.records);
  const std::vector<double> want = by_distances(columns, of_points, size.records);
  EXPECT_EQ(std::vector<double>(out, out + size.records), want)
      << size.columns << " columns, " << size.points << " points, kind " << static_cast<int>(kind);
}

TEST(Nearest, IsTheOneWithTheSmallestDistance) {
  for (auto rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const auto target = rest & ~(rest - 1);
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    std::mt19937_64 random(6);
    for (const Case& size : {Case{512, 16, 32}, Case{300, 2, 5}, Case{77, 1, 9}, Case{130, 3, 3},
                             Case{64, 64, 7}, Case{64, 70, 7}, Case{40, 2, 300}}) {
      for (const Kind kind :
           {Kind::ordinary, Kind::far, Kind::ties, Kind::tiny, Kind::huge, Kind::special})
        check(random, size, kind);
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

}  // namespace
}  // namespace starfold
