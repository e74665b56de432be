#include "runtime/bodies/common/load.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "core/scenario/errors.hpp"
#include "core/workloads/common/layout.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/data.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/initial_values.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {
namespace {

// The last size of a batch's load says whether it is of held-out data.
BatchKey key_of(const BodyCall& call) {
  return {call.step(), call.op.micro_batch, call.rank, call.work.sizes.back() != 0};
}

std::int64_t* tokens(std::byte* bytes) { return reinterpret_cast<std::int64_t*>(bytes); }

std::span<const std::int64_t> shape_of(const Field& field) { return {field.shape.data(), field.shape.size()}; }

// Elements [first, end) of a field of the bf16 bucket that is being loaded, and of the states that keep the rest of its
// masters, if there are such.
void fill_split(const BodyCall& call, const Field& field, std::int64_t first, std::int64_t end,
                const std::string& name) {
  constexpr std::int64_t kChunk = 1024;
  std::array<float, kChunk> masters;
  auto* parameter = reinterpret_cast<BFloat16*>(call.writes[0] + field_offset(field, DType::BF16));
  auto* low = call.writes.size() > 1 ? reinterpret_cast<std::int16_t*>(call.writes[1] + field_offset(field, DType::I16))
                                     : nullptr;
  for (; first < end; first += kChunk) {
    const std::int64_t count = std::min(kChunk, end - first);
    fill_initial(masters.data(), first, count, shape_of(field), name, call.scenario.seed);
    for (std::int64_t i = 0; i < count; ++i) {
      const SplitMaster halves = split_master(masters[static_cast<std::size_t>(i)]);
      parameter[first + i] = halves.parameter;
      if (low != nullptr) low[first + i] = halves.low;
    }
  }
}

void zero(ThreadTeam& team, std::byte* bytes, std::int64_t count) {
  team.run([&](int thread) {
    const std::int64_t first = count * thread / team.size();
    std::memset(bytes + first, 0, static_cast<std::size_t>(count * (thread + 1) / team.size() - first));
  });
}

}  // namespace

std::int64_t load_parameters(BodyCall& call) {
  Operands operands(call);
  const auto& tensor = call.graph.tensor_of(call.op.writes[0].value);
  const Bucket bucket = operands.write_bucket();
  bucket.zero_padding();
  ThreadTeam& team = ThreadTeam::mine(at::get_num_threads());
  for (std::size_t i = 1; i < call.writes.size(); ++i)
    zero(team, call.writes[i], call.graph.value(call.op.writes[i].value).bytes);
  std::byte* masters = call.writes[tensor.type == DType::F16 ? 1 : 0];
  const std::string stage = tensor.name.substr(0, tensor.name.find('.') + 1);
  for (const Field& field : bucket.layout().fields) {
    team.run([&](int thread) {
      const std::int64_t first = field.elements() * thread / team.size();
      const std::int64_t end = field.elements() * (thread + 1) / team.size();
      if (tensor.type == DType::BF16)
        fill_split(call, field, first, end, stage + field.name);
      else
        fill_initial(reinterpret_cast<float*>(masters + field.offset) + first, first, end - first, shape_of(field),
                     stage + field.name, call.scenario.seed);
    });
    if (tensor.type == DType::F16)
      bucket[field.name].view(-1).copy_(
          tensor_at(Processor::Host, masters + field.offset, {field.elements()}, at::kFloat));
  }
  return 0;
}

void check_tokens(const std::int64_t* tokens, std::int64_t count, std::int64_t vocabulary) {
  for (std::int64_t i = 0; i < count; ++i)
    if (tokens[i] < 0 || tokens[i] >= vocabulary)
      throw DeviceError("token " + std::to_string(tokens[i]) + " of the data is outside workload.vocabulary (" +
                        std::to_string(vocabulary) + ")");
}

std::int64_t load_next_token_batch(BodyCall& call) {
  call.data.next_token_batch(key_of(call), call.work.sizes.at(0), call.work.sizes.at(1), tokens(call.writes[0]),
                             tokens(call.writes[1]));
  for (std::byte* written : call.writes)
    check_tokens(tokens(written), call.work.sizes.at(0) * call.work.sizes.at(1), call.work.sizes.at(2));
  return 0;
}

std::int64_t load_masked_token_batch(BodyCall& call) {
  call.data.masked_token_batch(key_of(call), call.work.sizes.at(0), call.work.sizes.at(1), call.work.sizes.at(2),
                               tokens(call.writes[0]), tokens(call.writes[1]));
  check_tokens(tokens(call.writes[0]), call.work.sizes.at(0) * call.work.sizes.at(1), call.work.sizes.at(2));
  return 0;
}

std::int64_t load_image_batch(BodyCall& call) {
  call.data.image_batch(key_of(call), call.work.sizes.at(0), call.work.sizes.at(1),
                        reinterpret_cast<float*>(call.writes[0]), tokens(call.writes[1]));
  return 0;
}

}  // namespace tandem
