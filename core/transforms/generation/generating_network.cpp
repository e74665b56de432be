#include "core/transforms/generation/generating_network.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/model/paged_attention_shape.hpp"
#include "core/transforms/sequence/ulysses.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

[[noreturn]] void refuse(const std::string& problem, const std::string& allowed) {
  throw ConfigError("generate: " + problem + "; allowed: " + allowed);
}

bool attends(const Call& call) { return tandem::attends(call.what->name); }

bool has_own_loss(const Module& module) {
  return std::any_of(module.program.begin(), module.program.end(),
                     [](const Call& call) { return call.what->primitive.is_own_loss(); });
}

// Where a weight of the trained network is in the one that generates.
struct WeightPlace {
  std::int32_t module = kNone, place = kNone;
};

class Rewriting {
 public:
  Rewriting(const Network& trained, const GeneratingStep& step, const std::vector<std::int64_t>& windows,
            std::int64_t most_pages)
      : trained_(trained),
        step_(step),
        windows_(windows),
        most_pages_(most_pages),
        builder_(trained.family, trained.type) {}

  GeneratingNetwork build();

 private:
  void add(std::size_t index);
  void add_piece(const NetworkModule& m, std::int32_t piece);
  void add_call(const NetworkModule& m, const Call& call, std::int32_t piece, ModuleScope& scope);
  LocalId attend(const Call& call, std::vector<LocalId> in, ModuleScope& scope);
  LocalId read(const NetworkModule& m, LocalId local, std::int32_t piece, ModuleScope& scope);
  Signal signal_of(const NetworkModule& m, std::size_t port) const;
  void note_weights(const NetworkModule& m, const std::vector<const Call*>& calls);
  Attributes placed(const Call& call) const;
  std::vector<std::int32_t> pieces_of(const Module& module) const;

  const Network& trained_;
  const GeneratingStep step_;
  const std::vector<std::int64_t>& windows_;  // by attention
  const std::int64_t most_pages_;
  NetworkBuilder builder_;
  std::vector<std::int32_t> attentions_;
  std::vector<std::vector<Signal>> outputs_;       // by module of the trained network
  std::vector<std::vector<WeightPlace>> weights_;  // likewise
  // Of the module in hand.
  std::vector<std::int32_t> pieces_;  // by call
  std::map<LocalId, Signal> made_;    // by local: what later pieces read
  std::map<LocalId, LocalId> same_;   // a local that another one stands for
  std::map<LocalId, LocalId> here_;   // of the piece in hand
};

// Calls before an attention, the attention, and those after it are pieces of their own: the CPU may take the attention.
std::vector<std::int32_t> Rewriting::pieces_of(const Module& module) const {
  std::vector<std::int32_t> pieces;
  std::int32_t piece = 0;
  for (const Call& call : module.program) {
    if (attends(call) && !pieces.empty()) ++piece;
    pieces.push_back(piece);
    if (attends(call)) ++piece;
  }
  return pieces;
}

GeneratingNetwork Rewriting::build() {
  builder_.freeze();
  const bool reads_text = !trained_.batch.empty() && trained_.batch.size() <= 2;
  const BatchTensor tokens = reads_text ? trained_.batch.front() : BatchTensor{};
  if (!reads_text || tokens.shape.type != DType::I64 || !tokens.media.empty())
    refuse("family " + trained_.family + " reads more than one text, or other things than tokens",
           "a decoder of text: gpt, llama, or a named model of theirs");
  builder_.batch(tokens.name, tokens.shape, tokens.below);
  builder_.load("next_tokens", DType::I64, {tokens.shape.rows(), tokens.shape.columns(), tokens.below},
                tokens.shape.bytes());
  for (std::size_t i = 0; i < trained_.modules.size(); ++i) add(i);
  const Module& last = *trained_.modules.back().module;
  if (!has_own_loss(last) || attentions_.empty())
    refuse("family " + trained_.family + " has no tokens that attend to those before them",
           "a decoder of text: gpt, llama, or a named model of theirs");
  return {builder_.finish(), std::move(attentions_)};
}

void Rewriting::add(std::size_t index) {
  const NetworkModule& m = trained_.modules[index];
  if (m.module->opaque != nullptr || !m.module->carried.empty())
    refuse(m.name + " is no program of primitives", "a family's network");
  pieces_ = pieces_of(*m.module);
  made_.clear(), same_.clear();
  weights_.emplace_back(m.module->weights.size());
  outputs_.emplace_back();
  for (std::int32_t piece = 0; piece <= pieces_.back(); ++piece) add_piece(m, piece);
  for (LocalId output : m.module->outputs) {
    while (same_.contains(output)) output = same_.at(output);
    const auto found = made_.find(output);
    outputs_.back().push_back(found == made_.end() ? Signal{} : found->second);
  }
}

