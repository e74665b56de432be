#include "runtime/bodies/common/load.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
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

// Elements [first, first + count) of a field, at `at` of the bf16 parameter that is being loaded, and of the state that
// keeps the rest of its masters, if there is one.
void fill_split(const BodyCall& call, const Field& field, std::int64_t first, std::int64_t count, std::int64_t at,
                const std::string& name) {
  constexpr std::int64_t kChunk = 1024;
  std::array<float, kChunk> masters;
  auto* parameter = reinterpret_cast<BFloat16*>(call.writes[0]) + at;
  auto* low = call.writes.size() > 1 ? reinterpret_cast<std::int16_t*>(call.writes[1]) + at : nullptr;
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t some = std::min(kChunk, count - done);
    fill_initial(masters.data(), first + done, some, shape_of(field), name, call.scenario.seed);
    for (std::int64_t i = 0; i < some; ++i) {
      const SplitMaster halves = split_master(masters[static_cast<std::size_t>(i)]);
      parameter[done + i] = halves.parameter;
      if (low != nullptr) low[done + i] = halves.low;
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
  const Operands no_autograd(call);
  const tandem::Tensor& tensor = call.graph.tensor_of(call.op.writes[0].value);
  ThreadTeam& team = ThreadTeam::mine(at::get_num_threads());
  for (std::size_t i = 0; i < call.writes.size(); ++i)
    zero(team, call.writes[i], call.graph.value(call.op.writes[i].value).bytes);
  auto* masters = reinterpret_cast<float*>(call.writes[tensor.type == DType::F16 ? 1 : 0]);
  const std::string stage = tensor.name.substr(0, tensor.name.find('.') + 1);
  for (const Field& field : tensor.layout->fields) {
    const HeldElements held = held_elements(field, tensor);
    if (held.count == 0) continue;
    team.run([&](int thread) {
      const std::int64_t first = held.count * thread / team.size();
      const std::int64_t count = held.count * (thread + 1) / team.size() - first;
      if (tensor.type == DType::BF16)
        fill_split(call, field, held.before + first, count, held.first + first, stage + field.name);
      else
        fill_initial(masters + held.first + first, held.before + first, count, shape_of(field), stage + field.name,
                     call.scenario.seed);
    });
    if (tensor.type == DType::F16)
      tensor_at(Processor::Host, call.writes[0] + held.first * size_of(DType::F16), {held.count}, at::kHalf)
          .copy_(tensor_at(Processor::Host, masters + held.first, {held.count}, at::kFloat));
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
