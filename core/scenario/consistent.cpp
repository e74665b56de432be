// Figures of one machine that do not go together: each is right for some machine, and wrong beside the others, as a
// figure is that is off by a factor of 8 or 1000 (bits for bytes, MB for GB). The bounds are a little beyond what real
// machines span, so they bind only where somebody says where the figures are from: a what-if has
// no source, and is told that it is one.
#include <algorithm>
#include <iterator>

#include "core/base/check.hpp"
#include "core/scenario/build.hpp"

namespace tandem {
namespace {

constexpr const char *kBytes = "bytes", *kBytesPerS = "bytes_per_s", *kFlopsPerS = "flops_per_s", *kTime = "time",
                     *kParametersPerS = "parameters_per_s", *kNone = "";

enum class Of : std::uint8_t { Any, Gpu, Cpu };  // what runs the kernels

struct Machine {
  const Values& values;
  std::string prefix;

  double number(const std::string& path) const { return values.number(prefix + path); }
  bool has(const std::string& path) const { return values.has(prefix + path) && number(path) > 0; }
  // Of two figures that are both given; 0 without one of them.
  double ratio(const char* path, const char* other) const {
    return has(path) && has(other) ? number(path) / number(other) : 0;
  }
  const Position& at(const std::string& path) const { return *values.position(prefix + path); }
  // Somebody says where the figure is from: of the figure itself, or of all that name no source, as calibration does.
  // Not what a scenario says itself, be it by a flag: that is a question.
  bool is_asked(const std::string& path) const { return at(path).distance <= (prefix.empty() ? kFlagDistance : 0); }
  bool has_own_source(const std::string& path) const {
    return values.has(prefix + path + ".source") && !is_asked(path);
  }
  bool has_source(const std::string& path) const {
    if (is_asked(path)) return false;
    if (has_own_source(path)) return true;
    const std::string source = prefix + "source";
    return values.has(source) && at(path).distance >= values.position(source)->distance;
  }
};

bool within(double ratio, double least, double most) { return ratio >= least && ratio <= most; }

// Machines of another kind, of which an expectation does not hold: by the ratio of two figures.
struct Kind {
  const char *path, *other;
  double least, most;
  bool is(const Machine& m) const { return within(m.ratio(path, other), least, most); }
  // A question may have made a machine of this kind, or of no kind.
  bool is_asked(const Machine& m) const {
    return (m.has(path) && m.is_asked(path)) || (m.has(other) && m.is_asked(other));
  }
};
// GPUs of 2016 for games do 16 bits at a 64th of fp32's rate.
constexpr Kind kHardlyDoesHalf{"compute.peak.fp16", "compute.peak.fp32", 1 / 80.0, 1 / 50.0};
// Devices that reach each other over the bus, or over one link of many that is about as fast.
constexpr Kind kPeersOverABus{"copies.peer.bandwidth", "copies.h2d.bandwidth", 0.25, 1.18};

// `path` is from `least` to `most` times `other` (null: times 1), where both are given, `unless` is not, and the
// machine is not of the kind `but_for`.
struct Expectation {
  const char *path, *unit, *other, *other_unit;
  double least, most;
  const char* why;
  Of of = Of::Gpu;
  const char* unless = nullptr;
  double measured_slack = 1;  // where calibration measured one of both, which varies with the machine's load
  const Kind* but_for = nullptr;
};
// An event was seen after 2.5 us on one machine, after 62 us on another of its kind.
constexpr double kLoose = 4, kSomewhat = 1.5;

constexpr double kUs = 1e3, kKiB = 1024;  // in base units
constexpr const char *kDeviceWhy = "a device reads all of its memory in 25 to 100 ms",
                     *kHalfPeakWhy = "a GPU does 25 to 420 flops in 16 bits a byte of its memory's bandwidth",
                     *kPeakWhy = "a GPU does 10 to 110 flops in fp32 a byte of its memory's bandwidth",
                     *kTensorWhy = "tensor cores do 16 bits at 2 to 31 times fp32's rate",
                     *kSameUnitsWhy = "the same units do both 16-bit types",
                     *kCoreDramWhy = "a core has 2.6 to 16 GB/s of its host's DRAM",
                     *kCoreCapacityWhy = "a host has 1 to 34 GB of DRAM a core",
                     *kDramWhy = "a host reads all of its DRAM in 0.2 to 6 s",
                     *kBesideDeviceWhy = "a host has at least two thirds as much DRAM as its GPU has memory",
                     *kCorePeakWhy = "a core does 15 to 175 GFLOPS in fp32",
                     *kCoreMostWhy = "a core does at most two products of 512 bits at once, at 5.7 GHz",
                     *kHostBalanceWhy = "a host does 4 to 46 flops a byte of its DRAM's bandwidth",
                     *kUpdateWhy =
                         "an update takes at least 25 bytes a parameter of the DRAM's bandwidth, and at most 320",
                     *kUpdateBusWhy = "one DRAM feeds the CPU's updates and the copies to the device",
                     *kDirectionsWhy = "a bus is about as fast both ways",
                     *kLatencyWhy = "copies begin alike both ways",
                     *kSharedWhy = "two directions reach at most twice as much as one",
                     *kSwitchWhy = "devices of a host share 1 to 6 buses",
                     *kPeerWhy = "links between devices give 7 to 17% of their memory's bandwidth",
                     *kCollectiveWhy = "collectives go over the links between devices",
                     *kMeshWhy = "collectives go over the links between devices, up to seven of them, at 90% at most",
                     *kBusCollectiveWhy = "without links between devices, collectives go over the bus",
                     *kDiskWhy = "a disk reads at half to twice the rate that it writes",
                     *kDiskLatencyWhy = "a disk's reads and writes begin after 12 to 100 us",
                     *kLaunchWhy = "a kernel on a GPU is launched in 2 to 6 us",
                     *kOpWhy = "an op takes one to four times as long as a launch",
                     *kDispatchWhy = "a host launches a kernel in about the time that the GPU needs to begin it",
                     *kTeamWhy = "a team of threads starts in 3 to 20 us",
                     *kEventWhy = "an event is seen in 3.5 to 25 us", *kWakeWhy = "a thread wakes in 2 to 11 us",
                     *kLoaderWhy = "a core fills buffers at 4 to 10 GB/s",
                     *kSmallWhy = "copies of up to 4 KiB cost no more than their latency",
                     *kPeerLatencyWhy = "a copy between devices begins after 5 to 10 us",
                     *kStepWhy = "a collective's step takes 5 to 30 us",
                     *kStandInWhy = "a CPU that stands in for a device is the host's";
// What machines have that are shipped here or that makers specify (tests/core/real_machines_test.cpp), with room of a
// few tenths on both sides.
constexpr Expectation kExpectations[] = {
    {"tiers.device.capacity", kBytes, "tiers.device.bandwidth", kBytesPerS, 0.0135, 0.18, kDeviceWhy},
    {"compute.peak.fp16", kFlopsPerS, "tiers.device.bandwidth", kBytesPerS, 22, 480, kHalfPeakWhy, Of::Gpu, nullptr, 1,
     &kHardlyDoesHalf},
    {"compute.peak.fp32", kFlopsPerS, "tiers.device.bandwidth", kBytesPerS, 8, 125, kPeakWhy},
    {"compute.peak.fp16", kFlopsPerS, "compute.peak.fp32", kFlopsPerS, 1.7, 36, kTensorWhy, Of::Gpu, nullptr, 1,
     &kHardlyDoesHalf},
    {"compute.peak.bf16", kFlopsPerS, "compute.peak.fp16", kFlopsPerS, 0.3, 3, kSameUnitsWhy},
    {"tiers.host_pinned.bandwidth", kBytesPerS, "cpu.cores", kNone, 2.1e9, 19.5e9, kCoreDramWhy},
    {"tiers.host_pinned.capacity", kBytes, "cpu.cores", kNone, 1.05e9, 36e9, kCoreCapacityWhy},
    {"tiers.host_pinned.capacity", kBytes, "tiers.host_pinned.bandwidth", kBytesPerS, 0.16, 6.7, kDramWhy},
    {"tiers.host_pinned.capacity", kBytes, "tiers.device.capacity", kBytes, 0.55, 60, kBesideDeviceWhy},
    {"cpu.peak", kFlopsPerS, "cpu.cores", kNone, 1e9, 370e9, kCoreMostWhy, Of::Any},
    {"cpu.peak", kFlopsPerS, "cpu.cores", kNone, 15e9, 370e9, kCorePeakWhy, Of::Any, nullptr, kSomewhat},
    {"cpu.peak", kFlopsPerS, "tiers.host_pinned.bandwidth", kBytesPerS, 4.4, 52, kHostBalanceWhy},
    {"cpu.optimizer.rate", kParametersPerS, "tiers.host_pinned.bandwidth", kBytesPerS, 1.0 / 320, 1.0 / 25, kUpdateWhy},
    {"cpu.optimizer.rate", kParametersPerS, "copies.h2d.bandwidth", kBytesPerS, 0.026, 0.4, kUpdateBusWhy, Of::Gpu,
     nullptr, kSomewhat},
    {"copies.d2h.bandwidth", kBytesPerS, "copies.h2d.bandwidth", kBytesPerS, 0.3, 2.5, kDirectionsWhy, Of::Any},
    {"copies.d2h.latency", kTime, "copies.h2d.latency", kTime, 0.35, 3, kLatencyWhy, Of::Any, nullptr, kSomewhat},
    {"copies.shared_bandwidth", kBytesPerS, "copies.h2d.bandwidth", kBytesPerS, 0.95, 2.2, kSharedWhy, Of::Any},
    {"copies.host_bandwidth", kBytesPerS, "copies.h2d.bandwidth", kBytesPerS, 0.95, 30, kSwitchWhy},
    {"copies.peer.bandwidth", kBytesPerS, "tiers.device.bandwidth", kBytesPerS, 0.03, 0.5, kPeerWhy, Of::Gpu, nullptr,
     1, &kPeersOverABus},
    {"copies.peer.latency", kTime, nullptr, kNone, 2 * kUs, 35 * kUs, kPeerLatencyWhy},
    {"collective.bandwidth", kBytesPerS, "copies.peer.bandwidth", kBytesPerS, 0.3, 2.5, kCollectiveWhy, Of::Gpu,
     nullptr, 1, &kPeersOverABus},
    {"collective.bandwidth", kBytesPerS, "copies.peer.bandwidth", kBytesPerS, 0.3, 6.3, kMeshWhy},
    {"collective.bandwidth", kBytesPerS, "copies.h2d.bandwidth", kBytesPerS, 0.3, 2.5, kBusCollectiveWhy, Of::Gpu,
     "copies.peer.bandwidth"},
    {"collective.latency", kTime, nullptr, kNone, 3 * kUs, 100 * kUs, kStepWhy},
    {"copies.disk_read.bandwidth", kBytesPerS, "copies.disk_write.bandwidth", kBytesPerS, 0.28, 4.2, kDiskWhy, Of::Any,
     nullptr, kLoose},
    {"copies.disk_read.latency", kTime, "copies.disk_write.latency", kTime, 0.35, 5.5, kDiskLatencyWhy, Of::Any,
     nullptr, kLoose},
    {"compute.launch", kTime, nullptr, kNone, 0.9 * kUs, 15 * kUs, kLaunchWhy, Of::Gpu, nullptr, kSomewhat},
    {"compute.op", kTime, "compute.launch", kTime, 0.55, 7.5, kOpWhy, Of::Gpu, nullptr, kSomewhat},
    {"compute.op", kTime, "cpu.op", kTime, 0.2, 7.5, kTeamWhy, Of::Cpu, nullptr, kSomewhat},
    {"host.dispatch", kTime, "compute.launch", kTime, 0.172, 1.65, kDispatchWhy, Of::Any, nullptr, kLoose},
    {"cpu.op", kTime, nullptr, kNone, 2.6 * kUs, 27 * kUs, kTeamWhy, Of::Any, nullptr, kLoose},
    {"host.event", kTime, nullptr, kNone, 3.3 * kUs, 27 * kUs, kEventWhy, Of::Any, nullptr, kLoose},
    {"host.wake", kTime, nullptr, kNone, 1.4 * kUs, 18 * kUs, kWakeWhy, Of::Any, nullptr, kLoose},
    {"loader.bandwidth", kBytesPerS, nullptr, kNone, 1.4e9, 31e9, kLoaderWhy, Of::Gpu, nullptr, kSomewhat},
    {"copies.small_copy", kBytes, nullptr, kNone, kKiB, 16 * kKiB, kSmallWhy, Of::Any},
    {"tiers.device.bandwidth", kBytesPerS, "tiers.host_pinned.bandwidth", kBytesPerS, 0.15, 10.5, kStandInWhy, Of::Cpu},
    {"tiers.device.capacity", kBytes, "tiers.host_pinned.capacity", kBytes, 0.06, 3.9, kStandInWhy, Of::Cpu},
    {"compute.peak.fp32", kFlopsPerS, "cpu.peak", kFlopsPerS, 0.15, 10.5, kStandInWhy, Of::Cpu},
};
static_assert(std::all_of(std::begin(kExpectations), std::end(kExpectations),
                          [](const Expectation& e) { return 0 < e.least && e.least < e.most; }));

// GPUs do fp64 at fp32's rate, half, a 32nd or a 64th of it, those without tensor cores at a 4th or a 16th, too: no
// figure in between is one.
constexpr double kDoubleRates[] = {1, 1.0 / 2, 1.0 / 32, 1.0 / 64}, kOtherDoubleRates[] = {1.0 / 4, 1.0 / 16},
                 kDoubleSlack = 1.4, kMostWithoutTensorCores = 2.5, kMostOfOthersAByte = 4.5;

constexpr const char* kNoSource = ", or no `source` for a machine that does not exist";

struct Contradiction {
  std::string path, problem, allowed;
  bool binds;  // all figures of it have a source
};

Contradiction contradiction(const Machine& m, const Expectation& e, double scale, double slack) {
  const double value = m.number(e.path);
  std::string beside;
  if (e.other != nullptr) {
    const double other = m.number(e.other);
    beside = std::string(" beside ") + e.other + " of " + shown_figure(other, e.other_unit) +
             elsewhere(m.at(e.other), m.at(e.path));
  }
  return {e.path, shown_figure(value, e.unit) + " is not plausible" + beside + ": " + e.why,
          "from " + shown_figure(e.least / slack * scale, e.unit) + " to " +
              shown_figure(e.most * slack * scale, e.unit) + kNoSource,
          m.has_source(e.path) && (e.other == nullptr || m.has_source(e.other)) &&
              (e.but_for == nullptr || !e.but_for->is_asked(m))};
}

void look_at_double(const Machine& m, std::vector<Contradiction>& out) {
  const char *path = "compute.peak.fp64", *other = "compute.peak.fp32";
  if (!m.has(path) || !m.has(other)) return;
  const double rate = m.number(path) / m.number(other);
  const auto is = [&](double known) { return within(rate, known / kDoubleSlack, known * kDoubleSlack); };
  if (std::any_of(std::begin(kDoubleRates), std::end(kDoubleRates), is)) return;
  if (m.ratio("compute.peak.fp16", other) <= kMostWithoutTensorCores &&
      m.ratio(path, "tiers.device.bandwidth") <= kMostOfOthersAByte &&
      std::any_of(std::begin(kOtherDoubleRates), std::end(kOtherDoubleRates), is))
    return;
  out.push_back({path,
                 shown_figure(m.number(path), kFlopsPerS) + " is not plausible beside compute.peak.fp32 of " +
                     shown_figure(m.number(other), kFlopsPerS) + elsewhere(m.at(other), m.at(path)) +
                     ": GPUs do fp64 at the rate of fp32, a half, a 32nd or a 64th of it",
                 std::string("one of these") + kNoSource, m.has_source(path) && m.has_source(other)});
}

std::vector<Contradiction> contradictions(const Machine& m) {
  std::vector<Contradiction> out;
  const bool gpu = m.values.text(m.prefix + "compute.processor") == "gpu";
  for (const Expectation& e : kExpectations) {
    if ((e.of == Of::Gpu && !gpu) || (e.of == Of::Cpu && gpu) || !m.has(e.path)) continue;
    if ((e.other != nullptr && !m.has(e.other)) || (e.unless != nullptr && m.has(e.unless))) continue;
    if (e.but_for != nullptr && e.but_for->is(m)) continue;
    const double scale = e.other == nullptr ? 1 : m.number(e.other), value = m.number(e.path);
    CHECK(scale > 0 && value > 0, e.path, value, scale);
    const bool measured = !m.has_own_source(e.path) || (e.other != nullptr && !m.has_own_source(e.other));
    const double slack = measured ? e.measured_slack : 1;
    if (value < e.least / slack * scale || value > e.most * slack * scale)
      out.push_back(contradiction(m, e, scale, slack));
  }
  if (gpu) look_at_double(m, out);
  return out;
}

}  // namespace

void check_consistent(const Values& values, const std::string& prefix, Findings& findings) {
  const Machine machine{values, prefix};
  for (const Contradiction& c : contradictions(machine))
    if (c.binds && findings.are_known({prefix + c.path}))
      findings.add(Finding(machine.at(c.path), prefix + c.path, c.problem, c.allowed));
}

std::vector<std::string> odd_figures(const Values& values, const std::string& prefix) {
  std::vector<std::string> out;
  const Machine machine{values, prefix};
  for (const Contradiction& c : contradictions(machine)) {
    const int distance = machine.at(c.path).distance;
    if (!c.binds && distance == kFlagDistance) out.push_back(prefix + c.path + ": " + c.problem);
  }
  return out;
}

}  // namespace tandem
