// Bodies of the update: the gradient norm's partial sums, what they decide (clipping, fp16's loss scale), and the rules
// by which each element is updated.
#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

#include "core/formats/layout.hpp"
#include "core/formats/sums.hpp"
#include "core/run/divided_weights.hpp"
#include "runtime/bodies/common/decay_groups.hpp"
#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/bodies/common/update_options.hpp"
#include "runtime/executors/not_finite.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/gradient_checks.hpp"
#include "runtime/optimizer/update_control.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

using at::Tensor;

double* doubles(void* bytes) { return static_cast<double*>(bytes); }

// What all ranks that divide layers have, the first of them counts.
bool counts(const BodyCall& call, const tandem::Tensor& gradient, const Field& field) {
  const RankPart part(call.work);
  if (part.ranks == 1 || part.own == 0) return true;
  const std::string stage = gradient.name.substr(0, gradient.name.find('.') + 1);
  return DividedWeights::of(call.scenario)->part(stage + field.name).is_first_with_it(part.own);
}

// The sums of squares of all fields, on the device; its blocks' sums are the op's workspace.
void grad_norm_on_device(BodyCall& call) {
  const auto& gradient = call.graph.tensor_of(call.op.reads[0]);
  bool first = true;
  for (const Field& field : gradient.layout->fields) {
    const HeldElements held = held_elements(field, gradient);
    if (held.count == 0 || !counts(call, gradient, field)) continue;
    const Tensor sums = at::empty({norm_blocks(held.count)}, at::TensorOptions(at::kDouble).device(at::kCUDA));
    device_kernels().square_sum(call.reads[0] + held.first * size_of(gradient.type), gradient.type, held.count, first,
                                sums.data_ptr<double>(), doubles(call.writes[0]), doubles(call.late_result));
    first = false;
  }
  if (!first) return;  // else a rank's part that holds padding, or what another counts, alone
  at::from_blob(call.writes[0], {1}, at::TensorOptions(at::kDouble).device(at::kCUDA)).zero_();
  *doubles(call.late_result) = 0;
}

std::int64_t grad_norm(BodyCall& call) {
  const Operands no_autograd(call);
  if (call.processor == Processor::Device) {
    grad_norm_on_device(call);
    return 0;
  }
  const auto& gradient = call.graph.tensor_of(call.op.reads[0]);
  double sum = 0;
  for (const Field& field : gradient.layout->fields) {
    const HeldElements held = held_elements(field, gradient);
    if (held.count > 0 && counts(call, gradient, field))
      sum +=
          check_gradient(call.reads[0] + held.first * size_of(gradient.type), gradient.type, held.count).sum_of_squares;
  }
  *doubles(call.writes[0]) = sum;
  return std::bit_cast<std::int64_t>(sum);
}

UpdateRules update_rules(const BodyCall& call) {
  const UpdateOptions options = update_options(call);
  return update_rules(call.scenario.optimizer, options, update_step(options, update_number(call)));
}

// Reads the sums of squares, [the loss scale]; writes the control, [the loss scale]. The result is the norm.
std::int64_t control(BodyCall& call, bool has_scale) {
  const std::span<std::byte* const> sums(call.reads.data(), call.reads.size() - (has_scale ? 1 : 0));
  auto& control = *reinterpret_cast<UpdateControl*>(call.writes[0]);
  const auto* old = has_scale ? reinterpret_cast<const LossScale*>(call.reads.back()) : nullptr;
  auto* scale = has_scale ? reinterpret_cast<LossScale*>(call.writes[1]) : nullptr;
  const UpdateRules rules = update_rules(call);
  if (call.processor == Processor::Device) {
    for (std::size_t i = 0; i < sums.size(); ++i)
      device_kernels().sum(doubles(sums[i]), i == 0, &control.gradient_scale);
    device_kernels().control(rules, &control.gradient_scale, old, scale, &control, doubles(call.late_result));
    return 0;
  }
  double sum = 0;
  for (std::byte* part : sums) sum += *doubles(part);
  if (has_scale && scale != old) *scale = *old;
  return std::bit_cast<std::int64_t>(control_update(rules, sum, scale, control));
}

std::int64_t clip(BodyCall& call) { return control(call, /*has_scale=*/false); }
std::int64_t loss_scale(BodyCall& call) { return control(call, /*has_scale=*/true); }

