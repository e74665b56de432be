// A training network as stages in forward order: what each keeps, reads and writes, as plain data. A family fills a
// plan; TrainingSource turns it into steps. Must not know policies or machines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/rank_group.hpp"
#include "core/formats/state_blocks.hpp"
#include "core/graph/graph.hpp"
#include "core/model/module.hpp"
#include "core/optimizers/optimizer.hpp"

namespace tandem {

enum class OperandKind : std::uint8_t;  // core/model/passes.hpp
// Which ranks add up their gradients of a stage's bucket.
enum class GradientRanks : std::uint8_t {
  Data,    // those that have it, and samples, or tokens, of their own
  Tensor,  // these, and those that divide its layer as well: each makes a summand, of some of the tokens
  Expert   // those that have the same experts: what a rank makes is of all tokens that others sent to them
};

struct TensorSpec {
  std::string name;  // after the stage's: "ln1_mean"
  DType type = DType::F32;
  std::int64_t bytes = 0;
  bool lossy = false;       // of what is saved: backward may read numbers that are near to it
  bool persistent = false;  // of a batch: later steps read it, too
};

struct OpSpec {
  Work work;
  std::int64_t workspace_bytes = 0;
};

// Index into TrainingPlan::ops. Stages of equal shape share them.
using OpSpecIndex = std::int32_t;

// What a stage reads: an output of an earlier stage, a tensor of the batch, or an earlier stage's bucket.
struct PortSpec {
  enum class From : std::uint8_t { Stage, Batch, Bucket };
  From from = From::Stage;
  std::int32_t index = 0;   // of the stage, or of the batch's tensor
  std::int32_t output = 0;  // of the stage
  std::int32_t field = 0;   // of the bucket's layout; kNone: all of it, the stage's own weights that are frozen
  bool backward_reads = false;
  bool gradient = false;            // backward makes one: of the output, or of a weight in the bucket (a contribution)
  bool adds = false;                // to what the backward of a later reader made
  std::int64_t gradient_bytes = 0;  // of a contribution
};

struct OutputSpec {
  DType type = DType::F32;
  std::int64_t bytes = 0;
  bool gradient = true;  // somebody's backward makes one
  bool backward_reads = false;
  bool persistent = false;  // the next step reads it
  Role role = Role::Activation;
};

// Of a stage that computes nothing: what its one port reads goes to another rank on its forward, and the gradient comes
// back on its backward. Or, where it receives, its output comes on its forward, and the gradient goes on its backward.
struct TransferSpec {
  bool receives = false;
  RankGroup forward, backward;  // the rank that sends, the rank that receives
  // Of a bucket, of which the parameter goes once a step, for all micro-batches, and contributions come back.
  bool of_bucket = false;
  std::shared_ptr<const Layout> layout;
  std::int64_t elements = 0;
};

struct HalfOperand {
  OperandKind kind{};
  std::int32_t index = 0;
};

// One of the two ops of a backward that is done in two: its operands, which it reads and writes in this order. What it
// adds to is read after them, the loss's scale last.
struct BackwardHalf {
  OpSpecIndex op = kNone;          // None: there is nothing to do
  OpSpecIndex accumulate = kNone;  // of weights' gradients, from the second micro-batch on
  std::vector<HalfOperand> reads, writes;
  bool scales_loss = false;  // it reads the loss's scale, if there is one
};

// Orders of operands, which bodies rely on:
//   forward   reads  [parameter], [buckets, then outputs of stages, then the batch's tensors, each by port],
//                    [loss scale if loss_gradient_in_forward, in training], what is carried
//             writes outputs, what is carried, in its place, saved...
//   backward  reads  [gradients of outputs], [parameter], [of what forward read, what backward reads, but the batch's],
//                    [own outputs that it reads], saved..., [the batch's tensors that it reads],
//                    [contributions of later stages that read this bucket], [gradient so far, from the second
//                    micro-batch on], [gradients so far that it adds to], [loss scale if has_loss, unless in forward]
//             writes [gradient], gradients of stages' outputs, contributions, each by port
//   recompute reads  as forward, writes saved... only.
struct StageSpec {
  std::string name;                      // "block3"
  std::shared_ptr<const Layout> layout;  // none where sizes are all that is known
  std::int64_t elements = 0;             // of the parameter bucket
  bool trained = true;                   // else the bucket has neither gradient nor state
  std::int64_t code_bits = 0;            // of a frozen bucket that is kept as codes: a number's; 0: as numbers
  std::int32_t held_for = kNone;         // it has no passes, but weights of that stage which are frozen
  bool contributed = false;              // a later stage contributes to its gradient
  std::vector<PortSpec> inputs;
  std::vector<OutputSpec> outputs;  // none: the last stage
  std::vector<TensorSpec> saved;
  std::vector<TensorSpec> carried;  // from step to step: a cache of keys and values
  bool backward_reads_parameter = true;
  bool recomputable = false;
  bool may_run_on_cpu = false;  // forward, recompute and backward
  bool on_cpu = false;          // they do, and nowhere else
  bool has_result = false;      // forward's event says a loss, or what was chosen
  bool has_loss = false;
  bool loss_gradient_in_forward = false;  // what depends on the loss scale is done there
  std::shared_ptr<const TransferSpec> transfer;
  Exchange exchange = Exchange::None;  // of Forward and Backward, one pass's op: in the other all is taken as it is
  ExchangeAmong among = ExchangeAmong::Tensor;
  GradientRanks gradients = GradientRanks::Data;
  bool continues = false;  // the stage before: both are of one module that was cut
  bool once = false;       // its forward is made in a run's first step alone
  OpSpecIndex forward = kNone;
  OpSpecIndex forward_light = kNone;  // writes the output only; recomputable stages, and whose forward does more
  OpSpecIndex recompute = kNone;
  OpSpecIndex backward = kNone;  // first micro-batch: writes a fresh gradient. None: nothing is trained there
  OpSpecIndex backward_accumulate = kNone;  // later ones: add to it
  // The same in two, of a plan that is taken so: gradients of inputs, then those of weights, which read what the first
  // op handed on.
  std::vector<TensorSpec> handed;
  BackwardHalf backward_inputs, backward_weights;

