// The step graph: layer-sized ops over values (versions of tensors), appended step by step.
// Knows sizes, roles, flops and order; must not know where bytes are or when anything runs.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/forgetting_vector.hpp"
#include "core/base/ids.hpp"
#include "core/base/stable_vector.hpp"

namespace tandem {

enum class Role : std::uint8_t { Parameter, Gradient, OptimizerState, Activation, Batch, KvCache, Scalar };
inline constexpr int kRoleCount = 7;
constexpr std::string_view name_of(Role role) {
  constexpr std::string_view kNames[] = {"parameter", "gradient", "optimizer_state", "activation",
                                         "batch",     "kv_cache", "scalar"};
  static_assert(std::size(kNames) == kRoleCount);
  return kNames[static_cast<int>(role)];
}

// How a weight begins: runtime/initial_values.hpp.
struct Initial {
  // ByShape: norms one, biases zero, the rest normal. Normal: around zero. Sinusoids: fixed positions. Stored: in a
  // file of the workload's.
  enum class Kind : std::uint8_t { ByShape, Constant, Normal, Sinusoids, Stored };
  Kind kind = Kind::ByShape;
  float number = 0;  // the constant, or the deviation
  bool operator==(const Initial&) const = default;
};

// A named tensor inside a flat bucket: `offset` is a multiple of 64 bytes, so that vectorised bodies see the alignment
// that they would see in a tensor of its own.
struct Field {
  std::string name;
  boost::container::small_vector<std::int64_t, 4> shape;
  std::int64_t offset = 0;  // bytes from the start of the bucket
  Initial initial = {};
  // Rows behind those of `shape`, which programs see as well, as kernels are faster at some widths. They are zero and
  // stay so: no numbers of the network, so that none is saved, counted, or in a norm.
  std::int64_t padding_rows = 0;
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (auto d : shape) n *= d;
    return n;
  }
  decltype(shape) padded_shape() const {
    auto padded = shape;
    if (padding_rows > 0) padded.front() += padding_rows;
    return padded;
  }
  std::int64_t padded_elements() const {
    return padding_rows == 0 ? elements() : elements() / shape.front() * (shape.front() + padding_rows);
  }
};

// The inside of a flat bucket. Parameters, gradients and moments of a layer share one layout (scaled by element size).
struct Layout {
  std::vector<Field> fields;
  std::int64_t elements = 0;  // with padding
};

struct Tensor {
  std::string name;  // "block3.parameter", "block3.ln1_mean"
  Role role = Role::Activation;
  DType type = DType::F32;
  std::int64_t bytes = 0;
  std::int32_t layer = kNone;            // position in forward order; kNone for scalars and batches
  std::shared_ptr<const Layout> layout;  // buckets only
  std::int64_t first_element = 0;        // of the bucket, where the tensor is a rank's part of it
  std::int64_t code_bits = 0;  // of a parameter that is kept as codes (core/formats/weight_blocks.hpp); 0: as numbers
  bool persistent = false;     // its latest version outlives the step (parameters, optimizer states, KV cache)
  // What ranks divide is whole for a while, and comes and goes like an activation: what memory reports call it.
  std::optional<Role> reported_as;
  // Of a rank's part of a parameter: the tensor that holds all of it from the first forward after an update to the last
  // backward; kNone: it is not divided, or whole for one pass at a time.
  TensorId whole = kNone;
  ValueId latest = kNone;
  std::int32_t versions = 0;  // so far
  bool on_host = false;       // a parameter whose own module the CPU computes: the device has no need of it
  Role reported_role() const { return reported_as.value_or(role); }
};

// One version of a tensor. A write makes a new one, which may share the storage of the one before.
struct Value {
  TensorId tensor = kNone;
  std::int32_t version = 0;
  std::int64_t bytes = 0;
  OpId producer = kNone;
  std::int32_t readers = 0;  // appended so far
  bool superseded = false;   // a newer version of the tensor exists, or none will, or the tensor is not persistent
  bool transient = false;    // the tensor is neither persistent nor a gradient: said here, as each value is asked
};

