// Runs a scenario through the null executor with the happens-before and contents checkers on.
#pragma once

#include <memory>
#include <string>

#include "core/run/make_scheduler.hpp"
#include "core/scheduler/contents.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/happens_before.hpp"
#include "core/scheduler/null_executor.hpp"

namespace tandem::testing {

struct NullRun {
  std::unique_ptr<CostModel> estimate;
  std::unique_ptr<Scheduler> scheduler;
  MemoryLog log;
  std::string violation;
  std::int64_t commands = 0;
};

inline NullRun run_null(const Scenario& scenario, NullExecutor::Options options = {}) {
  NullRun run;
  run.estimate = std::make_unique<CostModel>(scenario.machine);
  run.scheduler = make_scheduler(scenario, *run.estimate);
  Contents contents(run.scheduler->graph(), 0, &run.log);
  HappensBefore checker(run.scheduler->graph(), 0, &contents);
  NullExecutor executor(std::move(options));
  Scheduler* ranks[] = {run.scheduler.get()};
  drive(ranks, executor, checker);
  run.violation = checker.violation() + contents.violation();
  run.commands = checker.checked();
  return run;
}

}  // namespace tandem::testing
