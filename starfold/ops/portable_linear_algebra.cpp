#include "starfold/ops/portable_linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "starfold/tensor/compensated_sum.h"
#include "starfold/tensor/gather.h"

namespace starfold::portable {
namespace {

constexpr double epsilon = 0x1p-53;

// A matrix by rows and columns.
struct View {
  double* data;
  std::size_t columns;
  explicit View(Tensor& tensor)
      : data(tensor.data.data()), columns(static_cast<std::size_t>(tensor.shape[1])) {}
  double& operator()(std::size_t i, std::size_t j) const { return data[i * columns + j]; }
};

std::size_t rows_of(const Tensor& a) { return static_cast<std::size_t>(a.shape[0]); }
std::size_t columns_of(const Tensor& a) { return static_cast<std::size_t>(a.shape[1]); }

// The power of two nearest to 1 / x in its exponent; 1 for 0.
double inverse_power(double x) { return x == 0 ? 1 : std::ldexp(1.0, -std::ilogb(x)); }

double norm_1(const Tensor& a) {
  double most = 0;
  for (std::size_t j = 0; j < columns_of(a); ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < rows_of(a); ++i) sum += std::fabs(a.data[i * columns_of(a) + j]);
    most = std::max(most, sum);
  }
  return most;
}

Tensor identity(std::size_t n) {
  Tensor result(Shape{static_cast<std::int64_t>(n), static_cast<std::int64_t>(n)});
  for (std::size_t i = 0; i < n; ++i) result.data[i * n + i] = 1;
  return result;
}

// P A = L U in the place of A; the row that came to each place. False where a pivot is 0.
bool factor_lu(Tensor& a, std::vector<std::size_t>& order, bool& odd) {
  const View m(a);
  const std::size_t n = rows_of(a);
  order.resize(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  bool regular = true;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::fabs(m(i, k)) > std::fabs(m(pivot, k))) pivot = i;
    if (pivot != k) {
      for (std::size_t j = 0; j < n; ++j) std::swap(m(k, j), m(pivot, j));
      std::swap(order[k], order[pivot]);
      odd = !odd;
    }
    if (m(k, k) == 0) {
      regular = false;
      continue;
    }
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = m(i, k) /= m(k, k);
      for (std::size_t j = k + 1; j < n; ++j) m(i, j) -= factor * m(k, j);
    }
  }
  return regular;
}

Tensor solve_lu(Tensor& lu, const std::vector<std::size_t>& order, const Tensor& b) {
  const View m(lu);
  const std::size_t n = rows_of(lu);
  const std::size_t width = columns_of(b);
  Tensor x(b.shape);
  const View y(x);
  for (std::size_t c = 0; c < width; ++c) {
    for (std::size_t i = 0; i < n; ++i) {
      double value = b.data[order[i] * width + c];
      for (std::size_t j = 0; j < i; ++j) value -= m(i, j) * y(j, c);
      y(i, c) = value;
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = i + 1; j < n; ++j) y(i, c) -= m(i, j) * y(j, c);
      y(i, c) /= m(i, i);
    }
  }
  return x;
}

Tensor solve_cholesky(Tensor& l, const Tensor& b) {
  const View m(l);
  const std::size_t n = rows_of(l);
  Tensor x = b;
  const View y(x);
  for (std::size_t c = 0; c < columns_of(b); ++c) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) y(i, c) -= m(i, j) * y(j, c);
      y(i, c) /= m(i, i);
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = i + 1; j < n; ++j) y(i, c) -= m(j, i) * y(j, c);
      y(i, c) /= m(i, i);
    }
  }
  return x;
}

// b - a x, summed so that its own error is small.
Tensor residual(const Tensor& a, const Tensor& x, const Tensor& b) {
  Tensor result = b;
  const std::size_t n = rows_of(a);
  const std::size_t width = columns_of(b);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < width; ++c) {
      CompensatedSum sum;
      sum.add(b.data[i * width + c]);
      for (std::size_t j = 0; j < n; ++j) {
        // A product and what rounding took from it, by halves.
        const double u = a.data[i * n + j];
        const double v = x.data[j * width + c];
        const double p = u * v;
        const double su = 134217729.0 * u;
        const double sv = 134217729.0 * v;
        const double uh = su - (su - u);
        const double vh = sv - (sv - v);
        const double rest = ((uh * vh - p) + uh * (v - vh) + (u - uh) * vh) + (u - uh) * (v - vh);
        sum.add(-p);
        if (std::isfinite(rest)) sum.add(-rest);
      }
      result.data[i * width + c] = sum.value();
    }
  }
  return result;
}

