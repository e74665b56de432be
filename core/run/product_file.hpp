// What a framework allocates for a parameter, as a file of products/ says it for a version. Must not know scenarios'
// graphs or pools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// Of what the framework keeps for each parameter that a process updates.
struct ProductBuffer {
  double bytes = 0;  // a parameter
  bool pinned = false;
  enum class Block { Process, SubGroup, Tensor } block = Block::Process;  // what lies in one block
};

struct ProductMemory {
  std::string name, version;  // "DeepSpeed", "0.16"
  std::vector<ProductBuffer> host, device;
  bool power_of_two = false;  // pinned blocks are rounded up to one
  double host_bytes = 0;      // of a process, beside
  double device_bytes = 0;
  double load_bytes = 0;              // of each of the model's parameters, in each process, before it is divided
  Tier held_tier = Tier::HostPinned;  // where the policy's own bytes lie
  double held_bytes = 0;              // a parameter, that the policy keeps there itself
  bool holds_states = true;           // and the optimizer's states
};

// Of scenario.product.like and its version ("": the latest). Throws ConfigError, "product.like: ..." or
// "product.version: ...", for a name or a version that is not known, or a policy that is not the product's.
ProductMemory product_memory(const Scenario& scenario);

}  // namespace tandem
