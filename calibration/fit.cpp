#include "calibration/fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// The objective is convex and quadratic with few coefficients: coordinate descent converges to its one minimum.
constexpr int kMostSweeps = 20000;
constexpr double kConverged = 1e-10;  // relative change of every coefficient in one sweep

// The normal equations of the objective: x minimises x'Ax - 2b'x.
struct Quadratic {
  std::vector<std::vector<double>> a;
  std::vector<double> b;
};

Quadratic normal_equations(const std::vector<FitRow>& rows, const FitPrior& prior) {
  const std::size_t n = prior.value.size();
  Quadratic q{std::vector<std::vector<double>>(n, std::vector<double>(n)), std::vector<double>(n)};
  for (const FitRow& row : rows) {
    CHECK(row.target > 0 && row.terms.size() == n, row.target, row.terms.size());
    const double weight = 1 / (row.target * row.target * static_cast<double>(rows.size()));
    for (std::size_t i = 0; i < n; ++i) {
      q.b[i] += weight * row.terms[i] * row.target;
      for (std::size_t j = 0; j < n; ++j) q.a[i][j] += weight * row.terms[i] * row.terms[j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double weight = prior.weight / (prior.scale[i] * prior.scale[i]);
    q.a[i][i] += weight;
    q.b[i] += weight * prior.value[i];
  }
  return q;
}

}  // namespace

double predicted(const FitRow& row, const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += row.terms[i] * x[i];
  return sum;
}

std::vector<double> fit_nonnegative(const std::vector<FitRow>& rows, const FitPrior& prior) {
  CHECK(!rows.empty() && prior.scale.size() == prior.value.size(), rows.size(), prior.scale.size());
  const Quadratic q = normal_equations(rows, prior);
  std::vector<double> x = prior.value;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double change = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (q.a[i][i] <= 0) continue;  // no row has this term
      double rest = q.b[i];
      for (std::size_t j = 0; j < x.size(); ++j)
        if (j != i) rest -= q.a[i][j] * x[j];
      const double next = std::max(0.0, rest / q.a[i][i]);
      change = std::max(change, std::abs(next - x[i]) / prior.scale[i]);
      x[i] = next;
    }
    if (change < kConverged) break;
  }
  return x;
}

}  // namespace tandem
