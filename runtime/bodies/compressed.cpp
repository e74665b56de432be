// Bodies of a mean that ranks take of what they send compressed: core/transforms/common/compressed_mean.hpp has the
// operands. All is pointers, of the host's memory: nothing here needs LibTorch's operators.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/check.hpp"
#include "core/formats/layout.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/body_table.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/one_bit_formula.hpp"
#include "runtime/optimizer/sent_code.hpp"
#include "runtime/optimizer/update.hpp"

namespace tandem {
namespace {

SentCode code_of(const BodyCall& call) {
  CHECK(call.processor == Processor::Host, call.work.body, "is for the host's memory");
  return {static_cast<SentCode::Kind>(call.work.sizes.at(2)), call.work.sizes.at(3)};
}

std::int64_t written_bytes(const BodyCall& call, std::size_t write) {
  return call.graph.value(call.op.writes[write].value).bytes;
}

// Calls work(first, elements) for all of `elements`, in tiles of whole units, each on one of the threads.
template <class Work>
void share_tiles(const SentCode& code, std::int64_t elements, Work&& work) {
  const std::int64_t tile = std::max<std::int64_t>(1, kTileElements / code.unit()) * code.unit();
  ThreadTeam::mine(at::get_num_threads()).share(static_cast<int>(rounded_up_quotient(elements, tile)), [&](int i) {
    const std::int64_t first = i * tile;
    work(first, std::min(tile, elements - first));
  });
}

std::int64_t load(BodyCall& call) {
  for (std::size_t i = 0; i < call.writes.size(); ++i)
    std::memset(call.writes[i], 0, static_cast<std::size_t>(written_bytes(call, i)));
  return 0;
}

// What is kept is the last operand of both sides, if it is one.
float* kept_of(const BodyCall& call) {
  if (call.writes.size() < 2) return nullptr;
  copy_bytes(call, call.reads.back(), call.writes[1], written_bytes(call, 1));
  return reinterpret_cast<float*>(call.writes[1]);
}

// Encodes what make(first, elements, numbers) gives, all of a code's write; what is behind it is zero.
template <class Make>
void encode_all(const BodyCall& call, const SentCode& code, std::int64_t elements, const Make& make) {
  float* const kept = kept_of(call);
  const std::int64_t whole = elements / code.unit() * code.unit(), end = code.bytes(whole);
  std::memset(call.writes[0] + end, 0, static_cast<std::size_t>(written_bytes(call, 0) - end));
  share_tiles(code, elements, [&](std::int64_t first, std::int64_t count) {
    std::vector<float> numbers(static_cast<std::size_t>(count));
    make(first, count, numbers.data());
    encode(code, numbers.data(), kept == nullptr ? nullptr : kept + first, count, call.writes[0] + code.bytes(first));
  });
}

float gradient_at(const BodyCall& call, std::int64_t i) {
  if (call.work.type == DType::F32) return reinterpret_cast<const float*>(call.reads[0])[i];
  return to_float(reinterpret_cast<const BFloat16*>(call.reads[0])[i]);
}

std::int64_t send_gradient(BodyCall& call) {
  encode_all(call, code_of(call), call.work.sizes.at(0), [&](std::int64_t first, std::int64_t count, float* numbers) {
    for (std::int64_t i = 0; i < count; ++i) numbers[i] = gradient_at(call, first + i);
  });
  return 0;
}

std::int64_t send_momentum(BodyCall& call) {
  const auto beta1 = static_cast<float>(call.scenario.optimizer.beta1);
  const auto rest = static_cast<float>(1 - call.scenario.optimizer.beta1);
  const auto* m = reinterpret_cast<const float*>(call.reads[1]);
  encode_all(call, code_of(call), call.work.sizes.at(0), [&](std::int64_t first, std::int64_t count, float* numbers) {
    for (std::int64_t i = 0; i < count; ++i)
      numbers[i] = momentum_to_send(beta1, m[first + i], rest, gradient_at(call, first + i), /*gradient_scale=*/1);
  });
  return 0;
}

std::int64_t mean(BodyCall& call) {
  const SentCode code = code_of(call);
  const std::int64_t part_bytes = written_bytes(call, 0);
  encode_all(call, code, call.work.sizes.at(0), [&](std::int64_t first, std::int64_t count, float* numbers) {
    mean_of_codes(code, call.reads[0] + code.bytes(first), call.work.sizes.at(1), part_bytes, count, numbers);
  });
  return 0;
}

std::int64_t decode_mean(BodyCall& call) {
  const SentCode code = code_of(call);
  const auto& tensor = call.graph.tensor_of(call.op.writes[0].value);
  share_tiles(code, call.work.sizes.at(0), [&](std::int64_t first, std::int64_t count) {
    const std::byte* const sent = call.reads[0] + code.bytes(first);
    if (tensor.type == DType::F32) return decode(code, sent, count, reinterpret_cast<float*>(call.writes[0]) + first);
    std::vector<float> numbers(static_cast<std::size_t>(count));
    decode(code, sent, count, numbers.data());
    auto* const narrow = reinterpret_cast<BFloat16*>(call.writes[0]) + first;
    for (std::int64_t i = 0; i < count; ++i) narrow[i] = to_bfloat16(numbers[static_cast<std::size_t>(i)]);
  });
  Operands operands(call);
  if (tensor.layout != nullptr) operands.write_bucket().zero_padding();  // of which a sign cannot say so
  return 0;
}

constexpr BodyEntry kBodies[] = {
    {"compressed.load", load}, {"compressed.gradient", send_gradient}, {"compressed.momentum", send_momentum},
    {"compressed.mean", mean}, {"compressed.decode", decode_mean},
};

}  // namespace

std::span<const BodyEntry> compressed_bodies() { return kBodies; }

}  // namespace tandem