std::int64_t load_loss_scale(BodyCall& call) {
  *reinterpret_cast<LossScale*>(call.writes[0]) = initial_loss_scale(call.scenario.optimizer.initial_loss_scale);
  return 0;
}

using FusedAdam = decltype(&at::_ops::_fused_adam_::call);

// Operands of a part, by the parameter's type; `states`: those of the optimizer. [control] is read last.
//   fp32  reads gradient, parameter, states              writes parameter, states
//   bf16  reads gradient, parameter, master_low, states  writes parameter, master_low, states
//   fp16  reads gradient, master, states                 writes master, states, parameter
// A 16-bit parameter without a master: as in fp32. States: numbers, or quantised, in whole blocks. What is updated in
// place is copied first where the new version has a place of its own. A 16-bit parameter that is read is read at one
// place and written to the other instead.
struct Part {
  explicit Part(BodyCall& call)
      : gradient(call.reads[0]),
        first(leader(call).first_element + call.first_byte / leader_size(call)),
        elements(call.bytes / leader_size(call)) {
    const DType type = call.work.type;
    const bool masters = type == DType::F32 || call.scenario.optimizer.masters;
    const bool writes_beside = type == DType::F16 && masters;
    const std::size_t updated = call.op.writes.size() - (writes_beside ? 1 : 0);
    std::size_t state = 1;
    if (type == DType::F32 || writes_beside) {
      master = call.writes[0];
    } else {
      old_parameter = call.reads[1];
      parameter = call.writes[0];
      if (masters) master_low = call.writes[state++];
    }
    if (writes_beside) parameter = call.writes[updated];
    if (state < updated) m = call.writes[state++];
    if (state < updated) v = call.writes[state++];
    if (call.reads.size() > updated + 1) control = reinterpret_cast<UpdateControl*>(call.reads[updated + 1]);
    for (std::size_t i = old_parameter != nullptr ? 1 : 0; i < updated; ++i)
      copy_bytes(call, call.reads[i + 1], call.writes[i], bytes_of(call, call.op.writes[i].value));
  }
  static std::int64_t bytes_of(const BodyCall& call, ValueId value) {
    return operand_range({call.first_byte, call.bytes}, call.graph.value(call.op.writes[0].value).bytes,
                         call.graph.value(value).bytes)
        .bytes;
  }
  static const tandem::Tensor& leader(const BodyCall& call) { return call.graph.tensor_of(call.op.writes[0].value); }
  static std::int64_t leader_size(const BodyCall& call) { return size_of(leader(call).type); }

  std::byte *gradient, *m = nullptr, *v = nullptr;
  std::byte *master = nullptr, *parameter = nullptr;          // fp32: `master` is the parameter
  std::byte *old_parameter = nullptr, *master_low = nullptr;  // bf16, or without masters
  const UpdateControl* control = nullptr;                     // null: every step is as it is planned
  std::int64_t first, elements;                               // of the bucket
};

// Updates `elements` from `offset` bytes after the part's begin, all within one field, as whole-graph training does.
void update_as_torch(FusedAdam adam, const UpdateOptions& o, BodyCall& call, const Part& part, std::int64_t offset,
                     std::int64_t elements) {
  const auto at = [&](std::byte* begin) { return tensor_at(Processor::Host, begin + offset, {elements}, at::kFloat); };
  const Tensor step = at::full({}, static_cast<float>(update_number(call)), at::kFloat);
  Tensor gradient = at(part.gradient);
  if (part.control != nullptr) gradient = at::mul(gradient, static_cast<float>(part.control->gradient_scale));
  adam({at(part.master)}, {gradient}, {at(part.m)}, {at(part.v)}, {}, {step}, o.learning_rate, o.beta1, o.beta2,
       o.weight_decay, o.epsilon, /*amsgrad=*/false, /*maximize=*/false, std::nullopt, std::nullopt);
}

