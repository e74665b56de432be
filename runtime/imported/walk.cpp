#include "runtime/imported/walk.hpp"

#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>

#include <string>

#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "core/model/imported/pass.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/body_table.hpp"
#include "runtime/imported/call.hpp"
#include "runtime/imported/types.hpp"

namespace tandem {
namespace {

using at::Tensor;

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

class ImportedWalk {
 public:
  explicit ImportedWalk(const PassRun& run)
      : run_(run),
        plan_(dynamic_cast<const ImportedPass&>(*run.pass.given)),
        program_(*plan_.program),
        scope_(*WorkspaceScope::current()),
        values_(program_.values.size()) {}

  std::int64_t run() {
    scope_.serve_from(0, 0);
    if (plan_.writes_gradients) zero_padding();
    for (const ImportedGiven& given : plan_.given) give(given);
    for (const ImportedStep& step : plan_.steps) perform_step(step);
    for (const ImportedStore& store : plan_.last_stores) leave(store);
    return plan_.loss == kNone ? 0 : give_result(run_.processor, run_.late_result, value(plan_.loss));
  }

 private:
  Tensor& value(std::int32_t id) {
    while (plan_.same_as[place(id)] != kNone) id = plan_.same_as[place(id)];
    return values_[place(id)];
  }
  std::byte* address(std::int32_t operand, std::int32_t field) const {
    std::byte* begin = run_.operands[place(operand)];
    if (field == kNone) return begin;
    const bool is_frozen = run_.pass.operands[place(operand)].kind == OperandKind::FrozenWeights;
    const Layout& layout = is_frozen ? *run_.frozen : *run_.bucket;
    return begin + field_offset(layout.fields.at(place(field)), run_.pass.module->type);
  }
  void zero_padding() {
    for (std::size_t i = 0; i < run_.pass.operands.size(); ++i)
      if (run_.pass.operands[i].kind == OperandKind::WeightGradient)
        Bucket(*run_.bucket, run_.operands[i], run_.processor, run_.pass.module->type).zero_padding();
  }
  void give(const ImportedGiven& given) {
    const TensorType& type = program_.type(given.value);
    if (given.operand != kNone) {
      values_[place(given.value)] = tensor_at(run_.processor, address(given.operand, given.field), type, given.order);
      return;
    }
    Tensor& one = values_[place(given.value)];
    one = tensor_at(run_.processor, scope_.at(plan_.loss_gradient_offset, type.bytes()), type, given.order);
    one.fill_(1.0f / static_cast<float>(run_.pass.micro_batches));
    if (run_.loss_scale.defined()) one.mul_(run_.loss_scale);
  }
  std::byte* place_of(const ImportedPlace& at) const {
    return at.operand != kNone ? address(at.operand, at.field)
                               : static_cast<std::byte*>(scope_.at(at.offset, at.bytes));
  }

  void perform_step(const ImportedStep& step) {
    scope_.serve_from(step.scratch_offset, step.scratch_bytes);
    std::vector<WorkspaceScope::Offer> offers;
    for (const ImportedPlace& at : step.out)
      if (!at.is_view() && at.bytes > 0) offers.push_back({place_of(at), at.bytes});
    scope_.offer(std::move(offers));
    resolve(step);
    std::vector<Tensor> results = results_of(*step.call);
    scope_.offer({});
    set_aside(step, results);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i].defined())
        values_[place(step.call->out[i])] =
            settled(*step.call, step.out[i], program_.type(step.call->out[i]), results[i]);
    results.clear();
    for (const ImportedStore& store : step.stores) leave(store);
    for (const std::int32_t ended : step.ends) values_[place(ended)] = Tensor();
  }
  std::vector<Tensor> results_of(const ImportedCall& call) const {
    try {
      return perform(call, values_, program_, run_.processor, run_.random);
    } catch (const DeviceError& error) {
      throw DeviceError(std::string(call.what->name) + ": " + error.what());
    }
  }
  // Arguments that stand for another value in this pass.
  void resolve(const ImportedStep& step) {
    for (const Argument& argument : step.call->arguments)
      for_each_reference(argument, [&](const ValueRef& read) {
        if (plan_.same_as[place(read.value)] != kNone) values_[place(read.value)] = value(read.value);
      });
  }
  // Results that lie in each other's places are copied first.
  void set_aside(const ImportedStep& step, std::vector<Tensor>& results) const {
    for (std::size_t i = 0; i < results.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (results[i].defined() && !step.out[k].is_view() && step.out[k].bytes > 0 &&
            results[i].data_ptr() == place_of(step.out[k]))
          results[i] = results[i].clone();
  }
  // A result where it was planned to be: most were made there.
  Tensor settled(const ImportedCall& call, const ImportedPlace& at, const TensorType& own, const Tensor& result) {
    if (at.is_view()) {
      const Tensor& of = value(std::get<ValueRef>(call.arguments[0]).value);
      if (result.numel() > 0 && !result.is_alias_of(of))
        throw DeviceError(std::string(call.what->name) + " is no view here");
      return result;
    }
    const Sizes rows = strides_of(own, {});
    const bool dense = result.is_non_overlapping_and_dense();
    Tensor there = tensor_at(run_.processor, place_of(at), own,
                             dense ? result.strides() : at::IntArrayRef(rows.data(), rows.size()));
    if (result.numel() > 0 && (!dense || result.data_ptr() != there.data_ptr())) there.copy_(result);
    return there;
  }
  void leave(const ImportedStore& store) {
    Tensor& from = value(store.value);
    const TensorType& type = program_.type(store.value);
    Tensor to = tensor_at(run_.processor, address(store.operand, store.field), type, store.order);
    if (!from.defined()) {  // a kernel that was not asked for it: nothing depends on the value
      if (!store.adds) to.zero_();
      return;
    }
    if (store.adds) {
      to.add_(from);
      return;
    }
    if (type.numbers() == 0) return;
    if (from.data_ptr() != to.data_ptr()) {
      to.copy_(from);
      return;
    }
    if (in_same_order(from, to)) return;
    // This processor's kernel lays it out otherwise than the one that was traced. The call is over, so that its
    // temporaries' place, which holds as much as its results, is free.
    to.copy_(from.clone());
    from = to;
  }
  static bool in_same_order(const Tensor& a, const Tensor& b) {
    for (std::int64_t d = 0; d < a.dim(); ++d)
      if (a.size(d) > 1 && a.stride(d) != b.stride(d)) return false;
    return true;
  }

  c10::InferenceMode no_autograd_;
  const PassRun& run_;
  const ImportedPass& plan_;
  const ImportedProgram& program_;
  WorkspaceScope& scope_;
  std::vector<Tensor> values_;
};

}  // namespace

std::int64_t walk_imported(const PassRun& run) {
  try {
    return ImportedWalk(run).run();
  } catch (const DeviceError& error) {
    throw DeviceError(run.pass.module->name + ": " + error.what());
  }
}

namespace {

std::int64_t run_imported(BodyCall& call) { return run_pass(call, walk_imported); }

}  // namespace

// Calls may copy numbers from the host, so that none is recorded.
const BodyEntry& imported_body(const Pass&) {
  static constexpr BodyEntry kBody{"imported pass", run_imported};
  return kBody;
}

}  // namespace tandem
