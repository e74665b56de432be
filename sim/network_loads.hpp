// What groups of ranks load of a topology's links, by group and work. Must not know SimGrid or time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/base/ids.hpp"
#include "core/graph/graph.hpp"
#include "core/machine/collectives.hpp"
#include "core/scenario/alike_groups.hpp"

namespace tandem {

class NetworkLoads {
 public:
  // `topology` null: there are none. Without `alike`, each rank is one device, and each group itself.
  NetworkLoads(const Topology* topology, std::int64_t ranks, std::optional<AlikeGroups> alike);
  bool is_there() const { return fabric_.has_value(); }
  const std::vector<double>& bytes_per_s() const { return bytes_per_s_; }  // of all links
  // Throws ConfigError where the groups that it stands for do not share links alike.
  const CollectiveLoad& load(std::int32_t group, const std::vector<Rank>& members, const Work& work);

 private:
  std::vector<Devices> groups(std::int32_t group, const std::vector<Rank>& members) const;

  const Topology* topology_;
  std::optional<AlikeGroups> alike_;
  std::optional<Fabric> fabric_;
  std::vector<double> bytes_per_s_;
  std::map<std::tuple<std::int32_t, CollectiveKind, std::int64_t>, CollectiveLoad> loads_;  // by group, kind, bytes
};

}  // namespace tandem
