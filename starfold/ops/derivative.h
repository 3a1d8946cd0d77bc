// How derivatives pass back through primitives: from the adjoint of a result to the adjoints of its
// operands. One rule per primitive; the rules of plain scalar maps stand in their rows.
//
// Kinks take the usual subgradient: abs and relu have derivative 0 at 0; of max(a, b) and min(a, b)
// the first operand wins a tie; max[j] and min[j] share evenly among equal entries; clip counts its
// ends as inside; norm has derivative 0 at 0.
#pragma once

#include "starfold/diff/pullback.h"

namespace starfold::derivative {

using diff::Pullback;

// --- U and B, where a rule does not fit into its row
void digamma(Pullback& d);
void power(Pullback& d);
void minimum(Pullback& d);
void maximum(Pullback& d);
void mod(Pullback& d);
void atan2(Pullback& d);

// --- aggregation
void sum(Pullback& d);
void prod(Pullback& d);
void extreme(Pullback& d);  // min, max
void mean(Pullback& d);
void var(Pullback& d);
void std(Pullback& d);
void cov(Pullback& d);
void logsumexp(Pullback& d);
void norm(Pullback& d);
void order_statistic(Pullback& d);  // median, quantile, sort: no derivative

// --- structure
void permute(Pullback& d);
void matmul(Pullback& d);
void index(Pullback& d);
void lookup(Pullback& d);
void concat(Pullback& d);
void stack(Pullback& d);
void reshape(Pullback& d);

// --- client-local
void outer(Pullback& d);
void where(Pullback& d);
void clip(Pullback& d);
void clip_norm(Pullback& d);
void softmax(Pullback& d);
void log_softmax(Pullback& d);

// --- shared-only
void full(Pullback& d);
void linspace(Pullback& d);
void cumsum(Pullback& d);
void diag(Pullback& d);
void trace_of(Pullback& d);
void solve(Pullback& d);
void cholesky(Pullback& d);
void logdet(Pullback& d);
void det(Pullback& d);
void inv(Pullback& d);
void factorization(Pullback& d);  // eigh, svd, qr: no derivative

// --- distribution functions, by their first argument
void normal_cdf(Pullback& d);
void normal_sf(Pullback& d);
void normal_quantile(Pullback& d);
void t_cdf(Pullback& d);
void t_sf(Pullback& d);
void t_quantile(Pullback& d);
void chi2_cdf(Pullback& d);
void chi2_sf(Pullback& d);
void f_cdf(Pullback& d);
void f_sf(Pullback& d);

}  // namespace starfold::derivative
