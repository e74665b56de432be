// The CPU optimizer step beside LibTorch's and beside memory bandwidth, by threads. `items_per_second` are parameters
// updated, `bytes_per_second` what the update must move (each operand once: a processor that reads a line before it
// writes it moves more). CPU_ADAM_ELEMENTS sets the size. The default is far beyond any cache, and no power of two:
// operands that lie 2^27 bytes apart halved every rate on Zen 4, and quartered those of loops with narrow vectors;
// 64 KiB more between them gave all of it back.
#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/formats/state_blocks.hpp"
#include "runtime/executors/arena.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/gradient_checks.hpp"
#include "runtime/optimizer/triad.hpp"
#include "runtime/optimizer/update.hpp"

namespace tandem {
namespace {

std::int64_t elements() {
  constexpr std::int64_t kDefault = 60'000'000;
  const char* text = std::getenv("CPU_ADAM_ELEMENTS");
  constexpr std::int64_t kUnit = state_block(8).elements;
  return (text == nullptr ? kDefault : std::atoll(text)) / kUnit * kUnit;
}

// Operands in an arena, as executors hold them (huge pages), each page first touched by the thread that updates it.
struct Operands {
  Operands(ThreadTeam& team, DType gradient, DType parameter, std::int64_t state_bits = 32)
      : arena("benchmark", elements() * kBytes, false) {
    std::byte* at = arena.at(0, elements() * kBytes);
    const auto next = [&](DType type) { return std::exchange(at, at + elements() * size_of(type)); };
    span.gradient = next(gradient);
    span.state_bits = state_bits;
    const StateBlock block = state_block(state_bits);
    const auto next_state = [&] { return std::exchange(at, at + elements() / block.elements * block.bytes); };
    span.m = next_state();
    span.v = next_state();
    if (parameter != DType::F32) span.parameter = next(parameter);
    if (parameter == DType::BF16) {  // in place, as a rule
      span.old_parameter = span.parameter;
      span.master_low = reinterpret_cast<std::int16_t*>(next(DType::I16));
    } else {
      span.master = reinterpret_cast<float*>(next(DType::F32));
    }
    span.elements = elements();
    span.gradient_type = gradient;
    span.parameter_type = parameter;
    team.run([&](int thread) { touch(chunk_of(span, thread, team.size())); });
  }
  static constexpr std::int64_t kBytes = 20;  // of an element, at most

  static void touch(const UpdateSpan& chunk) {
    if (chunk.state_bits == 32) {
      std::fill_n(static_cast<float*>(chunk.m), chunk.elements, 0.1F);
      std::fill_n(static_cast<float*>(chunk.v), chunk.elements, 0.01F);
    } else {
      const StateBlock block = state_block(chunk.state_bits);
      for (void* blocks : {chunk.m, chunk.v})
        std::fill_n(static_cast<std::uint8_t*>(blocks), chunk.elements / block.elements * block.bytes, std::uint8_t{0});
    }
    if (chunk.master != nullptr) std::fill_n(chunk.master, chunk.elements, 1.0F);
    if (chunk.master_low != nullptr) std::fill_n(chunk.master_low, chunk.elements, std::int16_t{0});
    const auto fill = [&](const void* to, DType type) {  // 1 in fp32, 0.0078 in bf16, 1.875 in fp16
      auto* begin = static_cast<std::byte*>(const_cast<void*>(to));
      for (std::int64_t i = 0; i < chunk.elements * size_of(type); i += 2)
        begin[i] = std::byte{0}, begin[i + 1] = std::byte{0x3C};
    };
    fill(chunk.gradient, chunk.gradient_type);
    if (chunk.parameter != nullptr) fill(chunk.parameter, chunk.parameter_type);
  }
  double bytes_per_element() const {
    const std::int64_t parameter = span.parameter == nullptr ? 0 : size_of(span.parameter_type);
    const std::int64_t masters = span.master == nullptr ? parameter + 2 * size_of(DType::I16) : 2 * size_of(DType::F32);
    const StateBlock block = state_block(span.state_bits);
    return static_cast<double>(size_of(span.gradient_type) + masters + parameter) +
           4.0 * static_cast<double>(block.bytes) / static_cast<double>(block.elements);
  }

