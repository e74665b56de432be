#include "runtime/fingerprint.hpp"

#include "runtime/machine_probe.hpp"

namespace tandem {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : "; ") + part;
  return out;
}

bool is_comparable(const HardwareProfile& profile, const Device* device) {
  return profile.fingerprint && profile.gpu == (device != nullptr);
}

std::string warning(const HardwareProfile& profile, const std::string& problem, const Device* device) {
  return "machine: " + profile.name + " " + problem + "; to measure this machine: tandem calibrate --device " +
         (device != nullptr ? "cuda" : "cpu") + " --quick --output FILE";
}

}  // namespace

Fingerprint fingerprint_here(Device* device) {
  const MachineFacts machine = probe_machine();
  Fingerprint out;
  out.processor = machine.processor;
  out.cores = machine.cores;
  out.memory_bytes = machine.memory_bytes;
  if (device == nullptr) return out;
  const DeviceFacts facts = device->facts();
  out.device = facts.name;
  out.driver = facts.driver;
  return out;
}

std::string other_machine(const HardwareProfile& profile, Device* device) {
  if (profile.gpu != (device != nullptr))
    return profile.gpu ? "is of a GPU, for which the CPU stands in" : "is of a CPU that stands in for a GPU";
  if (!profile.fingerprint)
    return "names no machine that it was measured on: what it predicts may be far from this one";
  const std::vector<std::string> found = differences(*profile.fingerprint, fingerprint_here(device));
  return found.empty() ? "" : "was measured on another machine: " + joined(found);
}

std::string fingerprint_warning(const HardwareProfile& profile, Device* device) {
  if (profile.gpu != (device != nullptr)) return "";
  if (const std::string other = other_machine(profile, device); !other.empty()) return warning(profile, other, device);
  const std::string& busy = profile.fingerprint->busy;
  return busy.empty() ? "" : warning(profile, "was measured on a busy machine: " + busy, device);
}

std::string probe_warning(const HardwareProfile& profile, const Probe& here, Device* device) {
  if (!is_comparable(profile, device)) return "";
  const std::vector<std::string> found = drifts(profile.fingerprint->probe, here);
  return found.empty() ? "" : warning(profile, "does not give this machine's figures: " + joined(found), device);
}

}  // namespace tandem