Signal Rewriting::signal_of(const NetworkModule& m, std::size_t port) const {
  const Source& source = m.inputs[port];
  const Shape& shape = m.module->locals[place(m.module->inputs[port])].shape;
  if (source.from == Source::From::Output) return outputs_[place(source.index)][place(source.place)];
  if (source.from == Source::From::Batch) return {source, shape};
  const WeightPlace& weight = weights_[place(source.index)][place(source.place)];
  return {{Source::From::Weight, weight.module, weight.place}, shape};
}

// The value in the piece in hand: a port of the module, or what an earlier piece made, comes in once.
LocalId Rewriting::read(const NetworkModule& m, LocalId local, std::int32_t piece, ModuleScope& scope) {
  while (same_.contains(local)) local = same_.at(local);
  const auto found = here_.find(local);
  if (found != here_.end()) return found->second;
  const auto port = std::find(m.module->inputs.begin(), m.module->inputs.end(), local);
  const std::string& name = m.module->locals[place(local)].name;
  LocalId here = kNone;
  if (port != m.module->inputs.end()) {
    here = scope.in(name, signal_of(m, static_cast<std::size_t>(port - m.module->inputs.begin())));
  } else {
    CHECK(made_.contains(local), m.name, name, "is read before it is made", piece);
    here = scope.in(name, made_.at(local));
  }
  here_[local] = here;
  return here;
}

void Rewriting::add_piece(const NetworkModule& m, std::int32_t piece) {
  const Module& module = *m.module;
  std::vector<const Call*> calls;
  for (std::size_t i = 0; i < module.program.size(); ++i)
    if (pieces_[i] == piece) calls.push_back(&module.program[i]);
  const bool alone = pieces_.back() == 0, is_attention = attends(*calls.front());
  const std::string suffix = alone ? "" : is_attention ? ".attention" : piece == 0 ? ".before" : ".after";
  std::vector<LocalId> leaves;  // locals of the module that others read
  const std::set<const Call*> mine(calls.begin(), calls.end());
  here_.clear();
  builder_.module(m.name + suffix, module.name + suffix, [&](ModuleScope& scope) {
    for (const Call* call : calls) add_call(m, *call, piece, scope);
    std::set<LocalId> wanted;
    for (const LocalId output : module.outputs) wanted.insert(output);
    for (std::size_t i = 0; i < module.program.size(); ++i)
      if (pieces_[i] > piece) wanted.insert(module.program[i].in.begin(), module.program[i].in.end());
    for (const Call* call : calls)
      for (const LocalId out : call->out)
        if (wanted.contains(out) && here_.contains(out)) leaves.push_back(out), scope.output(here_.at(out));
    if (is_attention && step_.begins_page()) scope.output(scope.so_far().program.back().out.at(1));
    if (is_attention) scope.allow_cpu();
    for (const NamedShape& weight : scope.so_far().weights)
      for (const NamedShape& trained : module.weights)
        if (trained.name == weight.name) scope.begin_as(weight.name, trained.initial);
  });
  builder_.network().modules.back().continues = piece > 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) made_[leaves[i]] = builder_.output(i);
  if (is_attention) attentions_.push_back(static_cast<std::int32_t>(builder_.network().modules.size()) - 1);
  note_weights(m, calls);
}

// Weights go to the piece whose calls have them, under the names that they had.
void Rewriting::note_weights(const NetworkModule& m, const std::vector<const Call*>& calls) {
  NetworkModule& made = builder_.network().modules.back();
  const std::vector<NamedShape>& here = made.module->weights;
  const auto index = static_cast<std::int32_t>(builder_.network().modules.size()) - 1;
  if (!here.empty()) made.weight_names.resize(here.size());
  for (const Call* call : calls)
    for (const std::int32_t old : call->weights) {
      const std::string& name = m.module->weights[place(old)].name;
      const auto found = std::find_if(here.begin(), here.end(), [&](const NamedShape& w) { return w.name == name; });
      CHECK(found != here.end(), made.name, "lost a weight", name);
      const auto at = static_cast<std::int32_t>(found - here.begin());
      weights_.back()[place(old)] = {index, at};
      made.weight_names[place(at)] = m.weight_name(place(old));
    }
}

// Places count from the step's first token.
Attributes Rewriting::placed(const Call& call) const {
  Attributes how = call.how;
  if (call.what->name == "positions") {
    how.set("rows", step_.places);
    how.set("first", step_.position);
  }
  if (call.what->name == "rotary") {
    CHECK(step_.position % step_.tokens == 0, step_.position, step_.tokens);
    how.set("ranks", step_.position / step_.tokens + 1);
    how.set("part", step_.position / step_.tokens);
  }
  return how;
}

