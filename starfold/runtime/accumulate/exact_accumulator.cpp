#include "starfold/runtime/accumulate/exact_accumulator.h"

#include <map>

#include "starfold/runtime/accumulate/exact_sums.h"

namespace starfold::engine {
namespace {

using wide::Word;

std::size_t entries(const Shape& result) { return static_cast<std::size_t>(element_count(result)); }

class ExactSums final : public SumAccumulator {
 public:
  ExactSums(const Shape& result, const exact::Format& format)
      : format_(format), sums_(entries(result), format) {}

  void sample(const double* const* columns, std::size_t count, std::size_t n,
              std::size_t place) override {
    for (std::size_t k = 0; k < count; ++k) sums_.add_column(columns[k], n, place);
  }

  void dot(const double* a, const double* b, std::size_t n, std::size_t place) override {
    const auto entry = static_cast<std::uint32_t>(place);
    sums_.add_products({&a, 1}, {&b, 1}, false, n, {&entry, 1}, dots_[{place, a == b}]);
  }

  void gram(std::size_t number, std::span<const double* const> rows,
            std::span<const double* const> columns, bool upper, std::size_t n,
            std::span<const std::uint32_t> places) override {
    if (grids_.size() <= number) grids_.resize(number + 1);
    if (!upper) return sums_.add_products(rows, columns, false, n, places, grids_[number]);
    // One half, in sums of its own that lie as it does, until the end.
    if (halves_.size() <= number) halves_.resize(number + 1);
    Half& half = halves_[number];
    if (half.places.empty()) {
      half.places = places;
      half.columns = columns.size();
      half.sums = std::make_unique<WideSums>(places.size(), format_);
      for (std::uint32_t i = 0; i < places.size(); ++i) half.own.push_back(i);
    }
    half.sums->add_products(rows, columns, true, n, half.own, grids_[number]);
  }

  void groups(std::size_t /*number*/, std::span<const std::uint32_t> rows, std::size_t labels,
              std::span<const double* const> columns,
              std::span<const std::uint32_t> places) override {
    sums_.add_groups(rows, labels, columns, places);
  }

  void finish(MergeState& state) override {
    for (auto& [place, grid] : dots_) sums_.flush(grid);
    for (std::size_t number = 0; number < grids_.size(); ++number) {
      const bool half = number < halves_.size() && halves_[number].sums != nullptr;
      (half ? *halves_[number].sums : sums_).flush(grids_[number]);
    }
    for (const Half& half : halves_) {
      for (std::size_t c = 0; c < half.places.size(); ++c) {
        const std::size_t i = c / half.columns;
        const std::size_t j = c % half.columns;
        sums_.add(half.places[c], *half.sums, i > j ? j * half.columns + i : c);
      }
    }
    sums_.write(state[0]);
  }

 private:
  struct Half {
    std::span<const std::uint32_t> places;  // of a step, which outlives the accumulator
    std::size_t columns = 0;
    std::vector<std::uint32_t> own;
    std::unique_ptr<WideSums> sums;
  };
  exact::Format format_;
  WideSums sums_;
  std::vector<Half> halves_;
  std::vector<ProductGrid> grids_;                            // of the tiles, by number
  std::map<std::pair<std::size_t, bool>, ProductGrid> dots_;  // by place, squares apart
};

// Sums of squares of columns.
class Squares {
 public:
  explicit Squares(const Shape& result)
      : sums_(entries(result), exact::products), grids_(entries(result)) {}
  void add(const double* x, std::size_t n, std::size_t place) {
    const auto entry = static_cast<std::uint32_t>(place);
    sums_.add_products({&x, 1}, {&x, 1}, false, n, {&entry, 1}, grids_[place]);
  }
  void write(Tensor& part) {
    for (ProductGrid& grid : grids_) sums_.flush(grid);
    sums_.write(part);
  }

 private:
  WideSums sums_;
  std::vector<ProductGrid> grids_;
};

void write_count(Tensor& part, std::size_t count) {
  const Word words[] = {static_cast<Word>(count)};
  for (std::size_t i = 0; i < part.data.size(); ++i) set_integer(part, i, words);
}

class ExactCounts final : public Accumulator {
 public:
  void sample(const double* const* /*columns*/, std::size_t count, std::size_t n,
              std::size_t /*place*/) override {
    this->count(n, count);
  }
  void count(std::size_t n, std::size_t terms) override { count_ += n * terms; }
  void finish(MergeState& state) override { write_count(state[0], count_); }