enum class Phase : std::uint8_t {
  Load,
  Forward,
  Recompute,
  Backward,
  Reduce,
  OptimizerStep,
  Sample,
  Save,
  Evaluate,
  Gather,  // a bucket as passes read it: brought together from the parts that ranks hold, or made of codes
  Keep     // what an op made is kept beside the graph, for later steps
};
inline constexpr int kPhaseCount = 11;
constexpr std::string_view name_of(Phase phase) {
  constexpr std::string_view kNames[] = {"load",   "forward", "recompute", "backward", "reduce", "optimizer_step",
                                         "sample", "save",    "evaluate",  "gather",   "keep"};
  static_assert(std::size(kNames) == kPhaseCount);
  return kNames[static_cast<int>(phase)];
}

// A kernel-sized piece of an op's work, for the cost model. Bodies launch about one kernel for each.
// Media: a stage of the input pipeline (core/base/input_stages.hpp).
enum class KernelKind : std::uint8_t { Gemm, Attention, Memory, Optimizer, Fixed, Media };
struct Kernel {
  KernelKind kind = KernelKind::Memory;
  std::int64_t m = 0, n = 0, k = 0;  // Gemm: rows, columns, inner. Attention: batch*heads, queries, head size
  // Gemm: the largest power of two, up to kAligned, that divides the sizes along which operands lie in memory, and the
  // one along which the result does; 0: not known.
  std::int16_t operand_alignment = 0, result_alignment = 0;
  std::int64_t keys = 0;           // Attention: rows that a query may see
  bool causal = false;             // Attention: but not those that come after it
  bool backward = false;           // Attention
  std::int64_t rows = 0;           // Memory: rows of which each is normalised, or is added to a sum over rows
  std::int64_t flops = 0;          // as torch.utils.flop_counter counts (Gemm 2mnk); 0 for the rest
  std::int64_t padding_flops = 0;  // of them, those on padding: none of the network's
  std::int64_t bytes = 0;          // least memory traffic of the kernel: each operand once
  std::int64_t elements = 0;       // Optimizer: parameters updated; Media: units
  std::int64_t fixed_ns = 0;       // Fixed: a measured time, taken as it is
  std::int64_t stage = 0;          // Media: of kInputStages
  std::int64_t items = 0;          // Media: so many, of `elements` units together
};

inline constexpr std::int16_t kAligned = 8;  // elements: 16 bytes in 16 bits, which a thread loads at once

struct Pass;  // core/model/passes.hpp

// What an op does, shared by all ops of the same shape: its body's name, its sizes and its kernels.
struct Work {
  std::string body;  // names the runtime's body: "gpt.block.forward"
  DType type = DType::F32;
  std::vector<std::int64_t> sizes;  // in the order that the body documents
  std::vector<Kernel> kernels;
  std::shared_ptr<const Pass> pass = nullptr;  // derived ones: the runtime walks it; else it has a body of that name
  // The network's: no padding's.
  std::int64_t flops() const {
    std::int64_t n = 0;
    for (const auto& k : kernels) n += k.flops - k.padding_flops;
    return n;
  }
};

struct Write {
  ValueId value = kNone;
  // The value whose storage this write may take over (an in-place update), or kNone. It is also one of the reads, or a
  // version that the op does not need.
  ValueId reuses = kNone;
};

