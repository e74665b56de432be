#include "core/transforms/pipeline/rank_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/passes.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

// What pieces read of others: a stage's output, or its bucket.
struct Shared {
  bool bucket = false;
  std::int32_t stage = 0, output = 0;
  auto operator<=>(const Shared&) const = default;
};

// A piece that has it, in forward order; the first one makes it.
struct Holder {
  std::int32_t piece = 0;
  std::int64_t gradient_bytes = 0;  // that its readers make; 0: none
};
using Chain = std::vector<Holder>;

class Cutter {
 public:
  Cutter(const TrainingPlan& whole, const PipelineCut& cut) : whole_(whole), cut_(cut) {}

  RankPlan build() {
    find_chains();
    plan_ = whole_;
    plan_.stages = std::vector<StageSpec>();  // with the room of the whole network's
    for (std::size_t i = 0; i < whole_.stages.size(); ++i)
      if (whole_.stages[i].held_for != kNone && is_own(i)) add_own(i);
    const std::int32_t pieces = 1 + *std::max_element(cut_.piece_of.begin(), cut_.piece_of.end());
    for (std::int32_t piece = 0; piece < pieces; ++piece)
      if (cut_.is_own(piece)) add_piece(piece);
    for (StageSpec& stage : plan_.stages)
      if (stage.held_for != kNone) stage.held_for = own_.at(stage.held_for);
    keep_own_of_batch();
    keep_own_ops();
    return {std::move(plan_), std::move(forwards_)};
  }

 private:
  bool is_own(std::size_t stage) const { return cut_.is_own(cut_.piece_of[stage]); }
  std::int32_t piece_of(std::int32_t stage) const { return cut_.piece_of[place(stage)]; }
  bool same_rank(std::int32_t a, std::int32_t b) const { return cut_.stage_of(a) == cut_.stage_of(b); }
  static std::optional<Shared> shared_by(const PortSpec& port) {
    if (port.from == PortSpec::From::Batch) return std::nullopt;
    const bool bucket = port.from == PortSpec::From::Bucket;
    return Shared{bucket, port.index, bucket ? 0 : port.output};
  }

  void find_chains() {
    for (std::size_t i = 0; i < whole_.stages.size(); ++i)
      for (const PortSpec& port : whole_.stages[i].inputs)
        if (const auto shared = shared_by(port)) note_reader(*shared, cut_.piece_of[i], port);
  }
  // Readers come in forward order.
  void note_reader(const Shared& shared, std::int32_t piece, const PortSpec& port) {
    Chain& chain = chains_[shared];
    if (chain.empty()) chain.push_back({piece_of(shared.stage), 0});
    // Through all pieces on the way, so that those next to each other send each other all there is, in one order. A
    // bucket, which goes once a step, and its contributions go straight; between branches, all does.
    const bool straight = shared.bucket || cut_.branches;
    if (straight && chain.back().piece != piece) chain.push_back({piece, 0});
    while (chain.back().piece != piece) chain.push_back({chain.back().piece + 1, 0});
    const std::int64_t bytes = shared.bucket ? port.gradient_bytes : whole_.output_of(port).bytes;
    if (port.gradient) chain.back().gradient_bytes = bytes;
  }
  // From a holder of the chain on.
  static std::int64_t gradient_bytes_from(const Chain& chain, std::size_t at) {
    for (; at < chain.size(); ++at)
      if (chain[at].gradient_bytes > 0) return chain[at].gradient_bytes;
    return 0;
  }

  std::int32_t next_index() const { return static_cast<std::int32_t>(plan_.stages.size()); }