UpdateSpan span_of(const BodyCall& call, const Part& part) {
  return {.gradient = part.gradient,
          .m = part.m,
          .v = part.v,
          .state_bits = call.scenario.optimizer.state_bits,
          .master = reinterpret_cast<float*>(part.master),
          .parameter = part.parameter,
          .old_parameter = part.old_parameter,
          .master_low = reinterpret_cast<std::int16_t*>(part.master_low),
          .elements = part.elements,
          .gradient_type = call.graph.tensor_of(call.op.reads[0]).type,
          .parameter_type = call.work.type,
          .masters = call.scenario.optimizer.masters,
          .not_finite = call.late_result,
          .first_element = part.first};
}

// Elements of a part that are all updated the same way.
struct Run {
  UpdateStep step;
  UpdateSpan span;
};

std::vector<Run> runs_of(const BodyCall& call, const Part& part, UpdateOptions options) {
  const UpdateStep decaying = update_step(options, update_number(call));
  options.weight_decay = 0;
  const UpdateStep plain = update_step(options, update_number(call));
  const Layout& layout = *call.graph.tensor_of(call.op.writes[0].value).layout;
  const UpdateSpan span = span_of(call, part);
  std::vector<Run> runs;
  for (const DecayGroup& group : decay_groups(call.scenario.optimizer, layout, part.first, part.elements))
    runs.push_back({group.decays ? decaying : plain, part_of(span, group.first, group.elements)});
  return runs;
}

bool update_on_host(const std::vector<Run>& runs, const UpdateControl* control) {
  std::atomic<bool> finite = true;
  std::vector<Run> tiles;
  for (const Run& run : runs)
    for (std::int64_t first = 0; first < run.span.elements; first += kTileElements)
      tiles.push_back({control == nullptr ? run.step : controlled(run.step, *control),
                       part_of(run.span, first, std::min(kTileElements, run.span.elements - first))});
  ThreadTeam::mine(at::get_num_threads()).share(static_cast<int>(tiles.size()), [&](int i) {
    const Run& tile = tiles[static_cast<std::size_t>(i)];
    if (!update_elements(tile.step, tile.span)) finite = false;
  });
  return finite;
}

// Adam all in fp32 on the host gives the bits of LibTorch's kernel, which plain training there uses. Our own loop has
// them for whole vectors, in one pass over memory; a field's last, partial one is LibTorch's. A part begins at a
// multiple of 64 bytes, as fields do, so that it is the same whatever part it is in. Returns whether all is finite.
bool update_fields_as_torch(BodyCall& call, const Part& part) {
  const UpdateOptions decaying = update_options(call);
  UpdateOptions plain = decaying;
  plain.weight_decay = 0;
  const FusedAdam adam = decaying.decoupled ? &at::_ops::_fused_adamw_::call : &at::_ops::_fused_adam_::call;
  const UpdateStep decaying_step = update_step(decaying, update_number(call)),
                   plain_step = update_step(plain, update_number(call));
  const UpdateSpan span = span_of(call, part);
  std::vector<Run> runs;
  bool finite = true;
  for (const Field& field : call.graph.tensor_of(call.op.writes[0].value).layout->fields) {
    const std::int64_t begin = field.offset / size_of(DType::F32);
    const std::int64_t first = std::max(begin, part.first),
                       end = std::min(begin + field.elements(), part.first + part.elements);
    if (first >= end) continue;
    const bool shrinks = decays(call.scenario.optimizer, field);
    const std::int64_t rest = (end - first) % kWholeVector, at = first - part.first, last = end - part.first - rest;
    runs.push_back({shrinks ? decaying_step : plain_step, part_of(span, at, last - at)});
    if (rest == 0) continue;
    update_as_torch(adam, shrinks ? decaying : plain, call, part, last * size_of(DType::F32), rest);
    for (const std::byte* numbers : {part.master, part.v})
      finite &= check_gradient(numbers + last * size_of(DType::F32), DType::F32, rest).finite;
  }
  return finite & update_on_host(runs, part.control);
}

