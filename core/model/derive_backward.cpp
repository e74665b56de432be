// Backward passes: where each gradient goes, and what it is added to.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/derive.hpp"
#include "core/model/pass_builder.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

// What a pass makes gradients of.
enum class Half : std::uint8_t { Both, Inputs, Weights };

// Calls in reverse. Gradients of a local with several readers are added in reverse order of the readers. `handed`:
// between the halves of a backward, what the first one writes there.
class BackwardPass {
 public:
  BackwardPass(const ModuleFacts& facts, const DeriveOptions& options, Half half, HandedOver* handed, bool accumulates)
      : facts_(facts),
        options_(options),
        half_(half),
        handed_(handed),
        accumulates_(accumulates),
        builder_(facts.module(), options.where),
        gradient_(facts.module()->locals.size(), kNone),
        made_by_(facts.module()->locals.size(), kNone),
        first_reader_(facts.module()->locals.size(), kNone) {
    for (std::size_t i = facts.module()->program.size(); i-- > 0;) {
      for (const LocalId out : facts.call(i).out) made_by_[place(out)] = static_cast<std::int32_t>(i);
      for (const LocalId in : facts.call(i).in) first_reader_[place(in)] = static_cast<std::int32_t>(i);
    }
  }
  Pass build() {
    if (half_ != Half::Inputs && trains(*facts_.module())) builder_.add_operand({OperandKind::WeightGradient});
    add_weights();
    for (std::size_t i = 0; half_ != Half::Weights && i < facts_.module()->outputs.size(); ++i)
      if (const LocalId out = facts_.module()->outputs[i]; facts_.has_gradient(out) && !facts_.is_loss(out))
        gradient_[place(out)] = given({OperandKind::OutputGradient, static_cast<std::int32_t>(i)}, out);
    for (std::size_t i = 0; i < facts_.module()->inputs.size(); ++i)
      if (const LocalId in = facts_.module()->inputs[i]; makes_gradient_of(i) && adds_to(i))
        gradient_[place(in)] = given(input_gradient(i), in);
    for (std::size_t i = facts_.module()->program.size(); i-- > 0;)
      if (facts_.goes_backward(i)) add(i);
    for (std::size_t i = 0; i < facts_.module()->inputs.size(); ++i)
      if (const LocalId in = facts_.module()->inputs[i]; makes_gradient_of(i) && !adds_to(i)) {
        CHECK(gradient_[place(in)] != kNone, facts_.module()->name, "has an input that nothing reads",
              facts_.local(in).name);
        builder_.bind(gradient_[place(in)], input_gradient(i));
      }
    return builder_.finish();
  }

