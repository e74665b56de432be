#include "runtime/reference/reference.hpp"

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "core/formats/state_blocks.hpp"
#include "core/scenario/schedule.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/bodies/common/update_options.hpp"
#include "runtime/optimizer/gradient_checks.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/rules/rules.hpp"
#include "runtime/optimizer/state_map.hpp"
#include "runtime/optimizer/update_control.hpp"
#include "runtime/reference/networks.hpp"
#include "runtime/reference/plain_update.hpp"
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
    fill_parameters(in_use_, scenario);
    for (ReferenceBucket& bucket : in_use_) {
      for (ReferenceParameter& p : bucket) {
        latest_.push_back(p.tensor.clone());
        m_.push_back(at::zeros_like(p.tensor));
        v_.push_back(at::zeros_like(p.tensor));
        states_.emplace_back();
        p.tensor = rounded(p.tensor, scenario.workload.precision);
        if (!has_masters()) latest_.back().copy_(p.tensor);
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
        result.parameters[p.name].assign(data, data + p.elements());
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
          sum += check_gradient(p.tensor.grad().const_data_ptr(), scenario_.workload.precision, p.elements())
                     .sum_of_squares;
      total += sum;
    }
    return total;
  }

  // Of the step whose gradients are there.
  UpdateControl control(std::int32_t step) {
    const OptimizerOptions& o = scenario_.optimizer;
    const UpdateOptions options = update_options(o, learning_rate(scenario_, step));
    const UpdateStep planned = update_step(options, step + 1);
    UpdateControl control{1, planned.v_root_correction, planned.negative_step_size};
    if (o.clip_norm > 0 || scales_loss())
      norms_.push_back(control_update(update_rules(o, options, planned), sum_of_squares(),
                                      scales_loss() ? &loss_scale_ : nullptr, control));
    return control;
  }

  bool decays(const ReferenceParameter& p) const { return scenario_.optimizer.decay == "all" || p.shape.size() > 1; }

  void update(std::int32_t step) {
    const c10::AutoGradMode no_grad(false);
    const UpdateControl decided = control(step);
    if (delayed_) publish();  // before the update: what the next step trains with
    if (decided.gradient_scale == 0)
      ++skipped_;
    else if (is_plain())
      update_tensors(step, static_cast<float>(decided.gradient_scale));
    else
      update_elements(step, decided);
    if (!delayed_) publish();
    for (ReferenceBucket& bucket : in_use_)
      for (ReferenceParameter& p : bucket) p.tensor.mutable_grad() = Tensor();
  }

  bool has_masters() const { return scenario_.optimizer.masters || scenario_.workload.precision == DType::F32; }
  // All in fp32, or by tensors whatever the precision.
  bool is_plain() const {
    return scenario_.optimizer.name == "adafactor" ||
           (scenario_.workload.precision == DType::F32 && scenario_.optimizer.state_bits == 32);
  }

  void update_tensors(std::int32_t step, float scale) {
    const OptimizerOptions& o = scenario_.optimizer;
    std::size_t i = 0;
    for (const ReferenceBucket& bucket : in_use_)
      for (const ReferenceParameter& p : bucket) {
        const std::size_t at = i++;
        if (!p.trained) continue;
        // Rows that pad are none of the parameter's.
        const auto own = [&](const Tensor& t) {
          return t.dim() == 0 ? t : t.narrow(0, 0, p.shape.front() - p.padding_rows);
        };
        const Tensor gradient = own(p.tensor.grad()).to(at::kFloat);
        if (o.clip_norm > 0) gradient.mul_(scale);
        plain_update(o, learning_rate(scenario_, step), decays(p) ? o.weight_decay : 0, step + 1, own(latest_[at]),
                     gradient, states_[at]);
        if (!has_masters()) latest_[at].copy_(rounded(latest_[at], scenario_.workload.precision));
      }
  }

  // LibTorch has no update from 16-bit gradients to fp32 masters, nor one of states in fewer bits: the formula of one
  // element, one after the other.
  void update_elements(std::int32_t step, const UpdateControl& decided) {
    UpdateOptions options = update_options(scenario_.optimizer, learning_rate(scenario_, step));
    const UpdateStep decaying = controlled(update_step(options, step + 1), decided);
    options.weight_decay = 0;
    const UpdateStep plain = controlled(update_step(options, step + 1), decided);
    std::size_t i = 0;
    for (const ReferenceBucket& bucket : in_use_)
      for (const ReferenceParameter& p : bucket) {
        const std::size_t at = i++;
        if (!p.trained) continue;
        const Tensor gradient = p.tensor.grad().to(at::kFloat).contiguous();
        const float* g = gradient.const_data_ptr<float>();
        float *master = latest_[at].data_ptr<float>(), *m = m_[at].data_ptr<float>(), *v = v_[at].data_ptr<float>();
        with_rule(options.rule, [&]<class OfRule>() {
          for (std::int64_t k = 0; k < gradient.numel(); ++k) {
            UpdatedElement<float> element{master[k], m[k], v[k]};
            OfRule::update(decays(p) ? decaying : plain, g[k], element);
            master[k] = element.master, m[k] = element.m, v[k] = element.v;
          }
        });
        quantise(m, v, gradient.numel());
        if (!has_masters()) latest_[at].copy_(rounded(latest_[at], scenario_.workload.precision));
      }
  }

  // Moments as they are after they have been stored.
  void quantise(float* m, float* v, std::int64_t count) const {
    if (scenario_.optimizer.state_bits == 16)
      for (std::int64_t i = 0; i < count; ++i)
        m[i] = to_float(split_master(m[i]).parameter), v[i] = to_float(split_master(v[i]).parameter);
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
  std::vector<PlainState> states_;
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
