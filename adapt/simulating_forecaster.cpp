// Asks tandem-simulate --serve: a line of JSON a request, the arguments of a simulation; a line a reply, its exit code.
// What is simulated: some steps under the policy in force, the switch, and steps until the other has settled.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapt/forecaster.hpp"
#include "cli/atomic_file.hpp"
#include "cli/child_process.hpp"
#include "cli/cli.hpp"
#include "cli/line_socket.hpp"
#include "cli/siblings.hpp"
#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "report/temporary_file.hpp"

namespace tandem {
namespace {

constexpr int kBefore = 3, kSteps = 9, kSettling = 3;

std::string flow_text(const PolicyOptions& policy) {
  std::string text = "{name: " + policy.name;
  for (const auto& [key, value] : policy.options) text += ", " + key + ": " + value;
  return text + "}";
}

std::string rates_text(const Rates& rates, const HardwareProfile& machine) {
  std::map<Engine, double> times = machine.lane_times;
  for (const auto& [lane, ppm] : rates.time_ppm) times[lane] = static_cast<double>(ppm) / 1e6;
  std::string text = "[";
  for (const auto& [lane, factor] : times) {
    text += fmt::format("{}{{lane: {}, factor: {:.6f}}}", text.size() > 1 ? ", " : "", name_of(lane), factor);
  }
  return text + "]";
}

double time_of(const Rates& rates, Engine lane) {
  const auto found = rates.time_ppm.find(lane);
  return found == rates.time_ppm.end() ? 1 : static_cast<double>(found->second) / 1e6;
}

std::string mix_text(const MixOptions& mix) {
  std::string text;
  for (const MixPoint& point : mix.points) {
    text += fmt::format("{}{{from_step: {}", text.empty() ? "[" : ", ", point.from_step);
    for (const auto& [modality, share] : point.shares) text += fmt::format(", {}: {:.6f}", modality, share);
    text += "}";
  }
  return text + "]";
}

// What has changed from one to the other.
std::string truth_text(const Rates& from, const Rates& to) {
  const auto change = [&](Engine a, Engine b) {
    return std::sqrt(time_of(to, a) / time_of(from, a) * time_of(to, b) / time_of(from, b));
  };
  const double copies = change(Engine::H2D, Engine::D2H);
  return fmt::format("{{copy_time: {:.6f}, compute_time: {:.6f}, optimizer_time: {:.6f}, disk_time: {:.6f}}}", copies,
                     change(Engine::Compute, Engine::Compute), change(Engine::CpuOptimizer, Engine::CpuOptimizer),
                     change(Engine::DiskRead, Engine::DiskWrite) / copies);
}

class SimulatingForecaster final : public Forecaster {
 public:
  SimulatingForecaster(const Scenario& scenario, bool waits)
      : machine_(scenario.machine), mix_(scenario.workload.mix), waits_(waits) {
    write_file(folder_.file("scenario.yaml"), scenario.text);
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0)
      throw DeviceError(std::string("cannot make a socket: ") + std::strerror(errno));
    simulator_.emplace(ends[0]);
    ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    start_child(sibling("simulate"), {(waits ? "--serve=" : "--serve-idle=") + std::to_string(ends[1])});
    ::close(ends[1]);
  }
  void ask(const PolicyOptions& now, const PlannedWith& plan, const std::vector<PolicyOptions>& others,
           const Rates& rates, std::int32_t step) override {
    mix_text_ = mix_.points.empty() ? "" : mix_text(mix_after(plan.step, step));
    CHECK(forecasts_.size() == answered_, "one question at a time", forecasts_.size(), answered_);
    forecasts_.clear();
    answered_ = 0;
    std::string requests;
    for (std::size_t i = 0; i <= others.size(); ++i) {
      forecasts_.push_back({i == 0 ? now : others[i - 1], 0, 0, ""});
      const nlohmann::json request = i == 0 ? arguments(i, now, plan.rates, truth_text(plan.rates, rates), "[]")
                                            : arguments(i, now, rates, "{}",
                                                        "[{after_step: " + std::to_string(kBefore) +
                                                            ", policy: " + flow_text(forecasts_.back().policy) + "}]");
      requests += request.dump() + "\n";
    }
    simulator_->send(requests);  // one that is gone is seen when it does not answer
  }

