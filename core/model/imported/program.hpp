// A module's forward and backward as lists of ATen calls, read from a folder that `tandem import` wrote, and checked:
// every call is of a known operator, with arguments and shapes that go together. Must not know LibTorch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/model/imported/operators.hpp"

namespace tandem {

struct ImportedCall {
  const Operator* what = nullptr;
  std::vector<Argument> arguments;
  std::vector<std::int32_t> out;  // values; every result has one
};

struct ImportedPort {
  std::int32_t value = kNone;
  std::string name;                               // of a weight: what the module calls it
  std::int32_t gradient = kNone, so_far = kNone;  // what backward makes, and what it may begin the sum with
  Sizes order, gradient_order;                    // dimensions from the outermost in memory; empty: as they are
};
struct ImportedOutput {
  std::int32_t value = kNone;
  std::int32_t gradient = kNone;  // that backward is given; kNone: it has none
  Sizes order, gradient_order;
  bool is_loss = false;
};
struct ImportedSaved {
  std::int32_t value = kNone;
  std::int32_t in_backward = kNone;
  Sizes order;
};

struct ImportedProgram {
  std::string kind;
  std::vector<TensorType> values;
  std::vector<std::string> names;  // of values, for messages
  std::vector<ImportedPort> inputs, weights;
  std::vector<ImportedOutput> outputs;
  std::vector<ImportedSaved> saved;
  std::vector<ImportedCall> forward, backward;
  bool has_loss() const { return !outputs.empty() && outputs[0].is_loss; }
  const TensorType& type(std::int32_t value) const { return values[static_cast<std::size_t>(value)]; }
};

// Throws Finding with the place in the text.
std::shared_ptr<const ImportedProgram> read_program(const std::string& text, const std::string& path,
                                                    const ImportedSizes& sizes);

// Limits that no honest folder reaches.
inline constexpr std::size_t kMostCalls = 20000;
inline constexpr std::size_t kMostPorts = 32;  // bit sets
inline constexpr std::int64_t kFormat = 1;

}  // namespace tandem
