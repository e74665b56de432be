// A prediction beside a measurement: which figures, how far apart. Works on result JSON, so that the two runs may come
// from two programs. Must not know files or terminals.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/step_difference.hpp"
#include "report/origin.hpp"

namespace tandem {

struct ComparedFigure {
  std::string name;  // "step time, median"
  std::string predicted, measured;
  // (predicted - measured) / measured; for shares of time and exposed times, over the measured step. NaN: no error to
  // give.
  double error = 0;
};

std::vector<ComparedFigure> compare_results(const nlohmann::json& predicted, const nlohmann::json& measured);
// "+3.2%", "-0.4%", "-" for none.
std::string format_error(double error);
std::string comparison_text(const std::vector<ComparedFigure>& table);
nlohmann::ordered_json comparison_json(const nlohmann::json& predicted, const nlohmann::json& measured,
                                       const std::vector<ComparedFigure>& table, const StepDifference& difference,
                                       const Origin& origin = {});

}  // namespace tandem
