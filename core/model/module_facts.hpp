// What the passes of a module have in common: which values have gradients, what backward reads, and what is kept for
// it. Must not know where values lie.
#pragma once

#include <memory>
#include <vector>

#include "core/model/passes.hpp"

namespace tandem {

class ModuleFacts {
 public:
  ModuleFacts(std::shared_ptr<const Module> module, Bits input_gradients);

  const std::shared_ptr<const Module>& module() const { return module_; }
  const Local& local(LocalId id) const { return module_->locals[static_cast<std::size_t>(id)]; }
  const Call& call(std::size_t index) const { return module_->program[index]; }
  std::size_t calls() const { return module_->program.size(); }

  // Of a weight of a call: whether it is trained.
  bool trained(std::int32_t weight) const { return module_->weights[static_cast<std::size_t>(weight)].trained; }
  // The gradients that a call's backward makes.
  Wanted wanted_of(std::size_t call) const;
  bool goes_backward(std::size_t call) const { return wanted_of(call).any(); }
  bool anything_goes_backward() const;
  bool has_gradient(LocalId id) const { return has_gradient_[static_cast<std::size_t>(id)]; }
  // Places of ports; kNone for what is none.
  std::int32_t input_port(LocalId id) const { return input_port_[static_cast<std::size_t>(id)]; }
  std::int32_t output_port(LocalId id) const { return output_port_[static_cast<std::size_t>(id)]; }
  bool is_loss(LocalId id) const;

  const std::vector<Kept>& kept() const { return kept_; }
  // Places in kept(); kNone: not kept there.
  std::int32_t kept_as(LocalId id) const { return kept_as_[static_cast<std::size_t>(id)]; }
  std::int32_t saved_as(std::size_t call, std::size_t saved) const { return saved_as_[call][saved]; }
  Bits keeps_inputs() const { return keeps_inputs_; }
  Bits keeps_outputs() const { return keeps_outputs_; }
  bool backward_reads_weights() const { return backward_reads_weights_; }
  bool backward_reads_frozen() const { return backward_reads_frozen_; }
  // The calls whose results what is kept depends on.
  std::vector<bool> calls_that_kept_needs() const;

 private:
  void find_ports();
  void find_gradients(Bits input_gradients);
  std::vector<bool> find_what_backward_reads();
  std::vector<bool> find_what_may_be_lossy() const;
  void keep_saved(std::size_t call);
  void keep_output(std::size_t call, const std::vector<bool>& read_backward, const std::vector<bool>& lossy);

  std::shared_ptr<const Module> module_;
  std::vector<bool> has_gradient_;                      // by local
  std::vector<std::int32_t> input_port_, output_port_;  // likewise
  std::vector<std::int32_t> kept_as_;                   // likewise
  std::vector<std::vector<std::int32_t>> saved_as_;     // by call
  std::vector<Kept> kept_;
  Bits keeps_inputs_ = 0, keeps_outputs_ = 0;
  bool backward_reads_weights_ = false, backward_reads_frozen_ = false;
};

}  // namespace tandem
