#include "calibration/gpu_design.hpp"

#include <algorithm>
#include <utility>

#include "core/transforms/fp32_gradients.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20, kGiB = std::int64_t{1} << 30;

struct Transformer {
  std::int64_t hidden, heads, sequence, batch, vocabulary;
  bool recompute, tied, held_out, quick, fp32_gradients = false;
};
// Two micro-batches each: the second adds to the first's gradients, which is a body of its own. Batches of many short
// sequences and of few long ones, with and without recomputation: else a body's attention, its other kernels and its
// own time cannot be told apart. Heads of 64 and of 128; hidden sizes that fill the tiles of matrix products and that
// do not. The smallest networks keep a GPU waiting for the thread that launches their kernels.
constexpr Transformer kTransformers[] = {
    {768, 12, 512, 4, 8192, false, true, false, true},
    {1024, 16, 512, 8, 32000, true, false, false, true},
    {1024, 8, 1024, 6, 50304, false, true, false, false},
    {1536, 12, 1024, 8, 16384, false, false, false, true, true},
    {2048, 16, 1024, 4, 32000, true, true, false, true},
    {2048, 32, 512, 4, 8192, false, false, false, false},
    {2560, 20, 1024, 6, 40000, false, false, false, true},
    {3072, 24, 1024, 4, 32000, true, true, false, false},
    {4096, 32, 1024, 2, 16384, false, true, false, false},
    {4096, 32, 1024, 8, 8192, false, false, false, false},
    {1152, 18, 512, 24, 16384, true, false, false, true},
    {1408, 22, 256, 32, 16384, false, false, false, true},
    {1792, 14, 2048, 2, 16384, false, true, false, true},
    {2432, 19, 2048, 4, 16384, true, false, false, false},
    {704, 11, 512, 32, 24000, true, false, false, true},
    {960, 15, 1024, 8, 24576, false, false, false, false},
    {1216, 19, 512, 16, 20000, false, true, false, true},
    {576, 9, 256, 48, 16384, false, false, false, false},
    {640, 10, 2048, 4, 32000, true, false, false, false},
    {1600, 25, 4096, 1, 16384, true, false, false, false},
    {2816, 22, 256, 32, 16384, true, true, false, false},
    {3584, 28, 512, 8, 8192, false, false, false, false},
    {1472, 23, 1024, 8, 16384, false, false, true, false},
    {1856, 29, 512, 16, 16384, true, false, true, false},
    {512, 8, 128, 1, 8192, true, false, false, true},
    {640, 10, 64, 2, 12288, false, true, false, true},
    {1280, 20, 1024, 4, 24000, true, true, true, true},
    {2304, 18, 1024, 8, 40000, false, false, true, false},
    // Vocabularies and batches as people have them: rows of a softmax that no 16 bytes divide, and products of few
    // rows.
    {1344, 21, 512, 2, 50257, false, true, false, false},
    {1024, 16, 384, 3, 30522, true, false, false, false},
    {1984, 31, 1024, 1, 50257, false, false, false, false},
};
// Of each other family networks of several sizes, so that its bodies' own times are known. (What stays unknown is taken
// by its kernels alone.)
using Keys = std::vector<std::pair<const char*, KeyValue>>;
struct OfFamily {
  const char* family;
  std::int64_t batch;
  bool recompute;
  Keys keys;
};
std::vector<OfFamily> other_families() {
  static constexpr std::int64_t kLayers = 2, kTokens = 8192;
  const auto decoder = [](std::int64_t hidden, std::int64_t heads, std::int64_t key_heads, std::int64_t width,
                          std::int64_t sequence) {
    return Keys{{"layers", kLayers},     {"hidden", hidden},      {"heads", heads},      {"key_heads", key_heads},
                {"feed_forward", width}, {"vocabulary", kTokens}, {"sequence", sequence}};
  };
  const auto with = [](Keys keys, const char* key, std::int64_t value) {
    keys.emplace_back(key, value);
    return keys;
  };
  const auto t5 = [](std::int64_t hidden, std::int64_t heads, std::int64_t sequence, std::int64_t target) {
    return Keys{{"layers", kLayers},          {"hidden", hidden},      {"heads", heads},
                {"feed_forward", 4 * hidden}, {"vocabulary", kTokens}, {"sequence", sequence},
                {"target_sequence", target}};
  };
  const auto vit = [](std::int64_t hidden, std::int64_t heads, std::int64_t image, std::int64_t patch) {
    return Keys{{"layers", kLayers}, {"hidden", hidden}, {"heads", heads},
                {"image", image},    {"patch", patch},   {"classes", std::int64_t{1000}}};
  };
  const auto whisper = [](std::int64_t hidden, std::int64_t heads, std::int64_t frames, std::int64_t sequence) {
    return Keys{{"layers", kLayers},     {"hidden", hidden}, {"heads", heads},
                {"vocabulary", kTokens}, {"frames", frames}, {"sequence", sequence}};
  };
  const auto clip = [](std::int64_t vision, std::int64_t text, std::int64_t image, std::int64_t patch) {
    return Keys{{"vision_layers", kLayers},
                {"vision_hidden", vision},
                {"vision_heads", vision / 64},
                {"text_layers", kLayers},
                {"text_hidden", text},
                {"text_heads", text / 64},
                {"vocabulary", kTokens},
                {"sequence", std::int64_t{64}},
                {"projection", std::int64_t{384}},
                {"image", image},
                {"patch", patch}};
  };
  const auto convnet = [](std::vector<std::int64_t> blocks, std::int64_t width, std::int64_t image) {
    return Keys{{"blocks", std::move(blocks)}, {"width", width}, {"image", image}};
  };
  return {{"llama", 3, false, decoder(1536, 24, 8, 4096, 1024)},
          {"llama", 6, true, decoder(1024, 16, 16, 2816, 512)},
          {"llama", 2, false, decoder(1920, 15, 5, 5376, 768)},
          {"moe", 4, false, with(decoder(640, 10, 5, 1792, 512), "experts", 5)},
          {"moe", 3, true, with(decoder(1024, 16, 4, 2560, 768), "experts", 6)},
          {"t5", 6, false, t5(640, 10, 384, 128)},
          {"t5", 4, true, t5(1024, 16, 256, 96)},
          {"t5", 10, false, t5(512, 8, 448, 160)},
          {"vit", 48, false, vit(640, 10, 192, 16)},
          {"vit", 12, true, vit(1024, 16, 196, 14)},
          {"vit", 64, false, vit(768, 12, 160, 16)},
          {"whisper", 6, false, whisper(640, 10, 2400, 160)},
          {"whisper", 3, true, whisper(704, 11, 1600, 96)},
          {"whisper", 4, false, whisper(512, 8, 3000, 64)},
          {"clip", 48, false, clip(640, 448, 192, 32)},
          {"clip", 96, true, clip(960, 576, 224, 28)},
          {"convnet", 48, false, convnet({2, 2, 3, 2}, 48, 192)},
          {"convnet", 96, false, convnet({3, 2, 2, 3}, 80, 160)}};
}

