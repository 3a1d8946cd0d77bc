#include "starfold/runtime/accumulate/comoments_accumulator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "starfold/base/error.h"
#include "starfold/merge/scale.h"
#include "starfold/runtime/engine/layout.h"
#include "starfold/runtime/kernels/kernels.h"

namespace starfold::engine {
namespace {

using Operands = std::span<const std::vector<const double*>>;

// Squares of these sizes lose no digits, and need no scale.
bool is_ordinary(double squares) { return squares > 1e-140 && squares < 1e280; }

// All products of deviations of a block.
void multiply(const std::vector<const double*>& rows, const std::vector<const double*>& columns,
              bool one, std::size_t n, std::vector<double>& products, kernels::Ahead next) {
  std::fill(products.begin(), products.end(), 0.0);
  kernels::products().gram(rows.data(), rows.size(), columns.data(), columns.size(), one,
                           products.data(), n, next);
}

// Blocks one after the other, as deviations from points that stay the same while they lie among the records: so all sums
// are plain ones.
class Running {
 public:
  explicit Running(std::size_t entries) : found_(entries), products_(entries) {}

  // False where a block is none of ordinary size: it was not added.
  bool add(Operands operands, std::size_t n, const Monoid& monoid, MergeState& so_far) {
    const bool fresh = count_ == 0;
    if (fresh && !settle(operands, n)) return false;
    Fit fit = try_block(operands, n);
    if (fit == Fit::far && !fresh) {
      flush(monoid, so_far);
      if (!settle(operands, n)) return false;
      fit = try_block(operands, n);
    }
    if (fit == Fit::never) return false;
    count_ += static_cast<double>(n);
    for (Side& side : sides_) {
      for (std::size_t k = 0; k < side.sums.size(); ++k) {
        side.sums[k] += side.drifts[k];
        side.moves[k] = side.moves[k] || side.squares[k] != 0;
      }
    }
    for (std::size_t i = 0; i < found_.size(); ++i) products_[i] += found_[i];
    return true;
  }

  // Merges what there is.
  void flush(const Monoid& monoid, MergeState& so_far) {
    if (count_ == 0) return;
    MergeState state = so_far;
    const Side& rows = sides_.front();
    const Side& columns = sides_.back();
    const std::size_t width = columns.sums.size();
    for (std::size_t i = 0; i < rows.sums.size(); ++i) {
      for (std::size_t j = 0; j < width; ++j) {
        const bool above = sides_.size() > 1 || i <= j;
        const double product = products_[above ? i * width + j : j * width + i];
        state.back().data[i * width + j] = product - rows.sums[i] * columns.sums[j] / count_;
      }
    }
    state[0].data[0] = count_;
    for (std::size_t s = 0; s < sides_.size(); ++s) {
      Side& side = sides_[s];
      for (std::size_t k = 0; k < side.sums.size(); ++k) {
        state[1 + s].data[k] = side.points[k] + side.sums[k] / count_;
        state[1 + sides_.size() + s].data[k] = side.moves[k] ? 1 : 0;
      }
    }
    monoid.merge(so_far, state);
    count_ = 0;
  }

 private:
  struct Side {
    std::vector<double> points;
    std::vector<double> sums;    // of the deviations from them
    std::vector<char> moves;     // whether there are any
    std::vector<double> drifts;  // the same sums of a block, and those of the squares
    std::vector<double> squares;
    std::vector<const double*> deviations;
    Buffer room;
  };
  enum class Fit { good, far, never };

  // The means of the block become the points.
  bool settle(Operands operands, std::size_t n) {
    sides_.resize(operands.size());
    for (std::size_t s = 0; s < sides_.size(); ++s) {
      Side& side = sides_[s];
      side.points.clear();
      for (const double* x : operands[s]) {
        side.points.push_back(kernels::folds().sum(x, n) / static_cast<double>(n));
        if (!std::isfinite(side.points.back())) return false;
      }
      side.sums.assign(side.points.size(), 0);
      side.moves.assign(side.points.size(), 0);
      side.drifts.resize(side.points.size());
      side.squares.resize(side.points.size());
    }
    std::fill(products_.begin(), products_.end(), 0.0);
    return true;
  }

