#include "analysis/lp.hpp"

#include <interfaces/highs_c_api.h>

#include <map>
#include <memory>
#include <stdexcept>

#include "core/base/check.hpp"

namespace tandem {
namespace {

struct Destroy {
  void operator()(void* highs) const { Highs_destroy(highs); }
};

void require(HighsInt status, const char* what) {
  if (status == kHighsStatusError) throw std::runtime_error(std::string("HiGHS refused: ") + what);
}

}  // namespace

int LinearProgram::add_variable(double lower, double upper, double cost) {
  lower_.push_back(lower);
  upper_.push_back(upper);
  cost_.push_back(cost);
  return static_cast<int>(cost_.size()) - 1;
}

int LinearProgram::add_row(double lower, double upper, const std::vector<Term>& terms) {
  row_start_.push_back(static_cast<int>(value_.size()));
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
  std::map<int, double> sums;
  for (const auto& [variable, coefficient] : terms) sums[variable] += coefficient;
  for (const auto& [variable, coefficient] : sums) {
    CHECK(variable >= 0 && static_cast<std::size_t>(variable) < cost_.size(), variable);
    column_.push_back(variable);
    value_.push_back(coefficient);
  }
  return static_cast<int>(row_lower_.size()) - 1;
}

double LinearProgram::minimise() const {
  const std::optional<Solution> solution = solve();
  if (!solution) throw std::runtime_error("linear program has no optimum: its rows exclude each other");
  return solution->cost;
}

std::optional<LinearProgram::Solution> LinearProgram::solve() const {
  const std::unique_ptr<void, Destroy> highs(Highs_create());
  CHECK(highs != nullptr);
  require(Highs_setBoolOptionValue(highs.get(), "output_flag", 0), "output_flag");
  require(Highs_setIntOptionValue(highs.get(), "threads", 1), "threads");
  require(Highs_passLp(highs.get(), static_cast<HighsInt>(cost_.size()), static_cast<HighsInt>(row_lower_.size()),
                       static_cast<HighsInt>(value_.size()), kHighsMatrixFormatRowwise, kHighsObjSenseMinimize, 0,
                       cost_.data(), lower_.data(), upper_.data(), row_lower_.data(), row_upper_.data(),
                       row_start_.data(), column_.data(), value_.data()),
          "the linear program");
  require(Highs_run(highs.get()), "run");
  const HighsInt status = Highs_getModelStatus(highs.get());
  if (status == kHighsModelStatusInfeasible) return std::nullopt;
  if (status != kHighsModelStatusOptimal)
    throw std::runtime_error("linear program has no optimum: HiGHS model status " + std::to_string(status));
  Solution solution{Highs_getObjectiveValue(highs.get()), std::vector<double>(cost_.size()),
                    std::vector<double>(row_lower_.size())};
  require(Highs_getSolution(highs.get(), solution.values.data(), nullptr, nullptr, solution.duals.data()), "solution");
  return solution;
}

}  // namespace tandem
