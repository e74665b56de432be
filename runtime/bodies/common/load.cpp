#include "runtime/bodies/common/load.hpp"

#include <cstring>
#include <string>

#include "runtime/bodies/common/operands.hpp"
#include "runtime/data.hpp"
#include "runtime/initial_values.hpp"

namespace tandem {
namespace {

BatchKey key_of(const BodyCall& call) { return {call.op.step, call.op.micro_batch, call.rank}; }

std::int64_t* tokens(std::byte* bytes) { return reinterpret_cast<std::int64_t*>(bytes); }

}  // namespace

std::int64_t load_parameters(BodyCall& call) {
  Operands operands(call);
  const Tensor& tensor = call.graph.tensor_of(call.op.writes[0].value);
  const Bucket bucket = operands.write_bucket();
  bucket.zero_padding();
  const std::string stage = tensor.name.substr(0, tensor.name.find('.') + 1);
  for (const Field& field : bucket.layout().fields)
    fill_initial(reinterpret_cast<float*>(call.writes[0] + field.offset), {field.shape.data(), field.shape.size()},
                 stage + field.name, call.scenario.seed);
  for (std::size_t i = 1; i < call.writes.size(); ++i)
    std::memset(call.writes[i], 0, static_cast<std::size_t>(call.graph.value(call.op.writes[i].value).bytes));
  return 0;
}

std::int64_t load_next_token_batch(BodyCall& call) {
  call.data.next_token_batch(key_of(call), call.work.sizes.at(0), call.work.sizes.at(1), tokens(call.writes[0]),
                             tokens(call.writes[1]));
  return 0;
}

std::int64_t load_masked_token_batch(BodyCall& call) {
  call.data.masked_token_batch(key_of(call), call.work.sizes.at(0), call.work.sizes.at(1), call.work.sizes.at(2),
                               tokens(call.writes[0]), tokens(call.writes[1]));
  return 0;
}

std::int64_t load_image_batch(BodyCall& call) {
  call.data.image_batch(key_of(call), call.work.sizes.at(0), call.work.sizes.at(1),
                        reinterpret_cast<float*>(call.writes[0]), tokens(call.writes[1]));
  return 0;
}

}  // namespace tandem