struct Op {
  std::int32_t label = kNone;  // Graph::label: "block3.forward"
  WorkId work = kNone;
  Phase phase = Phase::Forward;
  Engine engine = Engine::Compute;  // where it runs unless the policy says otherwise
  std::uint16_t engines = 0;        // bit set of the engines that have a body
  bool divisible = false;           // may run in parts, each element or block by itself; byte ranges scale with sizes
  std::int32_t cut_bytes = 64;      // divisible: parts begin at multiples of this in the op's first write
  bool has_result = false;          // its event carries a result
  bool grows = false;               // its result decides what the source appends next
  std::int32_t step = kNone;        // training step, or decoding step; kNone before the first
  std::int32_t micro_batch = 0;
  std::int32_t layer = kNone;
  std::int32_t match_group = kNone;  // of ranks that perform it together
  std::int32_t match_sequence = kNone;
  std::int8_t lane_number = 0;  // P2P, Collective: the lane of that kind
  std::int64_t workspace_bytes = 0;
  // A large run has millions of ops, most of which have few operands.
  boost::container::small_vector<ValueId, 4> reads;
  boost::container::small_vector<Write, 2> writes;
  bool may_run_on(Engine e) const { return (engines >> static_cast<int>(e)) & 1; }
};
// A load of an era that takes over (Graph::loaded): it never runs, as what it writes is there.
inline bool is_taken_over(const Op& op) {
  return op.phase == Phase::Load && !op.writes.empty() && op.writes.front().reuses != kNone;
}
// Policies cut divisible ops at whole pages, so that a part can also rest on a disk: always a multiple of cut_bytes.
inline constexpr std::int64_t kPageBytes = 4096;
constexpr std::uint16_t engine_bit(Engine e) { return static_cast<std::uint16_t>(1u << static_cast<int>(e)); }

// Steps under one policy. Where another takes over, what came before is over and may be forgotten; its loads write new
// versions of what is persistent, in the places where the last ones are.
struct Era {
  OpId first_op = 0;
  ValueId first_value = 0;
  std::int32_t first_step = 0;
  bool takes_over() const { return first_step > 0; }
};

class Graph {
 public:
  // After begin_era(): the tensor of that name and shape that is there, where there is one.
  TensorId add_tensor(Tensor tensor);
  void begin_era(std::int32_t first_step);
  const Era& era() const { return era_; }
  bool in_first_step(const Op& op) const { return op.step == era_.first_step; }
  // Of a tensor that is loaded: the next version, to be written by the op that is appended next.
  Write loaded(TensorId tensor);
  // Ranks that perform ops together, by the number that all of them know them by. Once added, they stay.
  void add_group(std::int32_t number, std::vector<Rank> members);
  const std::vector<Rank>& group(std::int32_t number) const { return groups_.at(number).members; }
  std::int32_t next_match(std::int32_t group) { return groups_.at(group).matches++; }  // Op::match_sequence
  // See Tensor::whole.
  void set_whole(TensorId part, TensorId whole) { tensors_[static_cast<std::size_t>(part)].whole = whole; }
  WorkId add_work(Work work);
  // All of its ops are over: nobody performs it any more.
  void forget_pass(WorkId work) { works_[static_cast<std::size_t>(work)].pass = nullptr; }
  std::int32_t intern(std::string_view label);

