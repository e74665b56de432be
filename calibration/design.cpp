#include "calibration/design.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "core/optimizers/optimizer.hpp"
#include "core/transforms/one_bit.hpp"
#include "core/transforms/subspace/subspace.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

struct Transformer {
  std::int64_t hidden, heads, sequence, batch, vocabulary;
  bool recompute, tied, held_out;
};
// Two micro-batches each: the second adds to the first's gradients, which is a body of its own.
constexpr Transformer kTransformers[] = {
    {96, 3, 48, 4, 300, false, true, false},     {128, 4, 64, 8, 1000, false, false, false},
    {120, 3, 256, 1, 512, true, true, false},    {184, 4, 96, 5, 2000, false, true, false},
    {256, 8, 128, 2, 600, true, false, false},   {256, 4, 384, 1, 257, false, true, false},
    {320, 5, 160, 3, 4000, false, false, false}, {376, 8, 64, 4, 1500, true, true, false},
    {512, 8, 192, 1, 800, false, true, false},   {512, 16, 32, 9, 3000, true, false, false},
    {632, 8, 136, 1, 270, false, false, false},  {768, 12, 72, 2, 5000, true, true, false},
    {160, 5, 80, 6, 700, false, true, true},     {448, 7, 112, 2, 1200, true, false, true},
};
constexpr Transformer kContention = {288, 9, 120, 3, 900, false, false, false};
// Updates that are not plain Adam, in subspaces of half the hidden width and less.
struct UpdateNetwork {
  Transformer network;
  std::int64_t rank;
};
constexpr UpdateNetwork kUpdates[] = {
    {{144, 4, 40, 2, 700, false, false, false}, 72},
    {{264, 4, 56, 2, 900, false, false, false}, 64},
};
constexpr std::size_t kQuickTransformers[] = {1, 3, 4, 5, 7, 12};

struct Mlp {
  std::int64_t inputs, hidden, classes, batch;
  bool held_out;
};
constexpr Mlp kMlps[] = {
    {64, 256, 10, 32, false},  {784, 384, 10, 128, false},  {64, 768, 10, 64, false},  {784, 1024, 10, 256, false},
    {64, 1536, 10, 48, false}, {784, 2048, 10, 512, false}, {64, 128, 10, 640, false}, {64, 1280, 10, 192, true},
};
constexpr std::size_t kQuickMlps[] = {0, 2, 3, 7};

// So many layers that parameters, gradients and moments are far larger than a last-level cache, as those of a network
// that is worth offloading are: an optimizer step then finds none of its operands there.
std::int64_t layers_of(std::int64_t layer_parameters) {
  constexpr std::int64_t kStateBytes = std::int64_t{96} << 20, kBytesPerParameter = 16, kFewest = 2, kMost = 80;
  return std::clamp(kStateBytes / (kBytesPerParameter * layer_parameters) + 1, kFewest, kMost);
}

Scenario base(const char* family, std::int64_t layers, std::int64_t hidden, std::int64_t batch, std::int32_t cores) {
  Scenario scenario;
  scenario.machine.cores = cores;
  scenario.workload.family = family;
  scenario.workload.keys["layers"] = layers;
  scenario.workload.keys["hidden"] = hidden;
  scenario.workload.batch = batch;
  scenario.workload.micro_batches = 2;
  return scenario;
}

Trial trial_of(const char* family, const Transformer& t, std::int32_t cores) {
  Trial trial{base(family, layers_of(12 * t.hidden * t.hidden), t.hidden, t.batch, cores), t.held_out};
  WorkloadOptions& w = trial.scenario.workload;
  w.keys["heads"] = t.heads;
  w.keys["sequence"] = t.sequence;
  w.keys["vocabulary"] = t.vocabulary;
  w.recompute = t.recompute ? "block" : "none";
  w.keys["tied_embedding"] = t.tied;
  // Clipping has ops of its own; every other network has it.
  trial.scenario.optimizer.clip_norm = t.tied ? 1.0 : 0.0;
  return trial;
}

Trial trial_of(const char* family, const Mlp& m, std::int32_t cores) {
  Trial trial{base(family, layers_of(m.hidden * m.hidden), m.hidden, m.batch, cores), m.held_out};
  trial.scenario.workload.keys["inputs"] = m.inputs;
  trial.scenario.workload.keys["classes"] = m.classes;
  return trial;
}

