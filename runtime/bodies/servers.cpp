// What a parameter server makes of its workers' gradients: core/transforms/servers/servers.cpp has the operands.
#include "runtime/bodies/common/operands.hpp"
#include "runtime/body_table.hpp"

namespace tandem {
namespace {

// In the order of ranks, each sum rounded to the gradients' type; then one division, as an all-reduce does.
std::int64_t mean_of_workers(BodyCall& call) {
  Operands operands(call);
  const std::int64_t elements = operands.size(0);
  at::Tensor mean = operands.write({elements});  // the first read's place
  operands.read({elements});
  for (std::size_t worker = 1; worker < call.reads.size(); ++worker) mean.add_(operands.read({elements}));
  mean.div_(static_cast<std::int64_t>(call.reads.size()));
  return 0;
}

constexpr BodyEntry kBodies[] = {{"mean_of_workers", mean_of_workers, kRepeatable}};

}  // namespace

std::span<const BodyEntry> servers_bodies() { return kBodies; }

}  // namespace tandem
