#include "core/transforms/generation/generating_network.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/model/paged_attention_shape.hpp"
#include "core/transforms/generation/text_of_network.hpp"
#include "core/transforms/sequence/ulysses.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

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

  GeneratingNetwork build();

 private:
  // A value of the network that generates. One that varies is another one for each token.
  struct Value {
    Signal signal;
    bool varies = false;
  };
  struct Here {
    LocalId local = kNone;
    bool varies = false;
  };
  void add(const NetworkModule& m);
  bool varies(const Call& call, const std::vector<Here>& in) const;
  bool varies(const NetworkModule& m, LocalId local) const;
  void add_once(const Call& call, const std::vector<Here>& in, ModuleScope& scope);
  bool add_gathering(const NetworkModule& m, const Call& call, ModuleScope& scope);
  void add_call(const NetworkModule& m, const Call& call, ModuleScope& scope);
  LocalId attend(const Call& call, std::vector<LocalId> in, ModuleScope& scope);
  void note(const Call& call, const ModuleScope& scope, bool varies);
  Here read(const NetworkModule& m, LocalId local, ModuleScope& scope);
  Value value_of(const NetworkModule& m, std::size_t port) const;
  void note_weights(const NetworkModule& m);
  Attributes placed(const Call& call) const;
  void load_padded(std::vector<std::int64_t> sizes);
  LocalId padding(ModuleScope& scope);

  const Network& trained_;
  const GeneratingStep step_;
  const std::vector<std::int64_t>& windows_;  // by attention
  const std::int64_t most_pages_;
  NetworkBuilder builder_;
  std::int32_t text_ = kNone, first_page_ = kNone;  // places in the batch
  std::int64_t attentions_ = 0;                     // so far
  std::optional<Signal> padding_;                   // of each text, where they have some
  std::vector<std::vector<Value>> outputs_;         // by module
  std::vector<std::vector<std::int32_t>> places_;   // of the trained network's weights, by module
  // Of the module in hand.
  std::map<LocalId, Here> here_;  // the trained module's locals in it
  std::vector<LocalId> pages_;    // that it begins
  LocalId padding_here_ = kNone;
};

GeneratingNetwork Rewriting::build() {
  builder_.freeze();
  text_ = text_that_grows(trained_);
  const bool alone = text_ == 0 && trained_.batch.size() == 2;
  const BatchTensor& tokens = trained_.batch[place(text_)];
  Network& network = builder_.network();
  network.batch = trained_.batch, network.load = trained_.load;
  if (!step_.padding.empty() && !alone)
    refuse_to_generate(
        "prompts of several lengths are built for text alone, and " + trained_.family + " reads more than that",
        "one number for generate.prompt");
  if (alone) {
    const std::vector<std::int64_t> sizes = {tokens.shape.rows(), tokens.shape.columns(), tokens.below};
    network.batch.resize(1);
    step_.padding.empty() ? builder_.load("next_tokens", DType::I64, sizes, tokens.shape.bytes()) : load_padded(sizes);
  }
  first_page_ = static_cast<std::int32_t>(network.batch.size());
  for (const NetworkModule& m : trained_.modules) add(m);
  if (attentions_ == 0) refuse_without_text(trained_);
  return {builder_.finish(), text_};
}

// Behind the tokens come those of each text that are padding, of all texts of a block one after another.
void Rewriting::load_padded(std::vector<std::int64_t> sizes) {
  if (const std::string why = needs_one_length(trained_); !why.empty())
    refuse_to_generate(why, "one number for generate.prompt, or a workload.capacity_factor with room for all tokens");
  padding_ = builder_.batch("padding", Shape({sizes[0]}, DType::I64), step_.prompt);
  const std::int64_t bytes = sizes[0] * (sizes[1] + 1) * size_of(DType::I64);
  sizes.insert(sizes.end(), step_.padding.begin(), step_.padding.end());
  builder_.load("padded_tokens", DType::I64, std::move(sizes), bytes);
}

LocalId Rewriting::padding(ModuleScope& scope) {
  if (padding_here_ == kNone) padding_here_ = scope.in("padding", *padding_);
  return padding_here_;
}

