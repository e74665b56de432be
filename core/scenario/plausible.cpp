// What no machine does, nor will soon: figures that are wrong by a unit, or measured wrongly. The ranges leave room for
// machines that do not exist yet, a hundred times as fast as those of today where nothing bounds them sooner.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/scenario/build.hpp"
#include "core/yaml/schema.hpp"

namespace tandem {
namespace {

// Families of units of the schema; "" for a number without one.
constexpr const char *kBytesPerS = "bytes_per_s", *kFlopsPerS = "flops_per_s", *kTime = "time",
                     *kParametersPerS = "parameters_per_s", *kBytes = "bytes", *kNone = "";

// A key on its own, in base units. ".*" stands for each item of a list.
struct Range {
  const char* path;
  const char* unit;
  double least, most;
  const char* why;
};
constexpr const char *kPeakWhy = "a device of today has up to 20 PFLOPS, in 4 bits",
                     *kDelayWhy = "no machine lets a command wait for so long",
                     *kDramWhy = "a DRAM channel gives up to 70 GB/s, and no host has 100 of them",
                     *kLinkWhy = "a device's links give up to 2 TB/s together",
                     *kBusWhy = "one lane of PCIe 1 gives 250 MB/s, all lanes to a device less than its memory",
                     *kDiskWhy = "a drive gives up to 15 GB/s, and no host has 60 of them",
                     *kShareWhy = "what is far above a peak says that the peak is wrong";
constexpr double kMostPeak = 100e15, kMostDelayNs = 1e9, kMostDram = 10e12, kMostLink = 10e12, kLeastBus = 100e6,
                 kMostDisk = 1e12;
// What small products gain where the launch is taken off their time is less than this.
constexpr double kMostShareOfPeak = 2;
constexpr Range kRanges[] = {
    {"tiers.device.bandwidth", kBytesPerS, 0, 100e12, "a stack of HBM gives up to 2 TB/s, and no package has 50"},
    {"tiers.host_pinned.bandwidth", kBytesPerS, 0, kMostDram, kDramWhy},
    {"tiers.host_pageable.bandwidth", kBytesPerS, 0, kMostDram, kDramWhy},
    {"compute.peak.fp32", kFlopsPerS, 0, kMostPeak, kPeakWhy},
    {"compute.peak.fp16", kFlopsPerS, 0, kMostPeak, kPeakWhy},
    {"compute.peak.bf16", kFlopsPerS, 0, kMostPeak, kPeakWhy},
    {"compute.peak.fp64", kFlopsPerS, 0, kMostPeak, kPeakWhy},
    {"compute.efficiency.gemm.*.1", kNone, 0, kMostShareOfPeak, kShareWhy},
    {"compute.efficiency.attention.*.1", kNone, 0, kMostShareOfPeak, kShareWhy},
    {"compute.launch", kTime, 0, kMostDelayNs, kDelayWhy},
    {"compute.op", kTime, 0, kMostDelayNs, kDelayWhy},
    {"compute.bodies.*.op", kTime, 0, kMostDelayNs, kDelayWhy},
    {"compute.bodies.*.thousand_rows", kTime, 0, kMostDelayNs, kDelayWhy},
    {"compute.bodies.*.dispatch", kTime, 0, kMostDelayNs, kDelayWhy},
    {"compute.bodies.*.repeat", kTime, 0, kMostDelayNs, kDelayWhy},
    {"compute.bodies.*.record", kTime, 0, kMostDelayNs, kDelayWhy},
    {"compute.bodies.*.least", kTime, 0, kMostDelayNs, kDelayWhy},
    {"compute.bodies.*.gaps", kTime, 0, kMostDelayNs, kDelayWhy},
    {"compute.bodies.*.late", kTime, 0, kMostDelayNs, kDelayWhy},
    {"copies.h2d.bandwidth", kBytesPerS, kLeastBus, kMostLink, kBusWhy},
    {"copies.d2h.bandwidth", kBytesPerS, kLeastBus, kMostLink, kBusWhy},
    {"copies.pageable_h2d.bandwidth", kBytesPerS, kLeastBus, kMostLink, kBusWhy},
    {"copies.pageable_d2h.bandwidth", kBytesPerS, kLeastBus, kMostLink, kBusWhy},
    {"copies.pageable_h2d.latency", kTime, 0, kMostDelayNs, kDelayWhy},
    {"copies.pageable_d2h.latency", kTime, 0, kMostDelayNs, kDelayWhy},
    {"copies.peer.bandwidth", kBytesPerS, 0, kMostLink, kLinkWhy},
    {"copies.disk_read.bandwidth", kBytesPerS, 0, kMostDisk, kDiskWhy},
    {"copies.disk_write.bandwidth", kBytesPerS, 0, kMostDisk, kDiskWhy},
    {"copies.host_bandwidth", kBytesPerS, kLeastBus, kMostLink, kBusWhy},
    {"copies.h2d.latency", kTime, 0, kMostDelayNs, kDelayWhy},
    {"copies.d2h.latency", kTime, 0, kMostDelayNs, kDelayWhy},
    {"copies.peer.latency", kTime, 0, kMostDelayNs, kDelayWhy},
    {"copies.disk_read.latency", kTime, 0, kMostDelayNs, kDelayWhy},
    {"copies.disk_write.latency", kTime, 0, kMostDelayNs, kDelayWhy},
    {"cpu.peak", kFlopsPerS, 0, 1e15, "a host of today has up to 0.1 PFLOPS, in fp32"},
    {"cpu.op", kTime, 0, kMostDelayNs, kDelayWhy},
    {"host.dispatch", kTime, 0, kMostDelayNs, kDelayWhy},
    {"host.event", kTime, 0, kMostDelayNs, kDelayWhy},
    {"host.wake", kTime, 0, kMostDelayNs, kDelayWhy},
    {"loader.bandwidth", kBytesPerS, 0, kMostDram, kDramWhy},
    {"collective.bandwidth", kBytesPerS, 0, kMostLink, kLinkWhy},
    {"network.bandwidth", kBytesPerS, 0, kMostLink, kLinkWhy},
    {"network.latency", kTime, 0, kMostDelayNs, kDelayWhy},
    {"collective.latency", kTime, 0, kMostDelayNs, kDelayWhy},
};

// `factor` times a key is at most another key, where both are given.
struct Relation {
  const char* path;
  const char* unit;
  double factor;
  const char* other;
  const char* other_unit;
  const char* why;
  bool gpu_only = false;
};
constexpr const char *kCopyWhy = "a copy reads the one memory and writes the other",
                     *kUpdateWhy = "an update reads or writes at least 20 bytes a parameter",
                     *kBalanceWhy = "no processor does more than 10,000 flops a byte of its memory's bandwidth",
                     *kGpuWhy = "a GPU does more than one fp32 flop a byte of its memory's bandwidth",
                     *kHalfWhy = "no device does 16 bits at less than a 64th of fp32's rate",
                     *kDeviceWhy = "a device of today reads all of its memory in a tenth of a second",
                     *kHostWhy = "a host of today reads all of its memory in 6 seconds";
// So many times as long as on any machine of today: what-ifs of more memory are many.
constexpr double kPerDeviceSecond = 1.0 / 20, kPerHostSecond = 1.0 / 200;
constexpr double kLeastBytesOfUpdate = 20, kBytesPerFlop = 1e-4, kLeastHalf = 1.0 / 64;
constexpr Relation kRelations[] = {
    {"copies.h2d.bandwidth", kBytesPerS, 1, "tiers.host_pinned.bandwidth", kBytesPerS, kCopyWhy},
    {"copies.h2d.bandwidth", kBytesPerS, 1, "tiers.device.bandwidth", kBytesPerS, kCopyWhy},
    {"copies.d2h.bandwidth", kBytesPerS, 1, "tiers.host_pinned.bandwidth", kBytesPerS, kCopyWhy},
    {"copies.d2h.bandwidth", kBytesPerS, 1, "tiers.device.bandwidth", kBytesPerS, kCopyWhy},
    {"copies.peer.bandwidth", kBytesPerS, 1, "tiers.device.bandwidth", kBytesPerS, kCopyWhy},
    {"cpu.optimizer.rate", kParametersPerS, kLeastBytesOfUpdate, "tiers.host_pinned.bandwidth", kBytesPerS, kUpdateWhy},
    {"compute.peak.fp32", kFlopsPerS, kBytesPerFlop, "tiers.device.bandwidth", kBytesPerS, kBalanceWhy},
    {"compute.peak.fp16", kFlopsPerS, kBytesPerFlop, "tiers.device.bandwidth", kBytesPerS, kBalanceWhy},
    {"compute.peak.bf16", kFlopsPerS, kBytesPerFlop, "tiers.device.bandwidth", kBytesPerS, kBalanceWhy},
    {"tiers.device.bandwidth", kBytesPerS, 1, "compute.peak.fp32", kFlopsPerS, kGpuWhy, true},
    {"compute.peak.fp32", kFlopsPerS, kLeastHalf, "compute.peak.fp16", kFlopsPerS, kHalfWhy},
    {"compute.peak.fp32", kFlopsPerS, kLeastHalf, "compute.peak.bf16", kFlopsPerS, kHalfWhy},
    {"tiers.device.capacity", kBytes, kPerDeviceSecond, "tiers.device.bandwidth", kBytesPerS, kDeviceWhy, true},
    {"tiers.host_pinned.capacity", kBytes, kPerHostSecond, "tiers.host_pinned.bandwidth", kBytesPerS, kHostWhy, true},
};

static_assert(std::all_of(std::begin(kRanges), std::end(kRanges), [](const Range& r) { return r.least < r.most; }));
static_assert(std::all_of(std::begin(kRelations), std::end(kRelations),
                          [](const Relation& r) { return r.factor > 0; }));

}  // namespace

std::string shown_figure(double value, const std::string& family) {
  std::pair<std::string, double> unit = {"", 1};
  if (!family.empty())
    for (const auto& [name, factor] : unit_family(family).units) {
      const auto size = static_cast<double>(factor);
      if (name.find("iB") == std::string::npos && (unit.first.empty() || (size <= value && size > unit.second)))
        unit = {name, size};
    }
  CHECK(unit.second > 0, family, unit.first);
  char text[64];
  std::snprintf(text, sizeof text, "%.4g%s", value / unit.second, unit.first.c_str());
  return text;
}

namespace {

void check(const Values& values, const std::string& path, const Range& range, Findings& findings) {
  if (!values.has(path)) return;
  const double value = values.number(path);
  if (value >= range.least && value <= range.most) return;
  findings.add(Finding(*values.position(path), path,
                       shown_figure(value, range.unit) + " is not plausible: " + range.why,
                       (range.least > 0 ? "from " + shown_figure(range.least, range.unit) + " to " : "at most ") +
                           shown_figure(range.most, range.unit)));
}

// Whether a relation is broken, and how far: 1 is its bound.
double excess(const Values& values, const std::string& prefix, const Relation& r, const Findings& findings) {
  const std::string path = prefix + r.path, other = prefix + r.other;
  if (!values.has(path) || !values.has(other) || !findings.are_known({path, other})) return 0;
  return values.number(path) * r.factor / values.number(other);
}

// The one of both that stands nearer to the person is refused: who derives from a profile corrects what is his own.
const std::string& at_fault(const Values& values, const std::string& path, const std::string& other) {
  return values.position(path)->distance <= values.position(other)->distance ? path : other;
}

void refuse_relation(const Values& values, const std::string& prefix, const Relation& r, Findings& findings) {
  const std::string path = prefix + r.path, other = prefix + r.other;
  const double value = values.number(path), bound = values.number(other);
  const Position &at = *values.position(path), &other_at = *values.position(other);
  const std::string value_text = shown_figure(value, r.unit), bound_text = shown_figure(bound, r.other_unit);
  if (at_fault(values, path, other) == path) {
    findings.add(Finding(at, path,
                         value_text + " is not plausible beside " + r.other + " of " + bound_text +
                             elsewhere(other_at, at) + ": " + r.why,
                         "at most " + shown_figure(bound / r.factor, r.unit)));
  } else {
    findings.add(Finding(other_at, other,
                         bound_text + " is not plausible beside " + r.path + " of " + value_text +
                             elsewhere(at, other_at) + ": " + r.why,
                         "at least " + shown_figure(value * r.factor, r.other_unit)));
  }
}

// One value may contradict several that it does not come with: the one that asks most of it is told, so that what is
// allowed then holds beside all of them.
void check_relation(const Values& values, const std::string& prefix, const Relation& r, bool is_gpu,
                    Findings& findings) {
  double most = excess(values, prefix, r, findings);
  if (most <= 1 || (r.gpu_only && !is_gpu)) return;
  const Relation* told = &r;
  const std::string other = prefix + r.other;
  if (at_fault(values, prefix + r.path, other) == other)
    for (const Relation& rival : kRelations) {
      if (rival.other != std::string_view(r.other) || (rival.gpu_only && !is_gpu)) continue;
      const double far = excess(values, prefix, rival, findings);
      if (far <= most || at_fault(values, prefix + rival.path, other) != other) continue;
      told = &rival;
      most = far;
    }
  refuse_relation(values, prefix, *told, findings);
}

// What both directions reach together is no less than one of them alone.
void check_shared(const Values& values, const std::string& prefix, const std::string& lane, Findings& findings) {
  const std::string path = prefix + "copies.shared_bandwidth", other = prefix + "copies." + lane + ".bandwidth";
  if (!values.has(path) || !values.has(other) || !findings.are_known({path, other})) return;
  const double shared = values.number(path), alone = values.number(other);
  if (shared >= alone) return;
  const Position &at = *values.position(path), &other_at = *values.position(other);
  const std::string shared_text = shown_figure(shared, kBytesPerS), alone_text = shown_figure(alone, kBytesPerS);
  if (at.distance <= other_at.distance) {
    const std::string where = elsewhere(other_at, at);
    findings.add(Finding(at, path,
                         (where.empty() ? "" : shared_text + " ") + "is less than " + lane + " reaches alone" +
                             (where.empty() ? "" : ", " + alone_text + where),
                         "at least the larger of h2d and d2h"));
  } else {
    findings.add(Finding(other_at, other,
                         alone_text + " is more than copies.shared_bandwidth of " + shared_text +
                             elsewhere(at, other_at) + ", which both directions share",
                         "at most " + shared_text));
  }
}

// The paths that a pattern with at most one ".*" stands for.
std::vector<std::string> paths_of(const Values& values, const std::string& pattern) {
  const std::size_t star = pattern.find(".*");
  if (star == std::string::npos) return {pattern};
  const std::string list = pattern.substr(0, star), rest = pattern.substr(star + 2);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < values.count(list); ++i) out.push_back(list + "." + std::to_string(i) + rest);
  return out;
}

}  // namespace

void check_plausible(const Values& values, const std::string& prefix, Findings& findings) {
  for (const Range& range : kRanges)
    for (const std::string& path : paths_of(values, prefix + range.path)) check(values, path, range, findings);
  const bool is_gpu = values.text(prefix + "compute.processor") == "gpu";
  // A figure out of its range, or refused already, is beside none of the others: the message about it says enough.
  for (const Relation& r : kRelations) check_relation(values, prefix, r, is_gpu, findings);
  for (const char* lane : {"h2d", "d2h"}) check_shared(values, prefix, lane, findings);
}

}  // namespace tandem
