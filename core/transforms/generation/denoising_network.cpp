#include "core/transforms/generation/denoising_network.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

bool is_named(const Call& call, std::string_view primitive) { return call.what->name == primitive; }

class Rewriting {
 public:
  Rewriting(const Network& trained, const DdimStep& step, double guidance)
      : trained_(trained), step_(step), guidance_(guidance), builder_(trained.family, trained.type) {
    find_noise();
  }
  GeneratingNetwork build();

 private:
  // The places in the batch of the noise that the loss compares with, of what it was added to, and of times.
  void find_noise();
  void add_batch();
  void add(const NetworkModule& m, ModuleScope& scope) const;
  LocalId read(const Source& source, const Local& port, ModuleScope& scope) const;
  LocalId guided(LocalId told, ModuleScope& scope) const;
  LocalId next_latents(LocalId told, ModuleScope& scope) const;
  [[noreturn]] void refuse() const {
    throw ConfigError("generate.steps: family " + trained_.family +
                      " is not trained to tell noise; allowed: such a network (unet), or generate.prompt and "
                      "generate.new_tokens of a decoder of text");
  }

  const Network& trained_;
  const DdimStep step_;
  const double guidance_;
  NetworkBuilder builder_;
  std::int32_t noise_ = kNone, noised_ = kNone, times_ = kNone;
  Signal latents_;
};

void Rewriting::find_noise() {
  const NetworkModule& head = trained_.modules.back();
  if (head.module->program.empty() || !is_named(head.module->program.back(), "squared_error")) refuse();
  const std::vector<LocalId>& ports = head.module->inputs;
  const auto port = std::find(ports.begin(), ports.end(), head.module->program.back().in.at(1));
  if (port == ports.end()) refuse();
  const Source& source = head.inputs[static_cast<std::size_t>(port - ports.begin())];
  if (source.from != Source::From::Batch || place(source.index) + 1 != trained_.batch.size()) refuse();
  noise_ = source.index;
  for (std::int32_t i = 0; i < noise_; ++i) {
    const BatchTensor& tensor = trained_.batch[place(i)];
    if (tensor.shape == trained_.batch[place(noise_)].shape) noised_ = i;
    if (tensor.below == kNoiseTimes) times_ = i;
  }
  if (noised_ == kNone || times_ == kNone) refuse();
}

void Rewriting::add_batch() {
  for (std::int32_t i = 0; i < noise_; ++i) {
    const BatchTensor& tensor = trained_.batch[place(i)];
    Shape shape = tensor.shape;
    if (i == noised_ && guidance_ > 0) {
      CHECK(shape.dims[0] % 2 == 0, "guided images are there twice", shape.dims[0]);
      shape.dims[0] /= 2;
    }
    const Signal signal = builder_.batch(tensor.name, shape, i == times_ ? 1 : tensor.below);
    if (i == noised_) latents_ = signal;
  }
}

LocalId Rewriting::read(const Source& source, const Local& port, ModuleScope& scope) const {
  const bool is_noised = source == latents_.source;
  if (!is_noised) return scope.in(port.name, {source, port.shape});
  const LocalId latents = scope.in(port.name, latents_);
  return guidance_ > 0 ? scope.call("twice", "concat", {latents, latents}, {{"axis", std::int64_t{0}}}) : latents;
}

LocalId Rewriting::guided(LocalId told, ModuleScope& scope) const {
  const std::int64_t images = latents_.shape.dims[0];
  const LocalId by_context = scope.call("by_context", "rows", {told}, {{"count", images}});
  const LocalId by_nothing = scope.call("by_nothing", "rows", {told}, {{"first", images}, {"count", images}});
  const LocalId less = scope.call("less", "scale", {by_nothing}, {{"factor", -1.0}});
  const LocalId difference = scope.add("difference", by_context, less);
  return scope.add("guided", by_nothing, scope.call("more", "scale", {difference}, {{"factor", guidance_}}));
}

LocalId Rewriting::next_latents(LocalId told, ModuleScope& scope) const {
  const LocalId kept = scope.call("kept", "scale", {scope.in("latents", latents_)}, {{"factor", step_.kept}});
  const LocalId noise = guidance_ > 0 ? guided(told, scope) : told;
  return scope.add("next", kept, scope.call("removed", "scale", {noise}, {{"factor", step_.removed}}));
}

// As it is trained, but that times count from the step's, and of the loss, which takes noise away instead.
void Rewriting::add(const NetworkModule& m, ModuleScope& scope) const {
  const Module& module = *m.module;
  std::map<LocalId, LocalId> here;
  for (std::size_t p = 0; p < module.inputs.size(); ++p)
    if (m.inputs[p] != Source{Source::From::Batch, noise_, 0})
      here[module.inputs[p]] = read(m.inputs[p], module.locals[place(module.inputs[p])], scope);
  for (const Call& call : module.program) {
    if (is_named(call, "squared_error")) {
      here[call.out.front()] = next_latents(here.at(call.in.front()), scope);
      continue;
    }
    std::vector<LocalId> in;
    for (const LocalId value : call.in) in.push_back(here.at(value));
    Attributes how = call.how;
    if (is_named(call, "sinusoids")) how.set("first", step_.time);
    scope.call(call.name, std::string(call.what->name), std::move(in), std::move(how));
    const std::vector<LocalId>& out = scope.so_far().program.back().out;
    for (std::size_t i = 0; i < out.size(); ++i) here[call.out[i]] = out[i];
  }
  for (const LocalId output : module.outputs) scope.output(here.at(output));
  for (const NamedShape& weight : module.weights) scope.begin_as(weight.name, weight.initial);
}

GeneratingNetwork Rewriting::build() {
  builder_.freeze();
  add_batch();
  for (const NetworkModule& m : trained_.modules) {
    builder_.module(m.name, m.module->name, [&](ModuleScope& scope) { add(m, scope); });
    NetworkModule& made = builder_.network().modules.back();
    const std::vector<NamedShape>&here = made.module->weights, &trained = m.module->weights;
    CHECK(std::equal(here.begin(), here.end(), trained.begin(), trained.end(),
                     [](const NamedShape& a, const NamedShape& b) { return a.name == b.name; }),
          m.name, "has its weights in another order");
    made.weight_names = m.weight_names;
  }
  return {builder_.finish(), noised_};
}

}  // namespace

GeneratingNetwork denoising_network(const Network& trained, const DdimStep& step, double guidance) {
  return Rewriting(trained, step, guidance).build();
}

}  // namespace tandem