template <typename Solve>
Solution refined(const Tensor& a, const Tensor& b, Solve solve) {
  Solution result;
  result.solved = true;
  const double inverse = norm_1(solve(identity(rows_of(a))));
  const double size = norm_1(a);
  result.rcond = inverse > 0 && size > 0 ? 1 / inverse / size : 0;
  result.x = solve(b);
  constexpr int times = 2;
  for (int i = 0; i < times && result.rcond > epsilon; ++i) {
    const Tensor correction = solve(residual(a, result.x, b));
    for (std::size_t k = 0; k < result.x.data.size(); ++k) result.x.data[k] += correction.data[k];
  }
  return result;
}

// Rows i times rows[i], columns j times columns[j].
void scale(Tensor& a, const std::vector<double>* rows, const std::vector<double>* columns) {
  for (std::size_t i = 0; i < rows_of(a); ++i) {
    for (std::size_t j = 0; j < columns_of(a); ++j)
      a.data[i * columns_of(a) + j] *=
          (rows != nullptr ? (*rows)[i] : 1) * (columns != nullptr ? (*columns)[j] : 1);
  }
}

}  // namespace

std::int64_t cholesky(Tensor& a) {
  const View m(a);
  for (std::size_t j = 0; j < rows_of(a); ++j) {
    for (std::size_t i = j; i < rows_of(a); ++i) {
      double value = m(i, j);
      for (std::size_t k = 0; k < j; ++k) value -= m(i, k) * m(j, k);
      if (i == j) {
        if (!(value > 0)) return static_cast<std::int64_t>(j) + 1;
        m(j, j) = std::sqrt(value);
      } else {
        m(i, j) = value / m(j, j);
      }
    }
  }
  return 0;
}

Solution solve_positive_definite(const Tensor& a, const Tensor& b) {
  const std::size_t n = rows_of(a);
  std::vector<double> scales(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!(a.data[i * n + i] > 0)) return {};
    scales[i] = inverse_power(std::sqrt(a.data[i * n + i]));
  }
  Tensor scaled = a;
  scale(scaled, &scales, &scales);
  Tensor right = b;
  scale(right, &scales, nullptr);
  Tensor factor = scaled;
  if (cholesky(factor) != 0) return {};
  Solution result =
      refined(scaled, right, [&](const Tensor& of) { return solve_cholesky(factor, of); });
  scale(result.x, &scales, nullptr);
  return result;
}

Solution solve_general(const Tensor& a, const Tensor& b) {
  const std::size_t n = rows_of(a);
  std::vector<double> rows(n);
  std::vector<double> columns(n);
  for (std::size_t i = 0; i < n; ++i) {
    double most = 0;
    for (std::size_t j = 0; j < n; ++j) most = std::max(most, std::fabs(a.data[i * n + j]));
    rows[i] = inverse_power(most);
  }
  Tensor scaled = a;
  scale(scaled, &rows, nullptr);
  for (std::size_t j = 0; j < n; ++j) {
    double most = 0;
    for (std::size_t i = 0; i < n; ++i) most = std::max(most, std::fabs(scaled.data[i * n + j]));
    columns[j] = inverse_power(most);
  }
  scale(scaled, nullptr, &columns);
  Tensor right = b;
  scale(right, &rows, nullptr);
  Tensor lu = scaled;
  std::vector<std::size_t> order;
  bool odd = false;
  if (!factor_lu(lu, order, odd)) return {};
  Solution result =
      refined(scaled, right, [&](const Tensor& of) { return solve_lu(lu, order, of); });
  scale(result.x, &columns, nullptr);
  return result;
}

bool lu_diagonal(Tensor a, std::vector<double>& diagonal) {
  std::vector<std::size_t> order;
  bool odd = false;
  factor_lu(a, order, odd);
  diagonal.clear();
  for (std::size_t i = 0; i < rows_of(a); ++i) diagonal.push_back(a.data[i * rows_of(a) + i]);
  return odd;
}

