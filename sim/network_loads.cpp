#include "sim/network_loads.hpp"

#include <utility>

#include "core/base/errors.hpp"
#include "core/machine/cost_model.hpp"

namespace tandem {

NetworkLoads::NetworkLoads(const Topology* topology, std::int64_t ranks, std::optional<AlikeGroups> alike)
    : topology_(topology), alike_(std::move(alike)) {
  if (topology == nullptr) return;
  fabric_.emplace(*topology, alike_ ? alike_->device_count() : ranks);
  for (std::int32_t link = 0; link < fabric_->link_count(); ++link) bytes_per_s_.push_back(fabric_->bytes_per_s(link));
}

std::vector<Devices> NetworkLoads::groups(std::int32_t group, const std::vector<Rank>& members) const {
  if (!alike_) return {Devices(members.begin(), members.end())};
  std::vector<Devices> all = alike_->devices(group);
  if (all.empty())
    throw ConfigError(
        "parallel.fold: on a machine with topology, ranks do together what is not folded so far; allowed: false, or "
        "data, tensor and pipeline");
  return all;
}

const CollectiveLoad& NetworkLoads::load(std::int32_t group, const std::vector<Rank>& members, const Work& work) {
  const CollectiveKind kind = collective_kind(work.body);
  const std::int64_t counted = CostModel::memory_bytes(work);
  const auto [found, fresh] = loads_.try_emplace({group, kind, counted});
  if (!fresh) return found->second;
  CollectiveLoad load =
      collective_load(*fabric_, kind, topology_->algorithm, groups(group, members), collective_bytes(kind, counted));
  if (!load.alike)
    throw ConfigError(
        "parallel.fold: ranks that are alike do not share the links of the machine's topology alike; allowed: false, "
        "or degrees that fill hosts and switches evenly");
  return found->second = std::move(load);
}

}  // namespace tandem
