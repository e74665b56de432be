#include "apps/recorded_run.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/base/input_file.hpp"
#include "core/run/load.hpp"
#include "core/run/make_scheduler.hpp"

namespace tandem {
namespace {

ReadLog read(const std::string& path) {
  if (const std::string why = why_not_read(path); !why.empty())
    throw ConfigError(path + ": cannot be read: it " + why + "; a log written with --log");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError(path + ": cannot be read: " + std::strerror(errno) + "; a log written with --log");
  return read_log(in, path);
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
  make_schedulers();
  std::vector<Scheduler*> ranks;
  for (const auto& scheduler : schedulers_) ranks.push_back(scheduler.get());
  report_ = replay(log_, ranks);
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
