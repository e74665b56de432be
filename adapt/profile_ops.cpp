#include "adapt/profile_ops.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {
namespace {

std::string text_of(const MeasuredTime& time) {
  return fmt::format("{{median: {}ns, p10: {}ns, p90: {}ns, samples: {}}}", time.median_ns, time.p10_ns, time.p90_ns,
                     time.samples);
}

std::string text_of(const OpKey& key, const MeasuredOp& op) {
  std::string sizes;
  for (const std::int64_t size : key.sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  std::string text = fmt::format("  - {{body: {}, precision: {}, sizes: [{}], kernels: \"{:016x}\", processor: {}",
                                 key.body, name_of(key.type), sizes, key.kernels, key.on_cpu ? "cpu" : "device");
  if (op.afresh.samples > 0) text += ",\n     afresh: " + text_of(op.afresh);
  if (op.repeated.samples > 0) text += ",\n     repeated: " + text_of(op.repeated);
  for (const auto& [name, ns] :
       {std::pair("dispatch", op.dispatch_ns), std::pair("repeat", op.repeat_ns), std::pair("record", op.record_ns)})
    if (ns > 0) text += fmt::format(", {}: {}ns", name, ns);
  return text + ",\n     source: \"" + op.source + "\"}\n";
}

// Rows of a profile name precisions that workloads have.
bool can_be_told(const OpKey& key) {
  constexpr DType kTold[] = {DType::F32, DType::F16, DType::BF16, DType::F64};
  return std::find(std::begin(kTold), std::end(kTold), key.type) != std::end(kTold);
}

void replace(MeasuredOp& row, const MeasuredOp& learnt) {
  if (learnt.afresh.samples > 0) row.afresh = learnt.afresh;
  if (learnt.repeated.samples > 0) row.repeated = learnt.repeated;
  if (learnt.dispatch_ns > 0) row.dispatch_ns = learnt.dispatch_ns;
  if (learnt.repeat_ns > 0) row.repeat_ns = learnt.repeat_ns;
  if (learnt.record_ns > 0) row.record_ns = learnt.record_ns;
  row.source = learnt.source;
}

}  // namespace

MeasuredOps with_learnt(const MeasuredOps* known, const LearntOps& learnt) {
  MeasuredOps out = known != nullptr ? *known : MeasuredOps{};
  for (const auto& [key, op] : learnt) {
    const auto [row, fresh] = out.rows.try_emplace(key, op.op);
    if (!fresh && op.alone) replace(row->second, op.op);
  }
  std::erase_if(out.rows, [](const auto& row) { return !can_be_told(row.first); });
  return out;
}

LearntOps of_all_cores(LearntOps learnt, const Scenario& scenario) {
  const HardwareProfile& machine = scenario.machine;
  const bool shares = scenario.whole_machine && machine.cores < scenario.whole_machine->cores;
  const bool divides = std::any_of(machine.lanes.begin(), machine.lanes.end(), [&](const auto& lane) {
    return lane.second.cores > 0 && lane.second.cores < machine.cores;
  });
  if (shares || divides) std::erase_if(learnt, [](const auto& op) { return op.first.on_cpu; });
  return learnt;
}

namespace {

// The lines of a text but for those of a key at its top, with what belongs to it.
std::string without_key(const std::string& text, const std::string& key) {
  std::string out;
  bool inside = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    const bool begins_key = std::string(" \t\r\n-#").find(line[0]) == std::string::npos;
    if (begins_key) inside = line.starts_with(key + ":");
    if (!inside) out += line;
    begin = end;
  }
  if (!out.empty() && out.back() != '\n') out += '\n';
  return out;
}

std::string appended(const std::string& text, const MeasuredOps& ops, const std::string& name) {
  std::string out = without_key(text, "ops");
  if (!name.empty()) out = "name: " + name + "\n" + without_key(out, "name");
  if (!ops.rows.empty()) out += "ops:\n";
  for (const auto& [key, op] : ops.rows) out += text_of(key, op);
  return out;
}

// As its author wrote it, with comments; "" where the file is no such profile: it derives from another, is a scenario,
// or some of its figures have been changed.
std::string text_as_written(const HardwareProfile& profile) {
  try {
    const std::string text = read_text_file(profile.path);
    if (read_yaml(text, profile.path).find("derive_from") != nullptr) return "";
    return parse_profile(text, profile.path).text == profile.text ? text : "";
  } catch (const ConfigError&) {
    return "";
  }
}

}  // namespace

std::string with_ops(const HardwareProfile& profile, const MeasuredOps& ops, const std::string& name) {
  if (ops.rows.size() > kMostMeasuredOps)
    throw ConfigError(
        fmt::format("ops: {} measured ops are more than a profile holds; allowed: {}: measure for fewer "
                    "scenarios, or into another profile",
                    ops.rows.size(), kMostMeasuredOps));
  if (const std::string written = text_as_written(profile); !written.empty()) try {
      const std::string text = appended(written, ops, name);
      if (const auto read = parse_profile(text, profile.path).ops; read ? read->rows == ops.rows : ops.rows.empty())
        return text;
    } catch (const ConfigError&) {  // a map on one line, to which nothing can be appended
    }
  const std::string text = appended(profile.text, ops, name);
  parse_profile(text, profile.path);
  return text;
}

}  // namespace tandem
