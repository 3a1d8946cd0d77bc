// The nearest of some points is the one with the smallest distance, however it is found.
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "starfold/runtime/engine/layout.h"
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
                                 const std::vector<const double*>& points, std::size_t stride,
                                 std::size_t n, bool portable) {
  engine::Buffer room((points.size() + 1) * kernels::padded(n));
  std::vector<double*> to;
  for (std::size_t j = 0; j < points.size(); ++j)
    to.push_back(room.data() + j * kernels::padded(n));
  double* const out = room.data() + points.size() * kernels::padded(n);
  kernels::products(portable).distances(columns.data(), columns.size(), points.data(), stride,
                                        to.data(), points.size(), n);
  const std::vector<const double*> from(to.begin(), to.end());
  kernels::extremes().smallest(from.data(), from.size(), out, n);
  return {out, out + n};
}

// What is different about the numbers of a case.
enum class Kind { ordinary, far, ties, tiny, huge, small, large, uneven, special, between };
constexpr Kind all_kinds[] = {Kind::ordinary, Kind::far,    Kind::ties,  Kind::tiny,
                              Kind::huge,     Kind::small,  Kind::large, Kind::uneven,
                              Kind::special,  Kind::between};

double scale_of(Kind kind, std::mt19937_64& random) {
  switch (kind) {
    case Kind::tiny:
      return 1e-160;
    case Kind::huge:
      return 1e160;
    case Kind::small:  // squares are no numbers of single precision
      return 1e-25;
    case Kind::large:
      return 1e25;
    case Kind::uneven:
      return std::ldexp(1.0, static_cast<int>(random() % 120) - 60);
    default:
      return 1;
  }
}

// Half of the records come to lie between two points, nearly in the middle: nearer to one by any amount that single or double
// precision tells apart, or does not.
void move_between(std::mt19937_64& random, const std::vector<const double*>& points,
                  std::size_t stride, const std::vector<double*>& columns, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (random() % 2 == 0) continue;
    const double* const one = points[random() % points.size()];
    const double* const other = points[random() % points.size()];
    const double share = 0.5 + std::ldexp(1.0, -static_cast<int>(random() % 60));
    for (std::size_t k = 0; k < columns.size(); ++k)
      columns[k][i] = one[k * stride] + share * (other[k * stride] - one[k * stride]);
  }
}

void check(std::mt19937_64& random, const Case& size, Kind kind) {
  std::normal_distribution<double> normal;
  const double shift = kind == Kind::far ? 1e9 : 0;
  const auto number = [&] {
    // Whole numbers lie as near to one point as to another now and then.
    if (kind == Kind::ties) return static_cast<double>(random() % 3);
    if (kind == Kind::special && random() % 40 == 0)
      return std::vector<double>{inf, -inf, std::nan("")}[random() % 3];
    return shift + scale_of(kind, random) * normal(random);
  };
  // A point after the other, or all first numbers before the second ones.
  const bool by_point = random() % 2 == 0;
  const std::size_t stride = by_point ? 1 : size.points;
  std::vector<double> points(size.points * size.columns);
  for (double& x : points)
    x = kind == Kind::special && random() % 2 == 0 ? normal(random) : number();
  std::vector<const double*> of_points;
  for (std::size_t j = 0; j < size.points; ++j)
    of_points.push_back(points.data() + j * (by_point ? size.columns : 1));
  const std::size_t room_of_column = kernels::padded(size.records);
  engine::Buffer room((size.columns + 1) * room_of_column);
  std::vector<double*> to;
  for (std::size_t k = 0; k < size.columns; ++k) {
    to.push_back(room.data() + k * room_of_column);
    for (std::size_t i = 0; i < size.records; ++i) to[k][i] = number();
    // Where a column ends something else may lie, which changes nothing.
    for (std::size_t i = size.records; i < room_of_column; ++i)
      to[k][i] = std::vector<double>{0, inf, -inf, std::nan(""), 1e308, number()}[random() % 6];
  }
  if (kind == Kind::between) move_between(random, of_points, stride, to, size.records);
  const std::vector<const double*> columns(to.begin(), to.end());
  double* const out = room.data() + size.columns * room_of_column;
  for (const bool portable : {false, true}) {
    kernels::nearest(portable)(columns.data(), size.columns, of_points.data(), stride, size.points,
                               out, size.records);
    EXPECT_EQ(std::vector<double>(out, out + size.records),
              by_distances(columns, of_points, stride, size.records, portable))
        << size.columns << " columns, " << size.points << " points, kind " << static_cast<int>(kind)
        << (portable ? ", portable" : "");
  }
}

TEST(Nearest, IsTheOneWithTheSmallestDistance) {
  for (auto rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const auto target = rest & ~(rest - 1);
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    std::mt19937_64 random(6);
    for (const Case& size :
         {Case{512, 16, 32}, Case{300, 2, 5}, Case{77, 1, 9}, Case{130, 3, 3}, Case{64, 64, 7},
          Case{64, 70, 7}, Case{40, 2, 300}, Case{17, 4, 6}, Case{16, 3, 4}, Case{9, 3, 4}}) {
      for (const Kind kind : all_kinds) {
        for (int times = 0; times < 4; ++times) check(random, size, kind);
      }
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

}  // namespace
}  // namespace starfold
