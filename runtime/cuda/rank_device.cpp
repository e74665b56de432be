#include "runtime/cuda/rank_device.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "core/base/errors.hpp"

namespace tandem {

std::string visible_devices(const std::string& given, Rank rank, Rank ranks) {
  std::vector<std::string> names;
  std::istringstream in(given);
  for (std::string name; std::getline(in, name, ',');) names.push_back(name);
  if (given.empty())
    for (Rank i = 0; i < ranks; ++i) names.push_back(std::to_string(i));
  const auto count = static_cast<std::size_t>(ranks);
  if (names.size() < count)
    throw DeviceError("CUDA_VISIBLE_DEVICES: " + given + " names " + std::to_string(names.size()) + " of the " +
                      std::to_string(ranks) + " GPUs that as many ranks need; name more, or lower workload.devices");
  names.resize(count);
  std::rotate(names.begin(), names.begin() + rank, names.end());
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

std::pair<Rank, Rank> on_this_host(Rank rank, Rank ranks, const std::function<const char*(const char*)>& variable) {
  const char *world = variable("WORLD_SIZE"), *local = variable("LOCAL_RANK"), *locals = variable("LOCAL_WORLD_SIZE");
  if (world == nullptr || local == nullptr || locals == nullptr || std::atoi(world) != ranks) return {rank, ranks};
  return {std::atoi(local), std::atoi(locals)};
}

}  // namespace tandem
