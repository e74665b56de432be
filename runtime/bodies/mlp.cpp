// Bodies of the mlp family. Work::sizes: batch, inputs, outputs, micro_batches, input_gradient, accumulates. Operands
// in the order of core/workloads/common/plan.hpp.
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/threshold_backward.h>

#include "runtime/bodies/common/load.hpp"
#include "runtime/bodies/common/networks.hpp"

namespace tandem {
namespace {

using at::Tensor;

struct Sizes {
  explicit Sizes(const Operands& o)
      : batch(o.size(0)),
        inputs(o.size(1)),
        outputs(o.size(2)),
        micro_batches(o.size(3)),
        input_gradient(o.size(4) != 0),
        accumulates(o.size(5) != 0) {}
  std::int64_t batch, inputs, outputs, micro_batches;
  bool input_gradient, accumulates;
};

std::int64_t layer_forward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor x = o.read({s.batch, s.inputs});
  Tensor out = o.write({s.batch, s.outputs});
  linear_out(out, x, p, "relu");
  out.relu_();
  return 0;
}

std::int64_t layer_backward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Tensor grad = o.read({s.batch, s.outputs});
  const Bucket p = s.input_gradient ? o.read_bucket() : Bucket();
  // The images come after the saved tensors, the output of the layer before comes first.
  Tensor x = s.input_gradient ? o.read({s.batch, s.inputs}) : Tensor();
  const Tensor out = o.read({s.batch, s.outputs});
  if (!s.input_gradient) x = o.read({s.batch, s.inputs});
  const Gradients gradients(o.write_bucket(), s.accumulates);
  Tensor grad_linear = at::empty_like(grad);
  at::threshold_backward_out(grad_linear, grad, out, 0);
  gradients.linear("relu", grad_linear, x);
  if (s.input_gradient) linear_input_gradient(o.write({s.batch, s.inputs}), grad_linear, p["relu.weight"]);
  return 0;
}

std::int64_t head_forward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor x = o.read({s.batch, s.inputs}), targets = o.read({s.batch}, at::kLong);
  const Tensor log_probabilities = o.write({s.batch, s.outputs}, at::kFloat), target_count = o.write({}, at::kFloat);
  const Tensor logits = at::addmm(p["output.bias"], x, p["output.weight"].t());
  return give_result(call, cross_entropy(log_probabilities, target_count, logits, targets));
}

std::int64_t head_backward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor x = o.read({s.batch, s.inputs});
  const Tensor log_probabilities = o.read({s.batch, s.outputs}, at::kFloat), target_count = o.read({}, at::kFloat);
  const Tensor targets = o.read({s.batch}, at::kLong);
  const Gradients gradients(o.write_bucket(), s.accumulates);
  const Tensor grad_logits = at::empty_like(log_probabilities);
  cross_entropy_backward(grad_logits, log_probabilities, targets, target_count, s.micro_batches, o.loss_scale());
  gradients.linear("output", grad_logits, x);
  linear_input_gradient(o.write({s.batch, s.inputs}), grad_logits, p["output.weight"]);
  return 0;
}

constexpr BodyEntry kBodies[] = {
    {"mlp.parameters.load", load_parameters},
    {"mlp.batch.load", load_image_batch},
    {"mlp.layer.forward", layer_forward, kRepeatable},
    {"mlp.layer.backward", layer_backward, kRepeatable},
    {"mlp.head.forward", head_forward},
    {"mlp.head.backward", head_backward, kRepeatable},
};

}  // namespace

std::span<const BodyEntry> mlp_bodies() { return kBodies; }

}  // namespace tandem