  Fit try_block(Operands operands, std::size_t n) {
    for (std::size_t s = 0; s < sides_.size(); ++s) center(sides_[s], operands[s], n);
    const bool one = sides_.size() == 1;
    // The next block is fetched meanwhile, where the second cache has room for it.
    constexpr std::size_t most = 32;
    const std::vector<const double*>& read = operands.front();
    const kernels::Ahead next =
        read.size() <= most ? kernels::after(read.data(), read.size(), n) : kernels::Ahead{};
    multiply(sides_.front().deviations, sides_.back().deviations, one, n, found_, next);
    Fit fit = Fit::good;
    for (Side& side : sides_) {
      for (std::size_t k = 0; k < side.squares.size(); ++k) {
        const double* x = side.deviations[k];
        side.squares[k] = one ? found_[k * side.squares.size() + k] : kernels::folds().dot(x, x, n);
        fit = std::max(fit, fit_of(side, k, n));
      }
    }
    return fit;
  }

  static void center(Side& side, const std::vector<const double*>& columns, std::size_t n) {
    // A cache line between columns, or they would be in each other's way in the first cache.
    const std::size_t stride = kernels::padded(n) + kernels::kPad;
    side.room.reserve(columns.size() * stride);
    side.deviations.clear();
    for (std::size_t k = 0; k < columns.size(); ++k) {
      double* const to = side.room.data() + k * stride;
      side.drifts[k] = kernels::folds().center(columns[k], side.points[k], to, n);
      side.deviations.push_back(to);
    }
  }

  // A block is far from the points where nearly all of its squares are due to that: they would hide its own. At most eight bits
  // are lost so, and a column of record numbers has new points in every fifth block only.
  static Fit fit_of(const Side& side, std::size_t k, std::size_t n) {
    const double squares = side.squares[k];
    const double* x = side.deviations[k];
    // Squares may vanish where deviations do not.
    if (squares == 0 && std::all_of(x, x + n, [](double d) { return d == 0; })) return Fit::good;
    if (!is_ordinary(squares)) return Fit::never;
    const double mean = side.drifts[k] / static_cast<double>(n);
    const bool rounding = std::fabs(mean) <= 0x1p-50 * std::fabs(side.points[k]);
    constexpr double most = 255.0 / 256;
    return !rounding && mean * side.drifts[k] > most * squares ? Fit::far : Fit::good;
  }

  std::vector<Side> sides_;
  std::vector<double> found_;     // products of a block,
  std::vector<double> products_;  // and of all since the points were chosen
  double count_ = 0;
};

// A block of numbers of any size: deviations from its own means, relative to scales at which no square vanishes.
class Scaled {
 public:
  void fold(Operands operands, std::size_t n, MergeState& block) {
    const bool one = operands.size() == 1;
    Centered rows = center(operands.front(), n, rows_);
    Centered columns = one ? rows : center(operands.back(), n, columns_);
    std::vector<double>& products = block.back().data;
    multiply_all(rows, columns, one, n, products);
    bool far = fit_scales(rows, operands.front(), n, one ? &products : nullptr);
    if (!one) far = fit_scales(columns, operands.back(), n, nullptr) || far;
    if (far) multiply_all(rows, one ? rows : columns, one, n, products);
    block[0].data[0] = static_cast<double>(n);
    const std::size_t sides = one ? 1 : 2;
    block[1].data = std::move(rows.means);
    block[1 + sides].data = std::move(rows.scales);
    if (one) return;
    block[2].data = std::move(columns.means);
    block[4].data = std::move(columns.scales);
  }

 private:
  struct Centered {
    std::vector<double> means;
    std::vector<double> scales;
    std::vector<double> drifts;  // the sums of the deviations
    std::vector<double*> deviations;
  };

