// Bodies of the update: the gradient norm's partial sums, the clipping coefficient, Adam and AdamW.
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <cstring>

#include "core/workloads/common/sums.hpp"
#include "runtime/bodies/common/networks.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/optimizer/gradient_checks.hpp"

namespace tandem {
namespace {

using at::Tensor;

double& as_double(std::byte* bytes) { return *reinterpret_cast<double*>(bytes); }

std::int64_t grad_norm(BodyCall& call) {
  Operands operands(call);
  const Layout& layout = *call.graph.tensor_of(call.op.reads[0]).layout;
  double sum = 0;
  for (const Field& field : layout.fields)
    sum += sum_of_squares(reinterpret_cast<const float*>(call.reads[0] + field.offset), field.elements());
  as_double(call.writes[0]) = sum;
  return bits_of(sum);
}

std::int64_t clip(BodyCall& call) {
  double sum = 0;
  for (std::byte* part : call.reads) sum += as_double(part);
  const double coefficient = clip_coefficient(sum, call.scenario.optimizer.clip_norm);
  as_double(call.writes[0]) = coefficient;
  return bits_of(coefficient);
}

using FusedAdam = decltype(&at::_ops::_fused_adam_::call);

// Operands of a part. Reads: gradient, parameter, m, v, [coefficient]; writes: parameter, m, v.
struct Part {
  explicit Part(BodyCall& call)
      : gradient(call.reads[0]), parameter(call.writes[0]), m(call.writes[1]), v(call.writes[2]) {
    const auto bytes = static_cast<std::size_t>(call.bytes);
    for (std::size_t i = 0; i < call.writes.size(); ++i)
      if (call.writes[i] != call.reads[i + 1]) std::memcpy(call.writes[i], call.reads[i + 1], bytes);
    if (call.reads.size() > kClippedReads - 1)
      coefficient = static_cast<float>(as_double(call.reads[kClippedReads - 1]));
  }
  static constexpr std::size_t kClippedReads = 5;
  std::byte *gradient, *parameter, *m, *v;
  float coefficient = 1;
  bool clips(const BodyCall& call) const { return call.reads.size() == kClippedReads; }
};

// Updates `elements` from `offset` bytes after the part's begin, all within one field.
void update(FusedAdam adam, BodyCall& call, const Part& part, std::int64_t offset, std::int64_t elements) {
  const auto at = [&](std::byte* begin) { return at::from_blob(begin + offset, {elements}, at::kFloat); };
  const OptimizerOptions& o = call.scenario.optimizer;
  const Tensor step = at::full({}, static_cast<float>(call.op.step + 1), at::kFloat);
  Tensor gradient = at(part.gradient);
  if (part.clips(call)) gradient = at::mul(gradient, part.coefficient);
  adam({at(part.parameter)}, {gradient}, {at(part.m)}, {at(part.v)}, {}, {step}, o.learning_rate, o.beta1, o.beta2,
       o.weight_decay, o.epsilon, /*amsgrad=*/false, /*maximize=*/false, std::nullopt, std::nullopt);
}

// Field by field, as separate tensors would be: the kernel's last, partial vector of a field is then the same, whatever
// part it is in. A part begins at a multiple of 64 bytes, as fields do.
std::int64_t adam_part(FusedAdam adam, BodyCall& call) {
  Operands operands(call);
  const Part part(call);
  const std::int64_t chunk = part.clips(call) ? kOptimizerChunk * size_of(DType::F32) : call.bytes;
  for (const Field& field : call.graph.tensor_of(call.op.writes[0].value).layout->fields) {
    const std::int64_t first = std::max(field.offset, call.first_byte);
    const std::int64_t end =
        std::min(field.offset + field.elements() * size_of(DType::F32), call.first_byte + call.bytes);
    for (std::int64_t at = first; at < end; at += chunk)
      update(adam, call, part, at - call.first_byte, std::min(chunk, end - at) / size_of(DType::F32));
  }
  return 0;
}

std::int64_t adam(BodyCall& call) { return adam_part(&at::_ops::_fused_adam_::call, call); }
std::int64_t adamw(BodyCall& call) { return adam_part(&at::_ops::_fused_adamw_::call, call); }

constexpr BodyEntry kBodies[] = {
    {"grad_norm", grad_norm},
    {"clip", clip},
    {"optimizer.adam", adam},
    {"optimizer.adamw", adamw},
};

}  // namespace

std::span<const BodyEntry> optimizer_bodies() { return kBodies; }

}  // namespace tandem