 private:
  bool makes_gradient_of(std::size_t port) const {
    return half_ != Half::Weights && facts_.has_gradient(facts_.module()->inputs[port]);
  }
  // Of what a call's backward makes, what it makes in this pass.
  Wanted wanted_of(std::size_t index) const {
    Wanted wanted = facts_.wanted_of(index);
    if (half_ == Half::Inputs) wanted.weights = 0;
    if (half_ == Half::Weights) wanted.in = 0;
    return wanted;
  }
  // The buckets that calls of this pass read.
  void add_weights() {
    bool trained = false, frozen = false;
    for (std::size_t i = 0; i < facts_.calls(); ++i) {
      const Wanted wanted = wanted_of(i);
      if (!wanted.any()) continue;
      const Call& c = facts_.call(i);
      const Bits keeps = c.what->primitive.keeps(c.how, wanted).weights;
      for (std::size_t k = 0; k < c.weights.size(); ++k)
        if (keeps & bit(k)) (facts_.trained(c.weights[k]) ? trained : frozen) = true;
    }
    if (trained) builder_.add_operand({OperandKind::Weights});
    if (frozen) builder_.add_operand({OperandKind::FrozenWeights});
  }
  // Where the gradient of a call's output lies; kNone: nothing reads the output.
  std::int32_t output_gradient_of(std::size_t index) {
    const LocalId out = facts_.call(index).out.front();
    if (half_ != Half::Weights) return gradient_[place(out)];
    const std::optional<Operand>& handed = handed_->by_call[index];
    return handed ? given(*handed, out) : kNone;
  }
  // What weights' gradients are made of later stays as it is from here on: no call writes to an operand.
  void hand_on(std::size_t index, std::int32_t gradient) {
    if (gradient == kNone || facts_.wanted_of(index).weights == 0) return;
    if (!builder_.is_operand(gradient)) {
      const Local& local = facts_.local(facts_.call(index).out.front());
      builder_.bind(gradient, {OperandKind::Handed, static_cast<std::int32_t>(handed_->tensors.size())});
      handed_->tensors.push_back({local.name + "_gradient", local.shape});
    }
    const Operand operand = builder_.operand_of(gradient);
    CHECK(operand.kind != OperandKind::InputGradient, facts_.module()->name, "hands on what leaves by a port", index);
    handed_->by_call[index] = operand;
  }
  static Operand input_gradient(std::size_t port) {
    return {OperandKind::InputGradient, static_cast<std::int32_t>(port)};
  }
  // To what later readers of the value made of its gradient.
  bool adds_to(std::size_t port) const { return (options_.gradients_so_far & bit(port)) != 0; }
  std::int32_t given(Operand operand, LocalId local) {
    return builder_.storage_of(operand, facts_.local(local).shape.bytes());
  }
  // Where forward left a local.
  std::int32_t kept(LocalId local) {
    if (facts_.input_port(local) != kNone) return given({OperandKind::Input, facts_.input_port(local)}, local);
    if (facts_.output_port(local) != kNone) return given({OperandKind::Output, facts_.output_port(local)}, local);
    CHECK(facts_.kept_as(local) != kNone, facts_.module()->name, "reads what is not kept", facts_.local(local).name);
    return given({OperandKind::Kept, facts_.kept_as(local)}, local);
  }
  // Whether another local's gradient, which is still to be read, lies there too.
  bool is_shared(std::int32_t storage, LocalId mine, std::size_t index) const {
    for (std::size_t l = 0; l < gradient_.size(); ++l) {
      const bool to_come = made_by_[l] == kNone || made_by_[l] < static_cast<std::int32_t>(index);
      if (gradient_[l] == storage && static_cast<LocalId>(l) != mine && to_come) return true;
    }
    return false;
  }
  bool may_write(std::int32_t storage, LocalId mine, std::size_t index) const {
    if (const std::int32_t port = facts_.input_port(mine); port != kNone && adds_to(place(port))) return true;
    return !builder_.is_operand(storage) && !is_shared(storage, mine, index);
  }
  // Whether a call that makes the local, or gets its gradient as it is, hands it on between the halves.
  bool will_be_handed_on(LocalId local) const {
    const std::int32_t maker = made_by_[place(local)];
    if (maker == kNone) return false;
    if (facts_.wanted_of(place(maker)).weights != 0) return true;
    const Call& c = facts_.call(place(maker));
    for (std::size_t k = 0; k < c.in.size(); ++k)
      if ((c.what->primitive.passes_gradient() & bit(k)) != 0 && will_be_handed_on(c.in[k])) return true;
    return false;
  }
  // What leaves by a port needs a place of its own: another operand's, one that two ports share, or one that is handed
  // on, is none.
  bool needs_copy(std::size_t index, LocalId in, std::int32_t storage) const {
    if (facts_.input_port(in) == kNone || first_reader_[place(in)] != static_cast<std::int32_t>(index)) return false;
    if (half_ == Half::Inputs)
      for (const LocalId other : facts_.call(index).in)
        if (other != in && will_be_handed_on(other)) return true;
    return !may_write(storage, in, index);
  }
  // `passes`: the gradient is what lies in `output_gradient`.
  GradientTarget target_of(std::size_t index, LocalId in, std::int32_t output_gradient, bool passes, bool in_place) {
    using Mode = GradientTarget::Mode;
    std::int32_t& gradient = gradient_[place(in)];
    const std::int64_t bytes = facts_.local(in).shape.bytes();
    if (gradient == kNone && passes && !needs_copy(index, in, output_gradient)) {
      gradient = output_gradient;
      return {Mode::Alias, gradient, kNone};
    }
    if (gradient == kNone) {
      const bool takes = in_place && !passes && output_gradient != kNone &&
                         builder_.bytes_of(output_gradient) == bytes &&
                         may_write(output_gradient, facts_.call(index).out.front(), index);
      gradient = takes ? output_gradient : builder_.new_storage(bytes);
      return {Mode::Write, gradient, kNone};
    }
    // The call still reads its output's gradient.
    if (gradient != output_gradient && may_write(gradient, in, index)) return {Mode::Add, gradient, kNone};
    const std::int32_t base = gradient;
    gradient = builder_.new_storage(bytes);
    return {Mode::AddBase, gradient, base};
  }
  void add(std::size_t index) {
    using Mode = GradientTarget::Mode;
    const Call& c = facts_.call(index);
    const Primitive& primitive = c.what->primitive;
    PassCall pass_call;
    pass_call.call = &c;
    pass_call.direction = Direction::Backward;
    pass_call.wanted = wanted_of(index);
    pass_call.wanted.accumulates = accumulates_;
    if (!primitive.is_loss()) pass_call.output_gradient = output_gradient_of(index);
    if (half_ == Half::Inputs) hand_on(index, pass_call.output_gradient);
    if (!pass_call.wanted.any()) return;
    read_contributions(c, pass_call);
    if (!primitive.is_loss() && pass_call.output_gradient == kNone) return;
    read_kept(index, pass_call);
    bool computes = pass_call.wanted.weights != 0;
    std::int64_t added_bytes = 0, apart = 0;
    for (std::size_t k = 0; k < c.in.size(); ++k) {
      const bool wants = (pass_call.wanted.in & bit(k)) != 0;
      const std::int32_t saved = primitive.gradient_saved_as(k);
      const bool passes = saved != kNone || (primitive.passes_gradient() & bit(k)) != 0;
      pass_call.input_gradients.push_back(
          wants ? target_of(index, c.in[k], saved != kNone ? pass_call.saved[place(saved)] : pass_call.output_gradient,
                            passes, (primitive.in_place(Direction::Backward) & bit(k)) != 0)
                : GradientTarget{});
      const Mode mode = pass_call.input_gradients.back().mode;
      computes = computes || (mode != Mode::None && mode != Mode::Alias);
      if (mode == Mode::Write && passes) added_bytes += 2 * facts_.local(c.in[k]).shape.bytes();
      if (mode != Mode::Add && mode != Mode::AddBase) continue;
      added_bytes += 3 * facts_.local(c.in[k]).shape.bytes();
      if (!passes && !primitive.makes_gradients_apart()) apart += facts_.local(c.in[k]).shape.bytes();
    }
    if (!computes) return;
    builder_.add(std::move(pass_call), apart);
    if (added_bytes > 0) builder_.add_kernel(memory_kernel(added_bytes));
  }
  // A module may have more weights than Bits tells apart: those that others share are among the first
  // (network_plan.cpp).
  bool is_contributed(std::size_t weight) const {
    return weight < std::numeric_limits<Bits>::digits && (options_.contributed & bit(weight)) != 0;
  }
  void read_contributions(const Call& c, PassCall& pass_call) {
    if (pass_call.wanted.weights == 0) return;
    for (const std::int32_t weight : c.weights) {
      const bool contributed = is_contributed(place(weight));
      pass_call.wanted.contributed = pass_call.wanted.contributed || contributed;
      const std::int64_t bytes = facts_.module()->weights[place(weight)].shape.bytes();
      pass_call.contributions.push_back(contributed ? builder_.storage_of({OperandKind::Contribution, weight}, bytes)
                                                    : kNone);
    }
  }
  void read_kept(std::size_t index, PassCall& pass_call) {
    const Call& c = facts_.call(index);
    const Keeps keeps = c.what->primitive.keeps(c.how, pass_call.wanted);
    for (std::size_t k = 0; k < c.in.size(); ++k) pass_call.in.push_back((keeps.in & bit(k)) ? kept(c.in[k]) : kNone);
    for (std::size_t k = 0; k < c.out.size(); ++k)
      pass_call.out.push_back((keeps.out & bit(k)) ? kept(c.out[k]) : kNone);
    for (std::size_t k = 0; k < c.shapes.saved.size(); ++k)
      pass_call.saved.push_back(
          builder_.storage_of({OperandKind::Kept, facts_.saved_as(index, k)}, c.shapes.saved[k].shape.bytes()));
  }

  const ModuleFacts& facts_;
  const DeriveOptions& options_;
  Half half_;
  HandedOver* handed_;
  bool accumulates_;
  PassBuilder builder_;
  std::vector<std::int32_t> gradient_;      // by local: where its gradient lies so far
  std::vector<std::int32_t> made_by_;       // by local: the call; kNone: a port
  std::vector<std::int32_t> first_reader_;  // by local: the call, in forward order
};

}  // namespace

Pass derive_backward(const ModuleFacts& facts, const DeriveOptions& options, bool accumulates) {
  return BackwardPass(facts, options, Half::Both, nullptr, accumulates).build();
}

Pass derive_backward_inputs(const ModuleFacts& facts, const DeriveOptions& options, HandedOver& handed) {
  handed.by_call.assign(facts.calls(), std::nullopt);
  return BackwardPass(facts, options, Half::Inputs, &handed, false).build();
}

Pass derive_backward_weights(const ModuleFacts& facts, const DeriveOptions& options, HandedOver& handed,
                             bool accumulates) {
  return BackwardPass(facts, options, Half::Weights, &handed, accumulates).build();
}

}  // namespace tandem
