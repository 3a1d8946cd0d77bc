// Which of some points is nearest. The answer is always that of the squared distances themselves; mostly it is found with less.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "starfold/runtime/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starfold/runtime/kernels/nearest.cpp"
#include "starfold/runtime/kernels/targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"
#include "starfold/runtime/kernels/distance_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE {
namespace {

// The distances from a few points lie in a small place of their own, not in columns.
template <class With, std::size_t G>
void nearest_of(Columns columns, std::size_t count, Columns points, std::size_t stride,
                std::size_t number, double* out, std::size_t i) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN double near[4][G * kPad];
  double* results[4];
  for (std::size_t j = 0; j < 4; ++j) results[j] = near[j];
  V best[G];
  V position[G];
  for (std::size_t g = 0; g < G; ++g) best[g] = position[g] = hn::Set(d, 1.0);
  for (std::size_t first = 0; first < number; first += 4) {
    const std::size_t some = std::min<std::size_t>(number - first, 4);
    if (some == 4) {
      distances_tile<With, 4, G>(columns, count, points + first, stride, results, i, 0);
    } else {
      for (std::size_t j = 0; j < some; ++j)
        distances_tile<With, 1, G>(columns, count, points + first + j, stride, results + j, i, 0);
    }
    for (std::size_t j = 0; j < some; ++j) {
      const V here = hn::Set(d, static_cast<double>(first + j + 1));
      for (std::size_t g = 0; g < G; ++g) {
        const V x = hn::Load(d, near[j] + g * lanes);
        if (first + j == 0) {
          best[g] = x;
          position[g] = here;
          continue;
        }
        const auto stays = hn::Or(hn::Le(best[g], x), hn::IsNaN(best[g]));
        best[g] = hn::IfThenElse(stays, best[g], x);
        position[g] = hn::IfThenElse(stays, position[g], here);
      }
    }
  }
  for (std::size_t g = 0; g < G; ++g) hn::Store(position[g], d, out + i + g * lanes);
}

// What differs between the two kinds of numbers that squares are expanded in.
template <class T>
struct Rough;

template <>
struct Rough<double> {
  using Tag = D;
  static constexpr double rounding = 0x1p-53;
  static constexpr double safety = 8;
  static constexpr double smallest = 1e-250;
  static double scale(double /*farthest*/) { return 1; }
  static HWY_INLINE V load(const double* x, V middle, V /*scale*/) {
    return hn::Sub(hn::Load(D(), x), middle);
  }
  static HWY_INLINE void store(V position, double* out) { hn::Store(position, D(), out); }
};

template <>
struct Rough<float> {
#if HWY_TARGET == HWY_SCALAR
  using Tag = hn::Rebind<float, D>;
#else
  using Tag = hn::Repartition<float, D>;
  using Half = hn::Half<Tag>;
#endif
  using Vector = hn::Vec<Tag>;
  static constexpr double rounding = 0x1p-24;
  static constexpr double safety = 4;  // the distances are exact beside these
  static constexpr double smallest = 1e-30;
  // The farthest point comes to lie about one from the middle: floats have no room for any size.
  static double scale(double farthest) {
    if (!std::isfinite(farthest) || farthest == 0) return 1;
    return std::ldexp(1.0, std::clamp(-std::ilogb(farthest) / 2, -400, 400));
  }
  static HWY_INLINE Vector load(const double* x, V middle, V scale) {
    const D d;
    const V low = hn::Mul(hn::Sub(hn::Load(d, x), middle), scale);
#if HWY_TARGET == HWY_SCALAR
    return hn::DemoteTo(Tag(), low);
#else
    const V high = hn::Mul(hn::Sub(hn::Load(d, x + hn::Lanes(d)), middle), scale);
    return hn::Combine(Tag(), hn::DemoteTo(Half(), high), hn::DemoteTo(Half(), low));
#endif
  }
  static HWY_INLINE void store(Vector position, double* out) {
    const D d;
#if HWY_TARGET == HWY_SCALAR
    hn::Store(hn::PromoteTo(d, position), d, out);
#else
    hn::Store(hn::PromoteTo(d, hn::LowerHalf(Half(), position)), d, out);
    hn::Store(hn::PromoteTo(d, hn::UpperHalf(Half(), position)), d, out + hn::Lanes(d));
#endif
  }
};

// |x - p|^2 = |x|^2 + 2 (|p|^2 / 2 - x p) needs one instruction for each pair of numbers instead of two. Everything is relative
// to the middle of the points, so that little cancels. Where the two smallest are so close that rounding might have put them
// in another order, it says so.
template <class T>
class Expanded {
 public:
  static constexpr std::size_t most_points = 256;
  static constexpr std::size_t most_columns = 64;
  static constexpr std::size_t most_numbers = 2048;  // of all points
  using Vector = hn::Vec<typename Rough<T>::Tag>;

