// Linear least squares with coefficients that are not negative, on relative errors. Must not know what is fitted.
#pragma once

#include <vector>

namespace tandem {

struct FitRow {
  std::vector<double> terms;  // one a coefficient
  double target = 0;          // > 0
};

// Minimises the mean over rows of ((terms . x - target) / target)^2 plus `prior_weight` times the sum over the
// coefficients of ((x - prior) / scale)^2, with x >= 0: what the rows do not tell apart stays at the prior.
struct FitPrior {
  std::vector<double> value, scale;  // scale > 0
  double weight = 0;
};
std::vector<double> fit_nonnegative(const std::vector<FitRow>& rows, const FitPrior& prior);

// terms . x
double predicted(const FitRow& row, const std::vector<double>& x);

}  // namespace tandem
