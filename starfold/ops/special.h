// Special functions on doubles that never throw: nan outside the domain, limits at the infinities.
#pragma once

namespace starfold::special {

double lgamma(double x);   // log |Gamma(x)|; inf at the poles
double digamma(double x);  // nan at the poles

// Distribution functions (cdf), upper tails (sf = 1 - cdf, but exact where cdf is close to 1) and
// quantiles. Degrees of freedom are positive reals; infinity takes the limiting distribution.
double normal_cdf(double x);
double normal_sf(double x);
double normal_quantile(double p);
double t_cdf(double x, double df);
double t_sf(double x, double df);
double t_quantile(double p, double df);
double chi2_cdf(double x, double df);
double chi2_sf(double x, double df);
double f_cdf(double x, double d1, double d2);
double f_sf(double x, double d1, double d2);

}  // namespace starfold::special
