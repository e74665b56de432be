// Where the weights of a network that generates live, as its policy has said. Must not know how it chooses.
#pragma once

#include <algorithm>
#include <map>

#include "core/scheduler/policy.hpp"

namespace tandem {

class WeightHomes {
 public:
  Tier give(TensorId tensor, Tier home) { return homes_[tensor] = home; }
  // Of what is no weight: the device.
  Tier of(const Graph& graph, ValueId value) const {
    const auto home = homes_.find(graph.value(value).tensor);
    return home == homes_.end() ? Tier::Device : home->second;
  }
  // All weights are in their places: what was loaded is no part of the first token's time.
  bool loaded(const View& view) {
    return loaded_ = loaded_ || std::all_of(homes_.begin(), homes_.end(), [&](const auto& entry) {
                       return view.arrived(view.graph().tensor(entry.first).latest, entry.second);
                     });
  }

 private:
  std::map<TensorId, Tier> homes_;
  bool loaded_ = false;
};

}  // namespace tandem