  static Centered center(const std::vector<const double*>& columns, std::size_t n, Buffer& room) {
    const std::size_t stride = kernels::padded(n);
    room.reserve(columns.size() * stride);
    Centered result;
    result.scales.resize(columns.size(), 1);
    for (std::size_t k = 0; k < columns.size(); ++k) {
      double* to = room.data() + k * stride;
      double mean = kernels::folds().sum(columns[k], n) / static_cast<double>(n);
      if (!std::isfinite(mean)) mean = stable_mean({columns[k], n});
      double drift = kernels::folds().center(columns[k], mean, to, n);
      // What rounding did to the mean is taken back, or equal columns of two clients would differ.
      const double better = mean + drift / static_cast<double>(n);
      if (std::isfinite(better) && better != mean) {
        mean = better;
        drift = kernels::folds().center(columns[k], mean, to, n);
      }
      result.drifts.push_back(drift);
      result.means.push_back(mean);
      result.deviations.push_back(to);
    }
    return result;
  }

  static void multiply_all(const Centered& rows, const Centered& columns, bool one, std::size_t n,
                           std::vector<double>& products) {
    const std::vector<const double*> left(rows.deviations.begin(), rows.deviations.end());
    const std::vector<const double*> right(columns.deviations.begin(), columns.deviations.end());
    multiply(left, right, one, n, products, {});
    const std::size_t width = right.size();
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = one ? i : 0; j < width; ++j) {
        // The drifts take back what the rounding of the means put in.
        products[i * width + j] -= rows.drifts[i] * columns.drifts[j] / static_cast<double>(n);
        if (one) products[j * width + i] = products[i * width + j];
      }
    }
  }

  // Gives every column the scale of its deviations; true when some are no longer those that were multiplied.
  static bool fit_scales(Centered& side, const std::vector<const double*>& columns, std::size_t n,
                         const std::vector<double>* products) {
    bool changed = false;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const double* x = side.deviations[k];
      const double squares =
          products != nullptr ? (*products)[k * columns.size() + k] : kernels::folds().dot(x, x, n);
      // Where no square vanished or overflowed, the scale is 1.
      if (is_ordinary(squares)) continue;
      const double scale = scale_of(columns[k], side.means[k], n);
      side.scales[k] = scale;
      if (scale == 0 || scale == 1) continue;
      changed = true;
      for (std::size_t i = 0; i < n; ++i)
        side.deviations[k][i] = columns[k][i] / scale - side.means[k] / scale;
      side.drifts[k] = kernels::folds().sum(side.deviations[k], n);
    }
    return changed;
  }

  static double scale_of(const double* column, double mean, std::size_t n) {
    double top = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!std::isfinite(column[i])) return 1;
      const double deviation = std::fabs(column[i] - mean);
      top = std::max(top, std::min(deviation, std::numeric_limits<double>::max()));
    }
    return top == 0 ? 0 : square_scale(top);
  }

  Buffer rows_;
  Buffer columns_;
};

class Comoments final : public Accumulator {
 public:
  Comoments(const Monoid& monoid, const Shape& result)
      : monoid_(monoid),
        so_far_(zero(monoid, result)),
        empty_(so_far_),
        running_(so_far_.back().data.size()) {}
  void sample(const double* const* /*columns*/, std::size_t /*count*/, std::size_t /*n*/,
              std::size_t /*place*/) override {
    throw Bug("a covariance was given single columns");
  }
  void block(Operands operands, std::size_t n) override {
    if (n == 0 || running_.add(operands, n, monoid_, so_far_)) return;
    running_.flush(monoid_, so_far_);
    MergeState block = empty_;
    scaled_.fold(operands, n, block);
    monoid_.merge(so_far_, block);
  }
  void finish(MergeState& state) override {
    running_.flush(monoid_, so_far_);
    state = std::move(so_far_);
  }

 private:
  const Monoid& monoid_;
  MergeState so_far_;
  MergeState empty_;
  Running running_;
  Scaled scaled_;
};

}  // namespace

std::unique_ptr<Accumulator> make_comoments(const Monoid& monoid, const Shape& result) {
  return std::make_unique<Comoments>(monoid, result);
}

}  // namespace starfold::engine
