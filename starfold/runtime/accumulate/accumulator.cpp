#include "starfold/runtime/accumulate/accumulator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "starfold/base/error.h"
#include "starfold/merge/comoments.h"
#include "starfold/merge/scale.h"
#include "starfold/runtime/accumulate/comoments_accumulator.h"
#include "starfold/runtime/accumulate/exact_accumulator.h"
#include "starfold/runtime/engine/layout.h"
#include "starfold/runtime/kernels/kernels.h"

namespace starfold::engine {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();  // the one: others differ in bits

// --- sums ------------------------------------------------------------------------------------------

// How many columns are summed by groups at once: so many that records of one group that follow each other hardly wait for their
// sums.
constexpr std::size_t group_width = 16;

class DoubleSums final : public SumAccumulator {
 public:
  explicit DoubleSums(const Shape& result)
      : sums_(static_cast<std::size_t>(element_count(result))) {}

  void sample(const double* const* columns, std::size_t count, std::size_t n,
              std::size_t place) override {
    single_ = true;
    for (std::size_t k = 0; k < count; ++k) sums_[place] += kernels::folds().sum(columns[k], n);
  }

  void dot(const double* a, const double* b, std::size_t n, std::size_t place) override {
    single_ = true;
    sums_[place] += kernels::folds().dot(a, b, n);
  }

  void gram(std::size_t number, std::span<const double* const> rows,
            std::span<const double* const> columns, bool upper, std::size_t n,
            std::span<const std::uint32_t> places) override {
    Tile& tile = tile_of(number, places, columns.size(), upper);
    if (n <= kernels::kFew && !upper && columns.size() >= kernels::kPad) {
      kernels::products().gram_few(rows.data(), rows.size(), columns.data(), columns.size(),
                                   tile.sums.data(), n, !tile.empty);
      tile.empty = false;
      return;
    }
    tile.begin();
    kernels::products().gram(rows.data(), rows.size(), columns.data(), columns.size(), upper,
                             tile.sums.data(), n, {});
  }

  void groups(std::size_t number, std::span<const std::uint32_t> rows, std::size_t labels,
              std::span<const double* const> columns,
              std::span<const std::uint32_t> places) override {
    Tile& tile = tile_of(number, places, columns.size(), false);
    tile.begin();
    by_row_.reserve(group_width * (labels + 1));
    for (std::size_t first = 0; first < columns.size(); first += group_width) {
      const std::size_t width = std::min(group_width, columns.size() - first);
      const std::size_t stride = kernels::padded(width);
      const double* const* x = columns.data() + first;
      std::fill_n(by_row_.data(), stride * (labels + 1), 0.0);
      kernels::groups().add(x, width, rows.data(), by_row_.data(), stride, rows.size());
      double* const total = tile.sums.data() + first;
      for (std::size_t label = 0; label < labels; ++label) {
        const double* const sum = by_row_.data() + stride * label;
        for (std::size_t w = 0; w < width; ++w) total[label * columns.size() + w] += sum[w];
      }
      // What is not finite shows in the sums of its row.
      if (!all_finite(by_row_.data(), stride * (labels + 1)))
        spread_infinities({x, width}, rows, labels, total, columns.size());
    }
  }

  void finish(MergeState& state) override {
    // Many sums that lie as they should change places with what was handed out before: to copy them, and to put zeros
    // there, costs more than batches take to make them.
    const bool all = tiles_.size() == 1 && !single_ && tiles_[0].in_order && !tiles_[0].empty;
    if (all && tiles_[0].sums.size() == state[0].data.size()) {
      state[0].data.swap(tiles_[0].sums);
      return;
    }
    single_ = true;
    for (const Tile& tile : tiles_) {
      if (tile.empty) continue;
      for (std::size_t c = 0; !tile.upper && c < tile.places.size(); ++c)
        sums_[tile.places[c]] += tile.sums[c];
      for (std::size_t c = 0; tile.upper && c < tile.places.size(); ++c) {
        const std::size_t i = c / tile.columns;
        const std::size_t j = c % tile.columns;
        sums_[tile.places[c]] += tile.sums[i > j ? j * tile.columns + i : c];
      }
    }
    state[0].data = sums_;
  }
  bool restart() override {
    if (single_) std::fill(sums_.begin(), sums_.end(), 0.0);
    single_ = false;
    for (Tile& tile : tiles_) tile.empty = true;
    return true;
  }

