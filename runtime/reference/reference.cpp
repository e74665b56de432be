#include "runtime/reference/reference.hpp"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "core/formats/state_blocks.hpp"
#include "core/scenario/schedule.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/optimizer/adam.hpp"
#include "runtime/optimizer/gradient_checks.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/state_map.hpp"
#include "runtime/optimizer/update_control.hpp"
#include "runtime/reference/networks.hpp"
#include "runtime/reference/walk.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

using at::Tensor;

// Masters, as the network's precision holds them: rounded as an optimizer step rounds them.
Tensor rounded(const Tensor& masters, DType precision) {
  Tensor parameters = masters.to(torch_type(precision));
  if (precision != DType::BF16) return parameters;
  const float* from = masters.const_data_ptr<float>();
  auto* to = static_cast<BFloat16*>(parameters.mutable_data_ptr());
  for (std::int64_t i = 0; i < masters.numel(); ++i) to[i] = split_master(from[i]).parameter;
  return parameters;
}

// Parameters, their moments, and, under delayed update, the older parameters that forward and backward see.
class Trainer {
 public:
  Trainer(const Scenario& scenario, const ReferenceOptions& options)
      : scenario_(scenario), delayed_(options.delayed_update), network_(reference_network(scenario)) {
    in_use_ = network_.buckets();
    fill_parameters(in_use_, scenario.seed);
    for (ReferenceBucket& bucket : in_use_) {
      for (ReferenceParameter& p : bucket) {
        latest_.push_back(p.tensor.clone());
        m_.push_back(at::zeros_like(p.tensor));
        v_.push_back(at::zeros_like(p.tensor));
        p.tensor = rounded(p.tensor, scenario.workload.precision);
        p.tensor.set_requires_grad(p.trained);
      }
    }
  }

  std::vector<double> step(const DataSource& data, std::int32_t step) {
    std::vector<double> losses;
    const std::int64_t micro_batches = scenario_.workload.micro_batches;
    for (std::int32_t m = 0; m < micro_batches; ++m) {
      const ReferenceLoss loss = loss_of(data, {step, m, /*rank=*/0});
      losses.push_back(loss.own.item<double>());
      scaled(sum_of_losses(loss.own, loss.auxiliary)).div(micro_batches).backward();
    }
    update(step);
    return losses;
  }

  // Of what the next step would train with.
  std::vector<double> evaluate(const DataSource& data) const {
    const c10::AutoGradMode no_grad(false);
    std::vector<double> losses;
    for (std::int32_t batch = 0; batch < scenario_.validation.batches; ++batch)
      losses.push_back(loss_of(data, {/*step=*/0, batch, /*rank=*/0, /*held_out=*/true}).own.item<double>());
    return losses;
  }

  ReferenceResult result() const {
    ReferenceResult result;
    result.skipped_steps = skipped_;
    result.gradient_norms = norms_;
    std::size_t i = 0;
    for (const ReferenceBucket& bucket : in_use_)
      for (const ReferenceParameter& p : bucket) {
        const float* data = latest_[i++].const_data_ptr<float>();
        result.parameters[p.name].assign(data, data + p.tensor.numel());
      }
    return result;
  }

 private:
  ReferenceLoss loss_of(const DataSource& data, BatchKey key) const {
    return network_.loss(in_use_, reference_batch(network_.network(), scenario_, data, key),
                         reference_random(scenario_, key));
  }

  bool scales_loss() const { return scenario_.workload.precision == DType::F16 && scenario_.optimizer.loss_scaling; }
  Tensor scaled(const Tensor& loss) const { return scales_loss() ? loss.mul(loss_scale_.scale) : loss; }

  double sum_of_squares() const {
    double total = 0;
    for (const ReferenceBucket& bucket : in_use_) {
      double sum = 0;
      for (const ReferenceParameter& p : bucket)
        if (p.trained)
          sum += check_gradient(p.tensor.grad().const_data_ptr(), scenario_.workload.precision, p.tensor.numel())
                     .sum_of_squares;
      total += sum;
    }
    return total;
  }

  // Of the step whose gradients are there.
  UpdateControl control(std::int32_t step) {
    const OptimizerOptions& o = scenario_.optimizer;
    const double rate = learning_rate(scenario_, step);
    const AdamStep adam = adam_step({rate, o.beta1, o.beta2}, step + 1);
    UpdateControl control{1, adam.v_root_correction, adam.negative_step_size};
    if (o.clip_norm > 0 || scales_loss())
      norms_.push_back(control_update(
          {o.clip_norm, rate, o.beta1, o.beta2, o.loss_scale_interval, adam.v_root_correction, adam.negative_step_size},
          sum_of_squares(), scales_loss() ? &loss_scale_ : nullptr, control));
    return control;
  }

  bool decays(const ReferenceParameter& p) const { return scenario_.optimizer.decay == "all" || p.shape.size() > 1; }

  void update(std::int32_t step) {
    const c10::AutoGradMode no_grad(false);
    const UpdateControl decided = control(step);
    if (delayed_) publish();  // before the update: what the next step trains with
    if (decided.gradient_scale == 0)
      ++skipped_;
    else if (scenario_.workload.precision == DType::F32 && scenario_.optimizer.state_bits == 32)
      update_fp32(step, static_cast<float>(decided.gradient_scale));
    else
      update_masters(step, decided);
    if (!delayed_) publish();
    for (ReferenceBucket& bucket : in_use_)
      for (ReferenceParameter& p : bucket) p.tensor.mutable_grad() = Tensor();
  }

