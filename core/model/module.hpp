// A module: named ports, weights, and a program, which is a straight line of calls. Passes are derived from it
// (passes.hpp). Must not know networks, steps or LibTorch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/model/primitive.hpp"

namespace tandem {

using LocalId = std::int32_t;

struct Local {
  std::string name;  // its call's, or the port's
  Shape shape;
};

struct Call {
  std::string name;
  const PrimitiveEntry* what = nullptr;
  Attributes how;
  std::vector<LocalId> in, out;
  std::vector<std::int32_t> weights;  // places in Module::weights
  CallShapes shapes;
};

struct Module {
  std::string name;
  DType type = DType::F32;
  std::vector<Local> locals;
  std::vector<LocalId> inputs, outputs;
  std::vector<NamedShape> weights;  // one bucket, in this order
  std::vector<Call> program;
  bool trained = true;
};

// The bucket of a module's weights.
std::shared_ptr<const Layout> layout_of(const Module& module);

class ModuleBuilder {
 public:
  ModuleBuilder(std::string name, DType type);

  LocalId input(const std::string& name, Shape shape);
  LocalId linear(const std::string& name, LocalId x, std::int64_t outputs);
  LocalId layer_norm(const std::string& name, LocalId x, double epsilon);
  // Of [tokens, 3 hidden] queries, keys and values.
  LocalId attention(const std::string& name, LocalId qkv, std::int64_t heads, std::int64_t sequence, bool causal);
  LocalId activation(const std::string& name, LocalId x, const std::string& kind);
  LocalId add(const std::string& name, LocalId a, LocalId b);
  LocalId cross_entropy(const std::string& name, LocalId logits, LocalId targets);
  LocalId call(const std::string& name, const std::string& primitive, std::vector<LocalId> in, Attributes how);

  void output(LocalId value) { module_.outputs.push_back(value); }
  // The weights of these calls come first in the bucket, in this order.
  void weights_first(const std::vector<std::string>& calls);
  std::shared_ptr<const Module> build();

 private:
  Module module_;
};

}  // namespace tandem
