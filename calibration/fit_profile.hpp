// From measured times to the numbers of a hardware profile. Must not know how times were taken or how YAML is written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibration/kernel_times.hpp"
#include "calibration/lane_times.hpp"
#include "calibration/op_times.hpp"
#include "core/machine/profile.hpp"

namespace tandem {

// How well the model gives back an op's measured time.
struct Residual {
  std::string body, network;
  std::string sizes;  // of the op's work: "8 512 1024"
  Engine engine = Engine::Compute;
  bool held_out = false;
  double measured_ns = 0, predicted_ns = 0;
  std::map<KernelKind, double> kernels_ns;  // that its kernels would take as they do alone
  double error() const { return predicted_ns / measured_ns - 1; }
};

// In this order, each building on those before it:
// Latency, bandwidth and efficiency of both copy lanes, and what they share.
void fit_copies(const CopyTimes& times, HardwareProfile& profile);
void fit_disk(const std::vector<CopyTime>& read, const std::vector<CopyTime>& write, HardwareProfile& profile);
// The optimizer on the CPU, over parameters.
void fit_cpu_optimizer(const std::vector<OpTime>& times, HardwareProfile& profile);
// The memory's bandwidth, which device and host share where the device is made of the same memory; interference.
void fit_slow_downs(const std::vector<SlowDown>& slow_downs, const std::vector<OpTime>& ops, HardwareProfile& profile);
// The same for a device with memory of its own. The host's bandwidth and the weights of copies are those that come
// closest to what the optimizer and copies got of it at once (share_host_memory), with no less than `triad_bytes_per_s`
// of all cores. What pairs with kernels lose is interference.
void fit_host_memory(const std::vector<SlowDown>& slow_downs, const std::vector<OpTime>& ops, double triad_bytes_per_s,
                     HardwareProfile& profile);
// The device's bandwidth, where its memory is its own: of the largest memory kernel.
void fit_device_memory(const std::vector<KernelTime>& memory, HardwareProfile& profile);
// The peak of `type`, launch and the efficiency curves of gemm, attention and memory.
void fit_kernels(const std::vector<KernelTime>& gemms, const std::vector<KernelTime>& attentions,
                 const std::vector<KernelTime>& memory, DType type, HardwareProfile& profile);
// How much of products' memory traffic their flops hide (HardwareProfile::overlap), of those whose weights come from
// memory, in the median. Needs fit_kernels.
void fit_overlap(const std::vector<KernelTime>& cold, DType type, HardwareProfile& profile);
// The peak of a precision that has no efficiency curve of its own: the model then gives the products' times, in the
// median. Needs fit_kernels.
void fit_peak(const std::vector<KernelTime>& products, DType type, HardwareProfile& profile);
// What sizes that few elements divide cost products of `type`, each beside an aligned one of about its size.
void fit_alignment(const std::vector<KernelTime>& products, DType type, HardwareProfile& profile);
// The optimizer on the device, over bytes.
void fit_device_optimizer(const std::vector<OpTime>& times, HardwareProfile& profile);
// All other bodies on the device. Ops that were held out are left out of all fits.
void fit_bodies(const std::vector<OpTime>& times, HardwareProfile& profile);

// The machine's own, at least 1.
double machine_factor(const SlowDown& slow_down);
// An optimizer step and nothing else.
bool is_optimizer(const Work& work);
// What the largest optimizer op on the CPU moved, which no cache holds; 0 if none was timed.
double cpu_optimizer_bytes_per_s(const std::vector<OpTime>& ops);

// How much longer than plain Adam of as many parameters the CPU takes for other updates: the factor of their bodies.
// Needs the fits of the optimizer and of bodies.
void fit_cpu_updates(const std::vector<OpTime>& updates, HardwareProfile& profile);

// Of every op, held out or not, by the finished profile.
std::vector<Residual> residuals(const std::vector<OpTime>& times, const HardwareProfile& profile);

}  // namespace tandem
