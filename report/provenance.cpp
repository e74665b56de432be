#include "report/provenance.hpp"

namespace tandem {

std::string provenance(const HardwareProfile& profile) {
  if (profile.fingerprint) {
    const Fingerprint& machine = *profile.fingerprint;
    return "measured on " + (machine.device.empty() ? machine.processor : machine.device) +
           (machine.busy.empty() ? "" : ", which was busy");
  }
  if (!profile.uncertainty.empty()) return "measured, then changed";
  return profile.source.empty() ? "from datasheets and estimates" : profile.source;
}

}  // namespace tandem
