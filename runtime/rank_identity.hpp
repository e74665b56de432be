// What ranks that train together must have in common, as checksums, and how they find out before the first step. Must
// not know how ranks are started.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "runtime/checkpoint/manifest.hpp"

namespace tandem {

// Part ("data") and checksum, in order.
using RankIdentity = std::vector<std::pair<std::string, std::string>>;

// `facts`: of the scenario as it was understood. Files of data above 256 MiB are read in 4,096 places.
RankIdentity identity_of(const Scenario& scenario, const Facts& facts);

// Where ranks leave word for each other. Called from one thread.
class Blackboard {
 public:
  virtual ~Blackboard() = default;
  virtual void write(const std::string& key, const std::string& text) = 0;
  // "" where nobody has written it yet.
  virtual std::string read(const std::string& key) = 0;
};

// Returns once all ranks are there and have the same. `look` is called now and then while one is missing, and may
// throw. Throws DeviceError that names the rank and the part that differ: on both of them.
void require_same_ranks(Blackboard& board, Rank rank, std::int32_t ranks, const RankIdentity& identity,
                        const std::function<void(const std::string& waits_for)>& look);

}  // namespace tandem
