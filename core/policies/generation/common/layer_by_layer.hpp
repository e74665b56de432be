// Generating layer by layer, for one batch after another: the weights of a layer come when it is its turn, and go when
// it is passed; keys, values and hidden states stay on the device. Must not know which product does it so.
#pragma once

#include "core/policies/generation/common/weight_homes.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

struct LayerByLayerOptions {
  Tier weights = Tier::HostPinned;  // where they live: or the device, or the disk
  std::size_t ahead = 0;            // layers' weights that come while another computes
  bool blocking = false;            // nothing computes while weights come, nor the other way round
};

class LayerByLayer : public Policy {
 public:
  // `name`: of the policy, for messages. Throws ConfigError for a scenario that trains.
  LayerByLayer(const Scenario& scenario, const std::string& name, const LayerByLayerOptions& options);
  Tier home(const View& view, TensorId tensor) override;
  void decide(const View& view, Decisions& decisions) override;

 private:
  bool waits(const View& view, OpId next) const;
  void fetch_ahead(const View& view, Decisions& decisions) const;
  void leave(const View& view, Decisions& decisions, const Op& op) const;

  const LayerByLayerOptions options_;
  WeightHomes homes_;
};

// Option `weights`: host | device | disk.
Tier weights_option(const Scenario& scenario);

}  // namespace tandem
