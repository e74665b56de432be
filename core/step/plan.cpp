#include "core/step/plan.hpp"

#include <algorithm>
#include <map>

#include "core/base/check.hpp"
#include "core/formats/layout.hpp"

namespace tandem {

std::int64_t StateSpec::bytes(std::int64_t elements) const {
  CHECK(elements >= 0 && (type != DType::U8 || elements % block.elements == 0), name, elements, block.elements);
  if (type == DType::U8) return elements / block.elements * block.bytes;
  return elements * numbers_per_element * size_of(type);
}

std::int64_t StageSpec::output_bytes() const {
  std::int64_t bytes = 0;
  for (const OutputSpec& output : outputs) bytes += output.bytes;
  return bytes;
}

std::int64_t StageSpec::contribution_bytes() const {
  std::int64_t bytes = 0;
  for (const PortSpec& port : inputs)
    if (port.from == PortSpec::From::Bucket && port.gradient && !port.adds) bytes += port.gradient_bytes;
  return bytes;
}

bool StageSpec::passes_gradients() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const PortSpec& port) { return port.gradient; });
}

std::int64_t BatchSpec::bytes() const {
  std::int64_t bytes = 0;
  for (const TensorSpec& tensor : tensors) bytes += tensor.bytes;
  return bytes;
}

OpSpecIndex TrainingPlan::add(OpSpec spec) {
  CHECK(spec.workspace_bytes >= 0, spec.work.body, spec.workspace_bytes);
  ops.push_back(std::move(spec));
  return static_cast<OpSpecIndex>(ops.size()) - 1;
}

static_assert(kPageBytes % (state_block(8).elements * size_of(DType::F32)) == 0, "pages hold whole blocks");
static_assert(kPageBytes % (state_block(4).elements * size_of(DType::F32)) == 0, "pages hold whole blocks");

void TrainingPlan::set_adam_states(std::int64_t state_bits) {
  CHECK(!stages.empty() && states.empty(), "states come once, after the stages", family, stages.size(), states.size());
  CHECK(state_bits == 32 || state_bits == 8 || state_bits == 4, family, state_bits);
  if (precision == DType::F16) {
    master = Master::FirstState;
    states.push_back({"master"});
  }
  if (precision == DType::BF16) states.push_back({"master_low", DType::I16});
  const bool quantised = state_bits < 32;
  const StateBlock block = state_block(state_bits);
  for (const char* moment : {"adam_m", "adam_v"})
    states.push_back({moment, quantised ? DType::U8 : DType::F32, 1, block});
  if (!quantised) return;
  std::map<const Layout*, std::shared_ptr<const Layout>> aligned;  // stages of equal shape share one
  for (StageSpec& stage : stages) {
    CHECK(stage.layout != nullptr, stage.name, "has states in blocks, but no fields that could begin at one");
    auto& layout = aligned[stage.layout.get()];
    if (layout == nullptr) layout = aligned_to(*stage.layout, block.elements);
    stage.layout = layout;
    stage.elements = layout->elements;
  }
}

std::int32_t TrainingPlan::cut_bytes() const {
  constexpr std::int64_t kLine = 64;
  std::int64_t elements = 1;
  for (const StateSpec& state : states) elements = std::max(elements, state.block.elements);
  return static_cast<std::int32_t>(std::max(kLine, elements * size_of(parameter_leads() ? precision : DType::F32)));
}

}  // namespace tandem
