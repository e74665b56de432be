// Attention of one new token of each text on the CPU: to keys and values where they lie, beside LibTorch's kernel,
// which wants them together. A layer of OPT-6.7B, 16 texts of 311 tokens. `bytes_per_second`: keys and values, read
// once.
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>

#include <vector>

#include "runtime/primitives/common/attend_rows.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kTexts = 16, kHeads = 32, kSize = 128, kWidth = kHeads * kSize, kPrompt = 300, kNew = 11;

struct Layer {
  explicit Layer(at::ScalarType type) : options(at::TensorOptions().dtype(type)) {
    query = at::randn({kTexts, kWidth}).to(type);
    for (const std::int64_t rows : {kPrompt, kNew}) pages.push_back(at::randn({rows, 2, kTexts, kWidth}).to(type));
  }
  std::int64_t bytes() const { return pages[0].nbytes() + pages[1].nbytes(); }
  at::TensorOptions options;
  at::Tensor query;
  std::vector<at::Tensor> pages;
};

at::ScalarType type_of(const benchmark::State& state) { return state.range(0) != 0 ? at::kHalf : at::kFloat; }

void where_they_lie(benchmark::State& state) {
  const Layer layer(type_of(state));
  const DType type = state.range(0) != 0 ? DType::F16 : DType::F32;
  const Attributes how = {
      {"heads", kHeads}, {"tokens", std::int64_t{1}}, {"position", kPrompt + kNew - 1}, {"rows", kNew}};
  CallShapes shapes;
  shapes.in = {Shape({kTexts, kWidth}, type)};
  const PagedAttentionSizes sizes(how, shapes);
  const at::Tensor out = at::empty_like(layer.query);
  for (auto _ : state) attend_rows(sizes, 0.1, layer.query, type, layer.pages, {}, out);
  state.SetBytesProcessed(state.iterations() * layer.bytes());
}

void together(benchmark::State& state) {
  const Layer layer(type_of(state));
  for (auto _ : state) {
    const at::Tensor all = at::cat(layer.pages).unflatten(3, {kHeads, kSize}).permute({1, 2, 3, 0, 4});
    benchmark::DoNotOptimize(at::_scaled_dot_product_flash_attention_for_cpu(
        layer.query.view({kTexts, kHeads, 1, kSize}), all[0], all[1], 0.0, false, {}, 0.1));
  }
  state.SetBytesProcessed(state.iterations() * layer.bytes());
}

BENCHMARK(where_they_lie)->ArgName("fp16")->Arg(0)->Arg(1)->UseRealTime();
BENCHMARK(together)->ArgName("fp16")->Arg(0)->Arg(1)->UseRealTime();

}  // namespace
}  // namespace tandem
