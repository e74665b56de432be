#include "core/transforms/sequence/ulysses.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/transforms/common/cut_module.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

// Primitives that compute each token by itself. A loss is the mean over a rank's tokens, and gradients are means over
// ranks that have as many.
bool goes_by_tokens(std::string_view name) {
  static const std::set<std::string_view> kNames = {
      "activation",      "add",        "cross_entropy", "dropout",   "embedding", "column_statistics",
      "statistics_loss", "layer_norm", "linear",        "multiply",  "positions", "rms_norm",
      "rotary",          "scale",      "softcap",       "tiled_loss"};
  return kNames.contains(name);
}
// Of what ranks tell each other of logits that they divide by columns, a column is a token's.
bool has_tokens_last(const Module& module, LocalId port) {
  if (module.exchange != Exchange::None) return module.name == kStatistics;
  return std::any_of(module.program.begin(), module.program.end(), [&](const Call& call) {
    return std::string_view(call.what->name) == "statistics_loss" && call.in.front() == port;
  });
}

Shape tokens_of(const Module& module, LocalId port, std::int64_t ranks) {
  Shape shape = module.locals[place(port)].shape;
  const bool last = shape.type == DType::I64 || has_tokens_last(module, port);
  std::int64_t& tokens = last ? shape.dims.back() : shape.dims.front();
  CHECK(tokens % ranks == 0, module.name, tokens, ranks);
  tokens /= ranks;
  return shape;
}

// What ranks that divide a layer exchange: of a rank's tokens.
SplitModule exchange_of_tokens(const Module& module, std::int64_t ranks) {
  SplitModule split;
  auto own = std::make_shared<Module>(module);
  for (const LocalId value : {module.inputs.front(), module.outputs.front()})
    own->locals[place(value)].shape = tokens_of(module, value, ranks);
  split.pieces.push_back({std::move(own), {{kNone, 0}}});
  split.outputs.push_back({0, 0});
  return split;
}

class Plan {
 public:
  // `apart`: attention is not divided by heads, but a piece of its own.
  Plan(const Module& module, std::int64_t ranks, const std::vector<PortPart>& ports, bool apart, bool every_nth = false)
      : module_(module),
        ranks_(ranks),
        apart_(apart),
        every_nth_(every_nth),
        by_heads_(module.locals.size(), false),
        segment_(module.locals.size(), 0) {
    cut_.among = ExchangeAmong::Sequence, cut_.ranks = ranks;
    for (std::size_t p = 0; p < module.inputs.size(); ++p)
      cut_.ports.push_back(ports[p] == PortPart::Tokens ? tokens_of(module, module.inputs[p], ranks)
                                                        : module.locals[place(module.inputs[p])].shape);
  }

  ModuleCut build() {
    for (const Call& call : module_.program) add(call);
    for (const LocalId output : module_.outputs) cut_.outputs.push_back(by_heads_[place(output)]);
    cut_.sent = [by_heads = by_heads_, ranks = ranks_](LocalId value, Shape shape) {
      std::int64_t &rows = shape.dims.front(), &columns = shape.dims.back();
      by_heads[place(value)] ? (rows /= ranks, columns *= ranks) : (rows *= ranks, columns /= ranks);
      return shape;
    };
    cut_.dealt = [by_heads = by_heads_, dealt = dealt_](LocalId value) {
      const Dealt& to_heads = dealt.at(value);
      return by_heads[place(value)] ? Dealt{to_heads.before_there, to_heads.before} : to_heads;
    };
    return std::move(cut_);
  }