 private:
  std::size_t count_ = 0;
};

// Sums and sums of squares.
class ExactMoments final : public Accumulator {
 public:
  explicit ExactMoments(const Shape& result)
      : sums_(entries(result), exact::sums), squares_(result) {}
  void sample(const double* const* columns, std::size_t count, std::size_t n,
              std::size_t place) override {
    if (place == 0) count_ += n * count;  // every entry has as many
    for (std::size_t k = 0; k < count; ++k) {
      sums_.add_column(columns[k], n, place);
      squares_.add(columns[k], n, place);
    }
  }
  void finish(MergeState& state) override {
    write_count(state[0], count_);
    sums_.write(state[1]);
    squares_.write(state[2]);
  }

 private:
  std::size_t count_ = 0;
  WideSums sums_;
  Squares squares_;
};

class ExactNorm final : public Accumulator {
 public:
  explicit ExactNorm(const Shape& result) : squares_(result) {}
  void sample(const double* const* columns, std::size_t count, std::size_t n,
              std::size_t place) override {
    for (std::size_t k = 0; k < count; ++k) squares_.add(columns[k], n, place);
  }
  void finish(MergeState& state) override { squares_.write(state[0]); }

 private:
  Squares squares_;
};

// Sums of the columns of each side, and all sums of their products.
class ExactComoments final : public Accumulator {
 public:
  explicit ExactComoments(const Shape& result)
      : rows_(static_cast<std::size_t>(result[0]), exact::sums),
        columns_(static_cast<std::size_t>(result[1]), exact::sums),
        products_(entries(result), exact::products),
        width_(static_cast<std::size_t>(result[1])) {
    for (std::uint32_t i = 0; i < entries(result); ++i) places_.push_back(i);
  }
  void sample(const double* const* /*columns*/, std::size_t /*count*/, std::size_t /*n*/,
              std::size_t /*place*/) override {}
  void block(std::span<const std::vector<const double*>> operands, std::size_t n) override {
    count_ += n;
    one_ = operands.size() == 1;
    const std::vector<const double*>& rows = operands.front();
    const std::vector<const double*>& columns = operands.back();
    for (std::size_t i = 0; i < rows.size(); ++i) rows_.add_column(rows[i], n, i);
    for (std::size_t j = 0; !one_ && j < columns.size(); ++j) columns_.add_column(columns[j], n, j);
    products_.add_products(rows, columns, one_, n, places_, grid_);
  }
  void finish(MergeState& state) override {
    write_count(state[0], count_);
    rows_.write(state[1]);
    if (state.size() == 4) columns_.write(state[2]);
    products_.flush(grid_);
    for (std::size_t i = 0; one_ && i < width_; ++i) {
      for (std::size_t j = 0; j < i; ++j) products_.add(i * width_ + j, products_, j * width_ + i);
    }
    products_.write(state.back());
  }

 private:
  std::size_t count_ = 0;
  bool one_ = false;
  WideSums rows_;
  WideSums columns_;
  WideSums products_;
  ProductGrid grid_;
  std::size_t width_;
  std::vector<std::uint32_t> places_;
};

template <class Type>
std::unique_ptr<Accumulator> make_exact(const Monoid& /*monoid*/, const Shape& result) {
  if constexpr (std::is_constructible_v<Type, const Shape&>) {
    return std::make_unique<Type>(result);
  } else {
    return std::make_unique<Type>();
  }
}

template <const exact::Format& format>
std::unique_ptr<Accumulator> make_sums(const Monoid& /*monoid*/, const Shape& result) {
  return std::make_unique<ExactSums>(result, format);
}

}  // namespace

std::optional<AccumulatorKind> exact_accumulator_kind(const Monoid& monoid) {
  using Takes = AccumulatorKind::Takes;
  struct Row {
    const Monoid* monoid;
    AccumulatorKind kind;
  };
  static const Row rows[] = {
      // The terms of a sum are numbers: a product among them is rounded. Those of a matrix product are not.
      {&exact::rows::sum, {Takes::columns, make_sums<exact::sums>}},
      {&exact::rows::product_sum, {Takes::sums, make_sums<exact::products>}},
      {&exact::rows::count, {Takes::counts, make_exact<ExactCounts>}},
      {&exact::rows::moments, {Takes::samples, make_exact<ExactMoments>}},
      {&exact::rows::norm, {Takes::samples, make_exact<ExactNorm>}},
      {&exact::rows::comoments, {Takes::block, make_exact<ExactComoments>}},
      {&exact::rows::cross_comoments, {Takes::block, make_exact<ExactComoments>}},
  };
  for (const Row& row : rows) {
    if (row.monoid == &monoid) return row.kind;
  }
  return std::nullopt;
}

}  // namespace starfold::engine
