#include "runtime/batches.hpp"

#include <ATen/ops/from_blob.h>

#include <cstring>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/transforms/sequence/token_parts.hpp"
#include "runtime/made_up_data.hpp"
#include "runtime/stored_values.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

std::int64_t* integers(const BatchPlace& place) { return static_cast<std::int64_t*>(place.bytes); }

// Numbers are made in fp32, and then have the tensor's type.
template <typename Fill>
void fill_numbers(const BatchPlace& place, const Fill& fill) {
  if (place.type == DType::F32) return fill(static_cast<float*>(place.bytes));
  std::vector<float> numbers(static_cast<std::size_t>(place.elements));
  fill(numbers.data());
  at::from_blob(place.bytes, {place.elements}, torch_type(place.type))
      .copy_(at::from_blob(numbers.data(), {place.elements}, at::kFloat));
}

void make_up_batch(const Work& load, const Scenario& scenario, BatchKey key, std::span<const BatchPlace> places) {
  const SampleOrder order{scenario.seed, scenario.workload.devices};
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (load.sizes.at(i) < 0) {
      StoredValues::of(scenario)->read_constant(i, places[i].bytes);
      continue;
    }
    const MadeUpTensor tensor{order, key, scenario.workload.batch, static_cast<std::int64_t>(i), places[i].elements};
    if (const std::int64_t below = load.sizes.at(i); below > 0)
      make_up(tensor, below, integers(places[i]));
    else
      fill_numbers(places[i], [&](float* numbers) { make_up(tensor, numbers); });
  }
}

bool is_constant(const Work& load, std::size_t index) {
  return load.body == "imported.load" && load.sizes.at(index) < 0;
}

void copy_batch(const Work& load, const Scenario& scenario, const TensorBatches& given, BatchKey key,
                std::span<const BatchPlace> places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (is_constant(load, i))
      StoredValues::of(scenario)->read_constant(i, places[i].bytes);
    else
      given.read(key, i, places[i]);
  }
}

}  // namespace

void check_tokens(const std::int64_t* tokens, std::int64_t count, std::int64_t vocabulary) {
  for (std::int64_t i = 0; i < count; ++i)
    if (tokens[i] < 0 || tokens[i] >= vocabulary)
      throw DeviceError("token " + std::to_string(tokens[i]) + " of the data is outside workload.vocabulary (" +
                        std::to_string(vocabulary) + ")");
}

void TensorSource::next_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t*, std::int64_t*) const {
  CHECK(false, "text asked of batches that are tensors");
}

void TensorSource::masked_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t, std::int64_t*,
                                      std::int64_t*) const {
  CHECK(false, "text asked of batches that are tensors");
}

void TensorSource::image_batch(BatchKey, std::int64_t, std::int64_t, float*, std::int64_t*) const {
  CHECK(false, "images asked of batches that are tensors");
}

namespace {

void fill_whole(const Work& load, const Scenario& scenario, const DataSource& data, BatchKey key,
                std::span<const BatchPlace> places) {
  if (const auto* given = dynamic_cast<const TensorBatches*>(&data))
    return copy_batch(load, scenario, *given, key, places);
  const auto size = [&](std::size_t i) { return load.sizes.at(i); };
  if (load.body == "next_tokens.load" || load.body == "padded_tokens.load") {
    const bool padded = load.body == "padded_tokens.load";
    std::vector<std::int64_t> unread;  // targets, where a network has none
    if (padded || places.size() == 1) unread.resize(static_cast<std::size_t>(places[0].elements));
    data.next_token_batch(key, size(0), size(1), integers(places[0]),
                          unread.empty() ? integers(places[1]) : unread.data());
    for (const BatchPlace& place : places.first(padded ? 1 : places.size()))
      check_tokens(integers(place), place.elements, size(2));
    for (std::int64_t i = 0; padded && i < size(0); ++i)
      integers(places[1])[i] = size(static_cast<std::size_t>(3 + key.micro_batch * size(0) + i));
  } else if (load.body == "imported_text.load") {
    std::vector<std::int64_t> unread(static_cast<std::size_t>(places[0].elements));
    data.next_token_batch(key, size(0), size(1), integers(places[0]), unread.data());
    check_tokens(integers(places[0]), places[0].elements, size(2));
    for (std::size_t i = 1; i < places.size(); ++i)
      StoredValues::of(scenario)->read_constant(static_cast<std::size_t>(size(2 + i)), places[i].bytes);
  } else if (load.body == "masked_tokens.load") {
    data.masked_token_batch(key, size(0), size(1), size(2), integers(places[0]), integers(places[1]));
    check_tokens(integers(places[0]), places[0].elements, size(2));
  } else if (load.body == "images.load") {
    fill_numbers(places[0],
                 [&](float* images) { data.image_batch(key, size(0), size(1), images, integers(places[1])); });
  } else {
    CHECK(load.body == "synthetic.load" || load.body == "imported.load", load.body, "fills no batch");
    make_up_batch(load, scenario, key, places);
  }
}

// Of one sample: those of `part`, which are in a row, or every Nth.
void copy_part(std::byte* to, const std::byte* sample, std::int64_t tokens, std::int64_t token_bytes, std::int64_t part,
               std::int64_t every_nth) {
  if (every_nth == 1) {
    std::memcpy(to, sample + part * tokens * token_bytes, static_cast<std::size_t>(tokens * token_bytes));
    return;
  }
  for (std::int64_t i = 0; i < tokens; ++i)
    std::memcpy(to + i * token_bytes, sample + (i * every_nth + part) * token_bytes,
                static_cast<std::size_t>(token_bytes));
}

// All tokens of each sample are read, and those of the rank's part kept.
void fill_part(Work load, const Scenario& scenario, const DataSource& data, BatchKey key,
               std::span<const BatchPlace> places, std::int64_t parts) {
  CHECK(load.body == "next_tokens.load", load.body, "fills no part of samples");
  load.sizes.at(1) *= parts;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<BatchPlace> whole;
  for (const BatchPlace& place : places) {
    bytes.emplace_back(static_cast<std::size_t>(parts * place.elements * size_of(place.type)));
    whole.push_back({bytes.back().data(), place.type, parts * place.elements});
  }
  fill_whole(load, scenario, data, key, whole);
  const std::int64_t every_nth = has_every_nth_token(scenario.workload) ? parts : 1;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::int64_t tokens = places[i].elements / load.sizes.at(0), token_bytes = size_of(places[i].type);
    for (std::int64_t sample = 0; sample < load.sizes.at(0); ++sample)
      copy_part(static_cast<std::byte*>(places[i].bytes) + sample * tokens * token_bytes,
                bytes[i].data() + sample * parts * tokens * token_bytes, tokens, token_bytes, key.part, every_nth);
  }
}

}  // namespace

void fill_batch(const Work& load, const Scenario& scenario, const DataSource& data, BatchKey key,
                std::span<const BatchPlace> places) {
  const std::int64_t parts = sequence_ranks(scenario);
  parts > 1 ? fill_part(load, scenario, data, key, places, parts) : fill_whole(load, scenario, data, key, places);
}

}  // namespace tandem
