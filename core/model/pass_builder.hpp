// Builds one pass: its storages and operands as calls are added, then places in the workspace for what lies there.
#pragma once

#include <vector>

#include "core/model/passes.hpp"

namespace tandem {

class PassBuilder {
 public:
  PassBuilder(std::shared_ptr<const Module> module, const RunsOn& where) : where_(where) {
    pass_.module = std::move(module);
  }

  // In the workspace, until it is bound to an operand.
  std::int32_t new_storage(std::int64_t bytes);
  // The operand's; the same one each time.
  std::int32_t storage_of(Operand operand, std::int64_t bytes);
  void bind(std::int32_t storage, Operand operand);
  // A bucket, which is no storage of one value.
  void add_operand(Operand operand) { pass_.operands.push_back(operand); }
  bool is_operand(std::int32_t storage) const { return at(storage).operand != kNone; }
  Operand operand_of(std::int32_t storage) const {
    return pass_.operands[static_cast<std::size_t>(at(storage).operand)];
  }
  std::int64_t bytes_of(std::int32_t storage) const { return at(storage).bytes; }

  // With its kernels and scratch; `more_scratch`: beside the primitive's.
  void add(PassCall call, std::int64_t more_scratch = 0);
  void add_kernel(Kernel kernel) { pass_.kernels.push_back(std::move(kernel)); }
  // Places what is in the workspace: first fit, each from the first call that names it to the last.
  Pass finish();

 private:
  const Storage& at(std::int32_t storage) const { return pass_.storages[static_cast<std::size_t>(storage)]; }
  Pass pass_;
  RunsOn where_;
};

}  // namespace tandem