 private:
  void add(const Call& call) {
    const std::string_view name = call.what->name;
    const bool heads = attends(name) && !apart_;
    CutCall cut{0, call.how, {}};
    if (heads)
      divide_heads(call, cut.how);
    else if (apart_ && attends(name))
      divide_places(call, cut.how);
    else
      divide_tokens(call, cut.how);
    for (const LocalId in : call.in) {
      const bool exchanged = heads != by_heads_[place(in)], moves = exchanged || (apart_ && attends(name));
      cut.exchanged.push_back(exchanged);
      cut.segment = std::max(cut.segment, segment_[place(in)] + (moves ? 1 : 0));
    }
    if (heads) {
      for (const LocalId in : call.in) dealt_[in] = to_heads(call, in, call.in.size() == 1 ? 3 : 1);
      for (const LocalId out : call.out) dealt_[out] = to_heads(call, out, 1);
    }
    const std::int32_t next = cut.segment + (apart_ && attends(name) ? 1 : 0);
    for (const LocalId out : call.out) by_heads_[place(out)] = heads, segment_[place(out)] = next;
    cut_.calls.push_back(std::move(cut));
  }
  // Each member gets its heads of a rank's tokens, of as many `parts` as lie side by side (queries, keys and values),
  // and has then those of all tokens of each sample.
  Dealt to_heads(const Call& call, LocalId value, std::int64_t parts) const {
    const auto rows_of = [&](LocalId local) { return module_.locals[place(local)].shape.rows(); };
    const std::int64_t queries = call.how.integer(call.how.has("queries") ? "queries" : "sequence");
    return {rows_of(value) / ranks_ * parts, rows_of(call.in.front()) / queries};
  }
  [[noreturn]] void refuse(const Call& call, const std::string& problem, const std::string& allowed) const {
    throw ConfigError("parallel.sequence: " + module_.name + "." + call.name + " " + problem + "; allowed: " + allowed);
  }
  void divide_heads(const Call& call, Attributes& how) const {
    if (call.in.size() > 3 || how.integer("alibi", 0) != 0)
      refuse(call, "adds to scores what goes by heads, which is not built so far", "1");
    const std::int64_t heads = how.integer("heads"), given = how.integer("key_heads", 0);
    const std::int64_t keys = given > 0 ? given : heads;
    if (heads % ranks_ != 0 || keys % ranks_ != 0)
      refuse(call,
             "has " + std::to_string(heads) + " heads, and " + std::to_string(keys) + " of keys, which " +
                 std::to_string(ranks_) + " ranks do not divide",
             "1, or a divisor of both");
    how.set("heads", heads / ranks_);
    if (given > 0) how.set("key_heads", keys / ranks_);
  }
  void divide_places(const Call& call, Attributes& how) const {
    for (const char* key : {"sequence", "queries", "keys"}) {
      if (!how.has(key)) continue;
      const std::int64_t places = how.integer(key);
      if (places % ranks_ != 0)
        refuse(
            call,
            "has " + std::to_string(places) + " " + key + ", which " + std::to_string(ranks_) + " ranks do not divide",
            "1, or a divisor of them");
      how.set(key, places / ranks_);
    }
  }
  // Places are those of the first rank: others' begin further on, as they are told (told_part.hpp).
  void divide_tokens(const Call& call, Attributes& how) const {
    if (!goes_by_tokens(call.what->name)) refuse(call, "does not go by tokens", "1, or a family of plain transformers");
    const std::int64_t tokens = call.shapes.in.front().rows() / ranks_, tiles = how.integer("tiles", 1);
    if (how.has("tiles") && tiles > tokens)
      refuse(call, "has " + std::to_string(tiles) + " tiles of the " + std::to_string(tokens) + " tokens of a rank",
             "1, or fewer loss_tiles");
    if (!how.has("sequence")) return;
    const std::int64_t sequence = how.integer("sequence");
    if (call.what->name == "positions" && !how.has("rows")) how.set("rows", sequence);
    how.set("sequence", sequence / ranks_);
    how.set("ranks", ranks_);
    if (every_nth_) how.set("every_nth", std::int64_t{1});
  }

  const Module& module_;
  const std::int64_t ranks_;
  const bool apart_, every_nth_;
  std::vector<bool> by_heads_;         // by local: a rank has some heads of all tokens
  std::vector<std::int32_t> segment_;  // that makes it
  std::map<LocalId, Dealt> dealt_;     // of what attention reads and makes: by tokens to by heads
  ModuleCut cut_;
};

}  // namespace

bool attends(std::string_view name) { return name == "attention" || name == "qkv_attention"; }

SplitModule ulysses(const Module& module, std::int64_t ranks, const std::vector<PortPart>& ports) {
  CHECK(ports.size() == module.inputs.size(), ports.size(), module.inputs.size());
  if (module.exchange != Exchange::None) return exchange_of_tokens(module, ranks);
  return cut_module(module, Plan(module, ranks, ports, /*apart=*/false).build());
}

SplitModule with_attention_apart(const Module& module, std::int64_t ranks, const std::vector<PortPart>& ports,
                                 bool every_nth) {
  CHECK(ports.size() == module.inputs.size(), ports.size(), module.inputs.size());
  if (module.exchange != Exchange::None) return exchange_of_tokens(module, ranks);
  return cut_module(module, Plan(module, ranks, ports, /*apart=*/true, every_nth).build());
}

}  // namespace tandem