// Large ones, whose kernels do not wait for launches and whose states are in no cache; with ranks of a half and less.
struct UpdateNetwork {
  Transformer network;
  std::int64_t rank;
};
constexpr UpdateNetwork kUpdates[] = {
    {{2048, 16, 256, 4, 12288, false, false, false, true}, 1024},
    {{2560, 20, 256, 4, 10240, false, false, false, false}, 896},
};
// Nearly all of it one block's, whose states and gradients are 2.8 GB: many times what a host's caches hold.
constexpr Transformer kLargestUpdate = {4096, 32, 256, 1, 1024, false, true, false, true};
// Forward and backward of a block take about twice as long as their launches; its states are beyond caches.
constexpr Transformer kLaunches = {1792, 14, 512, 5, 4096, false, false, false, true};
constexpr Transformer kContention = {2304, 18, 1024, 8, 4096, false, false, false, false};

// Two blocks where that is little memory, so that the second finds the caches as the first left them.
std::int64_t layers_of(std::int64_t hidden) { return hidden <= 2048 ? 2 : 1; }

Trial trial_of(const char* family, const Transformer& t, std::int32_t cores) {
  Trial trial;
  trial.held_out = t.held_out;
  if (t.fp32_gradients) trial.rewrites = {fp32_gradients()};
  Scenario& scenario = trial.scenario;
  scenario.machine.gpu = true;
  scenario.machine.cores = cores;
  // Clipping has ops of its own; every other network has it.
  scenario.optimizer.clip_norm = t.tied ? 1.0 : 0.0;
  WorkloadOptions& w = scenario.workload;
  w.family = family;
  w.keys["layers"] = layers_of(t.hidden);
  w.keys["hidden"] = t.hidden;
  w.keys["heads"] = t.heads;
  w.keys["sequence"] = t.sequence;
  w.batch = t.batch;
  w.keys["vocabulary"] = t.vocabulary;
  w.micro_batches = 2;
  w.precision = DType::BF16;
  w.recompute = t.recompute ? "block" : "none";
  w.keys["tied_embedding"] = t.tied;
  return trial;
}

