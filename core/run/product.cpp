#include "core/run/product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/check.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/run/product_file.hpp"
#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

constexpr double kMost = 4e18;  // bytes: more than any machine has, and no overflow

// What one rank has of all buckets.
struct RankSizes {
  double parameters = 0, state_bytes = 0;
};

RankSizes sizes_of_a_rank(const Scenario& scenario) {
  Graph graph;
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  CHECK(family != nullptr, scenario.workload.family);
  family->make(scenario, {})->prologue(graph);
  RankSizes sizes;
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.role == Role::Parameter)
      sizes.parameters += static_cast<double>(tensor.bytes) / static_cast<double>(size_of(tensor.type));
    if (tensor.role == Role::OptimizerState) sizes.state_bytes += static_cast<double>(tensor.bytes);
  }
  return sizes;
}

double next_power_of_two(double bytes) {
  return static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(std::min(std::max(bytes, 1.0), kMost))));
}

// Blocks of single tensors: of the matrices of Llama's sizes the mean is 1.3 times as much (4096 x 11008 of 16 bits
// takes 128 MiB instead of 86, 4096 x 4096 what it is).
constexpr double kTensorRounding = 1.3;
// DeepSpeed's zero_optimization.sub_group_size by default.
constexpr double kSubGroup = 1e9;

double bytes_of(const ProductBuffer& buffer, double parameters, bool power_of_two) {
  const double exact = buffer.bytes * parameters;
  if (!buffer.pinned || !power_of_two || exact == 0) return exact;
  if (buffer.block == ProductBuffer::Block::Tensor) return exact * kTensorRounding;
  if (buffer.block == ProductBuffer::Block::Process) return next_power_of_two(exact);
  const double whole = std::floor(parameters / kSubGroup), rest = parameters - whole * kSubGroup;
  return whole * next_power_of_two(buffer.bytes * kSubGroup) + (rest > 0 ? next_power_of_two(buffer.bytes * rest) : 0);
}

double bytes_of(const std::vector<ProductBuffer>& buffers, double parameters, bool power_of_two) {
  double bytes = 0;
  for (const ProductBuffer& buffer : buffers) bytes += bytes_of(buffer, parameters, power_of_two);
  return bytes;
}

void add(std::array<std::int64_t, kTierCount>& kept, Tier tier, double bytes) {
  std::int64_t& sum = kept[static_cast<std::size_t>(tier)];
  sum = std::llround(std::min(static_cast<double>(sum) + std::max(bytes, 0.0), kMost));
}

// What the product has more than the policy, while training or before: as it makes the model, a process has all of it.
void add_product(const Scenario& scenario, const RankSizes& sizes, std::array<std::int64_t, kTierCount>& kept) {
  const ProductMemory memory = product_memory(scenario);
  const auto ranks = static_cast<double>(state_parts(scenario));
  const double held = memory.held_bytes * sizes.parameters + (memory.holds_states ? sizes.state_bytes : 0);
  const auto held_in = [&](Tier tier) { return memory.held_tier == tier ? held : 0; };
  const double training = bytes_of(memory.host, sizes.parameters, memory.power_of_two);
  const double loading = memory.load_bytes * sizes.parameters * ranks;
  add(kept, Tier::HostPinned, std::max(training, loading) + memory.host_bytes - held_in(Tier::HostPinned));
  const double device = bytes_of(memory.device, sizes.parameters, false);
  add(kept, Tier::Device, memory.device_bytes + std::max(device - held_in(Tier::Device), 0.0));
}

}  // namespace

std::array<std::int64_t, kTierCount> bytes_kept_beside(const Scenario& scenario) {
  const ProductOptions& product = scenario.product;
  std::array<std::int64_t, kTierCount> kept{};
  if (product.like.empty() && product.device_bytes_per_parameter == 0 && product.host_bytes_per_parameter == 0)
    return kept;
  CHECK(product.device_bytes_per_parameter >= 0 && product.host_bytes_per_parameter >= 0,
        "the schema lets none be negative");
  const RankSizes sizes = sizes_of_a_rank(scenario);
  add(kept, Tier::Device, product.device_bytes_per_parameter * sizes.parameters);
  add(kept, Tier::HostPinned, product.host_bytes_per_parameter * sizes.parameters);
  if (!product.like.empty()) add_product(scenario, sizes, kept);
  return kept;
}

std::string run_of_whom(const Scenario& scenario) {
  if (scenario.product.like.empty()) return "Tandem's own run";
  const std::string name = product_memory(scenario).name, version = scenario.product.version;
  return "as " + name + (version.empty() ? "" : " " + version) + " would";
}

}  // namespace tandem
