// The body of Adafactor's update, with LibTorch's operators in the order of torch.optim.Adafactor, so that on the CPU
// it gives the same bits. Operands: those of bodies/optimizer.cpp, with one state that has fields of its own.
#include <ATen/ops/add.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/div.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>

#include <algorithm>
#include <cmath>

#include "core/formats/masters.hpp"
#include "core/formats/sums.hpp"
#include "runtime/bodies/common/decay_groups.hpp"
#include "runtime/bodies/common/masters.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/bodies/common/update_options.hpp"
#include "runtime/body_table.hpp"
#include "runtime/executors/not_finite.hpp"
#include "runtime/optimizer/update_control.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

using at::Tensor;

Tensor norm(const Tensor& x) { return at::linalg_vector_norm(x, 2); }
Tensor norm_along(const Tensor& x, std::int64_t dim) {
  return at::linalg_vector_norm(x, 2, at::IntArrayRef{dim}, /*keepdim=*/true);
}

// One step's numbers. On the device the control's scale is not known here: 0 skips the step.
struct Step {
  explicit Step(const BodyCall& call)
      : options(update_options(call)),
        number(static_cast<double>(update_number(call))),
        forgets(std::pow(number, kAdafactorDecay)),
        rate(std::min(options.learning_rate, 1 / std::sqrt(number))) {}
  UpdateOptions options;
  double number, forgets, rate;
  const UpdateControl* control = nullptr;
  Tensor scale, goes_on;  // on the device, under clipping: doubles
};

class FieldUpdate {
 public:
  // `parameter`: fp32. `means`: of each row, and `columns`; or of each element, where those are undefined.
  FieldUpdate(const Step& step, Tensor gradient, Tensor parameter, Tensor means, Tensor columns)
      : step_(step),
        gradient_(std::move(gradient)),
        parameter_(std::move(parameter)),
        means_(std::move(means)),
        columns_(std::move(columns)) {}

  // The norms of the update and of the parameter before it.
  std::pair<Tensor, Tensor> run(double weight_decay) {
    const Tensor parameter_norm = norm(parameter_);
    decay(weight_decay);
    follow_squares();
    Tensor update = root_of_inverse();
    update.mul_(gradient_);
    const Tensor update_norm = norm(update);
    move(update, update_norm, parameter_norm);
    return {update_norm, parameter_norm};
  }

 private:
  // a + (b - a) * weight, but for a step that is skipped.
  void go_towards(const Tensor& mean, const Tensor& latest) const {
    if (!step_.goes_on.defined()) {
      mean.lerp_(latest, step_.forgets);
      return;
    }
    mean.lerp_(latest, step_.goes_on.mul(step_.forgets).to(at::kFloat));
  }

  void decay(double weight_decay) {
    const double shrinks = step_.options.learning_rate * weight_decay;
    if (shrinks == 0) return;
    if (step_.goes_on.defined())
      parameter_.mul_(step_.goes_on.mul(-shrinks).add_(1));
    else
      parameter_.mul_(1 - shrinks);
  }

  void follow_squares() {
    if (!columns_.defined()) return go_towards(means_, gradient_.square());
    for (const std::int64_t dim : {-1, -2})
      go_towards(dim == -1 ? means_ : columns_, norm_along(gradient_, dim).square_().div_(gradient_.size(dim)));
  }

  Tensor root_of_inverse() const {
    Tensor squares;
    if (!columns_.defined()) {
      squares = means_.clone();
    } else {
      squares = at::mul(means_, columns_);
      squares.div_(at::mean(means_, at::IntArrayRef{-2}, /*keepdim=*/true).clamp_min_(kAdafactorLeast));
    }
    return squares.clamp_min_(kAdafactorLeast * kAdafactorLeast).rsqrt_();
  }

  void move(Tensor& update, const Tensor& update_norm, const Tensor& parameter_norm) {
    const double root = std::sqrt(static_cast<double>(update.numel()));
    if (!update.is_cuda()) {
      const double size = std::max(kAdafactorLeastScale, parameter_norm.item<double>() / root) * step_.rate;
      const double too_large = std::max(1.0, update_norm.item<double>() / (root * kAdafactorClip));
      parameter_.add_(update, -size / too_large);
      return;
    }
    const Tensor size = parameter_norm.to(at::kDouble).div_(root).clamp_min_(kAdafactorLeastScale).mul_(-step_.rate);
    Tensor factor = size.div_(update_norm.to(at::kDouble).div_(root * kAdafactorClip).clamp_min_(1));
    if (step_.goes_on.defined()) factor.mul_(step_.goes_on);
    parameter_.add_(update.mul_(factor));
  }

