// How far a profile's predictions may be from the truth, from what calibration has measured and not fitted: networks
// and sizes left out one by one, repeats, and slow-downs of lanes beside the model of them. Must not know how times
// were taken.
#pragma once

#include <map>
#include <vector>

#include "calibration/disk_times.hpp"
#include "calibration/fit_profile.hpp"
#include "calibration/launch_times.hpp"

namespace tandem {

// What the profile was fitted to.
struct Measurements {
  CopyTimes copies;
  HandOver hand_over;
  std::vector<SlowDown> slow_downs;
  std::vector<LaunchTime> launches;
  std::vector<OpTime> ops, updates;  // of plain training; of what other updates have beside
  DiskTimes disk;

  std::vector<OpTime> all_ops() const {
    std::vector<OpTime> all = ops;
    all.insert(all.end(), updates.begin(), updates.end());
    return all;
  }
};

// Of the finished profile: all causes, each with what it is from, or none where something was measured too little to be
// left out. No value is below a floor, which its source then names.
std::map<TimeCause, Uncertainty> find_uncertainty(const Measurements& measured, const HardwareProfile& profile);

// A machine changes while it is measured: adds to what was found how far the probe's figures, taken first and last, are
// apart. Leaves an empty map empty.
void add_drift(const Probe& first, const Probe& last, std::map<TimeCause, Uncertainty>& found);

// The standard deviation of what `errors` are samples of, about zero, so that a bias counts: the median of their sizes,
// scaled to a normal distribution's deviation, and widened for few samples as Student's t is for a 90% interval.
// CHECKs that there is one.
double deviation_of(std::vector<double> errors);

}  // namespace tandem
