// Forward and backward layer by layer: while one computes, the parameters of the next layers come to the device and
// those of the layers after them from disk to the host (ZeRO-Infinity, section 6.2, overlap-centric design); a layer's
// device copy is dropped once it is passed. A part of policies; must not know which one.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/policies/common/activations.hpp"
#include "core/policies/common/state_homes.hpp"

namespace tandem {

class LayerStream {
 public:
  // `ahead`: layers; none: the fewest whose forward hides the next layer's way to the device.
  explicit LayerStream(std::optional<std::int64_t> ahead) : ahead_(ahead) {}

  // Once the first step is known.
  void begin(const View& view, const std::vector<Bucket>& of_step, const StateHomes& homes);
  // Drops from the host what was loaded and lives on disk, and sees what has run.
  void follow(const View& view, Decisions& decisions, const StateHomes& homes);
  // Fetches what the next layers read, and issues the next op if it `may_run` and its layer is among those that come
  // next; true if it did.
  bool advance(const View& view, Decisions& decisions, const StateHomes& homes, Activations& activations,
               bool may_run = true);

 private:
  std::size_t ops_ahead(const View& view, std::int64_t layers) const;
  void pass(const View& view, Decisions& decisions, const StateHomes& homes, OpId op, std::size_t ops) const;

  std::optional<std::int64_t> ahead_;
  OpId loaded_ = 0;  // ops that load, so far
  bool all_loaded_ = false;
  std::deque<OpId> running_;  // issued to the compute lane, not seen to finish
};

}  // namespace tandem
