#include "core/model/imported/place.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/meter.hpp"

namespace tandem {
namespace {

bool is_view(const ImportedCall& call) { return call.what->kind == Operator::Kind::View; }

}  // namespace

ImportedPlan::ImportedPlan(std::shared_ptr<const ImportedProgram> program, std::shared_ptr<const Module> module,
                           const RunsOn& where)
    : program_(std::move(program)), where_(where), plan_(std::make_shared<ImportedPass>()) {
  const std::size_t count = program_->values.size();
  pass_.module = std::move(module);
  plan_->program = program_;
  plan_->same_as.assign(count, kNone);
  needed_.resize(count);
  made_by_.assign(count, kNone), root_.assign(count, kNone), last_use_.assign(count, kNone),
      offset_.assign(count, kNone);
}

std::int32_t ImportedPlan::same(std::int32_t value) const {
  while (plan_->same_as[place(value)] != kNone) value = plan_->same_as[place(value)];
  return value;
}

// Of a gradient that nobody made before, a sum that would begin with it is its other part.
void ImportedPlan::leave_out_sums(const DeriveOptions& options) {
  std::vector<bool> is_absent(program_->values.size());
  const auto look_at = [&](const std::vector<ImportedPort>& ports, Bits there) {
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (ports[i].so_far != kNone && (i >= kMostPorts || (there & bit(i)) == 0))
        is_absent[place(ports[i].so_far)] = true;
  };
  look_at(program_->inputs, options.gradients_so_far);
  look_at(program_->weights, options.contributed);
  for (const ImportedCall& call : program_->backward) {
    if (call.what->name != "add.Tensor") continue;
    const auto *a = std::get_if<ValueRef>(&call.arguments[0]), *b = std::get_if<ValueRef>(&call.arguments[1]);
    if (a == nullptr || b == nullptr || program_->type(a->value) != program_->type(b->value)) continue;
    if (is_absent[place(a->value)]) plan_->same_as[place(call.out[0])] = b->value;
    if (is_absent[place(b->value)]) plan_->same_as[place(call.out[0])] = a->value;
  }
}

void ImportedPlan::need(std::int32_t value) { needed_[place(same(value))] = true; }

// Those calls whose results are needed, in order; what they read is needed, too.
void ImportedPlan::need_calls(const std::vector<ImportedCall>& calls) {
  std::vector<const ImportedCall*> chosen;
  for (std::size_t i = calls.size(); i-- > 0;) {
    const ImportedCall& call = calls[i];
    const bool is_left_out = plan_->same_as[place(call.out[0])] != kNone;
    if (is_left_out || std::none_of(call.out.begin(), call.out.end(), [&](auto out) { return needed_[place(out)]; }))
      continue;
    chosen.push_back(&call);
    for (const Argument& argument : call.arguments)
      for_each_reference(argument, [&](const ValueRef& v) { need(v.value); });
  }
  for (std::size_t i = chosen.size(); i-- > 0;) plan_->steps.push_back({chosen[i], {}, {}, {}, 0, 0});
}

std::int32_t ImportedPlan::operand(OperandKind kind, std::size_t index) {
  const auto number = static_cast<std::int32_t>(index);
  for (std::size_t i = 0; i < pass_.operands.size(); ++i)
    if (pass_.operands[i].is(kind, number)) return static_cast<std::int32_t>(i);
  pass_.operands.push_back({kind, number});
  return static_cast<std::int32_t>(pass_.operands.size()) - 1;
}

void ImportedPlan::give(std::int32_t value, OperandKind kind, std::size_t index, const Sizes& order,
                        std::int32_t field) {
  if (needed_[place(value)]) plan_->given.push_back({value, operand(kind, index), field, order});
}

void ImportedPlan::leave(std::int32_t value, OperandKind kind, std::size_t index, const Sizes& order, bool adds,
                         std::int32_t field) {
  stores_.push_back({same(value), operand(kind, index), field, adds, order});
}

void ImportedPlan::give_weights() {
  for (std::size_t i = 0; i < program_->weights.size(); ++i)
    give(program_->weights[i].value, trained(i) ? OperandKind::Weights : OperandKind::FrozenWeights, 0, {},
         field_of(*pass_.module, i));
}

Pass ImportedPlan::forward(const std::vector<std::size_t>& kept, bool writes_outputs) {
  for (const std::size_t k : kept) need(program_->saved[k].value);
  for (const ImportedOutput& output : program_->outputs)
    if (writes_outputs) need(output.value);
  need_calls(program_->forward);
  give_weights();
  for (std::size_t i = 0; i < program_->inputs.size(); ++i)
    give(program_->inputs[i].value, OperandKind::Input, i, program_->inputs[i].order);
  for (std::size_t i = 0; i < program_->outputs.size() && writes_outputs; ++i) {
    const ImportedOutput& output = program_->outputs[i];
    if (output.is_loss)
      plan_->loss = output.value, plan_->has_loss = true;
    else
      leave(output.value, OperandKind::Output, i, output.order);
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    leave(program_->saved[kept[i]].value, OperandKind::Kept, i, program_->saved[kept[i]].order);
  return finish();
}

bool ImportedPlan::begin_backward(const DeriveOptions& options) {
  leave_out_sums(options);
  bool any = false;
  const auto wants = [&](std::int32_t gradient) {
    if (gradient == kNone) return;
    need(gradient);
    any = true;
  };
  for (std::size_t i = 0; i < program_->inputs.size(); ++i)
    if ((options.input_gradients & bit(i)) != 0) wants(program_->inputs[i].gradient);
  for (std::size_t i = 0; i < program_->weights.size(); ++i)
    if (trained(i)) wants(program_->weights[i].gradient);
  need_calls(program_->backward);
  return any;
}

Pass ImportedPlan::backward(const DeriveOptions& options, const std::vector<std::size_t>& kept, bool accumulates) {
  begin_backward(options);
  give_weights();
  for (std::size_t i = 0; i < kept.size(); ++i)
    give(program_->saved[kept[i]].in_backward, OperandKind::Kept, i, program_->saved[kept[i]].order);
  for (std::size_t i = 0; i < program_->outputs.size(); ++i) {
    const ImportedOutput& output = program_->outputs[i];
    give(output.value, OperandKind::Output, i, output.order);
    if (output.gradient == kNone) continue;
    if (output.is_loss)
      plan_->given.push_back({output.gradient, kNone, kNone, {}});
    else
      give(output.gradient, OperandKind::OutputGradient, i, output.gradient_order);
  }
  for (std::size_t i = 0; i < program_->inputs.size(); ++i) {
    const ImportedPort& input = program_->inputs[i];
    give(input.value, OperandKind::Input, i, input.order);
    if ((options.input_gradients & bit(i)) == 0 || input.gradient == kNone) continue;
    if (input.so_far != kNone) give(input.so_far, OperandKind::InputGradient, i, input.gradient_order);
    leave(input.gradient, OperandKind::InputGradient, i, input.gradient_order);
  }
  for (std::size_t i = 0; i < program_->weights.size(); ++i) {
    if (!trained(i)) continue;
    const ImportedPort& weight = program_->weights[i];
    if (weight.so_far != kNone) give(weight.so_far, OperandKind::Contribution, i, {});
    if (weight.gradient != kNone)
      leave(weight.gradient, OperandKind::WeightGradient, 0, {}, accumulates, field_of(*pass_.module, i));
  }
  plan_->writes_gradients = trains(*pass_.module) && !accumulates;
  return finish();
}

void ImportedPlan::find_lives() {
  std::vector<ImportedStep>& steps = plan_->steps;
  for (const ImportedGiven& given : plan_->given) root_[place(given.value)] = given.value;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto number = static_cast<std::int32_t>(s);
    const ImportedCall& call = *steps[s].call;
    const auto use = [&](std::int32_t v) {
      last_use_[place(same(v))] = number;
      last_use_[place(root_[place(same(v))])] = number;
    };
    for (const Argument& argument : call.arguments)
      for_each_reference(argument, [&](const ValueRef& v) { use(v.value); });
    for (const std::int32_t out : call.out) {
      made_by_[place(out)] = number;
      root_[place(out)] = is_view(call) ? root_[place(same(std::get<ValueRef>(call.arguments[0]).value))] : out;
      use(out);
    }
  }
  const auto last = static_cast<std::int32_t>(steps.size());
  if (plan_->loss != kNone) last_use_[place(root_[place(plan_->loss)])] = last_use_[place(plan_->loss)] = last;
  for (ImportedStore& store : stores_) {
    const std::int32_t step = made_by_[place(store.value)];
    (step == kNone ? plan_->last_stores : steps[place(step)].stores).push_back(store);
  }
  for (std::size_t v = 0; v < last_use_.size(); ++v)
    if (last_use_[v] != kNone && last_use_[v] < last && made_by_[v] != kNone)
      steps[place(last_use_[v])].ends.push_back(static_cast<std::int32_t>(v));
}

// A result may be made where it leaves to, unless what is there is still read.
bool ImportedPlan::may_lie_in(const ImportedStore& store, std::size_t step) const {
  if (store.adds) return false;
  for (const ImportedGiven& given : plan_->given)
    if (given.operand == store.operand && given.field == store.field &&
        last_use_[place(given.value)] >= static_cast<std::int32_t>(step))
      return false;
  return std::none_of(plan_->last_stores.begin(), plan_->last_stores.end(), [&](const ImportedStore& other) {
    return other.operand == store.operand && other.field == store.field;
  });
}

void ImportedPlan::place_results(std::size_t number, WorkspaceMeter& meter) {
  ImportedStep& step = plan_->steps[number];
  for (const std::int32_t out : step.call->out) {
    ImportedPlace& at = step.out.emplace_back();
    if (is_view(*step.call)) continue;
    at.bytes = program_->type(out).bytes();
    for (const ImportedStore& store : step.stores)
      if (store.value == out && may_lie_in(store, number)) {
        at.operand = store.operand, at.field = store.field;
        break;
      }
    if (at.operand == kNone) at.offset = offset_[place(out)] = meter.take(at.bytes);
  }
}

void ImportedPlan::take_scratch(std::size_t number, WorkspaceMeter& meter) {
  constexpr std::int64_t kLittle = 4096;
  ImportedStep& step = plan_->steps[number];
  if (is_view(*step.call)) return;
  const CallView view(step.call->arguments, program_->values);
  TensorTypes out;
  for (const std::int32_t value : step.call->out) out.push_back(program_->type(value));
  std::int64_t bytes = 0;
  for (const bool gpu : {false, true}) {
    if (gpu && !where_.gpu) continue;
    if (step.call->what->scratch != nullptr)
      bytes = std::max(bytes, step.call->what->scratch(view, out, where_.threads, gpu));
  }
  // Where operands' types differ, kernels see copies in one of them.
  for (const TensorType& type : out) bytes += type.bytes();
  step.scratch_bytes = bytes + kLittle;
  step.scratch_offset = meter.take(step.scratch_bytes);
  meter.drop(step.scratch_offset);
  if (step.call->what->kernels != nullptr)
    step.call->what->kernels(view, out, pass_.kernels);
  else
    pass_.kernels.push_back(memory_kernel([&] {
      std::int64_t moved = 0;
      for (const TensorType* type : view.read()) moved += type->bytes();
      for (const TensorType& type : out) moved += type.bytes();
      return moved;
    }()));
}

Pass ImportedPlan::finish() {
  find_lives();
  WorkspaceMeter meter(where_.gpu ? kGpuGranule : kCpuGranule);
  if (std::any_of(plan_->given.begin(), plan_->given.end(), [](const auto& g) { return g.operand == kNone; }))
    plan_->loss_gradient_offset = meter.take(kGpuGranule);
  for (std::size_t s = 0; s < plan_->steps.size(); ++s) {
    place_results(s, meter);
    take_scratch(s, meter);
    plan_->draws_random = plan_->draws_random || plan_->steps[s].call->what->kind == Operator::Kind::Random;
    for (const std::int32_t value : plan_->steps[s].ends)
      if (offset_[place(value)] != kNone) meter.drop(offset_[place(value)]);
  }
  pass_.workspace_bytes = meter.peak();
  pass_.given = std::move(plan_);
  return std::move(pass_);
}

}  // namespace tandem