  void add_own(std::size_t index) {
    own_[static_cast<std::int32_t>(index)] = next_index();
    StageSpec stage = whole_.stages[index];
    for (PortSpec& port : stage.inputs) connect(port, cut_.piece_of[index]);
    plan_.stages.push_back(std::move(stage));
  }
  // To where the rank has it for that piece: it made it, or it received it for this one or an earlier one of its own.
  void connect(PortSpec& port, std::int32_t piece) const {
    const auto shared = shared_by(port);
    if (!shared) return;
    const Chain& chain = chains_.at(*shared);
    auto at = static_cast<std::size_t>(
        std::find_if(chain.begin(), chain.end(), [&](const Holder& h) { return h.piece == piece; }) - chain.begin());
    while (at > 0 && same_rank(chain[at - 1].piece, chain[at].piece)) --at;
    if (at > 0) {
      port.index = received_.at({*shared, chain[at].piece});
      port.output = 0;
    } else {
      port.index = own_.at(shared->stage);
    }
  }

  void add_piece(std::int32_t piece) {
    Turn forward{.first = forwards_.empty() ? 0 : next_index()};
    for_transfers(piece, /*into=*/true, [&](const Shared& shared, const Chain& chain, std::size_t at) {
      received_[{shared, piece}] = next_index();
      plan_.stages.push_back(receiver(shared, chain, at));
    });
    for (std::size_t i = 0; i < whole_.stages.size(); ++i)
      if (cut_.piece_of[i] == piece && whole_.stages[i].held_for == kNone) add_own(i);
    for_transfers(piece, /*into=*/false, [&](const Shared& shared, const Chain& chain, std::size_t at) {
      plan_.stages.push_back(sender(shared, chain, at));
    });
    forward.end = next_index();
    forwards_.push_back(forward);
  }
  // `at`: the holder that receives.
  template <typename Visit>
  void for_transfers(std::int32_t piece, bool into, const Visit& visit) const {
    for (const auto& [shared, chain] : chains_)
      for (std::size_t at = 1; at < chain.size(); ++at)
        if (chain[into ? at : at - 1].piece == piece && !same_rank(chain[at - 1].piece, chain[at].piece))
          visit(shared, chain, at);
  }

  StageSpec transfer_of(const Shared& shared, const Chain& chain, std::size_t at, bool receives) {
    const StageSpec& made_by = whole_.stages[place(shared.stage)];
    TransferSpec transfer;
    transfer.receives = receives;
    transfer.forward = cut_.group(chain[at - 1].piece, chain[at].piece, /*backward=*/false, shared.bucket);
    transfer.backward = cut_.group(chain[at - 1].piece, chain[at].piece, /*backward=*/true, shared.bucket);
    transfer.of_bucket = shared.bucket;
    if (shared.bucket) transfer.layout = made_by.layout, transfer.elements = made_by.elements;
    StageSpec stage;
    stage.name = made_by.name + (shared.bucket ? ".weights" : "") + (receives ? ".received" : ".sent");
    if (shared.output > 0) stage.name += std::to_string(shared.output);
    if (chain.size() > 2) stage.name += "_" + std::to_string(chain[at].piece);
    stage.backward_reads_parameter = false;
    const DType type = shared.bucket ? whole_.precision : made_by.outputs[place(shared.output)].type;
    const std::int64_t bytes =
        shared.bucket ? transfer.elements * size_of(whole_.precision) : made_by.outputs[place(shared.output)].bytes;
    const bool leaves = cut_.leaves_host(chain[at - 1].piece, chain[at].piece);
    stage.forward = add_op(receives ? "receive" : "send", type, bytes, leaves);
    if (const std::int64_t back = gradient_bytes_from(chain, at); back > 0) {
      stage.backward = stage.backward_accumulate = add_op(receives ? "send" : "receive", type, back, leaves);
      add_half(shared, receives, stage);
    }
    stage.transfer = std::make_shared<const TransferSpec>(std::move(transfer));
    return stage;
  }
  // Of a backward in two, all goes with the first half: also what contributes to a shared weight's gradient, or its
  // owner's gradients of weights would wait for those of another stage, which come later.
  static void add_half(const Shared& shared, bool receives, StageSpec& stage) {
    BackwardHalf& half = stage.backward_inputs;
    half.op = stage.backward;
    if (receives)
      half.reads = {{shared.bucket ? OperandKind::Contribution : OperandKind::OutputGradient}};
    else
      half.writes = {{OperandKind::InputGradient}};
  }
  OpSpecIndex add_op(const char* body, DType type, std::int64_t bytes, bool leaves_host) {
    const auto [found, fresh] = ops_.try_emplace({body, type, bytes, leaves_host}, kNone);
    if (fresh) found->second = plan_.add({{body, type, {bytes, std::int64_t{leaves_host}}, {memory_kernel(bytes)}}, 0});
    return found->second;
  }
  StageSpec receiver(const Shared& shared, const Chain& chain, std::size_t at) {
    StageSpec stage = transfer_of(shared, chain, at, /*receives=*/true);
    if (shared.bucket) return stage;
    OutputSpec output = whole_.stages[place(shared.stage)].outputs[place(shared.output)];
    output.gradient = stage.backward != kNone;
    stage.outputs.push_back(output);
    return stage;
  }
  StageSpec sender(const Shared& shared, const Chain& chain, std::size_t at) {
    StageSpec stage = transfer_of(shared, chain, at, /*receives=*/false);
    PortSpec port{.from = shared.bucket ? PortSpec::From::Bucket : PortSpec::From::Stage,
                  .index = shared.stage,
                  .output = shared.output,
                  .gradient = stage.backward != kNone,
                  .gradient_bytes = gradient_bytes_from(chain, at)};
    connect(port, chain[at - 1].piece);
    stage.inputs.push_back(port);
    return stage;
  }

