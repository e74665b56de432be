// In what state a machine was while it was calibrated, and whether its figures can be trusted. Must not know how a
// profile is fitted or written.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "core/machine/profile.hpp"

namespace tandem {

// Seconds of all of the machine's cores since it started; `own_s`: of this process.
struct CpuTimes {
  double all_s = 0, busy_s = 0, own_s = 0;
};
CpuTimes cpu_times_now();
// The first two from the kernel's /proc/stat; 0 where it says nothing.
CpuTimes read_cpu_times(std::istream& in);

struct Conditions {
  Probe first, last;  // before and after all else
  CpuTimes begin, end;
};

// What speaks against the figures, each with its figure and what is allowed.
std::vector<std::string> troubles(const Conditions& conditions);

// Where there is trouble: marks the profile (fingerprint.busy) if that is allowed. Otherwise throws DeviceError, as the
// profile is not worth keeping.
void judge(const Conditions& conditions, bool may_be_busy, HardwareProfile& profile);

}  // namespace tandem
