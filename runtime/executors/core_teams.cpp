#include "runtime/executors/core_teams.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/machine/lanes.hpp"

namespace tandem {
namespace {

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
  void operator()(hwloc_bitmap_s* set) const { hwloc_bitmap_free(set); }
};
using HostTopology = std::unique_ptr<hwloc_topology, Destroy>;
using Units = std::unique_ptr<hwloc_bitmap_s, Destroy>;

HostTopology load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  HostTopology owned(topology);
  return hwloc_topology_load(topology) == 0 ? std::move(owned) : nullptr;
}

// That the process may use: hardware threads of a core are neighbours, as are cores of a cache.
std::vector<int> units_in_order(hwloc_topology_t topology) {
  const Units mine(hwloc_bitmap_alloc());
  if (!mine || hwloc_get_cpubind(topology, mine.get(), HWLOC_CPUBIND_PROCESS) != 0) return {};
  std::vector<int> units;
  for (int i = 0; i < hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU); ++i)
    if (const hwloc_obj_t unit = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, static_cast<unsigned>(i));
        hwloc_bitmap_isset(mine.get(), unit->os_index))
      units.push_back(static_cast<int>(unit->os_index));
  return units;
}

}  // namespace

CoreTeams::CoreTeams(const HardwareProfile& profile) {
  const auto has_own = [](const auto& row) { return claims_cores(row.first) && row.second.cores > 0; };
  // To find the topology out takes a tenth of a second and more.
  if (std::none_of(profile.lanes.begin(), profile.lanes.end(), has_own)) return;
  const HostTopology topology = load_topology();
  const std::vector<int> units = topology ? units_in_order(topology.get()) : std::vector<int>();
  if (units.empty()) return;
  std::size_t next = 0;
  for (const auto& [kind, row] : profile.lanes) {
    if (!claims_cores(kind) || row.cores <= 0 || static_cast<std::size_t>(row.cores) >= units.size()) continue;
    for (int n = 0; n < row.count; ++n) {
      std::vector<int>& team = units_[LaneIndex(kind, n)];
      for (int core = 0; core < row.cores; ++core) team.push_back(units[next++ % units.size()]);
    }
  }
}

std::vector<int> CoreTeams::units_of(LaneIndex lane) const {
  const auto team = units_.find(lane);
  return team == units_.end() ? std::vector<int>() : team->second;
}

std::string CoreTeams::pin(LaneIndex lane) const {
  const std::vector<int> units = units_of(lane);
  if (units.empty()) return "";
  const HostTopology topology = load_topology();
  const Units set(hwloc_bitmap_alloc());
  if (!topology || !set) return "no topology of the machine";
  for (const int unit : units) hwloc_bitmap_set(set.get(), static_cast<unsigned>(unit));
  if (hwloc_set_cpubind(topology.get(), set.get(), HWLOC_CPUBIND_THREAD) == 0) return "";
  return std::strerror(errno);
}

}  // namespace tandem
