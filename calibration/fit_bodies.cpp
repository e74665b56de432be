#include <array>
#include <cmath>
#include <map>

#include "calibration/fit.hpp"
#include "calibration/fit_profile.hpp"
#include "core/machine/cost_model.hpp"

namespace tandem {
namespace {

constexpr std::array kKinds = {KernelKind::Gemm, KernelKind::Attention, KernelKind::Memory, KernelKind::Optimizer};
// A body is expected to take what its kernels take, and some microseconds of its own. Weak: a doubled factor counts as
// much as an error of 0.5% of all its times.
constexpr double kExpectedOpNs = 5e3, kOpScaleNs = 20e3, kPriorWeight = 2.5e-5;

std::map<KernelKind, double> kernels_ns(const OpTime& time, const CostModel& model) {
  std::map<KernelKind, double> ns;
  for (const Kernel& kernel : time.work.kernels)
    ns[kernel.kind] += static_cast<double>(model.kernel_ns(kernel, time.work.type, time.engine));
  return ns;
}

// The op's own time, then each kind of kernels.
FitRow row_of(const OpTime& time, const CostModel& model) {
  FitRow row{{1}, time.ns.median};
  std::map<KernelKind, double> ns = kernels_ns(time, model);
  for (const KernelKind kind : kKinds) row.terms.push_back(ns[kind]);
  return row;
}

FitPrior prior() {
  FitPrior p{std::vector<double>(1 + kKinds.size(), 1.0), std::vector<double>(1 + kKinds.size(), 1.0), kPriorWeight};
  p.value[0] = kExpectedOpNs;
  p.scale[0] = kOpScaleNs;
  return p;
}

bool is_optimizer_step(const Work& work) {
  return !work.kernels.empty() && work.kernels.front().kind == KernelKind::Optimizer;
}

}  // namespace

void fit_bodies(const std::vector<OpTime>& times, HardwareProfile& profile) {
  const CostModel model(profile);
  std::map<std::string, std::vector<FitRow>> rows;
  for (const OpTime& time : times)
    if (time.engine == Engine::Compute && !time.held_out && !is_optimizer_step(time.work))
      rows[time.work.body].push_back(row_of(time, model));
  std::map<std::string, BodyCost> bodies;
  for (const auto& [body, of_body] : rows) {
    const std::vector<double> x = fit_nonnegative(of_body, prior());
    BodyCost& cost = bodies[body];
    cost.op_ns = std::llround(x[0]);
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      bool occurs = false;
      for (const FitRow& row : of_body) occurs = occurs || row.terms[1 + i] > 0;
      if (occurs) cost.factor[kKinds[i]] = x[1 + i];
    }
  }
  profile.bodies = std::move(bodies);
}

std::vector<Residual> residuals(const std::vector<OpTime>& times, const HardwareProfile& profile) {
  std::vector<Residual> out;
  for (const OpTime& time : times) {
    Graph graph;
    const WorkId work = graph.add_work(time.work);
    const CostModel model(profile);
    out.push_back({time.work.body, time.network, time.engine, time.held_out, time.ns.median,
                   static_cast<double>(model.run_ns(graph, work, time.engine)), kernels_ns(time, model)});
  }
  return out;
}

}  // namespace tandem
