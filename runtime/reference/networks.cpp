#include "runtime/reference/networks.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "core/base/errors.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/batches.hpp"
#include "runtime/optimizer/weight_codes.hpp"
#include "runtime/reference/walk.hpp"
#include "runtime/stored_values.hpp"
#include "runtime/torch_types.hpp"

#undef CHECK  // LibTorch's logging defines one, too
#include "core/base/check.hpp"

namespace tandem {
namespace {

using at::Tensor;

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

ReferenceBucket bucket_of(const NetworkModule& m) {
  ReferenceBucket bucket;
  for (const NamedShape& weight : m.module->weights) {
    const auto& dims = weight.shape.dims;
    bucket.push_back({m.name + "." + weight.name,
                      {dims.begin(), dims.end()},
                      weight.initial,
                      weight.trained,
                      {},
                      weight.padding_rows,
                      weight.trained ? 0 : m.frozen_bits});
  }
  return bucket;
}

std::vector<Tensor> tensors_of(const ReferenceBucket& bucket) {
  std::vector<Tensor> tensors;
  for (const ReferenceParameter& p : bucket) tensors.push_back(p.tensor);
  return tensors;
}

// As it comes back from its codes.
void compress(ReferenceParameter& p) {
  const StateBlock block = weight_block(p.code_bits);
  const std::int64_t count = p.tensor.numel(), blocks = (count + block.elements - 1) / block.elements;
  Tensor padded = at::zeros({blocks * block.elements}, at::kFloat);
  padded.narrow(0, 0, count).copy_(p.tensor.flatten());
  std::vector<std::byte> codes(static_cast<std::size_t>(blocks * block.bytes));
  encode_weights(padded.const_data_ptr<float>(), p.code_bits, blocks, codes.data());
  decode_weights({codes.data(), padded.mutable_data_ptr(), DType::F32, p.code_bits, blocks});
  p.tensor.copy_(padded.narrow(0, 0, count).view(p.shape));
}

}  // namespace

ReferenceNetwork::ReferenceNetwork(Network network) : network_(std::move(network)) {
  std::size_t buckets = 0;
  for (const NetworkModule& m : network_.modules) {
    bucket_of_.push_back(buckets);
    if (!m.module->weights.empty()) ++buckets;
  }
}

std::vector<ReferenceBucket> ReferenceNetwork::buckets() const {
  std::vector<ReferenceBucket> buckets;
  for (const NetworkModule& m : network_.modules)
    if (!m.module->weights.empty()) buckets.push_back(bucket_of(m));
  return buckets;
}

ReferenceLoss ReferenceNetwork::loss(const std::vector<ReferenceBucket>& parameters,
                                     const std::vector<at::Tensor>& batch, RandomKey random) const {
  CHECK(batch.size() == network_.batch.size(), network_.family, batch.size());
  const at::TensorOptions beside(parameters.front()[0].tensor.device());
  std::vector<std::vector<at::Tensor>> outputs;  // by module
  const auto value_of = [&](const Source& s) -> at::Tensor {
    if (s.from == Source::From::Batch) return batch[place(s.index)].to(beside);
    if (s.from == Source::From::Weight) return parameters[bucket_of_[place(s.index)]][place(s.place)].tensor;
    return outputs[place(s.index)][place(s.place)];
  };
  ReferenceLoss loss;
  for (std::size_t i = 0; i < network_.modules.size(); ++i) {
    const NetworkModule& m = network_.modules[i];
    std::vector<at::Tensor> inputs, weights;
    for (const Source& source : m.inputs) inputs.push_back(value_of(source));
    if (!m.module->weights.empty()) weights = tensors_of(parameters[bucket_of_[i]]);
    random.module = RandomKey::module_of(m.name);
    ReferenceValues values = walk_reference(*m.module, inputs, weights, random);
    loss.own = sum_of_losses(loss.own, values.own_loss);
    loss.auxiliary = sum_of_losses(loss.auxiliary, values.auxiliary_loss);
    if (values.scores.defined()) loss.scores = values.scores;
    outputs.push_back(std::move(values.outputs));
  }
  return loss;
}

void fill_parameters(std::vector<ReferenceBucket>& buckets, const Scenario& scenario) {
  for (ReferenceBucket& bucket : buckets)
    for (ReferenceParameter& p : bucket) {
      p.tensor = at::zeros(p.shape, at::kFloat);
      Field field;
      field.shape.assign(p.shape.begin(), p.shape.end());
      if (p.padding_rows > 0) field.shape.front() -= p.padding_rows;
      field.initial = p.initial;
      fill_first_values(p.tensor.data_ptr<float>(), 0, field.elements(), field, p.name, scenario);
      if (p.code_bits > 0) compress(p);
    }
}

ReferenceNetwork reference_network(const Scenario& scenario) { return ReferenceNetwork(network_of(scenario)); }

std::vector<at::Tensor> reference_batch(const Network& network, const Scenario& scenario, const DataSource& data,
                                        BatchKey key) {
  std::vector<at::Tensor> batch;
  std::vector<BatchPlace> places;
  for (const BatchTensor& tensor : network.batch) {
    batch.push_back(at::empty({tensor.shape.dims.data(), tensor.shape.dims.size()}, torch_type(tensor.shape.type)));
    places.push_back({batch.back().data_ptr(), tensor.shape.type, tensor.shape.elements()});
  }
  fill_batch(network.load, scenario, data, key, places);
  return batch;
}

RandomKey reference_random(const Scenario& scenario, BatchKey key) {
  return {scenario.seed, key.step, /*module=*/0, key.micro_batch, key.rank, !key.held_out};
}

}  // namespace tandem
