#include "core/policies/common/program.hpp"

#include <algorithm>

namespace tandem {

void prefetch_parameters(const View& view, Decisions& decisions, std::size_t ops) {
  const auto program = view.compute_program();
  for (std::size_t i = 0; i < std::min(ops, program.size()); ++i)
    for (ValueId read : view.graph().op(program[i]).reads) {
      if (view.graph().tensor_of(read).role != Role::Parameter || view.valid(read, Tier::Device)) continue;
      // A copy that waits for an update would hold up the lane.
      if (!view.arrived(read, Tier::HostPinned)) return;
      if (decisions.copy(read, Tier::Device) != Reply::Issued) return;
    }
}

}  // namespace tandem