 private:
  // Sums that lie as a kernel wants them until the end of the chunk.
  struct Tile {
    std::span<const std::uint32_t> places;  // of a step, which outlives the accumulator
    std::size_t columns = 0;
    bool upper = false;
    std::vector<double> sums;
    bool in_order = false;  // they are all sums of the result, and lie in the same way
    bool empty = true;      // whatever lies there is of an earlier time

    void begin() {
      if (empty) std::fill(sums.begin(), sums.end(), 0.0);
      empty = false;
    }
  };

  Tile& tile_of(std::size_t number, std::span<const std::uint32_t> places, std::size_t columns,
                bool upper) {
    if (tiles_.size() <= number) tiles_.resize(number + 1);
    Tile& tile = tiles_[number];
    if (tile.sums.empty()) {
      tile = {places, columns, upper, std::vector<double>(places.size())};
      tile.in_order = !upper && places.size() == sums_.size();
      for (std::size_t c = 0; c < places.size() && tile.in_order; ++c)
        tile.in_order = places[c] == c;
    }
    return tile;
  }

  // Of a multiple of kPad numbers.
  static bool all_finite(const double* x, std::size_t count) {
    double zeros[kernels::kPad] = {};
    for (std::size_t i = 0; i < count; i += kernels::kPad) {
      for (std::size_t l = 0; l < kernels::kPad; ++l) zeros[l] += 0 * x[i + l];
    }
    return std::all_of(std::begin(zeros), std::end(zeros), [](double zero) { return zero == 0; });
  }

  // In a product with one_hot what is not finite also meets the zeros of all other groups.
  static void spread_infinities(std::span<const double* const> columns,
                                std::span<const std::uint32_t> rows, std::size_t labels,
                                double* total, std::size_t stride) {
    for (std::size_t w = 0; w < columns.size(); ++w) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const double x = columns[w][i];
        if (std::isfinite(x)) continue;
        for (std::size_t label = 0; label < labels; ++label)
          if (label != rows[i]) total[label * stride + w] += 0 * x;
      }
    }
  }

  std::vector<double> sums_;
  bool single_ = false;  // whether something was added to them, one by one
  std::vector<Tile> tiles_;
  Buffer by_row_;
};

// --- folds whose state is their value ------------------------------------------------------------------

struct Prod {
  static void join(double& into, const double* x, std::size_t n) {
    into *= kernels::folds().prod(x, n);
  }
};
struct Min {
  static void join(double& into, const double* x, std::size_t n) {
    const double least = kernels::folds().min(x, n);
    if (least < into || (least == into && std::signbit(least))) into = least;
    if (std::isnan(least)) into = nan;
  }
};
struct Max {
  static void join(double& into, const double* x, std::size_t n) {
    const double most = kernels::folds().max(x, n);
    if (most > into || (most == into && !std::signbit(most))) into = most;
    if (std::isnan(most)) into = nan;
  }
};
struct Any {
  static void join(double& into, const double* x, std::size_t n) {
    into = into != 0 || kernels::folds().any(x, n) ? 1 : 0;
  }
};
struct All {
  static void join(double& into, const double* x, std::size_t n) {
    into = into != 0 && kernels::folds().all(x, n) ? 1 : 0;
  }
};