  const Step& step_;
  Tensor gradient_, parameter_, means_, columns_;
};

// In fp32, and scaled: a copy, unless it is both already.
Tensor gradient_of(const Tensor& stored, const Step& step) {
  if (step.control == nullptr) return stored.to(at::kFloat);
  if (!step.scale.defined()) {
    const auto scale = static_cast<float>(step.control->gradient_scale);
    return stored.scalar_type() == at::kFloat ? at::mul(stored, scale) : stored.to(at::kFloat).mul_(scale);
  }
  // The product of 0 and what is not finite is no number either.
  return stored.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).mul_(step.scale).nan_to_num_(0, 0, 0);
}

void say_of(BodyCall& call, const Field& field, const std::pair<Tensor, Tensor>& norms) {
  if (call.processor == Processor::Host) {
    for (const Tensor* norm : {&norms.first, &norms.second})
      if (!std::isfinite(norm->item<double>())) throw NotFinite("the update of " + field.name + " is not finite");
    return;
  }
  if (call.late_result == nullptr) return;
  Tensor mark = tensor_at(call.processor, call.late_result, {}, at::kLong);
  for (const Tensor* norm : {&norms.first, &norms.second})
    mark.masked_fill_(at::isfinite(*norm).logical_not_(), 1 + field.offset / size_of(DType::F32));
}

// Operands as of any update (bodies/optimizer.cpp): what leads, [master_low], the state; fp16 with masters: the
// parameter last.
struct Operand {
  Operand(const BodyCall& call, std::size_t write)
      : tensor(call.graph.tensor_of(call.op.writes[write].value)),
        bucket(*tensor.layout, call.writes[write], call.processor, tensor.type) {}
  const tandem::Tensor& tensor;
  Bucket bucket;
};

Step step_of(const BodyCall& call, std::size_t updated) {
  Step step(call);
  if (call.reads.size() <= updated + 1) return step;
  step.control = reinterpret_cast<const UpdateControl*>(call.reads[updated + 1]);
  if (call.processor == Processor::Host) return step;
  step.scale = tensor_at(call.processor, call.reads[updated + 1], {}, at::kDouble);
  step.goes_on = step.scale.ne(0).to(at::kDouble);
  return step;
}

std::int64_t adafactor(BodyCall& call) {
  const Operands no_autograd(call);
  const bool has_low = is_state(call.graph.tensor_of(call.op.writes[1].value), kMasterLow);
  const std::size_t updated = has_low ? 3 : 2;
  for (std::size_t i = 0; i < updated; ++i)
    copy_bytes(call, call.reads[i + 1], call.writes[i], call.graph.value(call.op.writes[i].value).bytes);
  const Step step = step_of(call, updated);
  if (step.control != nullptr && !step.scale.defined() && step.control->gradient_scale == 0) return 0;
  const Operand leader(call, 0), means(call, updated - 1);
  const Layout& layout = *leader.tensor.layout;
  const Bucket gradients(layout, call.reads[0], call.processor, call.graph.tensor_of(call.op.reads[0]).type);
  std::size_t next_mean = 0;
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const Field& field = layout.fields[i];
    const Tensor rows = means.bucket.field(next_mean++);
    const Tensor columns = field.shape.size() > 1 ? means.bucket.field(next_mean++) : Tensor();
    // By name: without the rows that pad, of which there are no means.
    const Tensor stored = leader.bucket[field.name], low = has_low ? Operand(call, 1).bucket[field.name] : Tensor();
    const Tensor master = masters_of(stored, low);
    const double decay = decays(call.scenario.optimizer, field) ? step.options.weight_decay : 0;
    say_of(call, field, FieldUpdate(step, gradient_of(gradients[field.name], step), master, rows, columns).run(decay));
    round_masters(master, stored, low);
    if (call.op.writes.size() > updated) Operand(call, updated).bucket[field.name].copy_(master);
  }
  return 0;
}

constexpr BodyEntry kBodies[] = {{"optimizer.adafactor", adafactor}};

}  // namespace

std::span<const BodyEntry> adafactor_bodies() { return kBodies; }

}  // namespace tandem
