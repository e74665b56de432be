// A pass of an imported module, placed: where each result lies, what a call may take for itself, and what is copied to
// which operand. The runtime walks it. Must not know LibTorch.
#pragma once

#include <memory>
#include <vector>

#include "core/model/imported/program.hpp"
#include "core/model/opaque.hpp"

namespace tandem {

// What a value is before any call: an operand as it lies, or a field of a bucket.
struct ImportedGiven {
  std::int32_t value = kNone;
  std::int32_t operand = kNone;  // place in Pass::operands; kNone: the loss's own gradient
  std::int32_t field = kNone;
  Sizes order;
};
// Where a result is written: an operand, or a range of the workspace. Neither: it lies in another value, as a view.
struct ImportedPlace {
  std::int32_t operand = kNone, field = kNone;
  std::int64_t offset = kNone, bytes = 0;
  bool is_view() const { return operand == kNone && offset == kNone; }
};
// A value that leaves: copied to an operand, unless it lies there, or added to what is there.
struct ImportedStore {
  std::int32_t value = kNone, operand = kNone, field = kNone;
  bool adds = false;
  Sizes order;
};
struct ImportedStep {
  const ImportedCall* call = nullptr;
  std::vector<ImportedPlace> out;
  std::vector<ImportedStore> stores;  // after the call
  std::vector<std::int32_t> ends;     // values that nobody reads any more
  std::int64_t scratch_offset = 0, scratch_bytes = 0;
};

struct ImportedPass final : GivenPass {
  std::shared_ptr<const ImportedProgram> program;
  std::vector<ImportedGiven> given;
  std::vector<ImportedStep> steps;
  std::vector<ImportedStore> last_stores;  // of values that no call makes
  // A value that is another one in this pass: a sum whose other part is not there.
  std::vector<std::int32_t> same_as;      // by value
  std::int32_t loss = kNone;              // its value
  std::int64_t loss_gradient_offset = 0;  // in the workspace
  bool writes_gradients = false;          // of weights, and first
};

}  // namespace tandem
