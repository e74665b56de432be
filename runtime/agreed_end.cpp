#include "runtime/agreed_end.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/base/errors.hpp"
#include "core/scenario/saving_group.hpp"
#include "core/scheduler/scheduler.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// Of this run.
std::int32_t appended_steps(const Graph& graph) {
  return graph.op_count() == 0 ? 0 : std::max(graph.op(graph.op_count() - 1).step, -1) + 1;
}

}  // namespace

bool AgreedEnd::is_needed(const Scenario& scenario) {
  return !scenario.checkpoint.directory.empty() && saving_group(scenario).size > 1;
}

AgreedEnd::AgreedEnd(const Scenario& scenario, const std::string& meeting_file, std::atomic<bool>* interrupts)
    : scenario_(scenario), file_(meeting_file + ".ends"), interrupts_(interrupts) {}

std::vector<Input> AgreedEnd::inputs(const Graph& graph) {
  constexpr std::chrono::milliseconds kBetweenLooks{10};
  if (!trains_since_ && appended_steps(graph) > 0) trains_since_ = Clock::now();
  if (interrupts_ != nullptr && interrupts_->exchange(false)) leave_word(graph);
  if (told_ || Clock::now() - looked_ < kBetweenLooks) return {};
  looked_ = Clock::now();
  std::int32_t after_step = 0;
  if (std::ifstream in(file_); !(in >> after_step)) return {};
  told_ = true;
  return {SwitchPolicy{std::string(kNoPolicy), {}, after_step}};
}

// Ranks wait for each other in each step. So none has appended more steps than the leading one, but for those that it
// knows ahead (Scenario::pipeline), and two that may be queued; and each looks for word before two seconds' steps are
// over. What is known ahead when training begins has taken no time.
void AgreedEnd::leave_word(const Graph& graph) {
  constexpr std::int32_t kQueued = 2;
  constexpr double kSeconds = 2, kShortest = 0.5;
  const std::int32_t known = 1 + scenario_.pipeline.prefetch, appended = appended_steps(graph);
  const Clock::time_point now = Clock::now();
  const double passed = std::chrono::duration<double>(now - trains_since_.value_or(now)).count();
  const double a_second = std::max(appended - known, 0) / std::max(passed, kShortest);
  const std::int32_t further = std::max(known + kQueued, static_cast<std::int32_t>(std::ceil(a_second * kSeconds)));
  const std::int32_t after_step = std::min(scenario_.first_step + appended + further, scenario_.steps);
  const std::string draft = file_ + ".draft";
  std::ofstream out(draft);
  out << after_step << '\n';
  out.close();
  std::error_code failed;
  std::filesystem::rename(draft, file_, failed);  // whole, or not there
  if (!out || failed) throw DeviceError("the ranks cannot be told to end: " + file_ + " cannot be written");
  std::fprintf(stderr,
               "interrupted: all ranks end after training step %d of %d, and save; Ctrl-C again ends them at once\n",
               after_step, scenario_.steps);
  looked_ = {};
}

}  // namespace tandem
