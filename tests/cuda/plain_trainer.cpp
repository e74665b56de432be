#include "tests/cuda/plain_trainer.hpp"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "runtime/reference/networks.hpp"
#include "runtime/torch_types.hpp"

namespace tandem::testing {
namespace {

using at::Tensor;

struct Parameters {
  std::vector<Tensor> masters, m, v, in_use;
};

void fused_step(Parameters& p, const std::vector<Tensor>& gradients, const OptimizerOptions& o, std::int32_t step) {
  std::vector<Tensor> steps;
  for (const Tensor& master : p.masters)
    steps.push_back(at::full({}, static_cast<float>(step + 1), master.options().dtype(at::kFloat)));
  at::_fused_adamw_(p.masters, gradients, p.m, p.v, {}, steps, o.learning_rate, o.beta1, o.beta2, o.weight_decay,
                    o.epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

// torch.optim.AdamW(foreach=True), tensor by tensor.
void unfused_step(Parameters& p, const std::vector<Tensor>& gradients, const OptimizerOptions& o, std::int32_t step) {
  const double m_correction = 1 - std::pow(o.beta1, step + 1), v_correction = 1 - std::pow(o.beta2, step + 1);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    p.masters[i].mul_(1 - o.learning_rate * o.weight_decay);
    p.m[i].lerp_(gradients[i], 1 - o.beta1);
    p.v[i].mul_(o.beta2).addcmul_(gradients[i], gradients[i], 1 - o.beta2);
    const Tensor denominator = p.v[i].sqrt().div_(std::sqrt(v_correction)).add_(o.epsilon);
    p.masters[i].addcdiv_(p.m[i], denominator, -o.learning_rate / m_correction);
  }
}

// In bf16 to the nearest with ties away from zero, as Tandem's parameters are: half of the last place is added to the
// bits, of which the upper half is taken.
Tensor rounded(const Tensor& master, at::ScalarType type) {
  if (type != at::kBFloat16) return master.to(type, /*non_blocking=*/false, /*copy=*/true);
  return master.view(at::kInt).add(0x8000).bitwise_right_shift(16).to(at::kShort).view(at::kBFloat16);
}

}  // namespace

std::vector<double> plain_losses(const Scenario& scenario, const DataSource& data, bool on_gpu, PlainAdam adam) {
  const at::Device device = on_gpu ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  const ReferenceNetwork network = reference_network(scenario);
  auto buckets = network.buckets();
  fill_parameters(buckets, scenario);
  Parameters p;
  for (ReferenceBucket& bucket : buckets)
    for (ReferenceParameter& parameter : bucket) {
      p.masters.push_back(parameter.tensor.to(at::TensorOptions(device)).clone());
      p.m.push_back(at::zeros_like(p.masters.back()));
      p.v.push_back(at::zeros_like(p.masters.back()));
      parameter.tensor = rounded(p.masters.back(), torch_type(scenario.workload.precision));
      parameter.tensor.set_requires_grad(true);
      p.in_use.push_back(parameter.tensor);
    }
  std::vector<double> losses;
  for (std::int32_t step = 0; step < scenario.steps; ++step) {
    const BatchKey key{step, 0, 0};
    const Tensor loss =
        network.loss(buckets, reference_batch(network.network(), scenario, data, key), reference_random(scenario, key))
            .own;
    losses.push_back(loss.item<double>());
    loss.backward();
    const c10::AutoGradMode no_grad(false);
    std::vector<Tensor> gradients;
    for (Tensor& parameter : p.in_use) {
      gradients.push_back(parameter.grad().to(at::kFloat));
      parameter.mutable_grad() = Tensor();
    }
    (adam == PlainAdam::Fused ? fused_step : unfused_step)(p, gradients, scenario.optimizer, step);
    for (std::size_t i = 0; i < p.masters.size(); ++i)
      p.in_use[i].copy_(rounded(p.masters[i], torch_type(scenario.workload.precision)));
  }
  return losses;
}

}  // namespace tandem::testing
