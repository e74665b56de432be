#include "core/scenario/replaced_figures.hpp"

#include <algorithm>
#include <string_view>

namespace tandem {
namespace {

struct FigureOf {
  std::string_view path, cause;  // "" where the figure is of none
};
// The first that fits counts. Of capacities nothing is uncertain; of collectives and batches, nothing is known.
constexpr FigureOf kFigures[] = {{"compute", "compute"},
                                 {"tiers.device.bandwidth", "compute"},
                                 {"copies.disk_read", "disk"},
                                 {"copies.disk_write", "disk"},
                                 {"tiers.disk.bandwidth", "disk"},
                                 {"copies.peer", ""},
                                 {"copies.small_copy", ""},
                                 {"price_per_hour", ""},
                                 {"input_stages", ""},
                                 {"input_threads", ""},
                                 {"copies", "copies"},
                                 {"cpu", "cpu_optimizer"},
                                 {"host.dispatch", "dispatch"},
                                 {"host.event", "dispatch"},
                                 {"host.wake", "dispatch"},
                                 {"host.lane_cores", "sharing"},
                                 {"host.memory_weights", "sharing"},
                                 {"tiers.host_pinned.bandwidth", "sharing"},
                                 {"lanes", "sharing"},
                                 {"interference", "sharing"},
                                 {"launches_beside", "sharing"}};

bool is_at_or_below(std::string_view path, std::string_view above) {
  return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '.');
}

std::string_view cause_of(const std::string& path) {
  for (const FigureOf& figure : kFigures)
    if (is_at_or_below(path, figure.path)) return figure.cause;
  return "";
}

}  // namespace

std::vector<std::string> paths_of(const Node& changes, const std::string& prefix) {
  if (changes.kind != NodeKind::Map || changes.find("value") != nullptr) return {prefix};
  std::vector<std::string> paths;
  for (const Entry& entry : changes.entries) {
    const std::vector<std::string> below = paths_of(entry.value, prefix.empty() ? entry.key : prefix + "." + entry.key);
    paths.insert(paths.end(), below.begin(), below.end());
  }
  return paths;
}

namespace {

// Of a processor whose figures are replaced.
void forget_ops(Node& machine, const std::vector<std::string>& replaced) {
  Node* ops = machine.find("ops");
  if (ops == nullptr || ops->kind != NodeKind::Sequence) return;
  const auto is_replaced = [&](std::string_view cause) {
    return std::any_of(replaced.begin(), replaced.end(), [&](const auto& path) { return cause_of(path) == cause; });
  };
  const bool device = is_replaced("compute"), cpu = is_replaced("cpu_optimizer");
  std::erase_if(ops->items, [&](const Node& row) {
    const Node* processor = row.kind == NodeKind::Map ? row.find("processor") : nullptr;
    if (processor == nullptr) return false;
    return (device && processor->text == "device") || (cpu && processor->text == "cpu");
  });
  if (ops->items.empty()) std::erase_if(machine.entries, [](const Entry& e) { return e.key == "ops"; });
}

void forget_uncertainty(Node& machine, const std::vector<std::string>& replaced) {
  Node* known = machine.find("uncertainty");
  if (known == nullptr || known->kind != NodeKind::Map) return;
  for (const std::string& path : replaced)
    std::erase_if(known->entries, [&](const Entry& entry) { return entry.key == cause_of(path); });
  if (known->entries.empty()) std::erase_if(machine.entries, [](const Entry& e) { return e.key == "uncertainty"; });
}

}  // namespace

void forget_measurements(Node& machine, const std::vector<std::string>& replaced) {
  forget_ops(machine, replaced);
  forget_uncertainty(machine, replaced);
}

}  // namespace tandem
