#include "runtime/failed_run.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "analysis/skipped_steps.hpp"
#include "core/base/errors.hpp"
#include "core/base/shell_text.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string shown(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

constexpr const char* kNothingSaved = "; nothing was saved: set checkpoint.directory and checkpoint.every to lose less";

std::string reason_file(const std::string& meeting_file) { return meeting_file + ".not_finite"; }

std::string what_to_change(const Scenario& scenario) {
  const OptimizerOptions& o = scenario.optimizer;
  constexpr double kSmallEpsilon = 1e-12;
  std::string text = "lower optimizer.learning_rate (now " + shown(o.learning_rate) + ")";
  std::vector<std::string> anew;
  if (o.epsilon < kSmallEpsilon)
    anew.push_back("a larger optimizer.epsilon (now " + shown(o.epsilon) + "; 1e-8 by default)");
  if (o.clip_norm == 0) anew.emplace_back("optimizer.clip_norm: 1");
  if (scenario.workload.precision == DType::F16) anew.emplace_back("workload.precision: bf16 or fp32");
  for (std::size_t i = 0; i < anew.size(); ++i) text += (i == 0 ? ", or start anew with " : " or ") + anew[i];
  return text;
}

// The latest from which the next training step was finite; with a finite gradient, the state that it came from was.
std::optional<SavedState> last_good(const NotFiniteError& error, const std::vector<SavedState>& saved) {
  std::optional<SavedState> good;
  for (const SavedState& c : saved)
    if (c.step + (error.from_update() ? 0 : 1) < error.step()) good = c;
  return good;
}

}  // namespace

std::string resume_command(const Scenario& scenario, const std::vector<std::string>& settings,
                           const std::string& folder) {
  std::string command = "tandem train " + shell_path(scenario.path);
  for (const std::string& setting : settings) command += " " + shell_word(setting);
  return command + " --resume " + shell_path(folder);
}

std::string what_is_left(const Scenario& scenario, const std::vector<std::string>& settings) {
  const std::string& directory = scenario.checkpoint.directory;
  if (directory.empty()) return kNothingSaved;
  std::vector<SavedState> saved;
  try {
    saved = complete_checkpoints(directory);
  } catch (const DeviceError& error) {  // the failure that is being told is the first one
    return std::string("; what is complete there cannot be told: ") + error.what();
  }
  if (saved.empty()) return "; no checkpoint was complete in " + directory;
  return "; the state after training step " + std::to_string(saved.back().step) + " of " +
         std::to_string(scenario.steps) + " is in " + saved.back().folder +
         "; to go on: " + resume_command(scenario, settings, directory);
}

std::string after_not_finite(const NotFiniteError& error, const Scenario& scenario,
                             const std::vector<std::string>& settings) {
  const std::string& directory = scenario.checkpoint.directory;
  std::vector<SavedState> saved;
  if (!directory.empty()) saved = complete_checkpoints(directory);
  if (error.step() == 0) {  // what the run was to begin with
    std::erase_if(saved, [&](const SavedState& c) { return c.step >= scenario.first_step; });
    return saved.empty() ? "; start anew"
                         : "; go on from an earlier one: " + resume_command(scenario, settings, saved.back().folder);
  }
  const std::string text = "; nothing of this step is saved; " + what_to_change(scenario);
  if (directory.empty()) return text + kNothingSaved;
  if (saved.empty()) return text + "; no checkpoint was complete in " + directory;
  const std::optional<SavedState> good = last_good(error, saved);
  if (!good)
    return text + "; the earliest checkpoint, after training step " + std::to_string(saved.front().step) +
           ", is what this step began with, so start anew";
  std::vector<std::string> changed = settings;
  constexpr double kTenth = 0.1;
  changed.push_back("--set=optimizer.learning_rate=" + shown(scenario.optimizer.learning_rate * kTenth));
  return text + "; the last state before, after training step " + std::to_string(good->step) + " of " +
         std::to_string(scenario.steps) + ", is in " + good->folder +
         "; to go on: " + resume_command(scenario, changed, good->folder);
}

void tell_leader(const std::string& meeting_file, Rank rank, const NotFiniteError& error) noexcept {
  try {
    const std::string file = reason_file(meeting_file), draft = file + "." + std::to_string(rank);
    std::ofstream(draft) << error.step() << ' ' << error.from_update() << ' ' << error.what() << " (on rank " << rank
                         << ")\n";
    fs::rename(draft, file);  // whole, or not there
  } catch (...) {
  }
}

std::optional<NotFiniteError> told_by_rank(const std::string& meeting_file) {
  if (meeting_file.empty()) return std::nullopt;
  std::ifstream in(reason_file(meeting_file));
  std::int32_t step = 0;
  bool from_update = false;
  std::string text;
  if (!(in >> step >> from_update) || in.get() != ' ' || !std::getline(in, text)) return std::nullopt;
  return NotFiniteError(step, from_update, text);
}

}  // namespace tandem