// Jacobi's method: each step makes one entry off the diagonal zero.
void eigh(const Tensor& a, Tensor& values, Tensor& vectors) {
  const std::size_t n = rows_of(a);
  Tensor work = a;
  Tensor turned = identity(n);
  const View m(work);
  const View v(turned);
  constexpr int most_sweeps = 60;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool changed = false;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        const double off = m(p, q);
        if (std::fabs(off) <=
                epsilon * std::sqrt(std::fabs(m(p, p))) * std::sqrt(std::fabs(m(q, q))) ||
            std::fabs(off) < 0x1p-1000)
          continue;
        changed = true;
        const double theta = (m(q, q) - m(p, p)) / (2 * off);
        const double size = std::fabs(theta);
        const double t =
            (theta < 0 ? -1 : 1) / (size + (size < 0x1p500 ? std::sqrt(theta * theta + 1) : size));
        const double c = 1 / std::sqrt(t * t + 1);
        const double s = t * c;
        for (std::size_t k = 0; k < n; ++k) {
          const double kp = m(k, p);
          const double kq = m(k, q);
          m(k, p) = c * kp - s * kq;
          m(k, q) = s * kp + c * kq;
        }
        for (std::size_t k = 0; k < n; ++k) {
          const double pk = m(p, k);
          const double qk = m(q, k);
          m(p, k) = c * pk - s * qk;
          m(q, k) = s * pk + c * qk;
        }
        m(p, q) = m(q, p) = 0;
        for (std::size_t k = 0; k < n; ++k) {
          const double kp = v(k, p);
          const double kq = v(k, q);
          v(k, p) = c * kp - s * kq;
          v(k, q) = s * kp + c * kq;
        }
      }
    }
    if (!changed) break;
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return m(i, i) < m(j, j); });
  values = Tensor(Shape{static_cast<std::int64_t>(n)});
  vectors = Tensor(a.shape);
  for (std::size_t j = 0; j < n; ++j) {
    values.data[j] = m(order[j], order[j]);
    for (std::size_t i = 0; i < n; ++i) vectors.data[i * n + j] = v(i, order[j]);
  }
}

namespace {

double column_dot(const View& m, std::size_t rows, std::size_t p, std::size_t q) {
  double sum = 0;
  for (std::size_t i = 0; i < rows; ++i) sum += m(i, p) * m(i, q);
  return sum;
}

// Columns from `first` on that are 0 become orthonormal to all before them.
void complete(const View& u, std::size_t rows, std::size_t first, std::size_t columns) {
  for (std::size_t j = first; j < columns; ++j) {
    for (std::size_t unit = 0; unit < rows; ++unit) {
      for (std::size_t i = 0; i < rows; ++i) u(i, j) = i == unit ? 1 : 0;
      for (int twice = 0; twice < 2; ++twice) {
        for (std::size_t k = 0; k < j; ++k) {
          const double dot = column_dot(u, rows, k, j);
          for (std::size_t i = 0; i < rows; ++i) u(i, j) -= dot * u(i, k);
        }
      }
      const double norm = std::sqrt(column_dot(u, rows, j, j));
      if (norm < 0.5 / std::sqrt(static_cast<double>(rows))) continue;
      for (std::size_t i = 0; i < rows; ++i) u(i, j) /= norm;
      break;
    }
  }
}

// Hestenes' method, for matrices with at least as many rows as columns: turns columns until they are orthogonal.
void svd_tall(Tensor work, Tensor& u, Tensor& s, Tensor& v) {
  const std::size_t rows = rows_of(work);
  const std::size_t n = columns_of(work);
  double top = 0;
  for (const double x : work.data) top = std::max(top, std::fabs(x));
  const double unit = inverse_power(top);
  for (double& x : work.data) x *= unit;
  Tensor turned = identity(n);
  const View m(work);
  const View t(turned);
  constexpr int most_sweeps = 60;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool changed = false;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        const double pp = column_dot(m, rows, p, p);
        const double qq = column_dot(m, rows, q, q);
        const double pq = column_dot(m, rows, p, q);
        if (std::fabs(pq) <= 4 * epsilon * std::sqrt(pp) * std::sqrt(qq) ||
            std::fabs(pq) < 0x1p-900)
          continue;
        changed = true;
        const double zeta = (qq - pp) / (2 * pq);
        const double size = std::fabs(zeta);
        const double tangent =
            (zeta < 0 ? -1 : 1) / (size + (size < 0x1p500 ? std::sqrt(zeta * zeta + 1) : size));
        const double c = 1 / std::sqrt(tangent * tangent + 1);
        const double sine = tangent * c;
        const auto turn = [&](const View& of, std::size_t height) {
          for (std::size_t i = 0; i < height; ++i) {
            const double a = of(i, p);
            const double b = of(i, q);
            of(i, p) = c * a - sine * b;
            of(i, q) = sine * a + c * b;
          }
        };
        turn(m, rows);
        turn(t, n);
      }
    }
    if (!changed) break;
  }
  std::vector<double> norms(n);
  for (std::size_t j = 0; j < n; ++j) norms[j] = std::sqrt(column_dot(m, rows, j, j));
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return norms[i] > norms[j]; });
  u = Tensor(work.shape);
  v = Tensor(turned.shape);
  s = Tensor(Shape{static_cast<std::int64_t>(n)});
  const View left(u);
  const View right(v);
  std::size_t rank = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const std::size_t from = order[j];
    s.data[j] = norms[from] / unit;
    for (std::size_t i = 0; i < n; ++i) right(i, j) = t(i, from);
    if (norms[from] <= 0x1p-1000) continue;
    rank = j + 1;
    for (std::size_t i = 0; i < rows; ++i) left(i, j) = m(i, from) / norms[from];
  }
  complete(left, rows, rank, n);
}

}  // namespace

