// The modules of a network, equal ones together, and what graph and time line call them. Must not know machines or
// runs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/modality.hpp"
#include "core/graph/graph.hpp"
#include "core/model/network.hpp"

namespace tandem {

// Modules of equal shape that the same data reaches.
struct ModuleGroup {
  std::string kind;                   // "block"
  std::vector<std::int32_t> modules;  // in forward order
  Modalities modalities = 0;
};

// In the order of their first modules.
std::vector<ModuleGroup> groups_of(const Network& network);

// These modules in words that policy.cpu_modules takes: "embedding, block0..3". "" for none.
std::string words_for(const Network& network, const std::vector<std::int32_t>& modules);

// By names of ops and tensors, which begin with their module's.
class ModuleNames {
 public:
  explicit ModuleNames(const Network& network);
  // "block3.forward", "block3.frozen.parameter": the module; kNone: of none, such as the loss's scale.
  std::int32_t module_of(std::string_view name) const;
  std::int32_t module_of(const Graph& graph, const Op& op) const { return module_of(graph.label(op.label)); }
  std::int32_t module_of(const Graph& graph, ValueId value) const { return module_of(graph.tensor_of(value).name); }

 private:
  std::map<std::string, std::int32_t, std::less<>> modules_;
};

}  // namespace tandem