  std::optional<std::vector<Forecast>> answer() override {
    while (answered_ < forecasts_.size()) {
      const std::optional<std::string> reply = simulator_->take(waits_);
      if (!reply && !simulator_->is_gone()) break;
      Forecast& forecast = forecasts_[answered_];
      if (reply)
        note(forecast, answered_, std::atoi(reply->c_str()));
      else
        forecast.why_not = "the simulator has ended";
      ++answered_;
    }
    if (forecasts_.empty() || answered_ < forecasts_.size()) return std::nullopt;
    answered_ = 0;
    return std::exchange(forecasts_, {});
  }

 private:
  // The policy in force is planned for the mix of one step, and meets that of another before any switch.
  MixOptions mix_after(std::int32_t planned, std::int32_t step) const {
    MixOptions mix = mix_.from(step);
    for (MixPoint& point : mix.points) point.from_step += 1;
    mix.points.insert(mix.points.begin(), mix_.from(planned).points.front());
    return mix;
  }
  std::string result_file(std::size_t index) const { return folder_.file(std::to_string(index) + ".json"); }
  // `truth`: what is so, and the policy does not know.
  std::vector<std::string> arguments(std::size_t index, const PolicyOptions& now, const Rates& rates,
                                     const std::string& truth, const std::string& switches) const {
    std::vector<std::string> all = {folder_.file("scenario.yaml"),
                                    "--quiet",
                                    "--no-trials",
                                    "--json=" + result_file(index),
                                    "--set=truth=" + truth,
                                    "--set=checkpoint={}",
                                    "--set=validation.every=0",
                                    "--set=steps=" + std::to_string(kSteps),
                                    "--set=policy=" + flow_text(now),
                                    "--set=machine.host.lane_times=" + rates_text(rates, machine_),
                                    "--set=switches=" + switches};
    if (!mix_text_.empty()) all.push_back("--set=workload.mix=" + mix_text_);
    return all;
  }
  // Steps' ends differ by `all`: the switch lies in the one after kBefore steps, and what follows settles.
  static void note_times(Forecast& forecast, const std::vector<double>& all, bool switches) {
    if (all.size() != kSteps - 1) return void(forecast.why_not = "its forecast has no steps");
    forecast.step_s = (all[kSteps - 2] + all[kSteps - 3]) / 2;
    if (!switches) return;
    double excess = -kSettling * forecast.step_s;
    for (int i = 0; i < kSettling; ++i) excess += all[static_cast<std::size_t>(kBefore - 1 + i)];
    forecast.switch_s = std::max(0.0, excess);
  }
  void note(Forecast& forecast, std::size_t index, int code) const {
    if (code != kDone) {
      forecast.why_not = code == kDoesNotFit ? "does not fit" : "cannot be simulated";
      return;
    }
    std::ifstream in(result_file(index));
    const nlohmann::json result = nlohmann::json::parse(in, nullptr, false);
    if (result.is_discarded()) return void(forecast.why_not = "its forecast cannot be read");
    note_times(forecast, result["step_time_s"]["all"].get<std::vector<double>>(), index > 0);
  }

  const HardwareProfile machine_;
  const MixOptions mix_;
  const bool waits_;
  std::string mix_text_;  // of the steps that the question is about; "": the scenario has none
  TemporaryFolder folder_;
  std::optional<LineSocket> simulator_;  // whose end ends the other one
  std::vector<Forecast> forecasts_;      // asked for; those before answered_ are there
  std::size_t answered_ = 0;
};

}  // namespace

std::unique_ptr<Forecaster> simulating_forecaster(const Scenario& scenario, bool waits) {
  try {
    sibling("simulate");
  } catch (const ConfigError&) {
    return nullptr;
  }
  return std::make_unique<SimulatingForecaster>(scenario, waits);
}

}  // namespace tandem
