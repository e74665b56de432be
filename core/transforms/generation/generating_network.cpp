#include "core/transforms/generation/generating_network.hpp"

#include <algorithm>
#include <map>
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

class Rewriting {
 public:
  Rewriting(const Network& trained, const GeneratingStep& step, const std::vector<std::int64_t>& windows,
            std::int64_t most_pages)
      : trained_(trained),
        step_(step),
        windows_(windows),
        most_pages_(most_pages),
        builder_(trained.family, trained.type) {}

  Network build();

 private:
  void add(const NetworkModule& m);
  void add_call(const NetworkModule& m, const Call& call, ModuleScope& scope);
  LocalId attend(const Call& call, std::vector<LocalId> in, ModuleScope& scope);
  LocalId read(const NetworkModule& m, LocalId local, ModuleScope& scope);
  Signal signal_of(const NetworkModule& m, std::size_t port) const;
  void note_weights(const NetworkModule& m);
  Attributes placed(const Call& call) const;

  const Network& trained_;
  const GeneratingStep step_;
  const std::vector<std::int64_t>& windows_;  // by attention
  const std::int64_t most_pages_;
  NetworkBuilder builder_;
  std::int64_t attentions_ = 0;                    // so far
  std::vector<std::vector<Signal>> outputs_;       // by module
  std::vector<std::vector<std::int32_t>> places_;  // of the trained network's weights, by module
  // Of the module in hand.
  std::map<LocalId, LocalId> here_;  // the trained module's locals in it
  std::vector<LocalId> pages_;       // that it begins
};

Network Rewriting::build() {
  builder_.freeze();
  const bool reads_text = !trained_.batch.empty() && trained_.batch.size() <= 2;
  const BatchTensor tokens = reads_text ? trained_.batch.front() : BatchTensor{};
  if (!reads_text || tokens.shape.type != DType::I64 || !tokens.media.empty())
    refuse("family " + trained_.family + " reads more than one text, or other things than tokens",
           "a decoder of text: gpt, llama, or a named model of theirs");
  builder_.batch(tokens.name, tokens.shape, tokens.below);
  builder_.load("next_tokens", DType::I64, {tokens.shape.rows(), tokens.shape.columns(), tokens.below},
                tokens.shape.bytes());
  for (const NetworkModule& m : trained_.modules) add(m);
  const Module& last = *trained_.modules.back().module;
  if (!has_own_loss(last) || attentions_ == 0)
    refuse("family " + trained_.family + " has no tokens that attend to those before them",
           "a decoder of text: gpt, llama, or a named model of theirs");
  return builder_.finish();
}

void Rewriting::add(const NetworkModule& m) {
  const Module& module = *m.module;
  if (module.opaque != nullptr || !module.carried.empty())
    refuse(m.name + " is no program of primitives", "a family's network");
  here_.clear(), pages_.clear();
  builder_.module(m.name, module.name, [&](ModuleScope& scope) {
    for (const Call& call : module.program) add_call(m, call, scope);
    for (const LocalId output : module.outputs)
      if (here_.contains(output)) scope.output(here_.at(output));
    for (const LocalId page : pages_) scope.output(page);
    for (const NamedShape& weight : scope.so_far().weights)
      for (const NamedShape& trained : module.weights)
        if (trained.name == weight.name) scope.begin_as(weight.name, trained.initial);
  });
  outputs_.emplace_back();
  for (std::size_t i = 0; i < module.outputs.size(); ++i)
    outputs_.back().push_back(here_.contains(module.outputs[i]) ? builder_.output(i) : Signal{});
  note_weights(m);
}

Signal Rewriting::signal_of(const NetworkModule& m, std::size_t port) const {
  const Source& source = m.inputs[port];
  const Shape& shape = m.module->locals[place(m.module->inputs[port])].shape;
  if (source.from == Source::From::Output) return outputs_[place(source.index)][place(source.place)];
  if (source.from == Source::From::Batch) return {source, shape};
  return {{Source::From::Weight, source.index, places_[place(source.index)][place(source.place)]}, shape};
}

// A port of the module comes in when it is first read.
LocalId Rewriting::read(const NetworkModule& m, LocalId local, ModuleScope& scope) {
  if (const auto found = here_.find(local); found != here_.end()) return found->second;
  const auto port = std::find(m.module->inputs.begin(), m.module->inputs.end(), local);
  const std::string& name = m.module->locals[place(local)].name;
  CHECK(port != m.module->inputs.end(), m.name, name, "is read before it is made");
  return here_[local] = scope.in(name, signal_of(m, static_cast<std::size_t>(port - m.module->inputs.begin())));
}

// Under the names that they had.
void Rewriting::note_weights(const NetworkModule& m) {
  NetworkModule& made = builder_.network().modules.back();
  const std::vector<NamedShape>& here = made.module->weights;
  std::vector<std::int32_t>& places = places_.emplace_back(m.module->weights.size(), kNone);
  made.weight_names.resize(here.size());
  for (std::size_t old = 0; old < places.size(); ++old) {
    const auto found = std::find_if(here.begin(), here.end(),
                                    [&](const NamedShape& w) { return w.name == m.module->weights[old].name; });
    if (found == here.end()) continue;
    places[old] = static_cast<std::int32_t>(found - here.begin());
    made.weight_names[place(places[old])] = m.weight_name(old);
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

void Rewriting::add_call(const NetworkModule& m, const Call& call, ModuleScope& scope) {
  const std::string_view name = call.what->name;
  if (name == "dropout") {
    here_[call.out.front()] = read(m, call.in.front(), scope);
    return;
  }
  if (call.what->primitive.is_auxiliary()) return;
  if (call.what->primitive.is_own_loss() && name != "cross_entropy")
    refuse(m.name + "." + call.name + " is no loss over a vocabulary at once", "workload.loss_tiles: 1");
  std::vector<LocalId> in;
  const std::size_t wanted = name == "cross_entropy" ? 1 : call.in.size();  // no targets
  for (std::size_t i = 0; i < wanted; ++i) in.push_back(read(m, call.in[i], scope));
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
  const std::int64_t window = windows_.at(static_cast<std::size_t>(attentions_));
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
  const std::int64_t first = 1 + attentions_++ * most_pages_;
  const std::int64_t before = step_.pages_before();
  for (std::int64_t i = 0; i < before; ++i) {
    const Source source{Source::From::Batch, static_cast<std::int32_t>(first + i), 0};
    in.push_back(scope.in(indexed("page", i), {source, page(i == 0 ? step_.prompt : step_.page)}));
  }
  if (!step_.begins_page()) in.push_back(scope.carried("page", page(step_.page)));
  const LocalId made = scope.call(call.name, "paged_attention", std::move(in), how);
  if (step_.begins_page()) pages_.push_back(scope.so_far().program.back().out.at(1));
  return made;
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

Network generating_network(const Network& trained, const GeneratingStep& step, const std::vector<std::int64_t>& windows,
                           std::int64_t most_pages) {
  return Rewriting(trained, step, windows, most_pages).build();
}

}  // namespace tandem
