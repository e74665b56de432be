#include "core/model/module_facts.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

// Others are places, or classes: what has no gradient.
bool is_number(DType type) {
  return type == DType::F32 || type == DType::F16 || type == DType::BF16 || type == DType::F64;
}

}  // namespace

ModuleFacts::ModuleFacts(std::shared_ptr<const Module> module, Bits input_gradients)
    : module_(std::move(module)),
      has_gradient_(module_->locals.size()),
      input_port_(module_->locals.size(), kNone),
      output_port_(module_->locals.size(), kNone),
      kept_as_(module_->locals.size(), kNone),
      saved_as_(calls()) {
  find_ports();
  find_gradients(input_gradients);
  const std::vector<bool> read_backward = find_what_backward_reads(), lossy = find_what_may_be_lossy();
  for (std::size_t i = 0; i < calls(); ++i) {
    const bool after = call(i).what->primitive.saved_after_output();
    if (after) keep_output(i, read_backward, lossy);
    keep_saved(i);
    if (!after) keep_output(i, read_backward, lossy);
  }
}

void ModuleFacts::find_ports() {
  for (std::size_t i = 0; i < module_->inputs.size(); ++i)
    input_port_[place(module_->inputs[i])] = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < module_->outputs.size(); ++i)
    output_port_[place(module_->outputs[i])] = static_cast<std::int32_t>(i);
}

void ModuleFacts::find_gradients(Bits input_gradients) {
  for (std::size_t i = 0; i < module_->inputs.size(); ++i)
    has_gradient_[place(module_->inputs[i])] = (input_gradients & bit(i)) != 0;
  for (const Call& c : module_->program) {
    bool any = std::any_of(c.weights.begin(), c.weights.end(), [&](std::int32_t w) { return trained(w); });
    for (const LocalId in : c.in) any = any || has_gradient(in);
    for (const LocalId out : c.out)
      has_gradient_[place(out)] = any && is_number(local(out).shape.type) && !c.what->primitive.is_auxiliary();
  }
}

Wanted ModuleFacts::wanted_of(std::size_t index) const {
  const Call& c = call(index);
  Wanted wanted;
  for (std::size_t i = 0; i < c.in.size(); ++i)
    if (has_gradient(c.in[i])) wanted.in |= bit(i);
  for (std::size_t i = 0; i < c.weights.size(); ++i)
    if (trained(c.weights[i])) wanted.weights |= bit(i);
  return wanted;
}

bool ModuleFacts::anything_goes_backward() const {
  for (std::size_t i = 0; i < calls(); ++i)
    if (goes_backward(i)) return true;
  return false;
}

bool ModuleFacts::is_loss(LocalId id) const {
  return std::any_of(module_->program.begin(), module_->program.end(),
                     [&](const Call& c) { return c.out.front() == id && c.what->primitive.is_own_loss(); });
}

std::vector<bool> ModuleFacts::find_what_backward_reads() {
  std::vector<bool> read(module_->locals.size());
  for (std::size_t i = 0; i < calls(); ++i) {
    if (!goes_backward(i)) continue;
    const Call& c = call(i);
    CHECK(c.what->primitive.updates() == 0, module_->name, "has no backward through what a step overwrites", c.name);
    const Keeps keeps = c.what->primitive.keeps(c.how, wanted_of(i));
    for (std::size_t k = 0; k < c.in.size(); ++k)
      if (keeps.in & bit(k)) read[place(c.in[k])] = true;
    for (std::size_t k = 0; k < c.out.size(); ++k)
      if (keeps.out & bit(k)) read[place(c.out[k])] = true;
    for (std::size_t k = 0; k < c.weights.size(); ++k)
      if (keeps.weights & bit(k)) (trained(c.weights[k]) ? backward_reads_weights_ : backward_reads_frozen_) = true;
  }
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!read[i]) continue;
    if (input_port_[i] != kNone) keeps_inputs_ |= bit(place(input_port_[i]));
    if (output_port_[i] != kNone) keeps_outputs_ |= bit(place(output_port_[i]));
  }
  return read;
}

// One reader that wants it as it was is enough for it to stay so.
std::vector<bool> ModuleFacts::find_what_may_be_lossy() const {
  std::vector<bool> lossy(module_->locals.size(), true);
  for (std::size_t i = 0; i < calls(); ++i) {
    if (!goes_backward(i)) continue;
    const Call& c = call(i);
    const Keeps keeps = c.what->primitive.keeps(c.how, wanted_of(i)), may_be = c.what->primitive.lossy();
    for (std::size_t k = 0; k < c.in.size(); ++k)
      if (keeps.in & ~may_be.in & bit(k)) lossy[place(c.in[k])] = false;
    for (std::size_t k = 0; k < c.out.size(); ++k)
      if (keeps.out & ~may_be.out & bit(k)) lossy[place(c.out[k])] = false;
  }
  return lossy;
}

void ModuleFacts::keep_saved(std::size_t index) {
  const Call& c = call(index);
  saved_as_[index].assign(c.shapes.saved.size(), kNone);
  if (!goes_backward(index)) return;
  for (std::size_t k = 0; k < c.shapes.saved.size(); ++k) {
    saved_as_[index][k] = static_cast<std::int32_t>(kept_.size());
    kept_.push_back({c.name + "_" + c.shapes.saved[k].name, c.shapes.saved[k].shape});
  }
}

void ModuleFacts::keep_output(std::size_t index, const std::vector<bool>& read_backward,
                              const std::vector<bool>& lossy) {
  for (const LocalId out : call(index).out) {
    if (!read_backward[place(out)] || output_port(out) != kNone) continue;
    kept_as_[place(out)] = static_cast<std::int32_t>(kept_.size());
    kept_.push_back({local(out).name, local(out).shape, lossy[place(out)]});
  }
}

std::vector<bool> ModuleFacts::calls_that_kept_needs() const {
  std::vector<bool> needed(module_->locals.size()), result(calls());
  for (std::size_t i = calls(); i-- > 0;) {
    bool here = std::any_of(saved_as_[i].begin(), saved_as_[i].end(), [](auto as) { return as != kNone; });
    for (const LocalId out : call(i).out) here = here || needed[place(out)] || kept_as(out) != kNone;
    result[i] = here;
    if (here)
      for (const LocalId in : call(i).in) needed[place(in)] = true;
  }
  return result;
}

}  // namespace tandem