  std::int64_t output_bytes() const;
  std::int64_t contribution_bytes() const;  // of what it makes first
  bool passes_gradients() const;
  // Its result decides how steps go on.
  bool chooses() const { return has_result && !has_loss; }
  // Backward reads weights of its own that are frozen, beside others that are trained.
  bool backward_reads_frozen() const;
  // It has weights, and they are trained.
  bool trains() const { return trained && elements > 0; }
  bool goes_back_in_two() const { return backward_inputs.op != kNone || backward_weights.op != kNone; }
};

// One value of the optimizer's state for each parameter bucket.
struct StateSpec {
  std::string name;  // "adam_m"
  DType type = DType::F32;
  std::int64_t numbers_per_element = 1;
  StateBlock block = {};  // of a quantised state, which has the type U8: its elements are whole blocks
  // Of a state that has fields of its own instead of numbers for elements.
  std::shared_ptr<const Layout> (*layout)(const Layout&) = nullptr;
  std::int64_t bytes(std::int64_t elements) const;
};

// Where the fp32 parameters are that an optimizer op updates. What leads is what it writes first: its parts are ranges
// of that.
enum class Master : std::uint8_t {
  // The parameter, which is read and leads. fp32: all of it. bf16: its upper half, rounded; a state has the rest.
  Parameter,
  FirstState,  // a copy, which leads; the parameter is rounded from it, and written only
  InState,     // in a state, with other numbers; the parameter leads, though it is written only
};

// An op that makes some of a batch's tensors of files, of others, or of what was kept.
struct InputSpec {
  // Workers: of the host's loader, or of another host as well. Device: the compute lane. Either: where it stands first,
  // unless a policy says otherwise (StepContext::inputs_on_device, Decisions::run).
  enum class Where : std::uint8_t { Workers, AnyWorkers, Device, WorkersOrDevice, DeviceOrWorkers };
  std::string name;  // "image.decode"
  Work work;
  std::vector<std::int32_t> reads, writes;  // places in BatchSpec::tensors
  Where where = Where::Workers;
  std::int64_t workspace_bytes = 0;
  std::int32_t cut_bytes = 0;  // of the first write: parts begin at multiples; 0: it is made at once
};

// An output of a stage that is kept for later steps, after each forward.
struct KeptSpec {
  std::int32_t stage = 0, output = 0;
  Work work;
};

struct BatchSpec {
  // Its body fills the tensors that no input makes; empty body: no batch. BatchPart adds a last size to it and to
  // inputs: 1 for a batch of held-out data, else 0.
  Work load;
  std::vector<TensorSpec> tensors;  // "inputs", "targets"; and what inputs make for each other
  std::vector<InputSpec> inputs;    // in order
  std::vector<KeptSpec> kept;
  std::string name = "batch";  // which its tensors and ops are named after
  std::int64_t bytes() const;
};

// What a backward turn makes gradients of.
enum class Gradients : std::uint8_t { All, Inputs, Weights };

// A pass of one micro-batch over stages in a row.
struct Turn {
  bool backward = false;
  std::int32_t first = 0, end = 0;  // stages
  std::int32_t micro_batch = 0;
  Gradients of = Gradients::All;
};

// Where a step's buckets are, of a plan that has some of them.
struct BucketOwners {
  RankGroup group;                    // by stage of the pipeline
  std::int32_t own = 0;               // this rank's place in it
  std::vector<std::int32_t> members;  // of each bucket that the whole network trains, in forward order: whose it is
  std::vector<std::string> names;     // and of which stage
  bool elsewhere() const { return !members.empty(); }
};

struct TrainingPlan {
  std::string family;
  DType precision = DType::F32;
  std::vector<OpSpec> ops;
  std::vector<StageSpec> stages;
  std::int64_t block_stages = 1;  // in a row, that make a block
  std::vector<Turn> order;        // of a step; none: micro-batch by micro-batch, forward and backward over all stages
  BucketOwners buckets;           // none: all are here
  std::int32_t at_once = 1;       // micro-batches that are between their first forward and their last backward
  BatchSpec batch;
  const OptimizerEntry* optimizer = nullptr;  // whose states these are; null: measured times know none
  std::vector<StateSpec> states;
  Master master = Master::Parameter;
  std::int64_t optimizer_fixed_ns = 0;  // a measured time for each bucket; 0: by size

