// Bodies of a mean that ranks take of what they send compressed: core/transforms/common/compressed_mean.hpp has the
// operands.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>

#include "core/formats/layout.hpp"
#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/body_table.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/sent_code.hpp"
#include "runtime/optimizer/update.hpp"

namespace tandem {
namespace {

SentCode code_of(const BodyCall& call) {
  return {static_cast<SentCode::Kind>(call.work.sizes.at(2)), call.work.sizes.at(3)};
}

std::int64_t written_bytes(const BodyCall& call, std::size_t write) {
  return call.graph.value(call.op.writes[write].value).bytes;
}

// Bytes [first, first + bytes) of what it writes become zero.
void clear(const BodyCall& call, std::size_t write, std::int64_t first, std::int64_t bytes) {
  if (bytes > 0) tensor_at(call.processor, call.writes[write] + first, {bytes}, at::kByte).zero_();
}

// Calls work(span) for all of a span, in tiles of whole units, each on one of the threads.
template <class Span>
void share_tiles(const Span& span, void (*work)(const Span&)) {
  const std::int64_t unit = span.code.unit(), tile = std::max<std::int64_t>(1, kTileElements / unit) * unit;
  ThreadTeam::mine(at::get_num_threads()).share(static_cast<int>(rounded_up_quotient(span.elements, tile)), [&](int i) {
    const std::int64_t first = i * tile;
    work(part_of(span, first, std::min(tile, span.elements - first)));
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

// All of a code's write; what is behind its numbers is zero.
std::int64_t encode_all(BodyCall& call, const SentNumbers& numbers) {
  const Operands operands(call);  // no autograd
  const SentCode code = code_of(call);
  const std::int64_t elements = operands.size(0), end = code.bytes(elements / code.unit() * code.unit());
  const EncodeSpan span{code, numbers, kept_of(call), call.writes[0], elements};
  clear(call, 0, end, written_bytes(call, 0) - end);
  if (call.processor == Processor::Device)
    device_kernels().encode_sent(span);
  else
    share_tiles<EncodeSpan>(span, encode);
  return 0;
}

std::int64_t send_gradient(BodyCall& call) {
  return encode_all(call, {.gradient = call.reads[0], .gradient_type = call.work.type});
}

std::int64_t send_momentum(BodyCall& call) {
  const double beta1 = call.scenario.optimizer.beta1;
  return encode_all(call, {.gradient = call.reads[0],
                           .gradient_type = call.work.type,
                           .momentum = reinterpret_cast<const float*>(call.reads[1]),
                           .momentum_weight = static_cast<float>(beta1),
                           .gradient_weight = static_cast<float>(1 - beta1)});
}

std::int64_t mean(BodyCall& call) {
  return encode_all(call, {.codes = call.reads[0], .ranks = call.work.sizes.at(1), .stride = written_bytes(call, 0)});
}

std::int64_t decode_mean(BodyCall& call) {
  Operands operands(call);
  const auto& tensor = call.graph.tensor_of(call.op.writes[0].value);
  const DecodeSpan span{code_of(call), call.reads[0], call.writes[0], tensor.type, operands.size(0)};
  if (call.processor == Processor::Device)
    device_kernels().decode_sent(span);
  else
    share_tiles<DecodeSpan>(span, decode);
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
