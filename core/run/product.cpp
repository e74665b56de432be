#include "core/run/product.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

// Of what one rank has of all buckets.
std::int64_t parameters_of_a_rank(const Scenario& scenario) {
  Graph graph;
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  CHECK(family != nullptr, scenario.workload.family);
  family->make(scenario, {})->prologue(graph);
  std::int64_t parameters = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (const Tensor& tensor = graph.tensor(id); tensor.role == Role::Parameter)
      parameters += tensor.bytes / size_of(tensor.type);
  return parameters;
}

}  // namespace

std::array<std::int64_t, kTierCount> bytes_kept_beside(const Scenario& scenario) {
  const ProductOptions& product = scenario.product;
  std::array<std::int64_t, kTierCount> kept{};
  if (product.device_bytes_per_parameter == 0 && product.host_bytes_per_parameter == 0) return kept;
  CHECK(product.device_bytes_per_parameter >= 0 && product.host_bytes_per_parameter >= 0,
        "the schema lets none be negative");
  const auto parameters = static_cast<double>(parameters_of_a_rank(scenario));
  constexpr double kMost = 4e18;  // more than any machine has, and no overflow
  const auto of = [&](double bytes) { return std::llround(std::min(bytes * parameters, kMost)); };
  kept[static_cast<std::size_t>(Tier::Device)] = of(product.device_bytes_per_parameter);
  kept[static_cast<std::size_t>(Tier::HostPinned)] = of(product.host_bytes_per_parameter);
  return kept;
}

}  // namespace tandem