  // One call for the parameters that decay, and one for those that do not.
  void update_fp32(std::int32_t step, float scale) {
    const OptimizerOptions& o = scenario_.optimizer;
    const auto adam = o.name == "adam" ? &at::_ops::_fused_adam_::call : &at::_ops::_fused_adamw_::call;
    for (const bool group : {true, false}) {
      std::vector<Tensor> parameters, gradients, m, v, steps;
      std::size_t i = 0;
      for (const ReferenceBucket& bucket : in_use_)
        for (const ReferenceParameter& p : bucket) {
          const std::size_t at = i++;
          if (!p.trained || decays(p) != group) continue;
          if (o.clip_norm > 0) p.tensor.mutable_grad().mul_(scale);
          gradients.push_back(p.tensor.grad());
          parameters.push_back(latest_[at]), m.push_back(m_[at]), v.push_back(v_[at]);
          steps.push_back(at::full({}, static_cast<float>(step + 1), at::kFloat));
        }
      if (parameters.empty()) continue;
      adam(parameters, gradients, m, v, {}, steps, learning_rate(scenario_, step), o.beta1, o.beta2,
           group ? o.weight_decay : 0, o.epsilon, /*amsgrad=*/false, /*maximize=*/false, std::nullopt, std::nullopt);
    }
  }

  // LibTorch has no Adam from 16-bit gradients to fp32 masters, nor one of quantised moments: the formula of one
  // element, one after the other.
  void update_masters(std::int32_t step, const UpdateControl& decided) {
    const OptimizerOptions& o = scenario_.optimizer;
    AdamOptions options{learning_rate(scenario_, step), o.beta1, o.beta2, o.epsilon, o.weight_decay, o.name == "adamw"};
    const AdamStep decaying = controlled(adam_step(options, step + 1), decided);
    options.weight_decay = 0;
    const AdamStep plain = controlled(adam_step(options, step + 1), decided);
    std::size_t i = 0;
    for (const ReferenceBucket& bucket : in_use_)
      for (const ReferenceParameter& p : bucket) {
        const std::size_t at = i++;
        if (!p.trained) continue;
        const Tensor gradient = p.tensor.grad().to(at::kFloat).contiguous();
        const float* g = gradient.const_data_ptr<float>();
        float *master = latest_[at].data_ptr<float>(), *m = m_[at].data_ptr<float>(), *v = v_[at].data_ptr<float>();
        for (std::int64_t k = 0; k < gradient.numel(); ++k) {
          AdamElement<float> element{master[k], m[k], v[k]};
          adam_element(decays(p) ? decaying : plain, g[k], element);
          master[k] = element.master, m[k] = element.m, v[k] = element.v;
        }
        quantise(m, v, gradient.numel());
      }
  }

  // Moments as they are after they have been stored.
  void quantise(float* m, float* v, std::int64_t count) const {
    if (scenario_.optimizer.state_bits == 8) quantise_as<8>(m, v, count);
    if (scenario_.optimizer.state_bits == 4) quantise_as<4>(m, v, count);
  }
  template <int kBits>
  static void quantise_as(float* m, float* v, std::int64_t count) {
    for (std::int64_t first = 0; first < count; first += state_block(kBits).elements) {
      const std::int64_t size = std::min(state_block(kBits).elements, count - first);
      quantise_block<typename StateMaps<kBits>::M>(m + first, size);
      quantise_block<typename StateMaps<kBits>::V>(v + first, size);
    }
  }
  template <class Map>
  static void quantise_block(float* numbers, std::int64_t count) {
    std::uint32_t largest = 0;
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, magnitude_bits(numbers[i]));
    const BlockScale scale = block_scale(largest);
    for (std::int64_t i = 0; i < count; ++i)
      numbers[i] = number_of<Map>(code_of<Map>(numbers[i], scale.inverse), scale.scale);
  }

  void publish() {
    std::size_t i = 0;
    for (ReferenceBucket& bucket : in_use_)
      for (ReferenceParameter& p : bucket) p.tensor.copy_(rounded(latest_[i++], scenario_.workload.precision));
  }

  const Scenario& scenario_;
  bool delayed_;
  LossScale loss_scale_ = initial_loss_scale(scenario_.optimizer.initial_loss_scale);
  std::int32_t skipped_ = 0;
  ReferenceNetwork network_;
  std::vector<ReferenceBucket> in_use_;
  std::vector<Tensor> latest_, m_, v_;
  std::vector<double> norms_;
};

}  // namespace

ReferenceResult train_reference(const Scenario& scenario, const DataSource& data, const ReferenceOptions& options) {
  Trainer trainer(scenario, options);
  std::vector<std::vector<double>> losses;
  std::vector<ReferenceEvaluation> evaluations;
  for (std::int32_t step = 0; step < scenario.steps; ++step) {
    losses.push_back(trainer.step(data, step));
    if (evaluates_after(scenario.validation, step, scenario.steps))
      evaluations.push_back({step, trainer.evaluate(data)});
  }
  ReferenceResult result = trainer.result();
  result.losses = std::move(losses);
  result.evaluations = std::move(evaluations);
  return result;
}

}  // namespace tandem
