// A primitive says everything about one operation of a network once: shapes, what its backward reads, kernels, and
// temporaries. One file each in core/model/primitives, registered by its last line; runtime/primitives performs it.
// Knows shapes, bytes and flops; must not know LibTorch, placement or steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/model/attributes.hpp"
#include "core/model/meter.hpp"
#include "core/model/shape.hpp"

namespace tandem {

enum class Direction : std::uint8_t { Forward, Backward };

struct NamedShape {
  std::string name;
  Shape shape;
  Initial initial = {};           // of a weight
  std::int64_t padding_rows = 0;  // of a weight: the last of the shape's, see Field
  bool trained = true;            // of a weight: else it is frozen
  bool operator==(const NamedShape&) const = default;
};

// Of one call.
struct CallShapes {
  DType type = DType::F32;  // the module's
  std::vector<Shape> in, out;
  std::vector<NamedShape> weights;  // "weight", "bias": after the call's name; "": the call's name itself
  std::vector<NamedShape> saved;    // kept beside inputs and outputs: statistics
};

// Bit i: the i-th input, weight or output.
using Bits = std::uint32_t;
constexpr Bits bit(std::size_t i) { return Bits{1} << i; }

// What a call is asked for beside its outputs: gradients, of a backward.
struct Wanted {
  Bits in = 0, weights = 0;
  bool accumulates = false;  // the weights' are added to what is there
  bool contributed = false;  // and what other modules made of them is added first
  // The weights' gradients are made apart, and then added.
  bool apart() const { return weights != 0 && (accumulates || contributed); }
  bool saves = false;  // forward: what it saves is kept
  bool any() const { return (in | weights) != 0; }
};

// What a backward reads beside gradients and what is saved.
struct Keeps {
  Bits in = 0, out = 0, weights = 0;
};

// Where a call runs, as far as its temporaries depend on that.
struct RunsOn {
  bool gpu = false;
  std::int64_t threads = 1;
  bool or_cpu = false;  // instead of the GPU: there must be enough for either
};

// Stateless. Shapes given to a function are those that infer() filled.
class Primitive {
 public:
  virtual ~Primitive() = default;
  // From the shapes of the inputs those of all else. Throws ConfigError for inputs that do not meet.
  virtual void infer(const Attributes& how, CallShapes& shapes) const = 0;
  virtual Keeps keeps(const Attributes& how, Wanted wanted) const = 0;
  // Of the inputs and outputs that its backward reads, those that may come back as other numbers, near to what they
  // were (core/transforms/sparse_activations.cpp): a gradient is a little off then, and nothing else.
  virtual Keeps lossy() const { return {}; }
  // Appends the kernels of forward, or of backward for what is wanted, in the order that the runtime launches them.
  virtual void kernels(const Attributes& how, const CallShapes& shapes, Direction direction, Wanted wanted,
                       std::vector<Kernel>& to) const = 0;
  // Takes and drops what the body and LibTorch's kernels allocate for themselves, beside all operands, in their order.
  // `wanted.accumulates`: gradients that are added to others are made apart first.
  virtual void scratch(const Attributes& how, const CallShapes& shapes, Direction direction, Wanted wanted,
                       const RunsOn& where, WorkspaceMeter& meter) const = 0;
  // The inputs (backward: bit 0, the output's gradient) whose storage the result may take where nobody reads them any
  // more.
  virtual Bits in_place(Direction) const { return 0; }
  // The inputs that forward writes, too: what is carried from step to step. There is no backward through such a call.
  virtual Bits updates() const { return 0; }
  // The output's gradient is that of these inputs as it is: nothing is computed.
  virtual Bits passes_gradient() const { return 0; }
  // The place among what is saved where forward left the gradient of the input; kNone: backward makes it.
  virtual std::int32_t gradient_saved_as(std::size_t) const { return kNone; }
  // Forward makes gradients, so that it reads the loss's scale, and backward does not.
  virtual bool gradient_in_forward() const { return false; }
  // Forward needs the places of what is saved, though it is not kept.
  virtual bool saves_always(const Attributes&) const { return false; }
  // LibTorch makes the inputs' gradients by itself (scratch() counts them): else a kernel writes them where they go.
  virtual bool makes_gradients_apart() const { return false; }
  // The result is a loss: backward starts here.
  virtual bool is_loss() const { return false; }
  // A loss beside the network's own: it trains, but its value is an output like others, or nobody's.
  virtual bool is_auxiliary() const { return false; }
  bool is_own_loss() const { return is_loss() && !is_auxiliary(); }
  // The result is a choice, one integer, which decides how steps go on.
  virtual bool is_choice() const { return false; }
  // The event of the op that computes it says the value (Event::result).
  bool gives_result() const { return is_own_loss() || is_choice(); }
  // What it computes depends on the step and micro-batch that it is part of, by random numbers.
  virtual bool draws_random() const { return false; }
  // What is saved comes after the output among what a module keeps.
  virtual bool saved_after_output() const { return false; }
};

struct PrimitiveEntry {
  std::string_view name;  // "layer_norm": the runtime's key as well
  const Primitive& primitive;
};

// All in alphabetical order.
const std::vector<const PrimitiveEntry*>& primitives();
const PrimitiveEntry* find_primitive(std::string_view name);

}  // namespace tandem

// The last line of core/model/primitives/<name>.cpp. CMake's generated table names <name>_primitive_entry for each
// file.
#define TANDEM_PRIMITIVE(NAME, TYPE)                                    \
  namespace tandem {                                                    \
  extern const PrimitiveEntry NAME##_primitive_entry;                   \
  static const TYPE NAME##_primitive;                                   \
  const PrimitiveEntry NAME##_primitive_entry{#NAME, NAME##_primitive}; \
  }
