#include "core/model/pass_builder.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/model/meter.hpp"
#include "core/model/opaque.hpp"

namespace tandem {
namespace {

// Of each storage, the first call that names it and the last.
struct Lives {
  explicit Lives(const Pass& pass) : first(pass.storages.size(), kNone), last(pass.storages.size(), kNone) {
    for (std::size_t i = 0; i < pass.calls.size(); ++i) {
      const PassCall& call = pass.calls[i];
      const auto index = static_cast<std::int32_t>(i);
      for (const auto* list : {&call.in, &call.out, &call.saved, &call.contributions})
        for (const std::int32_t storage : *list) see(storage, index);
      see(call.output_gradient, index);
      for (const GradientTarget& target : call.input_gradients) see(target.storage, index), see(target.base, index);
    }
  }
  void see(std::int32_t storage, std::int32_t call) {
    if (storage == kNone) return;
    auto& begin = first[static_cast<std::size_t>(storage)];
    if (begin == kNone) begin = call;
    last[static_cast<std::size_t>(storage)] = call;
  }
  std::vector<std::int32_t> first, last;
};

}  // namespace

bool Pass::has_loss() const {
  if (given != nullptr) return given->has_loss;
  return std::any_of(calls.begin(), calls.end(), [](const PassCall& call) {
    return call.direction == Direction::Forward && call.call->what->primitive.is_own_loss();
  });
}

bool Pass::has_result() const {
  if (given != nullptr) return given->has_loss;
  return std::any_of(calls.begin(), calls.end(), [](const PassCall& call) {
    return call.direction == Direction::Forward && call.call->what->primitive.gives_result();
  });
}

bool Pass::makes_gradients() const {
  return std::any_of(calls.begin(), calls.end(), [](const PassCall& call) {
    return call.direction == Direction::Forward && call.call->what->primitive.gradient_in_forward() &&
           call.wanted.any();
  });
}

bool Pass::draws_random() const {
  if (given != nullptr) return given->draws_random;
  return std::any_of(calls.begin(), calls.end(),
                     [](const PassCall& call) { return call.call->what->primitive.draws_random(); });
}

const Operand* Pass::find(OperandKind kind) const {
  for (const Operand& operand : operands)
    if (operand.kind == kind) return &operand;
  return nullptr;
}

std::int32_t PassBuilder::new_storage(std::int64_t bytes) {
  pass_.storages.push_back({kNone, 0, bytes});
  return static_cast<std::int32_t>(pass_.storages.size()) - 1;
}

std::int32_t PassBuilder::storage_of(Operand operand, std::int64_t bytes) {
  for (std::size_t i = 0; i < pass_.storages.size(); ++i)
    if (pass_.storages[i].operand != kNone &&
        pass_.operands[static_cast<std::size_t>(pass_.storages[i].operand)].is(operand.kind, operand.index))
      return static_cast<std::int32_t>(i);
  const std::int32_t storage = new_storage(bytes);
  bind(storage, operand);
  return storage;
}

void PassBuilder::bind(std::int32_t storage, Operand operand) {
  Storage& bound = pass_.storages[static_cast<std::size_t>(storage)];
  CHECK(bound.operand == kNone, pass_.module->name, "two operands in one place");
  bound.operand = static_cast<std::int32_t>(pass_.operands.size());
  pass_.operands.push_back(operand);
}

void PassBuilder::add(PassCall call, std::int64_t more_scratch) {
  const Primitive& primitive = call.call->what->primitive;
  const CallShapes& shapes = call.call->shapes;
  const auto scratch_on = [&](const RunsOn& where) {
    WorkspaceMeter scratch(where_.gpu ? kGpuGranule : kCpuGranule);
    scratch.take(more_scratch);
    primitive.scratch(call.call->how, shapes, call.direction, call.wanted, where, scratch);
    return scratch.peak();
  };
  call.scratch_bytes = scratch_on(where_);
  // The CPU may stand in for a GPU, in fp32: in 16 bits its libraries' copies of operands would be most of all memory,
  // which only a module that is meant to run there has.
  if (where_.gpu && (shapes.type == DType::F32 || where_.or_cpu))
    call.scratch_bytes = std::max(call.scratch_bytes, scratch_on({false, where_.threads}));
  primitive.kernels(call.call->how, shapes, call.direction, call.wanted, pass_.kernels);
  pass_.calls.push_back(std::move(call));
}

Pass PassBuilder::finish() {
  const Lives lives(pass_);
  WorkspaceMeter meter(where_.gpu ? kGpuGranule : kCpuGranule);
  for (std::size_t i = 0; i < pass_.calls.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    const auto for_each_here = [&](const std::vector<std::int32_t>& when, const auto& what) {
      for (std::size_t s = 0; s < pass_.storages.size(); ++s)
        if (pass_.storages[s].operand == kNone && when[s] == index) what(pass_.storages[s]);
    };
    for_each_here(lives.first, [&](Storage& storage) { storage.offset = meter.take(storage.bytes); });
    PassCall& call = pass_.calls[i];
    call.scratch_offset = meter.take(call.scratch_bytes);
    meter.drop(call.scratch_offset);
    for_each_here(lives.last, [&](Storage& storage) { meter.drop(storage.offset); });
  }
  pass_.workspace_bytes = meter.peak();
  return std::move(pass_);
}

}  // namespace tandem