void svd(const Tensor& a, Tensor& u, Tensor& s, Tensor& v) {
  if (rows_of(a) >= columns_of(a)) return svd_tall(a, u, s, v);
  svd_tall(permuted(a, {1, 0}), v, s, u);
}

// Householder's reflections.
void qr(const Tensor& a, Tensor& q, Tensor& r) {
  const std::size_t rows = rows_of(a);
  const std::size_t n = columns_of(a);
  const std::size_t k = std::min(rows, n);
  Tensor work = a;
  const View m(work);
  std::vector<std::vector<double>> mirrors;
  const auto reflect = [&](const View& of, std::size_t from, std::size_t column) {
    const std::vector<double>& mirror = mirrors[from];
    double dot = 0;
    for (std::size_t i = from; i < rows; ++i) dot += mirror[i] * of(i, column);
    for (std::size_t i = from; i < rows; ++i) of(i, column) -= 2 * dot * mirror[i];
  };
  for (std::size_t j = 0; j < k; ++j) {
    std::vector<double> mirror(rows);
    double top = 0;
    for (std::size_t i = j; i < rows; ++i) top = std::max(top, std::fabs(m(i, j)));
    const double unit = inverse_power(top);
    double square = 0;
    for (std::size_t i = j; i < rows; ++i) {
      mirror[i] = m(i, j) * unit;
      square += mirror[i] * mirror[i];
    }
    mirror[j] += mirror[j] < 0 ? -std::sqrt(square) : std::sqrt(square);
    double length = 0;
    for (std::size_t i = j; i < rows; ++i) length += mirror[i] * mirror[i];
    length = std::sqrt(length);
    for (std::size_t i = j; i < rows; ++i) mirror[i] = length > 0 ? mirror[i] / length : 0;
    mirrors.push_back(std::move(mirror));
    for (std::size_t c = j; c < n; ++c) reflect(m, j, c);
  }
  r = Tensor(Shape{static_cast<std::int64_t>(k), static_cast<std::int64_t>(n)});
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = i; j < n; ++j) r.data[i * n + j] = m(i, j);
  }
  q = Tensor(Shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(k)});
  const View columns(q);
  for (std::size_t j = 0; j < k; ++j) {
    columns(j, j) = 1;
    for (std::size_t from = k; from-- > 0;) reflect(columns, from, j);
  }
}

}  // namespace starfold::portable
