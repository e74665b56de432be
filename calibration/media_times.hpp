// What one core takes for each stage of the input pipeline, on media that are made here. Must not know scenarios.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibration/measure.hpp"

namespace tandem {

struct StageTime {
  std::string stage;  // of kInputStages
  double units = 0;   // of the item: see kInputStages
  Summary ns;
};

// Three sizes of each stage, on this thread. Uses a scratch file in `folder`, gone afterwards; what is read is in the
// system's cache: what the disk adds is the disk's. Without video where this build has none. Throws DeviceError when
// the file cannot be made.
std::vector<StageTime> time_media(const std::string& folder, bool quick);

// What each of so many threads does of one thread's work: pictures and sounds, decoded and scaled.
Curve time_input_threads(int cores, bool quick);

// By stage: the line of least relative squares through its times, of which neither part is negative.
std::map<std::string, StageRate> fit_stages(const std::vector<StageTime>& times);

// Both, told to people, into profile.input_stages.
void measure_media(const CalibrationOptions& options, HardwareProfile& profile, Notes& notes);

}  // namespace tandem
