#include "core/step/plan.hpp"

#include <algorithm>
#include <map>

#include "core/base/check.hpp"
#include "core/formats/layout.hpp"
#include "core/formats/masters.hpp"

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

bool StageSpec::backward_reads_frozen() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const PortSpec& port) {
    return port.from == PortSpec::From::Bucket && port.field == kNone && port.backward_reads;
  });
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

void TrainingPlan::set_states(const OptimizerEntry& of, const OptimizerOptions& options) {
  CHECK(!stages.empty() && states.empty(), "states come once, after the stages", family, stages.size(), states.size());
  optimizer = &of;
  const bool masters = options.masters && size_of(precision) == 2;
  if (masters && precision == DType::F16) {
    master = Master::FirstState;
    states.push_back({std::string(kMaster)});
  }
  if (masters && precision == DType::BF16) states.push_back({std::string(kMasterLow), DType::I16});
  const bool quantised = options.state_bits < 16;
  const DType type = quantised ? DType::U8 : options.state_bits == 16 ? DType::BF16 : DType::F32;
  const StateBlock block = quantised ? state_block(options.state_bits) : StateBlock{};
  for (const std::string& name : of.states(options)) states.push_back({name, type, 1, block, of.state_layout});
  if (!quantised) return;
  std::map<const Layout*, std::shared_ptr<const Layout>> aligned;  // stages of equal shape share one
  for (StageSpec& stage : stages) {
    if (stage.elements == 0) continue;
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