// An update has left something that is not finite: says what. Nothing, where that is between fields: a number that is
// none of the network's may become 0 / 0 with an epsilon of 0.
void refuse_update(const BodyCall& call, const Part& part) {
  const auto& gradient = call.graph.tensor_of(call.op.reads[0]);
  const auto& leader = Part::leader(call);
  const std::int64_t first = part.first - leader.first_element;
  if (const std::string field = not_finite_field(gradient, part.gradient, first, part.elements); !field.empty())
    throw NotFinite("the gradient of " + field);
  for (std::size_t i = 0; i < call.op.writes.size(); ++i) {
    const auto& tensor = call.graph.tensor_of(call.op.writes[i].value);
    if (const std::string field = not_finite_field(tensor, call.writes[i], first, part.elements); !field.empty())
      throw NotFinite(field + (i > 0 && tensor.role == Role::OptimizerState ? " in its optimizer state" : "") +
                      " after its update, from a finite gradient");
  }
  if (call.scenario.optimizer.epsilon > 0)
    throw NotFinite("the update of " + std::string(call.graph.label(call.op.label)) + " is not finite");
}

// A skipped step: the parameter is as before.
std::int64_t keep_parameter(const BodyCall& call, const Part& part) {
  if (part.old_parameter != nullptr)
    copy_bytes(call, part.old_parameter, part.parameter, part.elements * size_of(call.work.type));
  else if (part.parameter != nullptr)
    tensor_at(Processor::Host, part.parameter, {part.elements}, torch_type(call.work.type))
        .copy_(tensor_at(Processor::Host, part.master, {part.elements}, at::kFloat));
  return 0;
}

// All but Adam in fp32 on the host gives the same bits on the device.
std::int64_t update_part(BodyCall& call) {
  const Operands no_autograd(call);
  const Part part(call);
  const bool on_host = call.processor == Processor::Host;
  if (on_host && part.control != nullptr && part.control->gradient_scale == 0) return keep_parameter(call, part);
  const UpdateOptions options = update_options(call);
  const bool all_fp32 = call.work.type == DType::F32 && call.scenario.optimizer.state_bits == 32;
  if (on_host && all_fp32 && options.rule == Rule::Adam) {
    if (!update_fields_as_torch(call, part)) refuse_update(call, part);
    return 0;
  }
  const std::vector<Run> runs = runs_of(call, part, options);
  if (on_host) {
    if (!update_on_host(runs, part.control)) refuse_update(call, part);
  } else {
    for (const Run& run : runs) update_on_device(run.step, run.span, part.control);
  }
  return 0;
}

// What micro-batches' gradients add up to, where each is reduced by itself: the sum so far, and another.
std::int64_t accumulate(BodyCall& call) {
  Operands operands(call);
  const std::int64_t elements = call.work.sizes.at(0);
  const Tensor so_far = operands.read({elements}), gradient = operands.read({elements});
  Tensor sum = operands.write({elements});
  at::add_out(sum, so_far, gradient);
  return 0;
}

// A bucket in fp32, padding and all.
std::int64_t widen(BodyCall& call) {
  Operands operands(call);
  const std::int64_t elements = call.work.sizes.at(0);
  const Tensor narrow = operands.read({elements});
  operands.write({elements}, at::kFloat).copy_(narrow);
  return 0;
}

// Adam in a subspace reads no parameter: what it writes is the change of a zero.
std::int64_t update_subspace(BodyCall& call) {
  tensor_at(call.processor, call.writes[0], {call.bytes}, at::kByte).zero_();
  BodyCall update = call;
  update.reads.insert(update.reads.begin() + 1, call.writes[0]);
  return update_part(update);
}

constexpr BodyEntry kBodies[] = {
    {"grad_norm", grad_norm},
    {"clip", clip},
    {"loss_scale", loss_scale},
    {"loss_scale.load", load_loss_scale},
    {"gradient.accumulate", accumulate},
    {"gradient.widen", widen},
    {"optimizer.adam", update_part},
    {"optimizer.adam_16bit", update_part},
    {"optimizer.adam_8bit", update_part},
    {"optimizer.adam_4bit", update_part},
    {"optimizer.adamw", update_part},
    {"optimizer.adamw_16bit", update_part},
    {"optimizer.adamw_8bit", update_part},
    {"optimizer.adamw_4bit", update_part},
    {"optimizer.lion", update_part},
    {"optimizer.lion_16bit", update_part},
    {"optimizer.sgd", update_part},
    {"optimizer.sgd_16bit", update_part},
    {"subspace.adam", update_subspace},
    {"subspace.adamw", update_subspace},
};

}  // namespace

std::span<const BodyEntry> optimizer_bodies() { return kBodies; }

}  // namespace tandem
