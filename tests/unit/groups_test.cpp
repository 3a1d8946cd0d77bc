// Sums by label are those of one record after the other, whatever the processor.
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "starfold/ops/meaning.h"
#include "starfold/runtime/engine/layout.h"
#include "starfold/runtime/kernels/kernels.h"

namespace starfold {
namespace {

// Mostly labels, now and then something else.
double some_label(std::mt19937_64& random, std::size_t labels) {
  constexpr double strange[] = {0,   -1,   1.5,   1e300, -std::numeric_limits<double>::infinity(),
                                0.5, 4e10, 1e-300};
  const std::size_t choice = random() % 32;
  if (choice == 0) return std::nan("");
  if (choice == 1) return strange[random() % std::size(strange)];
  if (choice == 2) return static_cast<double>(labels + 1);
  return static_cast<double>(random() % labels + 1);
}

void check_rows(const double* labels, std::size_t count, std::size_t n,
                std::vector<std::uint32_t>& rows) {
  std::size_t outside = 0;
  std::vector<std::uint32_t> want;
  for (std::size_t i = 0; i < n; ++i) {
    const bool known = meaning::picks_one_of(labels[i], static_cast<std::int64_t>(count));
    outside += !known && !std::isnan(labels[i]) ? 1 : 0;
    want.push_back(static_cast<std::uint32_t>(known ? labels[i] - 1 : static_cast<double>(count)));
  }
  rows.resize(kernels::padded(n));
  EXPECT_EQ(kernels::groups().rows(labels, count, rows.data(), n), outside);
  rows.resize(n);
  EXPECT_EQ(rows, want);
}

void check_groups(std::mt19937_64& random, std::size_t n, std::size_t columns, std::size_t labels) {
  std::normal_distribution<double> normal;
  const std::size_t room_of_column = kernels::padded(n);
  engine::Buffer room((columns + 1) * room_of_column);
  std::vector<const double*> x;
  for (std::size_t k = 0; k < columns; ++k) {
    double* const column = room.data() + k * room_of_column;
    for (std::size_t i = 0; i < n; ++i) column[i] = normal(random);
    x.push_back(column);
  }
  double* const label = room.data() + columns * room_of_column;
  for (std::size_t i = 0; i < room_of_column; ++i) label[i] = some_label(random, labels);
  std::vector<std::uint32_t> rows;
  check_rows(label, labels, n, rows);

  const std::size_t stride = kernels::padded(columns);
  engine::Buffer sums((labels + 1) * stride);
  std::vector<double> want((labels + 1) * stride);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < columns; ++k) want[rows[i] * stride + k] += x[k][i];
  }
  kernels::groups().add(x.data(), columns, rows.data(), sums.data(), stride, n);
  EXPECT_EQ(std::vector<double>(sums.data(), sums.data() + want.size()), want)
      << n << " records, " << columns << " columns, " << labels << " labels";
}

TEST(Groups, AreSummedOneRecordAfterTheOther) {
  for (auto rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const auto target = rest & ~(rest - 1);
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    std::mt19937_64 random(3);
    for (const std::size_t n : {1, 3, 4, 8, 17, 512}) {
      for (const std::size_t columns : {1, 2, 3, 4, 7, 8, 12, 16, 17, 31, 40}) {
        for (const std::size_t labels : {1, 2, 5, 32}) check_groups(random, n, columns, labels);
      }
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

}  // namespace
}  // namespace starfold
