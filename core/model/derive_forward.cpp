// Forward passes: of all calls or of some, keeping what backward reads or not.
#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/model/derive.hpp"
#include "core/model/pass_builder.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

class ForwardPass {
 public:
  ForwardPass(const ModuleFacts& facts, const RunsOn& where, const std::vector<bool>& calls, bool keeps,
              bool writes_outputs)
      : facts_(facts),
        calls_(calls),
        keeps_(keeps),
        writes_outputs_(writes_outputs),
        builder_(facts.module(), where),
        storage_(facts.module()->locals.size(), kNone),
        last_reader_(facts.module()->locals.size(), kNone) {
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (calls[i])
        for (const LocalId in : facts.call(i).in) last_reader_[place(in)] = static_cast<std::int32_t>(i);
  }
  Pass build() {
    if (trains(*facts_.module())) builder_.add_operand({OperandKind::Weights});
    if (has_frozen_weights(*facts_.module())) builder_.add_operand({OperandKind::FrozenWeights});
    for (std::size_t i = 0; i < facts_.module()->inputs.size(); ++i) {
      const LocalId in = facts_.module()->inputs[i];
      if (last_reader_[place(in)] != kNone)
        storage_[place(in)] =
            builder_.storage_of({OperandKind::Input, static_cast<std::int32_t>(i)}, facts_.local(in).shape.bytes());
    }
    for (std::size_t i = 0; i < facts_.module()->carried.size(); ++i) {
      const LocalId carried = facts_.module()->carried[i];
      if (last_reader_[place(carried)] != kNone)
        storage_[place(carried)] = builder_.storage_of({OperandKind::Carried, static_cast<std::int32_t>(i)},
                                                       facts_.local(carried).shape.bytes());
    }
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (calls_[i]) add(i);
    bind_results();
    return builder_.finish();
  }

 private:
  bool leaves(LocalId local) const {
    return (keeps_ && facts_.kept_as(local) != kNone) || (writes_outputs_ && facts_.output_port(local) != kNone);
  }
  // An input's storage that the result may take, or a new one.
  std::int32_t storage_for(std::size_t index, LocalId out) {
    const Call& c = facts_.call(index);
    const Bits allowed = c.what->primitive.in_place(Direction::Forward);
    const std::int64_t bytes = facts_.local(out).shape.bytes();
    for (std::size_t k = c.in.size(); k-- > 0;) {
      const LocalId in = c.in[k];
      const bool ends = last_reader_[place(in)] == static_cast<std::int32_t>(index) && !leaves(in);
      if ((allowed & bit(k)) && ends && !builder_.is_operand(storage_[place(in)]) &&
          builder_.bytes_of(storage_[place(in)]) == bytes && std::count(c.in.begin(), c.in.end(), in) == 1)
        return storage_[place(in)];
    }
    return builder_.new_storage(bytes);
  }
  void add(std::size_t index) {
    const Call& c = facts_.call(index);
    PassCall pass_call;
    pass_call.call = &c;
    if (keeps_ && c.what->primitive.gradient_in_forward()) pass_call.wanted = facts_.wanted_of(index);
    for (const LocalId in : c.in) pass_call.in.push_back(storage_[place(in)]);
    for (const LocalId out : c.out) {
      // The network's loss is the op's result, and has no place.
      if (!c.what->primitive.is_own_loss()) storage_[place(out)] = storage_for(index, out);
      pass_call.out.push_back(storage_[place(out)]);
    }
    for (std::size_t k = 0; k < c.shapes.saved.size(); ++k) {
      const std::int32_t as = keeps_ ? facts_.saved_as(index, k) : kNone;
      const std::int64_t bytes = c.shapes.saved[k].shape.bytes();
      if (as != kNone)
        pass_call.saved.push_back(builder_.storage_of({OperandKind::Kept, as}, bytes));
      else
        pass_call.saved.push_back(c.what->primitive.saves_always(c.how) ? builder_.new_storage(bytes) : kNone);
      pass_call.wanted.saves = as != kNone;
    }
    builder_.add(std::move(pass_call));
  }
  void bind_results() {
    for (std::size_t i = 0; i < facts_.module()->outputs.size(); ++i)
      if (const LocalId out = facts_.module()->outputs[i];
          writes_outputs_ && !facts_.is_loss(out))  // that is the op's result
        builder_.bind(storage_[place(out)], {OperandKind::Output, static_cast<std::int32_t>(i)});
    for (std::size_t i = 0; keeps_ && i < storage_.size(); ++i)
      if (const std::int32_t as = facts_.kept_as(static_cast<LocalId>(i)); as != kNone)
        builder_.bind(storage_[i], {OperandKind::Kept, as});
  }
  const ModuleFacts& facts_;
  const std::vector<bool>& calls_;
  bool keeps_, writes_outputs_;
  PassBuilder builder_;
  std::vector<std::int32_t> storage_, last_reader_;  // by local
};

}  // namespace

Pass derive_forward(const ModuleFacts& facts, const RunsOn& where, const std::vector<bool>& calls, bool keeps,
                    bool writes_outputs) {
  return ForwardPass(facts, where, calls, keeps, writes_outputs).build();
}

}  // namespace tandem