  // An optimizer's states by precision: its own, and what a 16-bit parameter lacks of its fp32 master, where it has
  // one: in fp16, whose exponents differ from fp32's, all of it; in bf16 16 bits, so that nothing is stored, nor
  // copied, twice. Called once the stages are there: fields of buckets whose states are quantised begin at whole
  // blocks.
  void set_states(const OptimizerEntry& optimizer, const OptimizerOptions& options);

  bool update_reads_parameter() const { return master == Master::Parameter; }
  // An update of whole fields makes an fp32 copy of it.
  bool copies_parameter() const { return precision != DType::F32 && master == Master::Parameter; }
  bool parameter_leads() const { return master != Master::FirstState; }
  // On the host, LibTorch's kernel makes an update that is all in fp32, states included, where it has one.
  bool library_updates() const {
    return precision == DType::F32 && (states.empty() || states.back().type == DType::F32) &&
           (optimizer == nullptr || optimizer->library_updates);
  }
  // Each element by itself, so that an update may be cut.
  bool updates_by_element() const { return optimizer == nullptr || optimizer->by_element(); }
  // Of an optimizer op's first write: parts of it hold whole blocks of every state.
  std::int32_t cut_bytes() const;

  OpSpecIndex add(OpSpec spec);
  // That a port reads.
  const OutputSpec& output_of(const PortSpec& port) const {
    return stages[static_cast<std::size_t>(port.index)].outputs[static_cast<std::size_t>(port.output)];
  }
};

}  // namespace tandem
