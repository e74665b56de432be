// Bodies of 1-bit Adam: core/formats/one_bit.hpp has the method, core/transforms/one_bit.cpp the operands. All but
// the kernels is pointers: nothing here needs LibTorch's operators.
#include "core/formats/one_bit.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <vector>

#include "core/base/check.hpp"
#include "core/formats/layout.hpp"
#include "runtime/bodies/common/decay_groups.hpp"
#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/bodies/common/update_options.hpp"
#include "runtime/body_table.hpp"
#include "runtime/executors/not_finite.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/one_bit.hpp"
#include "runtime/optimizer/sent_code.hpp"
#include "runtime/optimizer/update_control.hpp"

namespace tandem {
namespace {

// The last operand, if it is one; null: every step is as it is planned.
const UpdateControl* control_of(const BodyCall& call) {
  if (call.graph.tensor_of(call.op.reads.back()).role != Role::Scalar) return nullptr;
  return reinterpret_cast<const UpdateControl*>(call.reads.back());
}

std::uint32_t* field_words(std::byte* signs, const Field& field) {
  return reinterpret_cast<std::uint32_t*>(signs + field.offset);
}

// Calls work(part) for all tiles of whole blocks, each on one of the threads.
template <class Span, class Work>
void share_tiles(const std::vector<Span>& spans, std::int64_t block, std::int64_t (*elements_of)(const Span&),
                 Work&& work) {
  const std::int64_t tile = std::max<std::int64_t>(1, kTileElements / block) * block;
  std::vector<Span> tiles;
  for (const Span& span : spans)
    for (std::int64_t first = 0; first < elements_of(span); first += tile)
      tiles.push_back(part_of(span, first, std::min(tile, elements_of(span) - first)));
  ThreadTeam::mine(at::get_num_threads()).share(static_cast<int>(tiles.size()), [&](int i) {
    work(tiles[static_cast<std::size_t>(i)]);
  });
}

// Padding has no gradient and keeps nothing.
std::int64_t compress(BodyCall& call, float kept_weight) {
  Operands operands(call);
  const auto& gradient = call.graph.tensor_of(call.op.reads[0]);
  copy_bytes(call, call.reads[1], call.writes[1], call.graph.value(call.op.writes[1].value).bytes);
  const Bucket signs = operands.write_bucket();
  signs.zero_padding();
  std::vector<MomentumSpan> spans;
  for (std::size_t i = 0; i < gradient.layout->fields.size(); ++i) {
    const Field& field = gradient.layout->fields[i];
    spans.push_back({.gradient = call.reads[0] + field_offset(field, gradient.type),
                     .gradient_type = gradient.type,
                     .kept = reinterpret_cast<float*>(call.writes[1] + field.offset),
                     .signs = field_words(call.writes[0], signs.layout().fields[i]),
                     .elements = field.elements(),
                     .block = operands.size(0),
                     .kept_weight = kept_weight,
                     .gradient_weight = static_cast<float>(1 - call.scenario.optimizer.beta1),
                     .error_feedback = operands.size(1) != 0});
  }
  const UpdateControl* control = control_of(call);
  if (call.processor == Processor::Device) {
    for (const MomentumSpan& span : spans) device_kernels().compress_momentum(span, control);
    return 0;
  }
  const float scale = control == nullptr ? 1 : static_cast<float>(control->gradient_scale);
  share_tiles<MomentumSpan>(
      spans, operands.size(0), [](const MomentumSpan& span) { return span.elements; },
      [&](const MomentumSpan& tile) { compress_momentum(tile, scale); });
  return 0;
}

std::int64_t begin(BodyCall& call) { return compress(call, static_cast<float>(call.scenario.optimizer.beta1)); }
std::int64_t go_on(BodyCall& call) { return compress(call, 1); }

template <class Span>
struct Update {
  UpdateStep step;
  Span span;
};
template <class Span>
Update<Span> part_of(const Update<Span>& update, std::int64_t first, std::int64_t elements) {
  return {update.step, tandem::part_of(update.span, first, elements)};
}

// The masters of a bucket. What is updated in place is copied first where it has a place of its own; a bf16 parameter
// is read at one place and written to the other instead.
UpdateSpan masters_of(const BodyCall& call) {
  UpdateSpan span{.parameter_type = call.work.type};
  const std::size_t copied = call.work.type == DType::BF16 ? 1 : 0;
  copy_bytes(call, call.reads[2 + copied], call.writes[copied], call.graph.value(call.op.writes[copied].value).bytes);
  if (call.work.type == DType::F32) {
    span.master = reinterpret_cast<float*>(call.writes[0]);
  } else {
    span.old_parameter = call.reads[2];
    span.parameter = call.writes[0];
    span.master_low = reinterpret_cast<std::int16_t*>(call.writes[1]);
  }
  return span;
}

// Adam's by a momentum that was sent. `sent`: of a field, its span, given v and the masters; Work::sizes end with the
// warm-up's steps.
template <class Span, class Sent>
std::int64_t update_by(BodyCall& call, std::int64_t block, const Sent& sent) {
  Operands operands(call);
  operands.write_bucket().zero_padding();
  const auto& parameter = call.graph.tensor_of(call.op.writes[0].value);
  UpdateSpan masters = masters_of(call);
  const UpdateControl* control = control_of(call);
  const bool on_device = call.processor == Processor::Device;
  if (!on_device && control != nullptr && control->gradient_scale == 0) {
    copy_bytes(call, call.reads[2], call.writes[0], parameter.bytes);
    return 0;
  }
  masters.not_finite = call.late_result;
  masters.elements = parameter.layout->elements;
  UpdateOptions options = update_options(call);
  options.decoupled = true;  // adam has no decay here
  const std::int64_t warmup = call.work.sizes.back();
  const UpdateStep decaying = one_bit_step(options, update_number(call), warmup);
  options.weight_decay = 0;
  const UpdateStep plain = one_bit_step(options, update_number(call), warmup);
  std::vector<Update<Span>> updates;
  for (std::size_t i = 0; i < parameter.layout->fields.size(); ++i) {
    const Field& field = parameter.layout->fields[i];
    const auto* v = reinterpret_cast<const float*>(call.reads[1] + field.offset);
    updates.push_back({decays(call.scenario.optimizer, field) ? decaying : plain,
                       sent(i, v, part_of(masters, field.offset / size_of(DType::F32), field.elements()))});
  }
  if constexpr (std::is_same_v<Span, SentSpan>)
    if (on_device) {
      for (const Update<Span>& u : updates) device_kernels().sent_update(u.step, u.span, control);
      return 0;
    }
  CHECK(!on_device, "signs that travelled are the host's");
  std::atomic<bool> finite = true;
  share_tiles<Update<Span>>(
      updates, block, [](const Update<Span>& u) { return u.span.masters.elements; },
      [&](const Update<Span>& tile) {
        if (!one_bit_update(tile.step, tile.span)) finite = false;
      });
  if (finite) return 0;
  const std::string field = not_finite_field(parameter, call.writes[0], 0, parameter.layout->elements);
  if (!field.empty() || options.epsilon > 0)
    throw NotFinite((field.empty() ? std::string(call.graph.label(call.op.label)) : field) + " after its update");
  return 0;
}

std::int64_t update(BodyCall& call) {
  const std::int64_t block = call.work.sizes.at(0);
  const Layout& signs = *call.graph.tensor_of(call.op.reads[0]).layout;
  return update_by<SignSpan>(call, block, [&](std::size_t i, const float* v, const UpdateSpan& masters) {
    return SignSpan{field_words(call.reads[0], signs.fields[i]), v, block, masters};
  });
}

// Of a momentum that ranks have made together, in the parameter's layout.
std::int64_t update_by_momentum(BodyCall& call) {
  const Layout& layout = *call.graph.tensor_of(call.op.writes[0].value).layout;
  return update_by<SentSpan>(call, /*block=*/1, [&](std::size_t i, const float* v, const UpdateSpan& masters) {
    return SentSpan{reinterpret_cast<const float*>(call.reads[0] + layout.fields[i].offset), v, masters};
  });
}

constexpr BodyEntry kBodies[] = {
    {"one_bit.begin", begin},
    {"one_bit.compress", go_on},
    {"one_bit.update", update},
    {"one_bit.by_momentum", update_by_momentum},
};

}  // namespace

std::span<const BodyEntry> one_bit_bodies() { return kBodies; }

}  // namespace tandem
