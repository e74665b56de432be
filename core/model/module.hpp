// A module: named ports, weights, and a program, which is a straight line of calls. Passes are derived from it
// (passes.hpp). Must not know networks, steps or LibTorch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/model/primitive.hpp"

namespace tandem {

class Opaque;

using LocalId = std::int32_t;

struct Local {
  std::string name;  // its call's, or the port's
  Shape shape;
  bool operator==(const Local&) const = default;
};

struct Call {
  std::string name;
  const PrimitiveEntry* what = nullptr;
  Attributes how;
  std::vector<LocalId> in, out;
  std::vector<std::int32_t> weights;  // places in Module::weights
  CallShapes shapes;
  // Shapes follow from the rest.
  bool operator==(const Call& o) const {
    return name == o.name && what == o.what && how == o.how && in == o.in && out == o.out && weights == o.weights;
  }
};

// What ranks that divide a layer do with a value, instead of a program. Its gradient goes the other way.
enum class Exchange : std::uint8_t {
  None,
  Forward,   // they add up what each has made of it
  Backward,  // they all have it, and add up their gradients of it
  Gather,    // each has some rows, and gets all of them: an all-gather; back, a reduce-scatter
  Scatter,   // they add up what each has made of it, and each gets some rows: the two by turns
  AllToAll,  // each has a part of all others' parts, and sends it there
  Shift      // each sends its own to the next rank of a ring, and gets that of the one before; back, the other way
};
// Which ranks these are.
enum class ExchangeAmong : std::uint8_t { Tensor, Sequence, Expert, Hidden };

struct Module {
  std::string name;  // of its kind: "block"
  DType type = DType::F32;
  std::vector<Local> locals;
  std::vector<LocalId> inputs, outputs;
  std::vector<LocalId> carried;     // from step to step; calls read them, and some write them in place
  std::vector<NamedShape> weights;  // those that are trained are one bucket, in this order, and frozen ones another
  std::vector<Call> program;
  bool may_run_on_cpu = false;           // as well as on the device
  std::shared_ptr<const Opaque> opaque;  // instead of a program: passes are given, not derived
  Exchange exchange = Exchange::None;    // of one input, which is the output
  ExchangeAmong among = ExchangeAmong::Tensor;
  std::int64_t exchange_ranks = 1;
  bool operator==(const Module&) const = default;
};

// Whether any weight is trained, or any is frozen.
bool trains(const Module& module);
bool has_frozen_weights(const Module& module);
// The module, of which these weights are trained, by place, and no others.
std::shared_ptr<const Module> with_trained(const Module& module, const std::vector<bool>& trained);
// The bucket of a module's weights that are trained, or of those that are frozen.
std::shared_ptr<const Layout> layout_of(const Module& module, bool trained);
// The place of a weight's field in its bucket.
std::int32_t field_of(const Module& module, std::size_t weight);

struct AttentionOptions {
  std::int64_t heads = 1, sequence = 1;
  bool causal = false;  // a token attends to itself and those before it alone
  bool fused = true;    // no scores in memory
};

class ModuleBuilder {
 public:
  // `kind`: what modules of its shape are called: "block".
  ModuleBuilder(std::string kind, DType type);

  DType type() const { return module_.type; }
  const Shape& shape(LocalId id) const { return module_.locals.at(static_cast<std::size_t>(id)).shape; }
  LocalId input(const std::string& name, Shape shape);
  // What a step leaves for the next one, such as a cache of keys and values; zeros before the first.
  LocalId carried(const std::string& name, Shape shape);
  // `padding`: so many more rows of the weight, and outputs, which are zero: see Field::padding_rows.
  LocalId linear(const std::string& name, LocalId x, std::int64_t outputs, bool bias = true, std::int64_t padding = 0);
  // By a weight [outputs and padding, inputs] that is an input: one that modules share.
  LocalId linear_by(const std::string& name, LocalId x, LocalId weight, bool bias = true, std::int64_t padding = 0);
  LocalId embedding(const std::string& name, LocalId tokens, std::int64_t rows, std::int64_t columns,
                    std::int64_t padding = 0);
  // By a table that is an input: one that modules share.
  LocalId embedding_by(const std::string& name, LocalId tokens, LocalId table);
  // `first`: the place of a sequence's first token, in a table of `rows` (0: as many as the sequence).
  LocalId positions(const std::string& name, LocalId x, std::int64_t sequence, std::int64_t first = 0,
                    std::int64_t rows = 0);
  LocalId layer_norm(const std::string& name, LocalId x, double epsilon);
  // Of [tokens, 3 hidden] queries, keys and values.
  LocalId attention(const std::string& name, LocalId qkv, const AttentionOptions& options);
  LocalId activation(const std::string& name, LocalId x, const std::string& kind);
  LocalId add(const std::string& name, LocalId a, LocalId b);
  // `padding`: so many of the last logits of a row are nobody's.
  LocalId cross_entropy(const std::string& name, LocalId logits, LocalId targets, std::int64_t padding = 0);
  // Of new tokens, the first of them at `position`, to all before them, whose keys and values are in `cache`
  // [2, capacity, hidden]; theirs are added.
  LocalId cached_attention(const std::string& name, LocalId qkv, LocalId cache, std::int64_t heads,
                           std::int64_t position);
  // `padding`: so many of the last logits of a row are nobody's.
  LocalId likeliest(const std::string& name, LocalId logits, std::int64_t padding = 0);
  LocalId call(const std::string& name, const std::string& primitive, std::vector<LocalId> in, Attributes how);

  LocalId input_of(std::size_t port) const { return module_.inputs.at(port); }
  void freeze() { freezes_ = true; }  // all weights
  void allow_cpu() { module_.may_run_on_cpu = true; }
  void output(LocalId value) { module_.outputs.push_back(value); }
  // How a weight begins, other than its primitive says.
  void begin_as(const std::string& weight, const Initial& initial);
  const Module& so_far() const { return module_; }
  // These weights, or those of these calls, come first in the bucket, in this order.
  void weights_first(const std::vector<std::string>& names);
  std::shared_ptr<const Module> build();

 private:
  LocalId add_local(const std::string& name, Shape shape);
  void require_written_are_carried(const Call& call) const;
  Module module_;
  bool freezes_ = false;
};

}  // namespace tandem
