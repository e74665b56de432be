// An optimizer as the plan of a training step needs it: what it keeps for each parameter, and how its update may be
// cut. One file each, registered by its last line; runtime/optimizer and runtime/bodies have the formulas. Must not
// know tensors, steps or worlds.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct OptimizerEntry {
  std::string_view name, summary;
  // Names of the states that it keeps for each parameter, in the order of its update's operands; none with some
  // options.
  std::vector<std::string> (*states)(const OptimizerOptions&);
  std::array<double, 2> betas{0.9, 0.999};  // by default
  bool quantises = false;                   // states may have 8 or 4 bits a number
  bool library_updates = false;             // in fp32 on the host, by LibTorch's kernel
  // An update that looks at a field as a whole cannot be cut. Its states are fields of a layout that follows from the
  // bucket's, in fp32. Null: each element is updated by itself, and each state has a number for it.
  std::shared_ptr<const Layout> (*state_layout)(const Layout&) = nullptr;
  // Then: bytes that it moves for each element beside its operands' own.
  std::int64_t passes_bytes = 0;

  bool by_element() const { return state_layout == nullptr; }
};

// All in alphabetical order.
const std::vector<const OptimizerEntry*>& optimizers();
const OptimizerEntry* find_optimizer(std::string_view name);
// That of a scenario. Throws ConfigError for a name that is none, and for options that it does not take.
const OptimizerEntry& optimizer_of(const Scenario& scenario);

}  // namespace tandem

// The last line of core/optimizers/<name>.cpp. CMake's generated table names <name>_optimizer_entry for each file.
#define TANDEM_OPTIMIZER(NAME, ...)                                        \
  namespace tandem {                                                       \
  extern const OptimizerEntry NAME##_optimizer_entry;                      \
  const OptimizerEntry NAME##_optimizer_entry{.name = #NAME, __VA_ARGS__}; \
  }
