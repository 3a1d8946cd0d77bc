// What primitives mean on ordinary tensors (def:tensor_ops and its extensions): short, slow, exact.
// Everything fast is tested against these. Where an operand is federated, the ordinary tensor is
// its virtual global tensor, and `Application::record_axes` says which axis is the star.
#pragma once

#include <cmath>

#include "starfold/base/error.h"
#include "starfold/signature/op.h"

namespace starfold::meaning {

using Results = std::vector<Tensor>;

// --- element-wise
Results map_unary(double (*map)(double), const Application& a);
Results map_binary(double (*map)(double, double), const Application& a);           // broadcasts
Results map_ternary(double (*map)(double, double, double), const Application& a);  // broadcasts
// Repeats a tensor to a shape it broadcasts to (def:broadcast-map).
Tensor broadcast_to(const Tensor& tensor, const Shape& shape);
Shape broadcast_shapes(const Shape& a, const Shape& b);

// --- aggregation along `axes` (several axes: as if they were first merged into one), by alpha_n
Results aggregate(double (*fold)(std::span<const double>), const Application& a);
double fold_sum(std::span<const double>);
double fold_prod(std::span<const double>);
double fold_min(std::span<const double>);    // NaN if any is; inf for none
double fold_max(std::span<const double>);    // NaN if any is; -inf for none
double fold_count(std::span<const double>);  // the number of elements
double fold_mean(std::span<const double>);   // nan for none
double fold_var(std::span<const double>);    // n-1; nan for fewer than two; two-pass
double fold_std(std::span<const double>);
double fold_logsumexp(std::span<const double>);  // -inf for none; stable; inf and nan right
double fold_any(std::span<const double>);        // NaN counts as true
double fold_all(std::span<const double>);
double fold_norm(std::span<const double>);    // L2
double fold_argmax(std::span<const double>);  // 1-based, first on ties, first NaN wins
double fold_median(std::span<const double>);  // mean of the middle two; NaN if any is
// quantile[axes](e, q): q a shared scalar or vector; type 7 (linear); a vector q adds a last axis
Results quantile(const Application& a);

// --- structure
Results permute(const Application& a);  // axes: result axis i is input axis axes[i]
Results matmul(const Application& a);   // NumPy's @ incl. vectors and broadcast leading axes
Results index(const Application& a);    // slices
Results lookup(
    const Application& a);  // table[e]: arg 0 table, arg 1 1-based indices; RunError if outside
// Whether a label or an index is one of 1..k.
inline bool picks_one_of(double label, std::int64_t k) {
  return label >= 1 && label <= static_cast<double>(k) && label == std::floor(label);
}
// What is said when so many indices of a table of this length are not among 1..length.
RunError indices_outside(std::int64_t outside, std::int64_t length);
Results concat(const Application& a);  // axes[0] in the *result*; shared operands repeat per record
Results stack(const Application& a);   // [a, b, c]: new first axis
Results reshape(
    const Application& a);  // sizes: the non-record axes; the star keeps its place (first or last)
Results records(const Application& a);    // the length of the record axis, as a scalar
Results broadcast(const Application& a);  // arg 0 to the broadcast shape of all args

// --- client-local
Results zeros_like(const Application& a);
Results ones_like(const Application& a);
Results outer(const Application&
                  a);  // cells are vectors; result [p, q], or [*, p, q] if any operand is federated
Results where(const Application& a);  // three operands broadcast; c non-zero (NaN counts as true)
Results clip(const Application& a);   // min(max(e, lo), hi), broadcast; NaN stays
Results clip_norm(
    const Application& a);  // each record (or the whole shared tensor) scaled to L2 norm <= c
Results one_hot(const Application& a);  // sizes[0] = k; adds a last axis; labels 1..k; nan: zeros
// What is said when so many labels are neither among 1..k nor nan.
RunError labels_outside(std::int64_t outside, std::int64_t k);
Results softmax(const Application& a);  // along axes[0]; stable
Results log_softmax(const Application& a);

// --- shared-only construction
Results zeros(const Application& a);  // sizes
Results ones(const Application& a);
Results full(const Application& a);  // arg 0 value; sizes
Results eye(const Application& a);
Results linspace(const Application& a);  // a, b; sizes[0] = n points, both ends exact
Results normal(const Application& a);    // arg 0 seed; sizes; counter-based
Results uniform(const Application& a);   // in [0, 1)
Results sort(const Application& a);      // ascending along the last axis, NaN last
Results cumsum(const Application& a);    // along axes[0]
Results diag(const Application& a);      // vector to matrix, matrix to its diagonal
Results trace_of(const Application& a);

// --- shared-only linear algebra (LAPACK); RunError when there is no answer
Results solve(const Application& a);      // b a vector or matrix
Results cholesky(const Application& a);   // lower
Results logdet(const Application& a);     // log |det|
Results dependent(const Application& a);  // by the pivots of a Cholesky factorization
Results det(const Application& a);
Results inv(const Application& a);
Results eigh(const Application& a);  // values ascending, vectors in columns
Results svd(const Application& a);   // u, s (descending), v with a = u @ diag(s) @ v'
Results qr(const Application& a);    // reduced q, r with a non-negative diagonal

}  // namespace starfold::meaning