  void keep_own_of_batch() {
    const auto reads_batch = [](const StageSpec& stage) {
      return std::any_of(stage.inputs.begin(), stage.inputs.end(),
                         [](const PortSpec& port) { return port.from == PortSpec::From::Batch; });
    };
    std::vector<KeptSpec> kept;
    for (KeptSpec& one : plan_.batch.kept)
      if (const auto own = own_.find(one.stage); own != own_.end()) {
        one.stage = own->second;
        kept.push_back(one);
      }
    plan_.batch.kept = std::move(kept);
    if (std::any_of(plan_.stages.begin(), plan_.stages.end(), reads_batch)) return;
    plan_.batch.load = {};
    plan_.batch.tensors.clear();
    plan_.batch.inputs.clear();
  }

  // Those that its stages have: what a rank keeps of works does not grow with the whole network.
  void keep_own_ops() {
    std::vector<OpSpecIndex> own(plan_.ops.size(), kNone);
    std::vector<OpSpec> kept;
    const auto keep = [&](OpSpecIndex& op) {
      if (op == kNone) return;
      OpSpecIndex& index = own[place(op)];
      if (index == kNone) {
        index = static_cast<OpSpecIndex>(kept.size());
        kept.push_back(std::move(plan_.ops[place(op)]));
      }
      op = index;
    };
    for (StageSpec& s : plan_.stages)
      for (OpSpecIndex* op :
           {&s.forward, &s.forward_light, &s.recompute, &s.backward, &s.backward_accumulate, &s.backward_inputs.op,
            &s.backward_inputs.accumulate, &s.backward_weights.op, &s.backward_weights.accumulate})
        keep(*op);
    plan_.ops = std::move(kept);
  }

  const TrainingPlan& whole_;
  const PipelineCut& cut_;
  TrainingPlan plan_;
  std::map<Shared, Chain> chains_;
  std::map<std::int32_t, std::int32_t> own_;                          // stages of the whole plan in this one
  std::map<std::pair<Shared, std::int32_t>, std::int32_t> received_;  // by piece
  std::map<std::tuple<std::string, DType, std::int64_t, bool>, OpSpecIndex> ops_;
  std::vector<Turn> forwards_;
};

}  // namespace

RankPlan rank_plan(const TrainingPlan& whole, const PipelineCut& cut) {
  CHECK(cut.piece_of.size() == whole.stages.size(), cut.piece_of.size(), whole.stages.size());
  return Cutter(whole, cut).build();
}

}  // namespace tandem
