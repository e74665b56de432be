#include "runtime/latents.hpp"

#include "core/base/check.hpp"
#include "core/transforms/generation/denoising_network.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/checkpoint/safetensors.hpp"

namespace tandem {

Latents latents_of(Training& training, const Scenario& scenario) {
  const GeneratingNetwork made = denoising_network(network_of(scenario), ddim_step(1, 0), /*guidance=*/0);
  const Shape& batch = made.network.batch.at(static_cast<std::size_t>(made.text)).shape;
  Latents latents{batch.type, {batch.dims.begin(), batch.dims.end()}, {}};
  latents.shape.front() *= scenario.workload.micro_batches;
  // Of activations they alone outlive their step; a batch's tensors come in the order of batches.
  const Graph& graph = training.graph();
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    if (!graph.tensor(id).persistent || graph.tensor(id).role != Role::Activation) continue;
    const std::vector<std::byte> bytes = training.latest(id);
    latents.bytes.insert(latents.bytes.end(), bytes.begin(), bytes.end());
  }
  CHECK(std::ssize(latents.bytes) == batch.bytes() * scenario.workload.micro_batches, latents.bytes.size(),
        batch.bytes());
  return latents;
}

std::string safetensors_text(const Latents& latents) {
  const std::vector<TensorBytes> tensors = {{"latents", latents.type, latents.shape, latents.bytes.data()}};
  std::string text = safetensors_header(tensors);
  return text.append(reinterpret_cast<const char*>(latents.bytes.data()), latents.bytes.size());
}

}  // namespace tandem
