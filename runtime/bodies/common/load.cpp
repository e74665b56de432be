#include "runtime/bodies/common/load.hpp"

#include <ATen/Parallel.h>

#include <cstring>
#include <string>

#include "core/scenario/errors.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/data.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/initial_values.hpp"

namespace tandem {
namespace {

// The last size of a batch's load says whether it is of held-out data.
BatchKey key_of(const BodyCall& call) {
  return {call.step(), call.op.micro_batch, call.rank, call.work.sizes.back() != 0};
}

std::int64_t* tokens(std::byte* bytes) { return reinterpret_cast<std::int64_t*>(bytes); }

}  // namespace

std::int64_t load_parameters(BodyCall& call) {
  Operands operands(call);
  const auto& tensor = call.graph.tensor_of(call.op.writes[0].value);
  const Bucket bucket = operands.write_bucket();
  bucket.zero_padding();
  for (std::size_t i = 1; i < call.writes.size(); ++i)
    std::memset(call.writes[i], 0, static_cast<std::size_t>(call.graph.value(call.op.writes[i].value).bytes));
  const bool master_leads = tensor.type != DType::F32;
  std::byte* leader = call.writes[master_leads ? 1 : 0];
  const std::string stage = tensor.name.substr(0, tensor.name.find('.') + 1);
  for (const Field& field : bucket.layout().fields) {
    ThreadTeam& team = ThreadTeam::mine(at::get_num_threads());
    team.run([&](int thread) {
      const std::int64_t first = field.elements() * thread / team.size();
      const std::int64_t end = field.elements() * (thread + 1) / team.size();
      fill_initial(reinterpret_cast<float*>(leader + field.offset), first, end - first,
                   {field.shape.data(), field.shape.size()}, stage + field.name, call.scenario.seed);
    });
    if (master_leads)
      bucket[field.name].view(-1).copy_(
          tensor_at(Processor::Host, leader + field.offset, {field.elements()}, at::kFloat));
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