template <typename Shape>
void append(std::vector<Trial>& trials, const char* family, std::span<const Shape> shapes,
            std::span<const std::size_t> quick_ones, bool quick, std::int32_t cores) {
  if (find_workload(family) == nullptr) return;
  if (quick)
    for (const std::size_t i : quick_ones) trials.push_back(trial_of(family, shapes[i], cores));
  else
    for (const Shape& shape : shapes) trials.push_back(trial_of(family, shape, cores));
}

}  // namespace

std::vector<Trial> designed_trials(bool quick, std::int32_t cores) {
  std::vector<Trial> trials;
  append<Transformer>(trials, "gpt", kTransformers, kQuickTransformers, quick, cores);
  append<Transformer>(trials, "bert", kTransformers, kQuickTransformers, quick, cores);
  append<Mlp>(trials, "mlp", kMlps, kQuickMlps, quick, cores);
  return trials;
}

std::vector<Trial> update_trials(const Trial& network, std::int64_t rank, bool quick) {
  constexpr std::int64_t kNonzeros = 16, kBlock = 1024;
  constexpr std::int64_t kMostLayers = 2;  // a fit of a block's projectors takes as long as hundreds of its backwards
  Trial subspace = network, one_bit = network;
  subspace.scenario.workload.keys["layers"] = std::min(network.scenario.workload.keys.integer("layers"), kMostLayers);
  subspace.rewrites = {tandem::subspace({.rank = rank, .nonzeros = kNonzeros, .check_every = 1})};  // fits, whatever
  one_bit.rewrites = {tandem::one_bit({.warmup_steps = 1, .block = kBlock})};
  std::vector<Trial> trials{subspace, one_bit};
  for (const std::int64_t bits : {8, 4}) trials.emplace_back(network).scenario.optimizer.state_bits = bits;
  if (quick) return trials;
  trials.emplace_back(network).scenario.optimizer.state_bits = 16;
  for (const OptimizerEntry* optimizer : optimizers()) {
    if (optimizer->library_updates) continue;  // Adam's, which plain training and the trials above time
    OptimizerOptions& options = trials.emplace_back(network).scenario.optimizer;
    options.name = optimizer->name;
    options.momentum = 0.9;
  }
  return trials;
}

std::vector<Trial> designed_update_trials(bool quick, std::int32_t cores) {
  std::vector<Trial> trials;
  if (find_workload("gpt") == nullptr) return trials;
  for (const UpdateNetwork& u : std::span(kUpdates).first(quick ? 1 : std::size(kUpdates)))
    for (Trial& trial : update_trials(trial_of("gpt", u.network, cores), u.rank, quick))
      trials.push_back(std::move(trial));
  return trials;
}

KernelDesign designed_kernels(bool quick) {
  // Rows are tokens, columns and inner sizes multiples of a hidden size: 4 to 1 as in a block.
  constexpr std::int64_t kHidden[] = {32, 64, 96, 160, 256, 448, 704}, kQuickHidden = 256;
  constexpr AttentionSize kAttentions[] = {{2, 16, 16},  {4, 32, 24},  {8, 64, 32},
                                           {8, 128, 32}, {8, 224, 48}, {12, 448, 64}};
  constexpr std::int64_t kQuickSequence = 224, kLeastElements = 256;
  constexpr std::int64_t kMostElements = std::int64_t{16} << 20, kQuickElements = 4 << 20;
  KernelDesign design;
  for (const std::int64_t hidden : kHidden) {
    if (quick && hidden > kQuickHidden) break;
    design.gemms.push_back({hidden, hidden, hidden});
    design.gemms.push_back({hidden, 4 * hidden, hidden});
  }
  for (const AttentionSize& size : kAttentions)
    if (!quick || size.sequence <= kQuickSequence) design.attentions.push_back(size);
  constexpr LinearSize kCold[] = {{24, 1024, 1024}, {24, 3072, 768},  {80, 1024, 1024},
                                  {80, 3072, 768},  {80, 1536, 2048}, {240, 768, 3072}};
  constexpr std::int64_t kColdBytes = std::int64_t{512} << 20, kQuickCold = 3;
  design.cold_linears.assign(std::begin(kCold), quick ? std::begin(kCold) + kQuickCold : std::end(kCold));
  design.cold_bytes = kColdBytes;
  for (std::int64_t n = kLeastElements; n <= (quick ? kQuickElements : kMostElements); n *= 4)
    design.additions.push_back(n);
  return design;
}

Trial contention_trial(std::int32_t cores) { return trial_of("gpt", kContention, cores); }

}  // namespace tandem
