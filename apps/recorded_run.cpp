#include "apps/recorded_run.hpp"

#include <istream>

#include "core/base/input_file.hpp"
#include "core/run/load.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/scheduler/log_check.hpp"

namespace tandem {
namespace {

ReadLog read(const std::string& path) {
  try {
    const InputFile file(path, Pipes::Read);
    InputBuffer bytes(file);
    std::istream in(&bytes);
    in.exceptions(std::ios::badbit);  // else what the buffer throws is only a flag
    ReadLog log = read_log(in, path);
    check_log(log, path);
    return log;
  } catch (const UnreadableFile& error) {
    throw ConfigError(path + ": cannot be read: it " + error.what() + "; allowed: a log written with --log");
  }
}

}  // namespace

RecordedRun::RecordedRun(const std::string& path, const std::string& shown_as)
    : path_(path), log_(read(path)), scenario_(parse_scenario(log_.header.scenario, path + " (its scenario)")) {
  if (!shown_as.empty()) scenario_.path = shown_as;
  scenario_.first_step = log_.header.first_step;
  if (scenario_.first_step >= scenario_.steps)
    throw ConfigError(path_ + ": log: first_step: " + std::to_string(scenario_.first_step) +
                      " leaves none of the scenario's training steps; expected fewer than " +
                      std::to_string(scenario_.steps));
  if (log_.header.ranks > rank_count(scenario_))
    throw ConfigError(path_ + ":5:1: log: " + std::to_string(log_.header.ranks) +
                      " ranks; allowed: 1 to as many as the scenario has, " + std::to_string(rank_count(scenario_)));
  try {
    make_schedulers();
    std::vector<Scheduler*> ranks;
    for (const auto& scheduler : schedulers_) ranks.push_back(scheduler.get());
    report_ = replay(log_, ranks);
  } catch (const DoesNotFit& refusal) {
    // A run that was recorded fitted, so that the scenario is not the one that it had.
    throw ConfigError(path_ + ": log: its scenario does not fit its machine: " +
                      std::string(refusal.what()).substr(0, std::string(refusal.what()).find('\n')) +
                      "; allowed: the scenario of the run that was recorded");
  }
  for (const MemoryLog::Entry& entry : log_.entries) {
    memory_.append(entry.batch);
    memory_.append(entry.commands);
  }
}

void RecordedRun::make_schedulers() {
  const LogHeader& header = log_.header;
  // A measured run has a log a process; a simulated one has all ranks in one.
  const bool one_rank = header.mode == "measured";
  const Rank first = one_rank ? header.rank : 0, last = one_rank ? header.rank : header.ranks - 1;
  for (Rank rank = first; rank <= last; ++rank) {
    estimates_.push_back(std::make_unique<CostModel>(scenario_.machine));
    schedulers_.push_back(make_scheduler(scenario_, *estimates_.back(), rank));
  }
}

RunRecord RecordedRun::record() const {
  if (!report_.difference.empty())
    throw ConfigError(path_ + ": does not replay with this build: " + report_.difference);
  RunRecord record;
  record.mode = log_.header.mode;
  record.scenario = &scenario_;
  record.log = &memory_;
  record.loss_scale_before = initial_loss_scale_state(scenario_);
  for (const auto& scheduler : schedulers_) {
    RankRecord rank;
    rank.graph = &scheduler->graph();
    for (int tier = 0; tier < kTierCount; ++tier) {
      rank.peak_bytes[static_cast<std::size_t>(tier)] = scheduler->pool(static_cast<Tier>(tier)).peak_bytes();
      rank.evicted_bytes[static_cast<std::size_t>(tier)] = scheduler->evicted_bytes(static_cast<Tier>(tier));
    }
    record.ranks.push_back(rank);
  }
  return record;
}

}  // namespace tandem