template <class Join>
class Values final : public Accumulator {
 public:
  Values(const Monoid& monoid, const Shape& result)
      : values_(static_cast<std::size_t>(element_count(result)), monoid.parts[0].zero) {}
  void sample(const double* const* columns, std::size_t count, std::size_t n,
              std::size_t place) override {
    for (std::size_t k = 0; k < count; ++k) Join::join(values_[place], columns[k], n);
  }
  void finish(MergeState& state) override { state[0].data = std::move(values_); }

 private:
  std::vector<double> values_;
};

class Counts final : public Accumulator {
 public:
  void sample(const double* const* /*columns*/, std::size_t count, std::size_t n,
              std::size_t /*place*/) override {
    this->count(n, count);
  }
  void count(std::size_t n, std::size_t terms) override { count_ += n * terms; }
  void finish(MergeState& state) override {
    for (double& count : state[0].data) count = static_cast<double>(count_);
  }
  bool restart() override {
    count_ = 0;
    return true;
  }

 private:
  std::size_t count_ = 0;
};

// --- folds that merge block by block -------------------------------------------------------------------

// Each block becomes a state, and the states of blocks merge like those of clients.
class ByBlock : public Accumulator {
 public:
  ByBlock(const Monoid& monoid, const Shape& result)
      : monoid_(monoid), so_far_(zero(monoid, result)), block_(so_far_) {}
  void end_block() override { monoid_.merge(so_far_, block_); }
  void finish(MergeState& state) override { state = std::move(so_far_); }

 protected:
  double& part(std::size_t i, std::size_t place) { return block_[i].data[place]; }
  const Monoid& monoid_;
  MergeState so_far_;
  MergeState block_;
};

class Moments final : public ByBlock {
 public:
  using ByBlock::ByBlock;
  void sample(const double* const* columns, std::size_t count, std::size_t n,
              std::size_t place) override {
    const kernels::Folds& folds = kernels::folds();
    const double total = static_cast<double>(n * count);
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k) sum += folds.sum(columns[k], n);
    double mean = sum / total;
    double drift = 0;
    double squares = deviations(columns, count, n, mean, drift);
    // The drift takes back what the rounding of the mean put in.
    squares -= drift * drift / total;
    if (!std::isfinite(squares)) squares = far_out(columns, count, n, mean);
    part(0, 0) = total;
    part(1, place) = mean;
    part(2, place) = squares < 0 ? 0 : squares;
  }

 private:
  static double deviations(const double* const* columns, std::size_t count, std::size_t n,
                           double mean, double& drift) {
    double squares = 0;
    for (std::size_t k = 0; k < count; ++k) {
      double first = 0;
      double second = 0;
      kernels::folds().deviations(columns[k], mean, n, &first, &second);
      drift += first;
      squares += second;
    }
    return squares;
  }

  // Numbers so large that their sum, or the square of its rounding, overflows.
  static double far_out(const double* const* columns, std::size_t count, std::size_t n,
                        double& mean) {
    std::vector<double> all;
    for (std::size_t k = 0; k < count; ++k) all.insert(all.end(), columns[k], columns[k] + n);
    mean = stable_mean(all);
    double drift = 0;
    return deviations(columns, count, n, mean, drift);
  }
};

class LogSumExp final : public ByBlock {
 public:
  using ByBlock::ByBlock;
  void sample(const double* const* columns, std::size_t count, std::size_t n,
              std::size_t place) override {
    const kernels::Folds& folds = kernels::folds();
    double top = -inf;
    for (std::size_t k = 0; k < count; ++k) {
      const double here = folds.max(columns[k], n);
      if (here > top || std::isnan(here)) top = here;
    }
    // An infinity or a nan is the answer.
    part(0, place) = top;
    if (!std::isfinite(top)) return;
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k) sum += folds.sum_exp(columns[k], top, n);
    part(0, place) = top + std::log(sum);
  }
};