  // A new version of `tensor`, to be written by the op that is appended next.
  ValueId new_version(TensorId tensor);
  // No op that is appended later reads or replaces the value.
  void retire(ValueId value) { values_[static_cast<std::size_t>(value)].superseded = true; }
  // What is over, once and for all, and will not be asked for again: ids stay as they are, the memory goes back.
  void forget(OpId op) { ops_.forget(static_cast<std::size_t>(op)); }
  void forget_value(ValueId value) { values_.forget(static_cast<std::size_t>(value)); }
  // Ops and values that memory is held for, by ids: neighbours are forgotten together.
  std::size_t held() const { return ops_.held() + values_.held(); }
  // Appends an op after checking it: reads exist and are written by earlier ops, writes are new, bytes are not
  // negative.
  OpId append(Op op);

  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }
  const Value& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  const Op& op(OpId id) const { return ops_[static_cast<std::size_t>(id)]; }
  const Work& work(WorkId id) const { return works_[static_cast<std::size_t>(id)]; }
  const Work& work_of(const Op& o) const { return work(o.work); }
  const Tensor& tensor_of(ValueId id) const { return tensor(value(id).tensor); }
  std::string_view label(std::int32_t id) const { return labels_[static_cast<std::size_t>(id)]; }
  // Names of ops count from the first training step of the first run, where this graph is a resumed one's.
  void set_first_step(std::int32_t step) { first_step_ = step; }
  std::string op_name(OpId id) const;        // "step2/mb0/block3.forward"
  std::string value_name(ValueId id) const;  // "block3.parameter@2"

  std::int32_t op_count() const { return static_cast<std::int32_t>(ops_.size()); }
  std::int32_t value_count() const { return static_cast<std::int32_t>(values_.size()); }
  std::int32_t tensor_count() const { return static_cast<std::int32_t>(tensors_.size()); }
  std::int32_t work_count() const { return static_cast<std::int32_t>(works_.size()); }

 private:
  // Workers read the graph of the commands they run while the scheduler's thread appends to it: elements must not move.
  StableVector<Tensor> tensors_;
  ForgettingVector<Value> values_;
  ForgettingVector<Op> ops_;
  StableVector<Work> works_;
  StableVector<std::string> labels_;
  std::map<std::string, std::int32_t, std::less<>> label_ids_;  // for intern alone
  std::int32_t first_step_ = 0;
  Era era_;
  std::multimap<std::string, TensorId> former_;  // tensors of eras before, which this one has not asked for yet
  struct Group {
    std::vector<Rank> members;
    std::int32_t matches = 0;
  };
  std::map<std::int32_t, Group> groups_;
};

// Products of two byte counts exceed 64 bits. Not ISO C++, so said once, here.
__extension__ using Int128 = __int128;

// A range of bytes of one operand.
struct ByteRange {
  std::int64_t first = 0;
  std::int64_t bytes = 0;
  std::int64_t end() const { return first + bytes; }
  bool operator==(const ByteRange&) const = default;
};

// The range of an operand that a part of a divisible op touches. `lead` is the part's range in the op's first write, of
// `lead_bytes` in all. Ranges scale with the operands' sizes; an operand under 64 bytes (a scalar) is taken whole.
constexpr ByteRange operand_range(ByteRange lead, std::int64_t lead_bytes, std::int64_t operand_bytes) {
  if (lead_bytes == operand_bytes) return lead;
  if (operand_bytes < 64 || lead.bytes == lead_bytes) return {0, operand_bytes};
  const auto scale = [&](std::int64_t x) {
    return static_cast<std::int64_t>(static_cast<Int128>(x) * operand_bytes / lead_bytes);
  };
  return {scale(lead.first), scale(lead.end()) - scale(lead.first)};
}

// Appends steps to a graph. A training workload can append any number ahead; a decoding one waits for a sampled token.
class StepSource {
 public:
  virtual ~StepSource() = default;
  // Appends tensors and the ops that load the initial parameters and states (phase Load, step kNone).
  virtual void prologue(Graph& graph) = 0;
  // Instead of the prologue: goes on, with the training step of this number, where another source has left the graph.
  // Begins an era, whose loads write all that is persistent.
  virtual bool takes_over() const { return false; }
  virtual void take_over(Graph&, std::int32_t /*step*/) {}
  // Another source goes on where this one is: what none of its steps reads any more is retired.
  virtual void leave(Graph&) {}
  // Appends the next step. `result` is the last `grows` op's result (0 if none yet). False when there is none.
  virtual bool append_step(Graph& graph, std::int64_t result) = 0;
  // True if each step waits for the result of a `grows` op in the step before.
  virtual bool needs_result() const { return false; }
  // True if it can save the state after any step (phase Save, engine Loader): a run that is asked to end early then
  // finishes the steps appended and saves.
  virtual bool saves() const { return false; }
  // Appends what saves the state after the last step appended.
  virtual void append_save(Graph&) {}
};

}  // namespace tandem
