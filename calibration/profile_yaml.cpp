#include "calibration/profile_yaml.hpp"

#include <cmath>
#include <utility>

#include "calibration/text.hpp"

namespace tandem {
namespace {

using Text = std::string;

constexpr std::pair<KernelKind, const char*> kKinds[] = {{KernelKind::Gemm, "gemm"},
                                                         {KernelKind::Attention, "attention"},
                                                         {KernelKind::Memory, "memory"},
                                                         {KernelKind::Optimizer, "optimizer"}};

Text bytes(std::int64_t n) { return printed("%lldB", static_cast<long long>(n)); }
Text ns(std::int64_t n) { return printed("%lldns", static_cast<long long>(n)); }
Text gigabytes_per_s(double rate) { return printed("%.4gGB/s", rate / 1e9); }
Text number(double x) { return printed("%.4g", x); }
Text name(Engine engine) { return Text(name_of(engine)); }

Text curve(const Text& indent, const Curve& c, const char* unit) {
  Text out = "\n";
  for (std::size_t i = 0; i < c.x.size(); ++i) out += indent + printed("- [%.0f%s, %.4g]\n", c.x[i], unit, c.y[i]);
  return out;
}

Text tiers(const HardwareProfile& p) {
  Text out = "tiers:\n";
  for (int i = 0; i < kTierCount; ++i) {
    const TierInfo& tier = p.tiers[static_cast<std::size_t>(i)];
    if (tier.capacity_bytes == 0) continue;
    out += "  " + Text(name_of(static_cast<Tier>(i))) + ": {capacity: " + bytes(tier.capacity_bytes);
    if (tier.bytes_per_s > 0) out += ", bandwidth: " + gigabytes_per_s(tier.bytes_per_s);
    out += "}\n";
  }
  return out;
}

Text body(const Text& body_name, const BodyCost& cost) {
  Text out = "    - {body: " + body_name + ", op: " + ns(cost.op_ns);
  for (const auto& [kind, key] : kKinds)
    if (const auto found = cost.factor.find(kind); found != cost.factor.end())
      out += Text(", ") + key + ": " + number(found->second);
  if (cost.row_ns > 0) out += ", thousand_rows: " + ns(std::llround(1000 * cost.row_ns));
  if (cost.dispatch_ns > 0) out += ", dispatch: " + ns(cost.dispatch_ns);
  if (cost.late_ns > 0) out += ", late: " + ns(cost.late_ns);
  if (cost.repeat_ns > 0)
    out += ", repeat: " + ns(cost.repeat_ns) + ", record: " + ns(cost.record_ns) + ", gaps: " + ns(cost.gaps_ns);
  if (cost.least_ns > 0) out += ", least: " + ns(cost.least_ns);
  return out + "}\n";
}

Text power_limit(const char* key, const PowerLimit& p) {
  if (p.window_ns == 0) return {};
  return Text("  ") + key + ": {gemm: " + number(p.gemm) + ", attention: " + number(p.attention) +
         ", memory: " + number(p.memory) + ", idle: " + number(p.idle) + ", window: " + ns(p.window_ns) + "}\n";
}

Text alignment(const HardwareProfile& p) {
  Text out = p.alignment.empty() ? "" : "  alignment:\n";
  for (const auto& [key, cost] : p.alignment)
    out += "    - {precision: " + Text(name_of(key.first)) + printed(", elements: %d", key.second) +
           (cost.operands == 1 ? "" : ", operands: " + number(cost.operands)) +
           (cost.result == 1 ? "" : ", result: " + number(cost.result)) + "}\n";
  return out;
}

Text product_draw(const HardwareProfile& p) {
  if (p.product_draw.empty()) return {};
  Text out;
  for (const auto& [type, draw] : p.product_draw)
    out += (out.empty() ? "" : ", ") + Text(name_of(type)) + ": " + number(draw);
  return "  product_draw: {" + out + "}\n";
}

Text compute(const HardwareProfile& p) {
  Text out = "compute:\n";
  if (p.gpu) out += "  processor: gpu\n";
  if (p.processors > 0) out += printed("  processors: %d\n", p.processors);
  out += power_limit("power", p.power) + power_limit("sustained_power", p.sustained_power) + product_draw(p);
  out += "  peak:\n";
  for (const auto& [type, flops] : p.peak_flops)
    out += "    " + Text(name_of(type)) + ": " + printed("%.5gGFLOPS", flops / 1e9) + "\n";
  if (!p.efficiency.empty()) out += "  efficiency:\n";
  for (const auto& [kind, key] : kKinds) {
    const auto found = p.efficiency.find(kind);
    const bool flops = kind == KernelKind::Gemm || kind == KernelKind::Attention;
    if (found != p.efficiency.end())
      out += Text("    ") + key + ":" + curve("      ", found->second, flops ? "FLOP" : "B");
  }
  out += alignment(p);
  if (p.overlap != 1) out += "  overlap: " + number(p.overlap) + "\n";
  out += "  launch: " + ns(p.launch_ns) + "\n  op: " + ns(p.op_ns) + "\n";
  if (!p.bodies.empty()) out += "  bodies:\n";
  for (const auto& [body_name, cost] : p.bodies) out += body(body_name, cost);
  return out;
}

// By two more spaces.
Text indented(const Text& lines) {
  Text out;
  std::size_t begin = 0;
  for (std::size_t end = lines.find('\n'); end != Text::npos; end = lines.find('\n', begin = end + 1))
    out += "  " + lines.substr(begin, end + 1 - begin);
  return out;
}

Text copy(const char* key, const CopyRate& rate) {
  if (rate.bytes_per_s == 0) return "";
  Text out = Text("  ") + key + ":\n    bandwidth: " + gigabytes_per_s(rate.bytes_per_s) +
             "\n    latency: " + ns(rate.latency_ns) + "\n";
  if (!rate.efficiency.x.empty()) out += "    efficiency:" + curve("      ", rate.efficiency, "B");
  return out;
}

Text copies(const HardwareProfile& p) {
  Text out = "copies:\n" + copy("h2d", p.h2d) + copy("d2h", p.d2h) + copy("pageable_h2d", p.pageable_h2d) +
             copy("pageable_d2h", p.pageable_d2h) + copy("disk_read", p.disk_read) + copy("disk_write", p.disk_write) +
             copy("peer", p.peer);
  if (p.pcie_bytes_per_s > 0) out += "  shared_bandwidth: " + gigabytes_per_s(p.pcie_bytes_per_s) + "\n";
  if (p.host_copy_bytes_per_s > 0) out += "  host_bandwidth: " + gigabytes_per_s(p.host_copy_bytes_per_s) + "\n";
  return out + "  small_copy: " + bytes(p.small_copy_bytes) + "\n";
}

Text cpu(const HardwareProfile& p) {
  Text out = printed("cpu:\n  cores: %d\n  peak: %.5gGFLOPS\n  optimizer:\n    rate: %.5gMparameters/s\n", p.cores,
                     p.cpu_flops / 1e9, p.cpu_optimizer_parameters_per_s / 1e6);
  if (p.cpu_optimizer_bytes > 0) out += printed("    bytes: %.4gB\n", p.cpu_optimizer_bytes);
  if (!p.cpu_optimizer_efficiency.x.empty())
    out += "    efficiency:" + curve("      ", p.cpu_optimizer_efficiency, "parameters");
  if (!p.cpu_optimizer_threads.x.empty()) out += "    threads:" + curve("      ", p.cpu_optimizer_threads, "");
  if (p.cpu_compute) out += indented(compute(*p.cpu_compute));
  return out + "  op: " + ns(p.cpu_op_ns) + "\n";
}

Text host(const HardwareProfile& p) {
  Text out = "host:\n" + (p.devices_per_host > 0 ? printed("  devices: %d\n", p.devices_per_host) : Text()) +
             "  dispatch: " + ns(p.dispatch_ns) + "\n  event: " + ns(p.event_ns) + "\n  wake: " + ns(p.wake_ns) + "\n";
  if (!p.lane_cores.empty()) out += "  lane_cores:\n";
  for (const auto& [lane, cores] : p.lane_cores)
    out += "    - {lane: " + name(lane) + ", cores: " + number(cores) + "}\n";
  if (!p.lane_times.empty()) out += "  lane_times:\n";
  for (const auto& [lane, factor] : p.lane_times)
    out += "    - {lane: " + name(lane) + ", factor: " + number(factor) + "}\n";
  if (!p.memory_weights.empty()) out += "  memory_weights:\n";
  for (const auto& [lane, weight] : p.memory_weights)
    out += "    - {lane: " + name(lane) + ", weight: " + number(weight.weight) +
           (weight.cost == 1 ? "" : ", cost: " + number(weight.cost)) + "}\n";
  return out;
}

Text input_stages(const HardwareProfile& p) {
  if (p.input_stages.empty()) return "";
  Text out = "input_stages:\n";
  for (const auto& [stage, rate] : p.input_stages)
    out += printed("  %s: {item: %.0fps, unit: %.0fps}\n", stage.c_str(), 1000 * rate.item_ns, 1000 * rate.unit_ns);
  return out;
}

Text interference(const HardwareProfile& p) {
  if (p.interference.empty()) return "";
  Text out = "interference:\n";
  for (const auto& [pair, factor] : p.interference)
    out +=
        "  - {lane: " + name(pair.first) + ", while_busy: " + name(pair.second) + ", factor: " + number(factor) + "}\n";
  return out;
}

Text launches_beside(const HardwareProfile& p) {
  if (p.launches_beside.empty()) return "";
  Text out = "launches_beside:\n";
  for (const auto& [lane, slow] : p.launches_beside)
    out += "  - {lane: " + name(lane) + ", starts: " + number(slow.starts) +
           ", repeated_starts: " + number(slow.repeated_starts) + ", launch: " + number(slow.launch) + "}\n";
  return out;
}

Text uncertainty(const HardwareProfile& p) {
  if (p.uncertainty.empty()) return "";
  Text out = "uncertainty:\n";
  for (const auto& [cause, u] : p.uncertainty)
    out += "  " + Text(name_of(cause)) + ": {value: " + number(u.relative) + ", source: \"" + u.source + "\"}\n";
  return out;
}

// What a system says of itself may hold anything.
Text quoted(const Text& text) {
  Text out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

Text probed(const char* key, const ProbeFigure& figure, const char* unit) {
  if (figure.per_s == 0) return "";
  return printed("    %s: {rate: %.5g%s, spread: %.3g}\n", key, figure.per_s / 1e6, unit, figure.spread);
}

Text fingerprint(const Fingerprint& f) {
  Text out = "fingerprint:\n  processor: " + quoted(f.processor) + "\n";
  if (f.cores > 0) out += printed("  cores: %d\n", f.cores);
  if (f.memory_bytes > 0) out += "  memory: " + bytes(f.memory_bytes) + "\n";
  for (const auto& [key, text] :
       {std::pair("device", &f.device), std::pair("driver", &f.driver), std::pair("busy", &f.busy)})
    if (!text->empty()) out += Text("  ") + key + ": " + quoted(*text) + "\n";
  const Text figures = probed("gemm", f.probe.gemm, "MFLOPS") + probed("h2d", f.probe.h2d, "MB/s") +
                       probed("d2h", f.probe.d2h, "MB/s") +
                       probed("cpu_optimizer", f.probe.cpu_optimizer, "Mparameters/s");
  return figures.empty() ? out : out + "  probe:\n" + figures;
}

}  // namespace

std::string profile_yaml(const HardwareProfile& p, const std::string& description, const std::string& source) {
  Text out = "format: 1\nname: " + p.name + "\ndescription: \"" + description + "\"\nsource: \"" + source + "\"\n";
  out += tiers(p) + compute(p) + copies(p) + cpu(p) + host(p);
  out += "loader: {bandwidth: " + gigabytes_per_s(p.loader_bytes_per_s) + "}\n";
  if (p.collective_bytes_per_s > 0)
    out += "collective: {bandwidth: " + gigabytes_per_s(p.collective_bytes_per_s) +
           ", latency: " + ns(p.collective_latency_ns) + "}\n";
  out += input_stages(p);
  if (!p.input_threads.x.empty()) out += "input_threads:" + curve("  ", p.input_threads, "");
  if (p.fingerprint) out += fingerprint(*p.fingerprint);
  return out + interference(p) + launches_beside(p) + uncertainty(p);
}

}  // namespace tandem
