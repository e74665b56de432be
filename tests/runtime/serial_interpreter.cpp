#include "tests/runtime/serial_interpreter.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/body_table.hpp"
#include "runtime/executors/workspace.hpp"
#include "runtime/torch_allocator.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kAlignment = 64;

std::uint64_t hash(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
  x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
  return x ^ (x >> 33);
}

std::int64_t draw(BatchKey key, std::int64_t index, std::int64_t below) {
  std::uint64_t h = hash(static_cast<std::uint64_t>(key.step) + 0x9e37u);
  h = hash(h ^ static_cast<std::uint64_t>(key.micro_batch + 77));
  h = hash(h ^ static_cast<std::uint64_t>(key.rank + 777));
  return static_cast<std::int64_t>(hash(h ^ static_cast<std::uint64_t>(index)) % static_cast<std::uint64_t>(below));
}

}  // namespace

void HashedData::next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                                  std::int64_t* targets) const {
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0; t < sequence; ++t) {
      inputs[b * sequence + t] = draw(key, b * (sequence + 1) + t, tokens_);
      targets[b * sequence + t] = draw(key, b * (sequence + 1) + t + 1, tokens_);
    }
}

void HashedData::masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                                    std::int64_t* inputs, std::int64_t* targets) const {
  constexpr std::int64_t kOneIn = 7, kIgnored = -100;
  for (std::int64_t i = 0; i < batch * sequence; ++i) {
    const std::int64_t token = draw(key, i, tokens_);
    const bool masked = draw(key, -i - 1, kOneIn) == 0;
    inputs[i] = masked ? vocabulary - 1 : token;
    targets[i] = masked ? token : kIgnored;
  }
}

void HashedData::image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                             std::int64_t* labels) const {
  constexpr std::int64_t kShades = 17;
  for (std::int64_t i = 0; i < batch * inputs; ++i)
    images[i] = static_cast<float>(draw(key, i, kShades)) / static_cast<float>(kShades - 1);
  for (std::int64_t b = 0; b < batch; ++b) labels[b] = draw(key, -b - 1, classes_);
}

void AlignedFree::operator()(std::byte* bytes) const { std::free(bytes); }

// Filled with a NaN pattern, so that a body that reads what nobody wrote is seen.
AlignedBytes aligned_bytes(std::int64_t bytes) {
  const std::int64_t rounded = (std::max<std::int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<std::size_t>(rounded)));
  std::memset(memory, 0xff, static_cast<std::size_t>(rounded));
  return AlignedBytes(memory);
}

SerialInterpreter::SerialInterpreter(const Scenario& scenario, const DataSource& data, const Rewrites& rewrites,
                                     int parts)
    : scenario_(scenario), data_(data), parts_(parts) {
  install_workspace_allocator();
  source_ = find_workload(scenario.workload.family)->make(scenario_, rewrites);
}

void SerialInterpreter::run() {
  source_->prologue(graph_);
  OpId next = 0;
  bool more = true;
  while (more) {
    more = source_->append_step(graph_, last_result_);
    for (; next < graph_.op_count(); ++next) run_op(graph_.op(next));
  }
}

void SerialInterpreter::run_op(const Op& op) {
  memory_.resize(static_cast<std::size_t>(graph_.value_count()));
  for (const Write& write : op.writes) {
    auto& place = memory_[static_cast<std::size_t>(write.value)];
    if (write.reuses != kNone) {
      place = memory_[static_cast<std::size_t>(write.reuses)];
    } else {
      place = std::shared_ptr<std::byte[]>(aligned_bytes(graph_.value(write.value).bytes));
    }
  }
  const std::int64_t lead = op.writes.empty() ? 0 : graph_.value(op.writes[0].value).bytes;
  const std::int64_t step = op.divisible ? (lead / parts_ + kAlignment) / kAlignment * kAlignment : lead;
  if (lead == 0) run_part(op, {});  // an op may give a result alone
  for (std::int64_t first = 0; first < lead; first += step) run_part(op, {first, std::min(step, lead - first)});
  // What is superseded and read for the last time is given back, so that nothing reads it later unnoticed.
  for (const Write& write : op.writes)
    if (write.reuses != kNone) memory_[static_cast<std::size_t>(write.reuses)] = nullptr;
}

void SerialInterpreter::run_part(const Op& op, ByteRange lead) {
  const std::int64_t lead_bytes = op.writes.empty() ? 0 : graph_.value(op.writes[0].value).bytes;
  const auto at = [&](ValueId value) {
    const std::int64_t first = op.divisible ? operand_range(lead, lead_bytes, graph_.value(value).bytes).first : 0;
    return bytes(value) + first;
  };
  BodyCall call{.graph = graph_,
                .op = op,
                .work = graph_.work_of(op),
                .scenario = scenario_,
                .data = data_,
                .reads = {},
                .writes = {}};
  for (ValueId read : op.reads) call.reads.push_back(at(read));
  for (const Write& write : op.writes) call.writes.push_back(at(write.value));
  call.first_byte = lead.first;
  call.bytes = lead.bytes;
  const std::int64_t result = call_body(op, call);
  if (op.has_result) results_[std::string(graph_.label(op.label))].push_back(result);
  if (op.grows) last_result_ = result;
}

std::int64_t SerialInterpreter::call_body(const Op& op, BodyCall& call) {
  const AlignedBytes workspace = aligned_bytes(op.workspace_bytes);
  const WorkspaceScope scope(workspace.get(), op.workspace_bytes);
  const std::int64_t result = find_body(call.work).body(call);
  const auto same = [&](const Use& use) { return use.body == call.work.body && use.declared == op.workspace_bytes; };
  auto use = std::find_if(uses_.begin(), uses_.end(), same);
  if (use == uses_.end()) use = uses_.insert(use, {call.work.body, op.workspace_bytes, 0});
  use->peak = std::max(use->peak, scope.peak_bytes());
  return result;
}

std::map<std::string, std::vector<float>> SerialInterpreter::parameters() const {
  std::map<std::string, std::vector<float>> result;
  for (TensorId id = 0; id < graph_.tensor_count(); ++id) {
    const Tensor& tensor = graph_.tensor(id);
    if (tensor.role != Role::Parameter) continue;
    const std::string stage = tensor.name.substr(0, tensor.name.find('.') + 1);
    for (const Field& field : tensor.layout->fields) {
      const auto* first = reinterpret_cast<const float*>(bytes(tensor.latest) + field.offset);
      result[stage + field.name].assign(first, first + field.elements());
    }
  }
  return result;
}

}  // namespace tandem
