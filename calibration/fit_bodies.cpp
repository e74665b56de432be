#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "calibration/fit.hpp"
#include "calibration/fit_profile.hpp"
#include "calibration/statistics.hpp"
#include "core/machine/cost_model.hpp"

namespace tandem {
namespace {

constexpr std::array kKinds = {KernelKind::Gemm, KernelKind::Attention, KernelKind::Memory, KernelKind::Optimizer};
// A body is expected to take what its kernels take, and some microseconds of its own. Weak: a doubled factor counts as
// much as an error of 0.5% of all its times.
constexpr double kExpectedOpNs = 5e3, kOpScaleNs = 20e3, kRowScaleNs = 5, kPriorWeight = 2.5e-5;
// A GPU's products and attention are the same kernels alone and in a body, with operands from the same memory: their
// factors are expected within a tenth of 1, as near as their models come (core/machine/gemm.hpp, attention.hpp).
// Few networks cannot tell them apart: with 7 a family, 22 others were off by 11% (90th percentile) without this, by 5
// to 6% with it.
constexpr double kMatrixScale = 0.1, kGpuPriorWeight = 1e-4;
// On a GPU, ops that take less than so many times what launching their kernels takes may have waited for that, and say
// nothing of the device. Where launches are recorded they did not wait, but are small: their least time has a form of
// its own (BodyCost::least_ns), and would else be spread over all sizes.
constexpr double kWaits = 1.5;
constexpr int kRounds = 3;
constexpr std::size_t kFewest = 3;  // ops that a body's fit needs

std::map<KernelKind, double> kernels_ns(const OpTime& time, const CostModel& model) {
  std::map<KernelKind, double> ns;
  for (const Kernel& kernel : time.work.kernels)
    ns[kernel.kind] += static_cast<double>(model.kernel_ns(kernel, time.work.type, time.engine));
  return ns;
}

// Without gaps between them, where launches can be recorded.
double kernels_took_ns(const OpTime& time) { return time.repeated.ns > 0 ? time.repeated.ns : time.ns.median; }

// The op's own time, its rows, then each kind of kernels.
FitRow row_of(const OpTime& time, const CostModel& model) {
  double rows = 0;
  for (const Kernel& kernel : time.work.kernels) rows += static_cast<double>(kernel.rows);
  FitRow row{{1, rows}, kernels_took_ns(time)};
  std::map<KernelKind, double> ns = kernels_ns(time, model);
  for (const KernelKind kind : kKinds) row.terms.push_back(ns[kind]);
  return row;
}

FitPrior prior(bool gpu) {
  FitPrior p{std::vector<double>(2 + kKinds.size(), 1.0), std::vector<double>(2 + kKinds.size(), 1.0), kPriorWeight};
  p.value[0] = kExpectedOpNs, p.value[1] = 0;
  p.scale[0] = kOpScaleNs, p.scale[1] = kRowScaleNs;
  if (!gpu) return p;
  p.weight = kGpuPriorWeight;
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i] == KernelKind::Gemm || kKinds[i] == KernelKind::Attention) p.scale[2 + i] = kMatrixScale;
  return p;
}

using Ops = std::vector<const OpTime*>;

using Of = double (*)(const OpTime&);

double median_of(const Ops& ops, Of figure) {
  std::vector<double> figures;
  for (const OpTime* op : ops) figures.push_back(figure(*op));
  return figures.empty() ? 0 : quantile(figures, 0.5);
}

// What the submitting thread takes for the body's kernels, of which all its ops have about as many, however large; 0
// where a thread runs them itself.
void fit_launches(const Ops& ops, BodyCost& cost) {
  cost.dispatch_ns = std::llround(median_of(ops, [](const OpTime& op) { return op.launch_ns; }));
  Ops recorded, waited_for;  // whose kernels did not wait for launches
  for (const OpTime* op : ops)
    if (op->repeated.ns > 0) recorded.push_back(op);
  for (const OpTime* op : recorded)
    if (op->ns.median > kWaits * static_cast<double>(cost.dispatch_ns)) waited_for.push_back(op);
  cost.repeat_ns = std::llround(median_of(recorded, [](const OpTime& op) { return op.repeated.launch_ns; }));
  cost.record_ns = std::llround(median_of(recorded, [](const OpTime& op) { return op.repeated.record_ns; }));
  const double late_ns = median_of(waited_for, [](const OpTime& op) { return op.late_ns - op.ns.median; });
  cost.late_ns = std::max<std::int64_t>(0, std::llround(late_ns));
  const double gaps_ns = median_of(waited_for, [](const OpTime& op) { return op.ns.median - op.repeated.ns; });
  cost.gaps_ns = std::max<std::int64_t>(0, std::llround(gaps_ns));
}

