#include "runtime/bodies/common/load.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "core/formats/masters.hpp"
#include "core/run/divided_weights.hpp"
#include "core/scenario/ranks.hpp"
#include "runtime/batches.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/weight_codes.hpp"
#include "runtime/stored_values.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 16;  // what is read of a file, or made, at once

// Of a rank's part of a weight, the whole one's, wherever those come from.
void fill_part(const BodyCall& call, float* out, std::int64_t first, std::int64_t count, const WeightPart& part) {
  const Scenario whole = undivided(call.scenario);
  std::fill_n(out, count, 0.0f);
  part.for_each_run(first, count, RankPart(call.work).own, [&](auto done, auto place, auto elements) {
    fill_first_values(out + done, place, elements, part.whole, part.name, whole);
  });
}

// Elements [first, first + count) of a field, of which this rank may have a part.
void fill_own(const BodyCall& call, float* out, std::int64_t first, std::int64_t count, const Field& field,
              const std::string& name) {
  if (DividedWeights::are_in(call.scenario))
    fill_part(call, out, first, count, DividedWeights::of(call.scenario)->part(name));
  else
    fill_first_values(out, first, count, field, name, call.scenario);
}

// The same, at `at` of the bf16 parameter that is being loaded, and of the state that
// keeps the rest of its masters, if there is one.
void fill_split(const BodyCall& call, const Field& field, std::int64_t first, std::int64_t count, std::int64_t at,
                const std::string& name) {
  std::vector<float> masters(static_cast<std::size_t>(std::min(kChunk, count)));
  auto* parameter = reinterpret_cast<BFloat16*>(call.writes[0]) + at;
  const bool has_low = call.writes.size() > 1 && is_state(call.graph.tensor_of(call.op.writes[1].value), kMasterLow);
  auto* low = has_low ? reinterpret_cast<std::int16_t*>(call.writes[1]) + at : nullptr;
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t some = std::min(kChunk, count - done);
    fill_own(call, masters.data(), first + done, some, field, name);
    for (std::int64_t i = 0; i < some; ++i) {
      const SplitMaster halves = split_master(masters[static_cast<std::size_t>(i)]);
      parameter[done + i] = halves.parameter;
      if (low != nullptr) low[done + i] = halves.low;
    }
  }
}

// The same of an fp16 parameter that has no masters, as what is frozen: its numbers pass through a chunk, not a copy.
void fill_half(const BodyCall& call, const Field& field, std::int64_t first, std::int64_t count, std::int64_t at,
               const std::string& name) {
  std::vector<float> numbers(static_cast<std::size_t>(std::min(kChunk, count)));
  auto* parameter = reinterpret_cast<Float16*>(call.writes[0]) + at;
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t some = std::min(kChunk, count - done);
    fill_own(call, numbers.data(), first + done, some, field, name);
    for (std::int64_t i = 0; i < some; ++i) parameter[done + i] = to_float16(numbers[static_cast<std::size_t>(i)]);
  }
}

// A frozen bucket of codes: those of its first values, and of the zeros behind them, a number of whole blocks at once.
void fill_codes(const BodyCall& call, const tandem::Tensor& tensor, const std::string& stage, ThreadTeam& team) {
  const StateBlock block = weight_block(tensor.code_bits);
  constexpr std::int64_t kBlocks = 256;
  for (const Field& field : tensor.layout->fields) {
    std::byte* codes = call.writes[0] + field.offset / size_of(DType::F32) / block.elements * block.bytes;
    const std::int64_t blocks = (field.padded_elements() + block.elements - 1) / block.elements;
    team.share(static_cast<int>((blocks + kBlocks - 1) / kBlocks), [&](int chunk) {
      const std::int64_t first = chunk * kBlocks, some = std::min(kBlocks, blocks - first);
      std::vector<float> numbers(static_cast<std::size_t>(some * block.elements));
      const std::int64_t begin = first * block.elements;
      const std::int64_t count = std::min(some * block.elements, field.elements() - begin);
      if (count > 0) fill_own(call, numbers.data(), begin, count, field, stage + field.name);
      encode_weights(numbers.data(), tensor.code_bits, some, codes + first * block.bytes);
    });
  }
}

void zero(ThreadTeam& team, std::byte* bytes, std::int64_t count) {
  team.run([&](int thread) {
    const std::int64_t first = count * thread / team.size();
    std::memset(bytes + first, 0, static_cast<std::size_t>(count * (thread + 1) / team.size() - first));
  });
}

}  // namespace

BatchKey key_of(const BodyCall& call) {
  return {call.step(), call.op.micro_batch, call.rank, call.work.sizes.back() != 0, call.part};
}

std::int64_t load_parameters(BodyCall& call) {
  const Operands no_autograd(call);
  const tandem::Tensor& tensor = call.graph.tensor_of(call.op.writes[0].value);
  ThreadTeam& team = ThreadTeam::mine(at::get_num_threads());
  for (std::size_t i = 0; i < call.writes.size(); ++i)
    zero(team, call.writes[i], call.graph.value(call.op.writes[i].value).bytes);
  const std::string stage = tensor.name.substr(0, tensor.name.find('.') + 1);
  if (tensor.code_bits > 0) {
    fill_codes(call, tensor, stage, team);
    return 0;
  }
  const std::size_t leader = leading_write(call.graph, call.op);
  const bool has_masters = leader != 0;
  auto* masters = reinterpret_cast<float*>(call.writes[leader]);
  for (const Field& field : tensor.layout->fields) {
    const HeldElements held = held_elements(field, tensor);
    if (held.count == 0) continue;
    team.run([&](int thread) {
      const std::int64_t first = held.count * thread / team.size();
      const std::int64_t count = held.count * (thread + 1) / team.size() - first;
      const std::int64_t from = held.before + first, at = held.first + first;
      if (tensor.type == DType::BF16)
        fill_split(call, field, from, count, at, stage + field.name);
      else if (tensor.type == DType::F16 && !has_masters)
        fill_half(call, field, from, count, at, stage + field.name);
      else
        fill_own(call, masters + at, from, count, field, stage + field.name);
    });
    if (tensor.type == DType::F16 && has_masters)
      tensor_at(Processor::Host, call.writes[0] + held.first * size_of(DType::F16), {held.count}, at::kHalf)
          .copy_(
              tensor_at(Processor::Host, reinterpret_cast<std::byte*>(masters + held.first), {held.count}, at::kFloat));
  }
  return 0;
}

std::int64_t load_batch(BodyCall& call) {
  const Operands no_autograd(call);
  std::vector<BatchPlace> places;
  for (std::size_t i = 0; i < call.writes.size(); ++i) {
    const ValueId value = call.op.writes[i].value;
    const DType type = call.graph.tensor_of(value).type;
    places.push_back({call.writes[i], type, call.graph.value(value).bytes / size_of(type)});
  }
  fill_batch(call.work, call.scenario, call.data, key_of(call), places);
  return 0;
}

}  // namespace tandem
