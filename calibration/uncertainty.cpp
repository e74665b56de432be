#include "calibration/uncertainty.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <optional>
#include <set>

#include "calibration/slow_down_model.hpp"
#include "calibration/text.hpp"
#include "core/machine/cost_model.hpp"

namespace tandem {
namespace {

// Of a normal distribution: its deviation over the median and the mean size of its errors, its 95th percentile, and how
// many deviations lie between its 10th and 90th.
constexpr double kOverMedianSize = 1.4826, kOverMeanSize = 1.2533, kPercentile95 = 1.6449, kSpreadDeviations = 2.5631;
// A machine does not repeat itself better from one run to the next: clocks follow temperature and load.
constexpr double kFloor = 0.01;
// A schema's limit: more than all of a time is no deviation of a normal distribution.
constexpr double kMost = 1;

using Estimate = std::optional<Uncertainty>;
using Network = std::string;

Uncertainty within_limits(double deviation, std::string source) {
  if (deviation < kFloor) source += printed("; gives %.2g, raised to a floor", deviation);
  return {std::clamp(deviation, kFloor, kMost), std::move(source)};
}

std::set<Network> networks_of(const std::vector<OpTime>& ops) {
  std::set<Network> networks;
  for (const OpTime& op : ops) networks.insert(op.network);
  return networks;
}

// Whether the fit of the optimizer on `engine` has something to go by.
bool has_updates(const std::vector<OpTime>& ops, Engine engine) {
  return std::any_of(ops.begin(), ops.end(),
                     [&](const OpTime& op) { return op.engine == engine && !op.held_out && is_optimizer(op.work); });
}

// The profile as it would be had the engine's ops that are held out not been measured.
HardwareProfile refitted(const std::vector<OpTime>& ops, Engine engine, HardwareProfile profile) {
  if (engine == Engine::CpuOptimizer) {
    fit_cpu_optimizer(ops, profile);
  } else {
    fit_device_optimizer(ops, profile);
    fit_bodies(ops, profile);
  }
  return profile;
}

// The error of all that the network's step does on the engine, predicted without it; none if it does nothing there, or
// if nothing else does.
std::optional<double> error_without(const Network& network, Engine engine, std::vector<OpTime> ops,
                                    const HardwareProfile& profile) {
  std::vector<OpTime> own;
  for (OpTime& op : ops)
    if (op.network == network) {
      op.held_out = true;
      if (op.engine == engine) own.push_back(op);
    }
  if (own.empty() || !has_updates(ops, engine)) return std::nullopt;
  double measured = 0, predicted = 0;
  const std::vector<Residual> all = residuals(own, refitted(ops, engine, profile));
  for (std::size_t i = 0; i < own.size(); ++i) {
    measured += all[i].measured_ns * static_cast<double>(own[i].count);
    predicted += all[i].predicted_ns * static_cast<double>(own[i].count);
  }
  return predicted / measured - 1;
}

Estimate of_ops(const std::vector<OpTime>& ops, Engine engine, const HardwareProfile& profile) {
  std::vector<double> errors;
  for (const Network& network : networks_of(ops))
    if (const auto error = error_without(network, engine, ops, profile)) errors.push_back(*error);
  if (errors.empty()) return std::nullopt;
  const auto count = errors.size();
  return within_limits(deviation_of(std::move(errors)),
                       printed("errors of %zu networks, each left out of the fit; median size, Student's t", count));
}

using Copies = std::vector<CopyTime>;

// The errors of the lane's copies, each size between the smallest and the largest left out of the fit.
template <typename Refit>
void add_left_out_errors(const Copies& times, Engine lane, Refit&& refit, std::vector<double>& errors) {
  for (std::size_t i = 1; i + 1 < times.size(); ++i) {
    Copies fewer = times;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    const HardwareProfile profile = refit(fewer);
    const auto predicted = static_cast<double>(CostModel(profile).copy_ns(lane, times[i].bytes));
    errors.push_back(predicted / times[i].ns.median - 1);
  }
}

double repeats_deviation(const Copies& one, const Copies& other) {
  std::vector<double> deviations;
  for (const Copies* times : {&one, &other})
    for (const CopyTime& time : *times) deviations.push_back(time.ns.spread() / kSpreadDeviations);
  return quantile(std::move(deviations), 0.5);
}

Estimate of_transfers(const Copies& one, const Copies& other, std::vector<double> errors) {
  if (errors.empty()) return std::nullopt;
  const std::size_t count = errors.size();
  return within_limits(
      std::hypot(deviation_of(std::move(errors)), repeats_deviation(one, other)),
      printed("errors of %zu sizes, each left out of the curve, and the median spread of repeats", count));
}

Estimate of_copies(const CopyTimes& times) {
  const auto refit = [&](const Copies& h2d, const Copies& d2h) {
    HardwareProfile profile;
    fit_copies({h2d, d2h, {}, {}, times.both_bytes_per_s}, profile);
    return profile;
  };
  std::vector<double> errors;
  add_left_out_errors(
      times.h2d, Engine::H2D, [&](const Copies& h2d) { return refit(h2d, times.d2h); }, errors);
  add_left_out_errors(
      times.d2h, Engine::D2H, [&](const Copies& d2h) { return refit(times.h2d, d2h); }, errors);
  return of_transfers(times.h2d, times.d2h, std::move(errors));
}

Estimate of_disk(const DiskTimes& times) {
  const auto refit = [](const Copies& read, const Copies& write) {
    HardwareProfile profile;
    fit_disk(read, write, profile);
    return profile;
  };
  std::vector<double> errors;
  const Copies &read = times.read, &write = times.write;
  add_left_out_errors(
      read, Engine::DiskRead, [&](const Copies& fewer) { return refit(fewer, write); }, errors);
  add_left_out_errors(
      write, Engine::DiskWrite, [&](const Copies& fewer) { return refit(read, fewer); }, errors);
  return of_transfers(read, write, std::move(errors));
}

Estimate of_dispatch(const HandOver& times) {
  double sum = 0, variance = 0;
  for (const Summary* part : {&times.submit_ns, &times.wake_ns, &times.seen_ns}) {
    sum += std::max(0.0, part->median);
    variance += std::pow((part->high - part->low) / kSpreadDeviations, 2);
  }
  if (sum <= 0) return std::nullopt;
  return within_limits(std::sqrt(variance) / sum, "spread of repeats of a hand-over");
}

// Of what sharing adds, over all groups of lanes: by how much the model of it is off in the mean.
Estimate of_sharing(const Measurements& measured, const HardwareProfile& profile) {
  double added = 0, off = 0;
  for (const SlowDown& s : measured.slow_downs) {
    added += machine_factor(s) - 1;
    off += std::abs(modelled_slow_down(s, measured.ops, profile) - machine_factor(s));
  }
  const double ratio = off > 0 ? off / added : 0;  // infinite where nothing slowed down that the model slows down
  return within_limits(std::min(kMost, kOverMeanSize * ratio),
                       printed("modelled and measured slow-downs of %zu lanes beside others, mean difference",
                               measured.slow_downs.size()));
}

}  // namespace

double deviation_of(std::vector<double> errors) {
  const boost::math::students_t few(static_cast<double>(errors.size()));
  for (double& error : errors) error = std::abs(error);
  return kOverMedianSize * quantile(std::move(errors), 0.5) * boost::math::quantile(few, 0.95) / kPercentile95;
}

void add_drift(const Probe& first, const Probe& last, std::map<TimeCause, Uncertainty>& found) {
  const auto add = [&](TimeCause cause, const ProbeFigure& a, const ProbeFigure& b) {
    const double mean = (a.per_s + b.per_s) / 2;
    if (!found.contains(cause) || mean <= 0) return;
    const double apart = std::abs(a.per_s - b.per_s) / mean;
    Uncertainty& known = found[cause];
    known.relative = std::min(kMost, std::hypot(known.relative, apart / std::sqrt(2.0)));
    known.source += printed("; the probe's first and last are %.1f%% apart", 100 * apart);
  };
  add(TimeCause::Compute, first.gemm, last.gemm);
  add(TimeCause::CpuOptimizer, first.cpu_optimizer, last.cpu_optimizer);
  add(TimeCause::Copies, first.h2d, last.h2d);
}

std::map<TimeCause, Uncertainty> find_uncertainty(const Measurements& measured, const HardwareProfile& profile) {
  const std::pair<TimeCause, Estimate> estimates[] = {
      {TimeCause::Compute, of_ops(measured.ops, Engine::Compute, profile)},
      {TimeCause::Copies, of_copies(measured.copies)},
      {TimeCause::CpuOptimizer, of_ops(measured.ops, Engine::CpuOptimizer, profile)},
      {TimeCause::Disk, of_disk(measured.disk)},
      {TimeCause::Dispatch, of_dispatch(measured.hand_over)},
      {TimeCause::Sharing, of_sharing(measured, profile)},
  };
  std::map<TimeCause, Uncertainty> found;
  for (const auto& [cause, estimate] : estimates) {
    if (!estimate) return {};
    found[cause] = *estimate;
  }
  return found;
}

}  // namespace tandem