void Rewriting::add_call(const NetworkModule& m, const Call& call, std::int32_t piece, ModuleScope& scope) {
  const std::string_view name = call.what->name;
  if (name == "dropout") {
    same_[call.out.front()] = call.in.front();
    return;
  }
  if (call.what->primitive.is_auxiliary()) return;
  if (call.what->primitive.is_own_loss() && name != "cross_entropy")
    refuse(m.name + "." + call.name + " is no loss over a vocabulary at once", "workload.loss_tiles: 1");
  std::vector<LocalId> in;
  const std::size_t wanted = name == "cross_entropy" ? 1 : call.in.size();  // no targets
  for (std::size_t i = 0; i < wanted; ++i) in.push_back(read(m, call.in[i], piece, scope));
  if (attends(call)) {
    here_[call.out.front()] = attend(call, std::move(in), scope);
    return;
  }
  // Of each text the last token's row is wanted alone.
  if (has_own_loss(*m.module) && step_.tokens > 1 && &call == &m.module->program.front()) {
    const Shape& rows = scope.shape(in.front());
    CHECK(rows.rows() % step_.tokens == 0 && rows.type != DType::I64, m.name, "begins with no rows of tokens");
    in.front() =
        scope.call("last", "select_token", {in.front()}, {{"sequence", step_.tokens}, {"index", step_.tokens - 1}});
  }
  if (name == "cross_entropy") {
    Attributes how{{"padding", call.how.integer("padding", 0)}};
    if (step_.temperature > 0) how.set("temperature", step_.temperature), how.set("top_k", step_.top_k);
    here_[call.out.front()] =
        scope.call(call.name, step_.temperature > 0 ? "drawn_token" : "likeliest", std::move(in), std::move(how));
    return;
  }
  scope.call(call.name, std::string(name), std::move(in), placed(call));
  const std::vector<LocalId>& out = scope.so_far().program.back().out;
  for (std::size_t i = 0; i < call.out.size(); ++i) here_[call.out[i]] = out[i];
}

LocalId Rewriting::attend(const Call& call, std::vector<LocalId> in, ModuleScope& scope) {
  const bool fused = call.what->name == "attention";
  const std::int64_t heads = call.how.integer("heads");
  if (call.how.integer("causal", 0) == 0)
    refuse(call.name + " sees tokens that come later, or other ones than those of the text",
           "a decoder of text: gpt, llama, or a named model of theirs");
  const bool capped = call.how.has("softcap") && call.how.number("softcap") > 0;
  if (in.size() != (fused ? 1 : 3) || call.how.integer("alibi", 0) != 0 || capped)
    refuse(call.name + " adds something to scores, or caps them, which pages have not so far",
           "positions other than alibi, attention_softcap: 0");
  const std::int64_t window = windows_.at(attentions_.size());
  if (window > 0 && step_.tokens > window)
    refuse("a prompt of " + std::to_string(step_.tokens) + " tokens is longer than the window of " + call.name,
           "a prompt of at most " + std::to_string(window));
  Attributes how = {{"heads", heads},
                    {"key_heads", call.how.integer("key_heads", heads)},
                    {"tokens", step_.tokens},
                    {"position", step_.position},
                    {"rows", step_.rows()},
                    {"fused_input", std::int64_t{fused}},
                    {"fills", std::int64_t{!step_.begins_page()}},
                    {"window", window}};
  if (call.how.has("scale")) how.set("scale", call.how.number("scale"));
  const std::int64_t keys = how.integer("key_heads"), columns = scope.shape(in.front()).columns();
  const std::int64_t size = columns / (fused ? 3 * heads : heads),
                     batch = scope.shape(in.front()).rows() / step_.tokens;
  if (step_.cache_bits > 0) how.set("bits", step_.cache_bits), how.set("eager", std::int64_t{step_.eager_codes});
  const auto page = [&](std::int64_t rows) {
    return page_shape(rows, batch, keys * size, scope.type(), step_.cache_bits);
  };
  const auto first = 1 + static_cast<std::int64_t>(attentions_.size()) * most_pages_;
  const std::int64_t before = step_.pages_before();
  for (std::int64_t i = 0; i < before; ++i) {
    const Source source{Source::From::Batch, static_cast<std::int32_t>(first + i), 0};
    in.push_back(scope.in(indexed("page", i), {source, page(i == 0 ? step_.prompt : step_.page)}));
  }
  if (!step_.begins_page()) in.push_back(scope.carried("page", page(step_.page)));
  return scope.call(call.name, "paged_attention", std::move(in), how);
}

}  // namespace

std::int64_t GeneratingStep::pages_before() const { return position == 0 ? 0 : 1 + (position - prompt) / page; }

bool GeneratingStep::begins_page() const { return position == 0 || (position - prompt) % page == 0; }

std::vector<std::int64_t> attention_windows(const Network& of_whole_sequences) {
  std::vector<std::int64_t> windows;
  for (const NetworkModule& m : of_whole_sequences.modules)
    for (const Call& call : m.module->program)
      if (attends(call)) windows.push_back(call.how.integer("window", 0));
  return windows;
}

GeneratingNetwork generating_network(const Network& trained, const GeneratingStep& step,
                                     const std::vector<std::int64_t>& windows, std::int64_t most_pages) {
  return Rewriting(trained, step, windows, most_pages).build();
}

}  // namespace tandem
