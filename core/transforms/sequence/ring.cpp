#include "core/transforms/sequence/ring.hpp"

#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/transforms/sequence/ulysses.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

// What a call of attention is told, as one of its rounds is: its queries and keys are a rank's.
struct Attends {
  explicit Attends(const Call& call)
      : heads(call.how.integer("heads")),
        key_heads(call.how.integer("key_heads", 0)),
        queries(call.how.integer("queries", call.how.integer("sequence", 0))),
        keys(call.how.integer("keys", queries)),
        causal(call.how.integer("causal", 0) != 0) {
    if (key_heads == 0) key_heads = heads;
  }
  std::int64_t heads, key_heads, queries, keys;
  bool causal;
};

void require_goes_round(const Module& module, const Call& call) {
  const auto refuse = [&](const std::string& problem, const std::string& allowed) {
    throw ConfigError("parallel.sequence: " + module.name + "." + call.name + " " + problem + "; allowed: " + allowed);
  };
  const Attributes& how = call.how;
  if (call.in.size() > 3 || how.integer("alibi", 0) != 0)
    refuse("adds to scores what goes by places, which is not built so far", "1");
  if (how.integer("window", 0) != 0) refuse("sees a window of tokens, which no ring is built for so far", "1");
  const bool caps = how.has("softcap") && how.number("softcap") != 0;
  if (caps || how.integer("fused", 1) == 0)
    refuse("has its scores in memory, which do not go round a ring", "1, or attention that one kernel makes");
}

class Rounds {
 public:
  Rounds(SplitModule whole, std::int64_t ranks, bool contiguous)
      : whole_(std::move(whole)), ranks_(ranks), contiguous_(contiguous) {}

  SplitModule build() {
    for (const ModulePiece& piece : whole_.pieces) {
      const std::vector<Call>& program = piece.module->program;
      if (!program.empty() && attends(program.front().what->name))
        add_rounds(piece);
      else
        became_.push_back(add(piece.module, sources_of(piece)));
    }
    for (const PieceSource& output : whole_.outputs) out_.outputs.push_back(now(output));
    for (const PieceSource& weight : whole_.weights)
      out_.weights.push_back({became_[place(weight.piece)], weight.place});
    out_.divided = whole_.divided;
    return std::move(out_);
  }

 private:
  PieceSource now(const PieceSource& source) const {
    return source.piece == kNone ? source : PieceSource{became_[place(source.piece)], source.place};
  }
  std::vector<PieceSource> sources_of(const ModulePiece& piece) const {
    std::vector<PieceSource> sources;
    for (const PieceSource& source : piece.inputs) sources.push_back(now(source));
    return sources;
  }
  std::int32_t add(std::shared_ptr<const Module> module, std::vector<PieceSource> inputs) {
    out_.pieces.push_back({std::move(module), std::move(inputs)});
    return static_cast<std::int32_t>(out_.pieces.size()) - 1;
  }

  void add_rounds(const ModulePiece& piece) {
    CHECK(piece.module->program.size() == 1, piece.module->name, piece.module->program.size());
    const Call& call = piece.module->program.front();
    require_goes_round(*piece.module, call);
    auto [queries, keys] = add_keys(*piece.module, sources_of(piece));
    const Attends how(call);
    const Shape q = call.shapes.out.front();
    const Shape kv({call.shapes.in.back().rows(), 2 * how.key_heads * (q.columns() / how.heads)}, q.type);
    const auto shift =
        exchange_module("shift", piece.module->type, Exchange::Shift, ExchangeAmong::Sequence, ranks_, kv, kv);
    PieceSource so_far;
    for (std::int64_t round = 0; round < ranks_; ++round) {
      const PieceSource in_hand = keys;
      if (round < ranks_ - 1) keys = {add(shift, {in_hand}), 0};
      std::vector<PieceSource> inputs{queries, in_hand};
      if (round > 0) inputs.push_back(so_far);
      so_far = {add(round_of(*piece.module, call, q, kv, round), std::move(inputs)), 0};
    }
    became_.push_back(so_far.piece);
  }

  // Queries; and keys and values side by side, as they are sent.
  std::pair<PieceSource, PieceSource> add_keys(const Module& module, const std::vector<PieceSource>& sources) {
    const auto shape = [&](std::size_t port) { return module.locals[place(module.inputs[port])].shape; };
    ModuleBuilder m("ring_keys", module.type);
    if (sources.size() == 1) {
      const LocalId qkv = m.input("qkv", shape(0));
      const std::int64_t hidden = shape(0).columns() / 3;
      m.output(m.call("queries", "columns", {qkv}, {{"first", std::int64_t{0}}, {"count", hidden}}));
      m.output(m.call("keys", "columns", {qkv}, {{"first", hidden}, {"count", 2 * hidden}}));
      const std::int32_t piece = add(m.build(), sources);
      return {{piece, 0}, {piece, 1}};
    }
    CHECK(sources.size() == 3, module.name, sources.size());
    const LocalId k = m.input("k", shape(1)), v = m.input("v", shape(2));
    m.output(m.call("keys", "concat", {k, v}, {{"axis", std::int64_t{1}}}));
    return {sources[0], {add(m.build(), {sources[1], sources[2]}), 0}};
  }

  std::shared_ptr<const Module> round_of(const Module& module, const Call& call, const Shape& q, const Shape& kv,
                                         std::int64_t round) const {
    const Attends how(call);
    const bool first = round == 0, last = round == ranks_ - 1;
    ModuleBuilder m("ring_round", module.type);
    std::vector<LocalId> in{m.input("queries", q), m.input("keys", kv)};
    if (!first) in.push_back(m.input("so_far", Shape({q.rows(), q.columns() + how.heads}, DType::F32)));
    m.output(m.call(call.name, "ring_attention", std::move(in),
                    {{"heads", how.heads},
                     {"key_heads", how.key_heads},
                     {"queries", how.queries},
                     {"keys", how.keys},
                     {"causal", std::int64_t{how.causal && (first || !contiguous_)}},
                     {"ordered", std::int64_t{how.causal}},
                     {"last", std::int64_t{last}},
                     {"round", round},
                     {"ranks", ranks_}}));
    return m.build();
  }

  const SplitModule whole_;
  const std::int64_t ranks_;
  const bool contiguous_;
  SplitModule out_;
  std::vector<std::int32_t> became_;  // by piece of the whole: its own place, or its last round's
};

}  // namespace

SplitModule ring(const Module& module, std::int64_t ranks, const std::vector<PortPart>& ports, bool contiguous) {
  return Rounds(with_attention_apart(module, ranks, ports, /*every_nth=*/!contiguous), ranks, contiguous).build();
}

}  // namespace tandem
