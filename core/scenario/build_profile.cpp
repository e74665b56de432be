#include <memory>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/engine_names.hpp"
#include "core/base/input_stages.hpp"
#include "core/scenario/build.hpp"

namespace tandem {
namespace {

Curve curve(const Values& values, const std::string& path) {
  Curve out;
  for (std::size_t i = 0; i < values.count(path); ++i) {
    const std::string point = path + "." + std::to_string(i);
    out.x.push_back(values.number(point + ".0"));
    out.y.push_back(values.number(point + ".1"));
  }
  return out;
}

CopyRate copy_rate(const Values& values, const std::string& path) {
  return {values.number(path + ".bandwidth"), values.integer(path + ".latency"), curve(values, path + ".efficiency")};
}

Engine engine_named(const std::string& name) {
  const auto engine = find_engine(name);
  CHECK(engine, name);  // the schema lists the names
  return *engine;
}

void build_tiers(const Values& values, const std::string& path, HardwareProfile& out) {
  for (int i = 0; i < kTierCount; ++i) {
    const std::string tier = path + std::string(name_of(static_cast<Tier>(i)));
    out.tiers[static_cast<std::size_t>(i)] = {values.integer(tier + ".capacity"), values.number(tier + ".bandwidth")};
  }
  out.one_pool = values.flag(path + "one_pool");
  if (out.one_pool)
    out.tiers[static_cast<std::size_t>(Tier::HostPinned)] = {
        0, out.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s};
}

constexpr std::pair<KernelKind, const char*> kKinds[] = {{KernelKind::Gemm, "gemm"},
                                                         {KernelKind::Attention, "attention"},
                                                         {KernelKind::Memory, "memory"},
                                                         {KernelKind::Optimizer, "optimizer"}};

static_assert(std::size(kKinds) == static_cast<std::size_t>(KernelKind::Fixed), "all kinds but Fixed have a factor");

void build_bodies(const Values& values, const std::string& path, HardwareProfile& out) {
  for (std::size_t i = 0; i < values.count(path); ++i) {
    const std::string at = path + "." + std::to_string(i);
    BodyCost& cost = out.bodies[values.text(at + ".body")];
    cost.op_ns = values.integer(at + ".op");
    cost.row_ns = static_cast<double>(values.integer(at + ".thousand_rows")) / 1000;
    cost.dispatch_ns = values.integer(at + ".dispatch");
    cost.repeat_ns = values.integer(at + ".repeat");
    cost.record_ns = values.integer(at + ".record");
    cost.gaps_ns = values.integer(at + ".gaps");
    cost.late_ns = values.integer(at + ".late");
    cost.least_ns = values.integer(at + ".least");
    for (const auto& [kind, key] : kKinds)
      if (const std::string factor = at + "." + key; values.has(factor)) cost.factor[kind] = values.number(factor);
  }
}

PowerLimit power_limit(const Values& values, const std::string& path) {
  return {values.number(path + "gemm"), values.number(path + "attention"), values.number(path + "memory"),
          values.number(path + "idle"), values.integer(path + "window")};
}

constexpr DType kPrecisions[] = {DType::F32, DType::F16, DType::BF16, DType::F64};

void build_compute(const Values& values, const std::string& path, HardwareProfile& out) {
  out.gpu = values.text(path + "processor") == "gpu";
  for (const DType type : kPrecisions)
    if (const std::string key = path + "peak." + std::string(name_of(type)); values.has(key))
      out.peak_flops[type] = values.number(key);
  for (const auto& [kind, key] : kKinds)
    if (const std::string at = path + "efficiency." + key; values.count(at) > 0)
      out.efficiency[kind] = curve(values, at);
  for (const DType type : kPrecisions)
    if (const std::string key = path + "product_draw." + std::string(name_of(type)); values.has(key))
      out.product_draw[type] = values.number(key);
  for (std::size_t i = 0; i < values.count(path + "alignment"); ++i) {
    const std::string at = path + "alignment." + std::to_string(i);
    out.alignment[{type_named(values.text(at + ".precision")),
                   static_cast<std::int16_t>(values.integer(at + ".elements"))}] = {values.number(at + ".operands", 1),
                                                                                    values.number(at + ".result", 1)};
  }
  out.processors = static_cast<std::int32_t>(values.integer(path + "processors"));
  out.power = power_limit(values, path + "power.");
  out.sustained_power = power_limit(values, path + "sustained_power.");
  out.overlap = values.number(path + "overlap", 1);
  out.launch_ns = values.integer(path + "launch");
  out.op_ns = values.integer(path + "op");
  build_bodies(values, path + "bodies", out);
}

void build_copies(const Values& values, const std::string& path, HardwareProfile& out) {
  out.h2d = copy_rate(values, path + "h2d");
  out.d2h = copy_rate(values, path + "d2h");
  out.disk_read = copy_rate(values, path + "disk_read");
  out.disk_write = copy_rate(values, path + "disk_write");
  out.peer = copy_rate(values, path + "peer");
  out.pcie_bytes_per_s = values.number(path + "shared_bandwidth");
  out.host_copy_bytes_per_s = values.number(path + "host_bandwidth");
  out.pageable_h2d = copy_rate(values, path + "pageable_h2d");
  out.pageable_d2h = copy_rate(values, path + "pageable_d2h");
  out.small_copy_bytes = values.integer(path + "small_copy");
}

// The memory of a team of CPU threads is the host's.
void build_cpu_compute(const Values& values, const std::string& path, HardwareProfile& out) {
  if (!values.has(path + "peak.fp32")) return;
  HardwareProfile team;
  build_compute(values, path, team);
  team.tiers[static_cast<std::size_t>(Tier::Device)] = out.tiers[static_cast<std::size_t>(Tier::HostPinned)];
  out.cpu_compute = std::make_shared<const HardwareProfile>(std::move(team));
}

void build_host(const Values& values, const std::string& prefix, HardwareProfile& out) {
  build_cpu_compute(values, prefix + "cpu.compute.", out);
  out.cores = static_cast<std::int32_t>(values.integer(prefix + "cpu.cores"));
  out.cpu_flops = values.number(prefix + "cpu.peak");
  out.cpu_optimizer_parameters_per_s = values.number(prefix + "cpu.optimizer.rate");
  out.cpu_optimizer_efficiency = curve(values, prefix + "cpu.optimizer.efficiency");
  out.cpu_optimizer_bytes = values.number(prefix + "cpu.optimizer.bytes");
  out.cpu_optimizer_threads = curve(values, prefix + "cpu.optimizer.threads");
  out.cpu_op_ns = values.integer(prefix + "cpu.op");
  out.devices_per_host = static_cast<std::int32_t>(values.integer(prefix + "host.devices"));
  out.dispatch_ns = values.integer(prefix + "host.dispatch");
  out.event_ns = values.integer(prefix + "host.event");
  out.wake_ns = values.integer(prefix + "host.wake");
  for (std::size_t i = 0; i < values.count(prefix + "host.lane_cores"); ++i) {
    const std::string at = prefix + "host.lane_cores." + std::to_string(i);
    out.lane_cores[engine_named(values.text(at + ".lane"))] = values.number(at + ".cores");
  }
  for (std::size_t i = 0; i < values.count(prefix + "lanes"); ++i) {
    const std::string at = prefix + "lanes." + std::to_string(i);
    out.lanes[engine_named(values.text(at + ".lane"))] = {static_cast<int>(values.integer(at + ".count", 1)),
                                                          static_cast<std::int32_t>(values.integer(at + ".cores", 0))};
  }
  for (std::size_t i = 0; i < values.count(prefix + "host.memory_weights"); ++i) {
    const std::string at = prefix + "host.memory_weights." + std::to_string(i);
    MemoryWeight& weight = out.memory_weights[engine_named(values.text(at + ".lane"))];
    weight.weight = values.number(at + ".weight");
    if (values.has(at + ".cost")) weight.cost = values.number(at + ".cost");
  }
  for (std::size_t i = 0; i < values.count(prefix + "host.lane_times"); ++i) {
    const std::string at = prefix + "host.lane_times." + std::to_string(i);
    out.lane_times[engine_named(values.text(at + ".lane"))] = values.number(at + ".factor");
  }
  out.loader_bytes_per_s = values.number(prefix + "loader.bandwidth");
  out.network_bytes_per_s = values.number(prefix + "network.bandwidth");
  out.network_latency_ns = values.integer(prefix + "network.latency");
  out.collective_bytes_per_s = values.number(prefix + "collective.bandwidth");
  out.collective_latency_ns = values.integer(prefix + "collective.latency");
  out.topology = build_topology(values, prefix);
}

// Their times are in picoseconds.
void build_input_stages(const Values& values, const std::string& path, HardwareProfile& out) {
  for (const std::string_view stage : kInputStages) {
    const std::string at = path + std::string(stage);
    if (values.has(at + ".item"))
      out.input_stages[std::string(stage)] = {values.number(at + ".item") / 1000, values.number(at + ".unit") / 1000};
  }
}

void build_uncertainty(const Values& values, const std::string& path, HardwareProfile& out) {
  for (int i = 0; i < kTimeCauseCount; ++i) {
    const auto cause = static_cast<TimeCause>(i);
    const std::string at = path + std::string(name_of(cause));
    if (values.has(at)) out.uncertainty[cause] = {values.number(at), values.text(at + ".source")};
  }
}

ProbeFigure probe_figure(const Values& values, const std::string& path) {
  return {values.number(path + ".rate"), values.number(path + ".spread")};
}

Fingerprint fingerprint(const Values& values, const std::string& path) {
  Fingerprint out;
  out.processor = values.text(path + "processor");
  out.cores = static_cast<std::int32_t>(values.integer(path + "cores"));
  out.memory_bytes = values.integer(path + "memory");
  out.device = values.text(path + "device");
  out.driver = values.text(path + "driver");
  out.busy = values.text(path + "busy");
  out.probe = {probe_figure(values, path + "probe.gemm"), probe_figure(values, path + "probe.h2d"),
               probe_figure(values, path + "probe.d2h"), probe_figure(values, path + "probe.cpu_optimizer")};
  return out;
}

}  // namespace

DType type_named(const std::string& name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  CHECK(false, "is no element type", name);
  return DType::F32;
}

HardwareProfile build_profile(const Values& values, const std::string& prefix) {
  HardwareProfile out;
  out.name = values.text(prefix + "name");
  out.source = values.text(prefix + "source");
  out.price_per_hour = values.number(prefix + "price_per_hour");
  if (!values.texts_below(prefix + "fingerprint.").empty())
    out.fingerprint = fingerprint(values, prefix + "fingerprint.");
  build_tiers(values, prefix + "tiers.", out);
  build_compute(values, prefix + "compute.", out);
  build_copies(values, prefix + "copies.", out);
  build_host(values, prefix, out);
  for (std::size_t i = 0; i < values.count(prefix + "interference"); ++i) {
    const std::string pair = prefix + "interference." + std::to_string(i);
    out.interference[{engine_named(values.text(pair + ".lane")), engine_named(values.text(pair + ".while_busy"))}] =
        values.number(pair + ".factor", 1);
  }
  for (std::size_t i = 0; i < values.count(prefix + "launches_beside"); ++i) {
    const std::string at = prefix + "launches_beside." + std::to_string(i);
    out.launches_beside[engine_named(values.text(at + ".lane"))] = {
        values.number(at + ".starts"), values.number(at + ".repeated_starts"), values.number(at + ".launch", 1)};
  }
  out.ops = build_measured_ops(values, prefix);
  build_input_stages(values, prefix + "input_stages.", out);
  out.input_threads = curve(values, prefix + "input_threads");
  build_uncertainty(values, prefix + "uncertainty.", out);
  return out;
}

}  // namespace tandem
