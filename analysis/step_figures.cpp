#include "analysis/step_figures.hpp"

#include <algorithm>

#include "analysis/timeline.hpp"

namespace tandem {

void StepFigures::take(const Op& op, Engine engine, std::int64_t result, TimeNs finished) {
  const bool evaluates = op.phase == Phase::Evaluate;
  if (engine == Engine::Compute || engine == Engine::CpuCompute) {
    std::int64_t& end = evaluates ? evaluation_end_ns_ : end_ns_;
    end = std::max(end, finished.ns);
  }
  if (!op.has_result) return;
  if (evaluates) validation_loss_.take(as_double(result));
  if (op.phase == Phase::Forward) loss_.take(as_double(result));
  if (is_gradient_norm(op)) norm_.take(as_double(result));
}

}  // namespace tandem