Trial trial_of(const OfFamily& f, std::int32_t cores) {
  Trial trial;
  trial.times_update = false;
  Scenario& scenario = trial.scenario;
  scenario.machine.gpu = true;
  scenario.machine.cores = cores;
  WorkloadOptions& w = scenario.workload;
  w.family = f.family;
  for (const auto& [key, value] : f.keys) w.keys.set(key, value);
  w.batch = f.batch;
  w.micro_batches = 2;
  w.precision = DType::BF16;
  w.recompute = f.recompute ? "block" : "none";
  return trial;
}

KernelDesign kernels(bool quick) {
  KernelDesign design;
  design.gemms = {{128, 128, 128},    {256, 1024, 256},   {512, 2048, 512},   {1024, 1024, 1024},
                  {2048, 4096, 1024}, {4096, 4096, 4096}, {8192, 8192, 2048}, {8192, 16384, 4096}};
  design.attentions = {{16, 128, 64}, {16, 512, 64}, {64, 512, 64}, {64, 1024, 64}, {128, 1024, 128}};
  for (const std::int64_t rows : {512, 1024}) {  // of small batches
    design.gemms.push_back({rows, 3072, 768});
    design.gemms.push_back({rows, 6400, 1600});
  }
  std::sort(design.gemms.begin(), design.gemms.end(),
            [](const GemmSize& a, const GemmSize& b) { return a.m * a.n * a.k < b.m * b.n * b.k; });
  if (!quick) {
    design.gemms.insert(design.gemms.begin() + 3, {512, 512, 512});
    design.gemms.push_back({16384, 8192, 8192});
    design.attentions.push_back({128, 2048, 128});
  }
  constexpr std::int64_t kLeastElements = 256, kMostElements = std::int64_t{1} << 27, kStep = 4;  // up to 0.8 GB
  for (std::int64_t n = kLeastElements; n <= kMostElements; n *= kStep) design.additions.push_back(n);
  if (design.additions.back() < kMostElements) design.additions.push_back(kMostElements);
  return design;
}

}  // namespace

DeviceDesign gpu_design(bool quick, std::int32_t cores) {
  DeviceDesign design;
  design.other_types = {DType::F32, DType::F16};
  design.rate_products = {{4096, 4096, 4096}, {2048, 8192, 2048}, {1024, 4096, 1024}};
  // Wide enough for an output layer, each width beside the next multiple of 8; and a narrower one.
  for (const std::int64_t outputs : quick ? std::vector<std::int64_t>{24576} : std::vector<std::int64_t>{24576, 3072})
    for (const std::int64_t more : {8, 1, 2, 4}) design.odd_layers.push_back({2048, outputs + more, 1024});
  design.peak_product = {4096, 4096, 4096};
  design.cpu_product = {2048, 2048, 2048};
  design.kernels = kernels(quick);
  design.kernel_repeats = quick ? 5 : 9;
  design.power = {{{8192, 6144, 1536}, {8192, 2560, 2560}, {8192, 8192, 4096}, {2304, 2304, 8192}},
                  {208, 1024, 128},
                  std::int64_t{1} << 25,
                  0.6,
                  3.2};
  design.copies = {(quick ? 1 : 2) * kGiB, (quick ? 256 : 1024) * kMiB, 32 * kMiB, 0.5, 1, (quick ? 64 : 256) * kMiB};
  design.contention = trial_of("gpt", kContention, cores);
  design.launches = trial_of("gpt", kLaunches, cores);
  design.updates = trial_of("gpt", kLargestUpdate, cores);
  for (const char* family : {"gpt", "bert"}) {
    if (find_workload(family) == nullptr) continue;
    for (const Transformer& t : kTransformers)
      if (!quick || t.quick) {
        design.trials.push_back(trial_of(family, t, cores));
        design.trials.back().times_update = false;  // DeviceDesign::updates
      }
  }
  if (!quick)
    for (const OfFamily& other : other_families())
      if (find_workload(other.family) != nullptr) design.trials.push_back(trial_of(other, cores));
  for (const UpdateNetwork& u : kUpdates)
    if (find_workload("gpt") != nullptr && (!quick || u.network.quick))
      for (Trial& trial : update_trials(trial_of("gpt", u.network, cores), u.rank, quick || &u != kUpdates))
        design.update_trials.push_back(std::move(trial));
  design.passes = quick ? 3 : 5;
  design.op_budget_ns = quick ? 0.2e9 : 1.0e9;
  design.cpu_compute = cpu_compute_design(quick, cores, design.type);
  design.triad_bytes = (quick ? 1 : 3) * kGiB;
  design.probe_copy_bytes = 256 * kMiB;  // the same in both, as all that a probe runs
  return design;
}

}  // namespace tandem
