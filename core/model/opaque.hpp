// A module whose passes are given, not derived from a program of primitives: what an import brings. Must not know which
// calls they are made of.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace tandem {

struct AdapterShape;
struct DeriveOptions;
struct Module;
struct Passes;

// What a pass of it is made of: only who brings it, and the runtime, know more.
struct GivenPass {
  GivenPass() = default;
  GivenPass(const GivenPass&) = delete;
  GivenPass& operator=(const GivenPass&) = delete;
  virtual ~GivenPass() = default;
  bool has_loss = false, draws_random = false;
};

class Opaque {
 public:
  virtual ~Opaque() = default;
  virtual Passes derive(const std::shared_ptr<const Module>& module, const DeriveOptions& options) const = 0;
  // Of what trains: whether backward is given a gradient of that output.
  virtual bool output_has_gradient(std::size_t output) const = 0;
  // Whether adapters may stand beside the weight (adapters.hpp): it multiplies, once, as a linear layer's.
  virtual bool adapts(std::size_t weight) const = 0;
  // The module with adapters beside those weights, whose own come after all others.
  virtual std::shared_ptr<const Module> adapted(const Module& module, const std::vector<bool>& weights,
                                                const AdapterShape& shape) const = 0;
};

}  // namespace tandem