  Expanded(std::size_t count, Columns points, std::size_t stride, std::size_t number)
      : count_(count), number_(number) {
    for (std::size_t k = 0; k < count; ++k) middle_[k] = 0;
    for (std::size_t j = 0; j < number; ++j) {
      for (std::size_t k = 0; k < count; ++k) middle_[k] += points[j][k * stride];
    }
    for (std::size_t k = 0; k < count; ++k) middle_[k] /= static_cast<double>(number);
    double squares[most_points];
    double farthest = 0;
    for (std::size_t j = 0; j < number; ++j) {
      squares[j] = 0;
      for (std::size_t k = 0; k < count; ++k) {
        const double q = points[j][k * stride] - middle_[k];
        squares[j] += q * q;
      }
      // A nan stays: nothing is sure then.
      if (squares[j] > farthest || std::isnan(squares[j])) farthest = squares[j];
    }
    scale_ = Rough<T>::scale(farthest);
    farthest_ = static_cast<T>(farthest * scale_ * scale_);
    for (std::size_t j = 0; j < number; ++j) {
      halves_[j] = static_cast<T>(squares[j] * scale_ * scale_ / 2);
      for (std::size_t k = 0; k < count; ++k)
        points_[j * count + k] = static_cast<T>((points[j][k * stride] - middle_[k]) * scale_);
    }
  }

  static std::size_t lanes() { return hn::Lanes(typename Rough<T>::Tag()); }

  // The numbers of the nearest points of G groups of records; a bit for each group where they are not sure. Meanwhile some of
  // `next` is brought into the second cache.
  template <std::size_t G>
  HWY_INLINE unsigned find(Columns columns, double* out, std::size_t i, Ahead& next) const {
    const typename Rough<T>::Tag d;
    HWY_ALIGN T centred[most_columns * G * kPad * sizeof(double) / sizeof(T)];
    Vector squares[G];
    for (std::size_t g = 0; g < G; ++g) squares[g] = hn::Zero(d);
    const V scale = hn::Set(D(), scale_);
    for (std::size_t k = 0; k < count_; ++k) {
      const V middle = hn::Set(D(), middle_[k]);
      for (std::size_t g = 0; g < G; ++g) {
        const Vector y = Rough<T>::load(columns[k] + i + g * lanes(), middle, scale);
        hn::Store(y, d, centred + (k * G + g) * lanes());
        squares[g] = hn::MulAdd(y, y, squares[g]);
      }
    }
    Best<G> best;
    std::size_t j = 0;
    for (; j + 4 <= number_; j += 4) score<4, G>(centred, j, best, next);
    for (; j < number_; ++j) score<1, G>(centred, j, best, next);
    unsigned unsure = 0;
    // More than twice what rounding may do to two distances.
    const double share = Rough<T>::safety * static_cast<double>(count_ + 8) * Rough<T>::rounding;
    for (std::size_t g = 0; g < G; ++g) {
      Rough<T>::store(best.position[g], out + i + g * lanes());
      const Vector size = hn::Add(squares[g], hn::Set(d, farthest_));
      const Vector bound = hn::Mul(size, hn::Set(d, static_cast<T>(share)));
      const auto sure = hn::And(hn::Gt(hn::Sub(best.second[g], best.first[g]), bound),
                                hn::Gt(size, hn::Set(d, static_cast<T>(Rough<T>::smallest))));
      if (!hn::AllTrue(d, sure)) unsure |= 1U << g;
    }
    return unsure;
  }

 private:
  template <std::size_t G>
  struct Best {
    Vector first[G];
    Vector second[G];
    Vector position[G];
    HWY_INLINE Best() {
      const typename Rough<T>::Tag d;
      for (std::size_t g = 0; g < G; ++g) {
        first[g] = second[g] = hn::Set(d, std::numeric_limits<T>::infinity());
        position[g] = hn::Set(d, T{1});
      }
    }
  };

  template <std::size_t J, std::size_t G>
  HWY_INLINE void score(const T* centred, std::size_t first, Best<G>& best, Ahead& next) const {
    const typename Rough<T>::Tag d;
    Vector sum[G][J];
    for (std::size_t g = 0; g < G; ++g) {
      for (std::size_t j = 0; j < J; ++j) sum[g][j] = hn::Set(d, halves_[first + j]);
    }
    for (std::size_t k = 0; k < count_; ++k) {
      __builtin_prefetch(next.begin, 0, 2);
      next.begin += next.begin < next.end ? kPad : 0;
      Vector y[G];
      for (std::size_t g = 0; g < G; ++g) y[g] = hn::Load(d, centred + (k * G + g) * lanes());
      for (std::size_t j = 0; j < J; ++j) {
        const Vector point = hn::Set(d, points_[(first + j) * count_ + k]);
        for (std::size_t g = 0; g < G; ++g) sum[g][j] = hn::NegMulAdd(y[g], point, sum[g][j]);
      }
    }
    for (std::size_t j = 0; j < J; ++j) {
      const Vector here = hn::Set(d, static_cast<T>(first + j + 1));
      for (std::size_t g = 0; g < G; ++g) {
        const Vector x = sum[g][j];
        best.position[g] = hn::IfThenElse(hn::Lt(x, best.first[g]), here, best.position[g]);
        best.second[g] = hn::Min(best.second[g], hn::Max(best.first[g], x));
        best.first[g] = hn::Min(best.first[g], x);
      }
    }
  }