void Rewriting::add(const NetworkModule& m) {
  const Module& module = *m.module;
  if (module.opaque != nullptr || !module.carried.empty())
    refuse_to_generate(m.name + " is no program of primitives", "a family's network");
  here_.clear(), pages_.clear(), padding_here_ = kNone;
  builder_.module(m.name, module.name, [&](ModuleScope& scope) {
    for (const Call& call : module.program) add_call(m, call, scope);
    for (const LocalId output : module.outputs)
      if (here_.contains(output)) scope.output(here_.at(output).local);
    for (const LocalId page : pages_) scope.output(page);
    for (const NamedShape& weight : scope.so_far().weights)
      for (const NamedShape& trained : module.weights)
        if (trained.name == weight.name) scope.begin_as(weight.name, trained.initial);
  });
  std::vector<Value>& outputs = outputs_.emplace_back();
  std::size_t made = 0;
  for (const LocalId output : module.outputs) {
    Value& value = outputs.emplace_back();
    if (const auto found = here_.find(output); found != here_.end())
      value = {builder_.output(made++), found->second.varies};
  }
  note_weights(m);
}

Rewriting::Value Rewriting::value_of(const NetworkModule& m, std::size_t port) const {
  const Source& source = m.inputs[port];
  const Shape& shape = m.module->locals[place(m.module->inputs[port])].shape;
  if (source.from == Source::From::Output) return outputs_[place(source.index)][place(source.place)];
  if (source.from == Source::From::Batch) return {{source, shape}, source.index == text_};
  return {{{Source::From::Weight, source.index, places_[place(source.index)][place(source.place)]}, shape}, false};
}