class Norm final : public ByBlock {
 public:
  using ByBlock::ByBlock;
  void sample(const double* const* columns, std::size_t count, std::size_t n,
              std::size_t place) override {
    const kernels::Folds& folds = kernels::folds();
    double squares = 0;
    for (std::size_t k = 0; k < count; ++k) squares += folds.dot(columns[k], columns[k], n);
    double scale = 1;
    // Where no square vanished or overflowed, the plain sum is right.
    const bool plain = squares > 1e-140 && squares < 1e280;
    if (!plain) squares = scaled(columns, count, n, scale);
    part(0, place) = scale;
    part(1, place) = squares;
  }

 private:
  static double scaled(const double* const* columns, std::size_t count, std::size_t n,
                       double& scale) {
    double top = 0;
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t i = 0; i < n; ++i) {
        if (std::isnan(columns[k][i])) return columns[k][i];
        top = std::max(top, std::fabs(columns[k][i]));
      }
    }
    if (top == 0) {
      scale = 0;
      return 0;
    }
    scale = square_scale(top);
    double squares = 0;
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t i = 0; i < n; ++i)
        squares += (columns[k][i] / scale) * (columns[k][i] / scale);
    }
    return squares;
  }
};

// What the row itself says, for merges that nobody wrote a kernel for.
class Definition final : public ByBlock {
 public:
  Definition(const Monoid& monoid, const Shape& result)
      : ByBlock(monoid, result), empty_(zero(monoid, result)) {}
  void sample(const double* const* /*columns*/, std::size_t /*count*/, std::size_t /*n*/,
              std::size_t /*place*/) override {
    throw Bug("a merge without a kernel was given columns");
  }
  void records(const FoldedRecords& records) override {
    block_ = empty_;
    monoid_.fold(records, block_);
  }

 private:
  MergeState empty_;
};

template <class Type>
std::unique_ptr<Accumulator> make(const Monoid& monoid, const Shape& result) {
  if constexpr (std::is_constructible_v<Type, const Monoid&, const Shape&>) {
    return std::make_unique<Type>(monoid, result);
  } else if constexpr (std::is_constructible_v<Type, const Shape&>) {
    return std::make_unique<Type>(result);
  } else {
    return std::make_unique<Type>();
  }
}

}  // namespace

void Accumulator::block(std::span<const std::vector<const double*>> /*operands*/,
                        std::size_t /*n*/) {
  throw Bug("an accumulator that takes no block");
}
void Accumulator::records(const FoldedRecords& /*records*/) {
  throw Bug("an accumulator that takes no tensors");
}
void Accumulator::count(std::size_t /*n*/, std::size_t /*terms*/) {
  throw Bug("an accumulator that does not count");
}

AccumulatorKind accumulator_kind(const Monoid& monoid) {
  using Takes = AccumulatorKind::Takes;
  struct Row {
    const Monoid* monoid;
    AccumulatorKind kind;
  };
  static const Row rows[] = {
      {&monoids::sum, {Takes::sums, make<DoubleSums>}},
      {&monoids::prod, {Takes::columns, make<Values<Prod>>}},
      {&monoids::min, {Takes::columns, make<Values<Min>>}},
      {&monoids::max, {Takes::columns, make<Values<Max>>}},
      {&monoids::any, {Takes::columns, make<Values<Any>>}},
      {&monoids::all, {Takes::columns, make<Values<All>>}},
      {&monoids::count, {Takes::counts, make<Counts>}},
      {&monoids::moments, {Takes::samples, make<Moments>}},
      {&monoids::logsumexp, {Takes::samples, make<LogSumExp>}},
      {&monoids::norm, {Takes::samples, make<Norm>}},
      {&monoids::comoments, {Takes::block, make_comoments}},
      {&monoids::cross_comoments, {Takes::block, make_comoments}},
  };
  for (const Row& row : rows) {
    if (row.monoid == &monoid) return row.kind;
  }
  if (const std::optional<AccumulatorKind> exact = exact_accumulator_kind(monoid)) return *exact;
  return {Takes::records, make<Definition>};
}

}  // namespace starfold::engine
