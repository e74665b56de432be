#include "runtime/run_watch.hpp"

#include <new>
#include <utility>

#include "cli/cli.hpp"
#include "cli/interrupt.hpp"
#include "core/base/units.hpp"
#include "report/summary.hpp"

namespace tandem {
namespace {

std::string left(const Scenario& scenario) {
  if (scenario.checkpoint.directory.empty()) return "tandem: nothing was saved\n";
  return "tandem: checkpoints that were complete stay in " + terminal_text(scenario.checkpoint.directory) + "\n";
}

// The process ends, whether there is memory for its reason or not.
[[noreturn]] void end_with(int code, const std::function<std::string()>& reason) {
  std::string text;
  try {
    text = reason();
  } catch (const std::bad_alloc&) {
    end_process(code, "tandem: given up by the watchdog, and out of memory\n");
  }
  end_process(code, text.c_str());
}

std::string in_seconds(std::chrono::nanoseconds time) { return format_time(seconds(time.count())); }

}  // namespace

std::unique_ptr<Watchdog> leading_watchdog(const Scenario& scenario, std::function<std::string()> others,
                                           std::function<std::string()> lost, bool saves_alone) {
  WatchdogOptions options;
  options.limit = std::chrono::nanoseconds(scenario.watchdog_ns);
  options.saves = !scenario.checkpoint.directory.empty();
  if (saves_alone) options.interrupted = [] { return interrupts_so_far() > 0; };
  const std::string limit = in_seconds(options.limit), grace = in_seconds(options.grace), rest = left(scenario);
  options.lost = std::move(lost);
  options.bereft = [rest](const std::string& waits, const std::string& who) {
    end_with(kDeviceFailure,
             [&] { return "tandem: " + who + ", so the run is given up; what it waits for:\n" + waits + rest; });
  };
  options.expired = [=](const std::string& waits, bool interrupted) {
    const int code = interrupted ? kInterrupted : kDeviceFailure;
    end_with(code, [&] {
      const std::string wrong = others ? others() : "";
      return (interrupted ? "tandem: interrupted, and what was in flight has not ended in " + grace + ":\n" + waits
                          : "tandem: nothing has finished for " + limit +
                                " (watchdog), so the run is given up; what it waits for:\n" + waits) +
             (wrong.empty() ? "" : "tandem: " + wrong + "\n") + rest;
    });
  };
  return std::make_unique<Watchdog>(std::move(options));
}

std::unique_ptr<Watchdog> following_watchdog(const Scenario& scenario, Rank rank) {
  constexpr std::chrono::seconds kLater{5};
  WatchdogOptions options;
  options.limit = std::chrono::nanoseconds(scenario.watchdog_ns) + kLater;
  options.expired = [rank](const std::string& waits, bool) {
    end_with(kDeviceFailure, [&] {
      return "tandem: rank " + std::to_string(rank) +
             ": nothing has finished for long, and the leading rank does not end it; what it waits for:\n" + waits;
    });
  };
  return std::make_unique<Watchdog>(std::move(options));
}

}  // namespace tandem
