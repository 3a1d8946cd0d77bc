// Linear algebra that gives the same bits on every machine: sums in one order, no fused operations, no library that chooses
// its code by the processor. For exact runs; LAPACK is faster for large matrices. Matrices are row-major.
#pragma once

#include "starfold/tensor/tensor.h"

namespace starfold::portable {

// What came of a system of equations: the solution, and how far its scaled matrix is from a singular one.
struct Solution {
  bool solved = false;  // the matrix could be factored
  double rcond = 0;     // reciprocal condition number
  Tensor x;
};
Solution solve_positive_definite(const Tensor& a, const Tensor& b);
Solution solve_general(const Tensor& a, const Tensor& b);

// L with A = L L' in the lower half; the order of the first minor that is not positive, or 0.
std::int64_t cholesky(Tensor& a);

// The diagonal of U in P L U, and whether rows were exchanged an odd number of times.
bool lu_diagonal(Tensor a, std::vector<double>& diagonal);

// Eigenvalues in ascending order, and eigenvectors as columns.
void eigh(const Tensor& a, Tensor& values, Tensor& vectors);

// A = U diag(s) V', with singular values in descending order.
void svd(const Tensor& a, Tensor& u, Tensor& s, Tensor& v);

// A = Q R with orthonormal columns of Q, of which there are as many as A has rows or columns.
void qr(const Tensor& a, Tensor& q, Tensor& r);

}  // namespace starfold::portable
