#include "calibration/conditions.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "calibration/text.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

// Of all cores' time, what others may take: a system's own services take some per cent.
constexpr double kMostOthers = 0.25;
// Repeats of a figure within one probe; on a machine that does nothing else they lie within some per cent.
constexpr double kMostSpread = 0.5;
// From the first probe to the last. A GPU that is too hot or short of power lowers its clock, and the products' rate
// with it, by much more than 10%; copies and updates share the host's memory, whose rate depends on placement, too.
struct Limit {
  ProbeFigure Probe::*figure;
  const char* name;
  double most_change;
};
constexpr Limit kLimits[] = {{&Probe::gemm, "gemm", 0.10},
                             {&Probe::h2d, "h2d", 0.25},
                             {&Probe::d2h, "d2h", 0.25},
                             {&Probe::cpu_optimizer, "cpu_optimizer", 0.25}};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

CpuTimes read_cpu_times(std::istream& in) {
  // "cpu user nice system idle iowait irq softirq steal", in ticks. Time stolen by other virtual machines is busy.
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft_irq = 0, steal = 0;
  if (!(in >> word >> user >> nice >> system >> idle >> waiting >> irq >> soft_irq >> steal) || word != "cpu")
    return {};
  const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double busy = user + nice + system + irq + soft_irq + steal;
  return {(busy + idle + waiting) / ticks_per_s, busy / ticks_per_s, 0};
}

CpuTimes cpu_times_now() {
  std::ifstream file("/proc/stat");
  CpuTimes times = read_cpu_times(file);
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  times.own_s = seconds(own.ru_utime) + seconds(own.ru_stime);
  return times;
}

std::vector<std::string> troubles(const Conditions& c) {
  std::vector<std::string> out;
  const double all_s = c.end.all_s - c.begin.all_s;
  const double others_s = (c.end.busy_s - c.begin.busy_s) - (c.end.own_s - c.begin.own_s);
  if (all_s > 0 && others_s > kMostOthers * all_s)
    out.push_back(printed("other processes took %.0f%% of the CPU's time (at most %.0f%%)", 100 * others_s / all_s,
                          100 * kMostOthers));
  for (const auto& [figure, name, most_change] : kLimits) {
    const ProbeFigure &first = c.first.*figure, &last = c.last.*figure;
    if (first.per_s <= 0 || last.per_s <= 0) continue;
    const double change = last.per_s / first.per_s - 1, spread = std::max(first.spread, last.spread);
    if (std::abs(change) > most_change)
      out.push_back(printed("%s changed by %+.0f%% from the first to the last probe (at most %.0f%%)", name,
                            100 * change, 100 * most_change));
    if (spread > kMostSpread)
      out.push_back(
          printed("repeats of %s spread over %.0f%% (at most %.0f%%)", name, 100 * spread, 100 * kMostSpread));
  }
  return out;
}

void judge(const Conditions& conditions, bool may_be_busy, HardwareProfile& profile) {
  std::string text;
  for (const std::string& trouble : troubles(conditions)) text += (text.empty() ? "" : "; ") + trouble;
  if (text.empty()) return;
  if (!may_be_busy)
    throw DeviceError("the machine was busy or throttled while it was measured: " + text +
                      "; no profile was written: stop what else runs and measure again, or write it all the same, "
                      "marked, with --allow-busy");
  profile.fingerprint->busy = text;
}

}  // namespace tandem