// A port of the module comes in when it is first read.
Rewriting::Here Rewriting::read(const NetworkModule& m, LocalId local, ModuleScope& scope) {
  if (const auto found = here_.find(local); found != here_.end()) return found->second;
  const auto port = std::find(m.module->inputs.begin(), m.module->inputs.end(), local);
  const std::string& name = m.module->locals[place(local)].name;
  CHECK(port != m.module->inputs.end(), m.name, name, "is read before it is made");
  const Value value = value_of(m, static_cast<std::size_t>(port - m.module->inputs.begin()));
  return here_[local] = {scope.in(name, value.signal), value.varies};
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
  if (call.what->name == "relative_bias") {
    how.set("keys", step_.places);  // of all steps: what steps of a page write has one size
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
    refuse_to_generate(m.name + "." + call.name + " is no loss over a vocabulary at once", "workload.loss_tiles: 1");
  if (add_gathering(m, call, scope)) return;
  std::vector<Here> read_here;
  const std::size_t wanted = name == "cross_entropy" ? 1 : call.in.size();  // no targets
  for (std::size_t i = 0; i < wanted; ++i) read_here.push_back(read(m, call.in[i], scope));
  if (!varies(call, read_here)) return add_once(call, read_here, scope);
  std::vector<LocalId> in;
  for (const Here& value : read_here) in.push_back(value.local);
  const bool crosses = read_here.size() > 1 && !read_here[1].varies;
  if (attends(call) && !crosses) {
    here_[call.out.front()] = {attend(call, std::move(in), scope), true};
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
    here_[call.out.front()] = {add_choice(scope, call.name, std::move(in), step_, call.how.integer("padding", 0)),
                               true};
    return;
  }
  if (name == "positions" && padding_) in.push_back(padding(scope));
  scope.call(call.name, std::string(name), std::move(in), placed(call));
  note(call, scope, true);
}

// Biases of a decoder are those of the places that its tokens have.
bool Rewriting::varies(const Call& call, const std::vector<Here>& in) const {
  if (std::string_view(call.what->name) == "relative_bias") return call.how.integer("bidirectional", 0) == 0;
  return std::any_of(in.begin(), in.end(), [](const Here& value) { return value.varies; });
}

// Of what comes before the text, and of what the text attends to.
void Rewriting::add_once(const Call& call, const std::vector<Here>& in, ModuleScope& scope) {
  Attributes how = call.how;
  how.set(kOnce, std::int64_t{1});
  std::vector<LocalId> values;
  for (const Here& value : in) values.push_back(value.local);
  scope.call(call.name, std::string(call.what->name), std::move(values), std::move(how));
  note(call, scope, false);
}

// Rows of a text's tokens and of others, which stand among them in the prompt alone: those of later tokens are theirs.
bool Rewriting::add_gathering(const NetworkModule& m, const Call& call, ModuleScope& scope) {
  if (step_.position == 0) return false;
  const auto of_text = [&](LocalId local) { return varies(m, local); };
  const std::string_view name = call.what->name;
  if (name == "concat" && call.how.integer("axis", 0) == 0) {
    const auto text = std::find_if(call.in.begin(), call.in.end(), of_text);
    if (text == call.in.end()) return false;
    here_[call.out.front()] = read(m, *text, scope);
    return true;
  }
  if (name != "embedding" || call.in.size() != 2 || of_text(call.in[0]) || !of_text(call.in[1])) return false;
  scope.call(call.name, "select_token", {read(m, call.in[1], scope).local},
             {{"sequence", std::int64_t{1}}, {"index", std::int64_t{0}}});
  note(call, scope, true);
  return true;
}

bool Rewriting::varies(const NetworkModule& m, LocalId local) const {
  if (const auto found = here_.find(local); found != here_.end()) return found->second.varies;
  const auto port = std::find(m.module->inputs.begin(), m.module->inputs.end(), local);
  return port != m.module->inputs.end() &&
         value_of(m, static_cast<std::size_t>(port - m.module->inputs.begin())).varies;
}

void Rewriting::note(const Call& call, const ModuleScope& scope, bool varies) {
  const std::vector<LocalId>& out = scope.so_far().program.back().out;
  for (std::size_t i = 0; i < call.out.size(); ++i) here_[call.out[i]] = {out[i], varies};
}

LocalId Rewriting::attend(const Call& call, std::vector<LocalId> in, ModuleScope& scope) {
  const bool fused = call.what->name == "attention";
  const std::int64_t heads = call.how.integer("heads");
  if (call.how.integer("causal", 0) == 0)
    refuse_to_generate(call.name + " sees tokens that come later, or other ones than those of the text", kDecoders);
  const std::int64_t window = windows_.at(static_cast<std::size_t>(attentions_));
  Attributes how = {{"heads", heads},
                    {"key_heads", call.how.integer("key_heads", heads)},
                    {"tokens", step_.tokens},
                    {"position", step_.position},
                    {"rows", step_.rows()},
                    {"fused_input", std::int64_t{fused}},
                    {"fills", std::int64_t{!step_.begins_page()}},
                    {"window", window}};
  for (const char* number : {"scale", "softcap"})
    if (call.how.has(number)) how.set(number, call.how.number(number));
  for (const char* flag : {"alibi", "bias"})
    if (call.how.integer(flag, 0) != 0) how.set(flag, std::int64_t{1});
  const std::int64_t keys = how.integer("key_heads"), columns = scope.shape(in.front()).columns();
  const std::int64_t size = columns / (fused ? 3 * heads : heads),
                     batch = scope.shape(in.front()).rows() / step_.tokens;
  if (step_.cache_bits > 0) how.set("bits", step_.cache_bits), how.set("eager", std::int64_t{step_.eager_codes});
  const auto page = [&](std::int64_t rows) {
    return page_shape(rows, batch, keys * size, scope.type(), step_.cache_bits);
  };
  if (padding_) how.set("padded", std::int64_t{1}), in.push_back(padding(scope));
  const std::int64_t first = first_page_ + attentions_++ * most_pages_;
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

std::int64_t GeneratingStep::pages_before() const {
  return page == 0 || position == 0 ? 0 : 1 + (position - prompt) / page;
}

bool GeneratingStep::begins_page() const { return page > 0 && (position == 0 || (position - prompt) % page == 0); }

std::vector<std::int64_t> attention_windows(const Network& of_whole_sequences) {
  std::vector<std::int64_t> windows;
  for (const NetworkModule& m : of_whole_sequences.modules)
    for (const Call& call : m.module->program)
      if (attends(call)) windows.push_back(call.how.integer("window", 0));
  return windows;
}

LocalId add_choice(ModuleScope& scope, const std::string& name, std::vector<LocalId> logits, const GeneratingStep& step,
                   std::int64_t padding) {
  Attributes how{{"padding", padding}};
  if (step.temperature > 0) how.set("temperature", step.temperature), how.set("top_k", step.top_k);
  return scope.call(name, step.temperature > 0 ? "drawn_token" : "likeliest", std::move(logits), std::move(how));
}

GeneratingNetwork generating_network(const Network& trained, const GeneratingStep& step,
                                     const std::vector<std::int64_t>& windows, std::int64_t most_pages) {
  return Rewriting(trained, step, windows, most_pages).build();
}

}  // namespace tandem
