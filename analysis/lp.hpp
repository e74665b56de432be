// A small linear program, solved by HiGHS: minimise a sum over bounded variables under linear rows.
// Knows nothing of runs. (HiGHS: MIT licence, one library without BLAS, so that it cannot disturb LibTorch's.)
#pragma once

#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace tandem {

class LinearProgram {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  using Term = std::pair<int, double>;  // variable, coefficient

  // Returns the variable's number.
  int add_variable(double lower, double upper, double cost);
  // lower <= sum of terms <= upper; terms of one variable add up. Returns the row's number.
  int add_row(double lower, double upper, const std::vector<Term>& terms);
  // The least cost. Throws std::runtime_error where there is none (infeasible or unbounded): a bug of the model.
  double minimise() const;

  struct Solution {
    double cost = 0;
    std::vector<double> values;  // by variable
    std::vector<double> duals;   // by row: what the cost rises by for one more of the bound that holds it; 0: none does
  };
  // None where no values keep all rows. Throws std::runtime_error where the cost has no least value.
  std::optional<Solution> solve() const;

 private:
  std::vector<double> lower_, upper_, cost_, row_lower_, row_upper_, value_;
  std::vector<int> row_start_, column_;
};

}  // namespace tandem