  std::size_t count_;
  std::size_t number_;
  T farthest_ = 0;
  double scale_ = 1;
  double middle_[most_columns];
  T halves_[most_points];
  T points_[most_numbers];
};

// Records of a block by single precision first, those that it leaves open by double precision, and the rest by their distances.
class Search {
 public:
  Search(Columns columns, std::size_t count, Columns points, std::size_t stride, std::size_t number,
         double* out)
      : columns_(columns),
        count_(count),
        points_(points),
        stride_(stride),
        number_(number),
        out_(out),
        singles_(count, points, stride, number) {}

  static bool suits(std::size_t count, std::size_t number, std::size_t n) {
    return n >= 2 * kPad && number >= 4 && number <= Expanded<double>::most_points &&
           count <= Expanded<double>::most_columns &&
           count * number <= Expanded<double>::most_numbers;
  }

  void run(std::size_t n) {
    Ahead next = after(columns_, count_, n);
    if (next.begin == next.end) next = here();
    const std::size_t lanes = Expanded<float>::lanes();
    const std::size_t end = padded(n);
    std::size_t i = 0;
    for (; i + kGroups * lanes <= end && worthwhile(); i += kGroups * lanes)
      resolve(singles_.find<kGroups>(columns_, out_, i, next), kGroups, i);
    for (; i + lanes <= end && worthwhile(); i += lanes)
      resolve(singles_.find<1>(columns_, out_, i, next), 1, i);
    by_doubles(i, n);
  }

 private:
  // Nothing that is not there already.
  Ahead here() const { return {columns_[0], columns_[0]}; }

  // Whether single precision decides most: data may have ties everywhere.
  bool worthwhile() const { return 2 * open_ <= tried_; }

  void resolve(unsigned unsure, std::size_t groups, std::size_t i) {
    const std::size_t lanes = Expanded<float>::lanes();
    tried_ += groups;
    for (std::size_t g = 0; unsure != 0 && g < groups; ++g) {
      if ((unsure >> g & 1U) == 0) continue;
      ++open_;
      by_doubles(i + g * lanes, i + (g + 1) * lanes);
    }
  }

  void by_doubles(std::size_t begin, std::size_t end) {
    const std::size_t lanes = Expanded<double>::lanes();
    Ahead next = here();
    if (begin < end && !doubles_) doubles_.emplace(count_, points_, stride_, number_);
    for (std::size_t i = begin; i < end;) {
      const std::size_t groups = i + kGroups * lanes <= end ? kGroups : 1;
      const unsigned unsure = groups > 1 ? doubles_->find<kGroups>(columns_, out_, i, next)
                                         : doubles_->find<1>(columns_, out_, i, next);
      for (std::size_t g = 0; g < groups; ++g) {
        if ((unsure >> g & 1U) != 0)
          nearest_of<Fused, 1>(columns_, count_, points_, stride_, number_, out_, i + g * lanes);
      }
      i += groups * lanes;
    }
  }

  Columns columns_;
  std::size_t count_;
  Columns points_;
  std::size_t stride_;
  std::size_t number_;
  double* out_;
  Expanded<float> singles_;
  std::optional<Expanded<double>> doubles_;
  std::size_t tried_ = 0;  // groups of records by single precision,
  std::size_t open_ = 0;   // and those that it did not decide
};

template <class With>
void nearest(Columns columns, std::size_t count, Columns points, std::size_t stride,
             std::size_t number, double* out, std::size_t n) {
  if (std::is_same_v<With, Fused> && Search::suits(count, number, n))
    return Search(columns, count, points, stride, number, out).run(n);
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + kGroups * lanes <= n; i += kGroups * lanes)
    nearest_of<With, kGroups>(columns, count, points, stride, number, out, i);
  for (; i < n; i += lanes) nearest_of<With, 1>(columns, count, points, stride, number, out, i);
}

}  // namespace

Nearest find_nearest(bool portable) { return portable ? nearest<Rounded> : nearest<Fused>; }

}  // namespace starfold::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starfold::kernels {

HWY_EXPORT(find_nearest);

Nearest nearest(bool portable) { return HWY_DYNAMIC_DISPATCH(find_nearest)(portable); }

}  // namespace starfold::kernels
#endif