  Arena arena;
  UpdateSpan span{};
};

void count(benchmark::State& state, double bytes_per_element) {
  state.SetItemsProcessed(state.iterations() * elements());
  state.SetBytesProcessed(
      static_cast<std::int64_t>(static_cast<double>(state.iterations() * elements()) * bytes_per_element));
}

void update(benchmark::State& state, ThreadTeam& team, const Operands& operands, Isa isa) {
  std::int64_t step = 0;
  for ([[maybe_unused]] auto _ : state) {
    const UpdateStep constants = update_step({}, ++step);
    team.run([&](int thread) { update_elements(constants, chunk_of(operands.span, thread, team.size()), isa); });
  }
  count(state, operands.bytes_per_element());
}

// `apart`: a bf16 parameter does not take the old one's place, as under delayed update.
void ours(benchmark::State& state, DType gradient, DType parameter, Isa isa, bool apart = false,
          std::int64_t state_bits = 32) {
  if (!has_isa(isa)) return state.SkipWithError("not on this processor");
  ThreadTeam team(static_cast<int>(state.range(0)));
  Operands operands(team, gradient, parameter, state_bits);
  std::unique_ptr<Operands> other;
  if (apart) {
    other = std::make_unique<Operands>(team, DType::F32, DType::F16);
    operands.span.parameter = other->span.parameter;
  }
  update(state, team, operands, isa);
}

// As many streams as the update with bf16 has: four read and written, one read.
void memory_limit(benchmark::State& state) {
  ThreadTeam team(static_cast<int>(state.range(0)));
  Operands operands(team, DType::BF16, DType::BF16);
  for ([[maybe_unused]] auto _ : state)
    team.run([&](int thread) { triad(chunk_of(operands.span, thread, team.size())); });
  count(state, operands.bytes_per_element());
}

void check(benchmark::State& state, DType type) {
  ThreadTeam team(static_cast<int>(state.range(0)));
  Operands operands(team, type, DType::F32);
  for ([[maybe_unused]] auto _ : state)
    team.run([&](int thread) {
      const UpdateSpan chunk = chunk_of(operands.span, thread, team.size());
      benchmark::DoNotOptimize(check_gradient(chunk.gradient, type, chunk.elements));
    });
  count(state, static_cast<double>(size_of(type)));
}

// LibTorch's fused Adam in fp32; with `converts`, the bf16 gradient is widened before and the parameter narrowed after,
// each in a pass of its own, as LibTorch offers no fused step of mixed precision on the CPU.
void libtorch(benchmark::State& state, bool converts) {
  const auto threads = static_cast<int>(state.range(0));
  auto team = std::make_unique<ThreadTeam>(threads);
  // Operands of fp16: they have a master copy beside the parameter.
  const Operands wide(*team, DType::F32, DType::F16), narrow(*team, DType::BF16, DType::F32);
  team.reset();  // LibTorch has threads of its own
  at::set_num_threads(threads);
  const auto tensor = [](const void* data, at::ScalarType type) {
    return at::from_blob(const_cast<void*>(data), {elements()}, type);
  };
  at::Tensor gradient = tensor(wide.span.gradient, at::kFloat), master = tensor(wide.span.master, at::kFloat);
  const at::Tensor m = tensor(wide.span.m, at::kFloat), v = tensor(wide.span.v, at::kFloat);
  at::Tensor parameter = tensor(wide.span.parameter, at::kBFloat16);
  const at::Tensor narrow_gradient = tensor(narrow.span.gradient, at::kBFloat16);
  float step = 0;
  for ([[maybe_unused]] auto _ : state) {
    if (converts) gradient.copy_(narrow_gradient);
    at::_fused_adam_({master}, {gradient}, {m}, {v}, {}, {at::full({}, ++step, at::kFloat)}, 1e-3, 0.9, 0.999, 0, 1e-8,
                     /*amsgrad=*/false, /*maximize=*/false);
    if (converts) parameter.copy_(master);
  }
  count(state, converts ? 2 + 24 + 2 : 4 + 24);  // what a fused step would move, so that rates compare
}

int places() {
  const char* text = std::getenv("CPU_ADAM_PLACES");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

// CPU_ADAM_PLACES pieces of memory are held at once, and each is a benchmark. With --benchmark_repetitions and
// --benchmark_enable_random_interleaving, repetitions of one differ by the moment, medians of several by the place.
void place(benchmark::State& state) {
  static ThreadTeam team(std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1));
  static std::vector<std::unique_ptr<Operands>> held;
  while (held.size() < static_cast<std::size_t>(places()))
    held.push_back(std::make_unique<Operands>(team, DType::BF16, DType::BF16));
  update(state, team, *held[static_cast<std::size_t>(state.range(0))], best_isa());
}

void by_threads(benchmark::internal::Benchmark* b) {
  const int most = static_cast<int>(std::thread::hardware_concurrency());
  for (int threads = 1; threads < most; threads *= 2) b->Arg(threads);
  b->Arg(most)->ArgName("threads")->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK(memory_limit)->Apply(by_threads);
BENCHMARK(place)->DenseRange(0, places() - 1)->Iterations(3)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ours, bf16, DType::BF16, DType::BF16, best_isa())->Apply(by_threads);
BENCHMARK_CAPTURE(ours, bf16_apart, DType::BF16, DType::BF16, best_isa(), true)->Apply(by_threads);
BENCHMARK_CAPTURE(ours, bf16_8_bits, DType::BF16, DType::BF16, best_isa(), false, 8)->Apply(by_threads);
BENCHMARK_CAPTURE(ours, bf16_4_bits, DType::BF16, DType::BF16, best_isa(), false, 4)->Apply(by_threads);
BENCHMARK_CAPTURE(ours, fp32_8_bits, DType::F32, DType::F32, best_isa(), false, 8)->Apply(by_threads);
BENCHMARK_CAPTURE(ours, fp32_4_bits, DType::F32, DType::F32, best_isa(), false, 4)->Apply(by_threads);
BENCHMARK_CAPTURE(ours, fp16, DType::F16, DType::F16, best_isa())->Apply(by_threads);
BENCHMARK_CAPTURE(ours, fp32, DType::F32, DType::F32, best_isa())->Apply(by_threads);
BENCHMARK_CAPTURE(ours, bf16_avx2, DType::BF16, DType::BF16, Isa::Avx2)->Apply(by_threads);
BENCHMARK_CAPTURE(ours, bf16_scalar, DType::BF16, DType::BF16, Isa::Scalar)->Apply(by_threads);
BENCHMARK_CAPTURE(ours, bf16_8_bits_avx2, DType::BF16, DType::BF16, Isa::Avx2, false, 8)->Apply(by_threads);
BENCHMARK_CAPTURE(ours, bf16_8_bits_scalar, DType::BF16, DType::BF16, Isa::Scalar, false, 8)->Apply(by_threads);
BENCHMARK_CAPTURE(ours, bf16_4_bits_avx2, DType::BF16, DType::BF16, Isa::Avx2, false, 4)->Apply(by_threads);
BENCHMARK_CAPTURE(libtorch, fp32, false)->Apply(by_threads);
BENCHMARK_CAPTURE(libtorch, fp32_and_bf16_passes, true)->Apply(by_threads);
BENCHMARK_CAPTURE(check, fp32, DType::F32)->Apply(by_threads);
BENCHMARK_CAPTURE(check, bf16, DType::BF16)->Apply(by_threads);
BENCHMARK_CAPTURE(check, fp16, DType::F16)->Apply(by_threads);

}  // namespace
}  // namespace tandem