// Of ops that took longer than that.
std::vector<FitRow> rows_beyond(const Ops& ops, double least_ns, const CostModel& model) {
  std::vector<FitRow> rows;
  for (const OpTime* op : ops)
    if (kernels_took_ns(*op) > least_ns) rows.push_back(row_of(*op, model));
  return rows;
}

// Of small ops whose kernels did not wait for launches: what they take, in squares, beyond what the large ones tell.
std::int64_t least_ns(const Ops& ops, double small_ns, const std::vector<double>& fitted, const CostModel& model) {
  std::vector<double> squares;
  for (const OpTime* op : ops) {
    if (op->repeated.ns == 0 || op->repeated.ns > small_ns) continue;
    const FitRow row = row_of(*op, model);
    const double predicted = std::inner_product(fitted.begin(), fitted.end(), row.terms.begin(), 0.0);
    squares.push_back(op->repeated.ns * op->repeated.ns - predicted * predicted);
  }
  return squares.empty() ? 0 : std::llround(std::sqrt(std::max(0.0, quantile(squares, 0.5))));
}

// What is left of a large op's time: small ones take less than half of it.
double beyond_least(double took_ns, std::int64_t least_ns) {
  return std::sqrt(took_ns * took_ns - static_cast<double>(least_ns) * static_cast<double>(least_ns));
}

BodyCost fit_body(const Ops& ops, const CostModel& model) {
  BodyCost cost;
  if (model.profile().gpu) fit_launches(ops, cost);
  const double waits_ns = kWaits * static_cast<double>(cost.dispatch_ns);
  std::vector<FitRow> rows = rows_beyond(ops, waits_ns, model);
  const bool has_large = rows.size() >= kFewest;
  if (!has_large) rows = rows_beyond(ops, 0, model);
  std::vector<double> x = fit_nonnegative(rows, prior(model.profile().gpu));
  // Each tells the other's share: three rounds leave less than a hundredth of the least.
  for (int round = 0; has_large && round < kRounds; ++round) {
    cost.least_ns = least_ns(ops, waits_ns / 2, x, model);
    std::vector<FitRow> beyond = rows;
    for (FitRow& row : beyond) row.target = beyond_least(row.target, cost.least_ns);
    x = fit_nonnegative(beyond, prior(model.profile().gpu));
  }
  cost.op_ns = std::llround(x[0]);
  cost.row_ns = x[1];
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    bool occurs = false;
    for (const FitRow& row : rows) occurs = occurs || row.terms[2 + i] > 0;
    if (occurs) cost.factor[kKinds[i]] = x[2 + i];
  }
  return cost;
}

}  // namespace

void fit_bodies(const std::vector<OpTime>& times, HardwareProfile& profile) {
  const CostModel model(profile);
  std::map<std::string, Ops> of_bodies;
  for (const OpTime& time : times)
    if (time.engine == Engine::Compute && !time.held_out && !CostModel::is_update(time.work))
      of_bodies[time.work.body].push_back(&time);
  std::map<std::string, BodyCost> bodies;
  for (const auto& [body, ops] : of_bodies) bodies[body] = fit_body(ops, model);
  profile.bodies = std::move(bodies);
}

void fit_cpu_updates(const std::vector<OpTime>& updates, HardwareProfile& profile) {
  const CostModel model(profile);
  std::map<std::string, std::pair<double, double>> sums;  // measured and as plain Adam: large ones tell the most
  for (const OpTime& time : updates) {
    if (time.engine != Engine::CpuOptimizer || time.held_out || !CostModel::is_update(time.work)) continue;
    auto& [measured_ns, plain_ns] = sums[time.work.body];
    measured_ns += std::max(0.0, time.ns.median - static_cast<double>(profile.cpu_op_ns));
    for (const auto& [kind, ns] : kernels_ns(time, model)) plain_ns += ns;
  }
  for (const auto& [body, sum] : sums)
    if (sum.first > 0 && sum.second > 0) profile.bodies[body].factor[KernelKind::Optimizer] = sum.first / sum.second;
}

std::vector<Residual> residuals(const std::vector<OpTime>& times, const HardwareProfile& profile) {
  std::vector<Residual> out;
  for (const OpTime& time : times) {
    Graph graph;
    const WorkId work = graph.add_work(time.work);
    const CostModel model(profile);
    std::string sizes;
    for (const std::int64_t size : time.work.sizes) sizes += (sizes.empty() ? "" : " ") + std::to_string(size);
    const std::int64_t predicted_ns =
        time.repeated.ns > 0 ? model.repeated_run_ns(graph, work) : model.run_ns(graph, work, time.engine);
    out.push_back({time.work.body, time.network, std::move(sizes), time.engine, time.held_out, kernels_took_ns(time),
                   static_cast<double>(predicted_ns), kernels_ns(time, model)});
  }
  return out;
}

}  // namespace tandem
