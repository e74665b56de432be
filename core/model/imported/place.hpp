// Plans one pass over an imported program: which calls it needs, where each result lies, what leaves. Must not know
// files or LibTorch.
#pragma once

#include <memory>
#include <vector>

#include "core/model/imported/pass.hpp"
#include "core/model/passes.hpp"

namespace tandem {

class ImportedPlan {
 public:
  ImportedPlan(std::shared_ptr<const ImportedProgram> program, std::shared_ptr<const Module> module,
               const RunsOn& where);

  // `kept`: places among what is saved.
  Pass forward(const std::vector<std::size_t>& kept, bool writes_outputs);
  Pass backward(const DeriveOptions& options, const std::vector<std::size_t>& kept, bool accumulates);
  // Which calls a backward needs; false: there is none. Then reads() says what they read.
  bool begin_backward(const DeriveOptions& options);
  bool reads(std::int32_t value) const { return needed_[place(value)]; }

 private:
  static std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }
  bool trained(std::size_t weight) const { return pass_.module->weights[weight].trained; }
  std::int32_t same(std::int32_t value) const;
  void leave_out_sums(const DeriveOptions& options);
  void need(std::int32_t value);
  void need_calls(const std::vector<ImportedCall>& calls);
  std::int32_t operand(OperandKind kind, std::size_t index);
  void give(std::int32_t value, OperandKind kind, std::size_t index, const Sizes& order, std::int32_t field = kNone);
  void leave(std::int32_t value, OperandKind kind, std::size_t index, const Sizes& order, bool adds = false,
             std::int32_t field = kNone);
  void give_weights();
  void find_lives();
  bool may_lie_in(const ImportedStore& store, std::size_t step) const;
  void place_results(std::size_t step, class WorkspaceMeter& meter);
  void take_scratch(std::size_t step, class WorkspaceMeter& meter);
  Pass finish();

  std::shared_ptr<const ImportedProgram> program_;
  RunsOn where_;
  Pass pass_;
  std::shared_ptr<ImportedPass> plan_;
  std::vector<bool> needed_;            // by value
  std::vector<ImportedStore> stores_;   // all, before they are told apart by step
  std::vector<std::int32_t> made_by_;   // by value: the step; kNone: given
  std::vector<std::int32_t> root_;      // by value: the one whose storage it lies in
  std::vector<std::int32_t> last_use_;  // by value: the step; of a root, of all that lies in it
  std::vector<std::int64_t> offset_;    // by value: of a root in the workspace
};

}  // namespace tandem
