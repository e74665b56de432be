#include "runtime/made_up_data.hpp"

#include <ATen/Parallel.h>

#include <cmath>

#include "core/base/check.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/initial_values.hpp"

namespace tandem {
namespace {

// Calls fill(first element, elements, key) for each sample, on this worker's threads. Items that are not as many a
// sample are the micro-batch's: it is one sample, then.
template <typename Fill>
void for_each_sample(const MadeUpTensor& t, const Fill& fill) {
  CHECK(t.samples > 0, t.samples);
  const std::int64_t samples = t.elements % t.samples == 0 ? t.samples : 1, of_sample = t.elements / samples;
  ThreadTeam::mine(at::get_num_threads()).share(static_cast<int>(samples), [&](int sample) {
    fill(sample * of_sample, of_sample, row_key(t.order, t.key, samples, sample).draw(t.tensor));
  });
}

// Near enough to normal, and fast: batches of images are millions of numbers a step. Four bytes of a hash, whose sum
// has the mean 510 and the variance 4 (256^2 - 1) / 12.
void fill_like_normal(float* out, std::int64_t count, std::uint64_t key) {
  const float scale = 1 / std::sqrt(4 * (256.0F * 256 - 1) / 12);
  const auto number = [&](std::uint64_t bits) {
    const std::uint64_t pairs = (bits & 0x00FF00FFU) + (bits >> 8U & 0x00FF00FFU);
    return (static_cast<float>((pairs & 0xFFFFU) + (pairs >> 16U)) - 510) * scale;
  };
  for (std::int64_t i = 0; i < count; i += 2) {
    const std::uint64_t hash = mix(key ^ mix(static_cast<std::uint64_t>(i)));
    out[i] = number(hash & 0xFFFFFFFFU);
    if (i + 1 < count) out[i + 1] = number(hash >> 32U);
  }
}

}  // namespace

void make_up(const MadeUpTensor& tensor, float* out) {
  for_each_sample(tensor, [&](std::int64_t first, std::int64_t count, std::uint64_t key) {
    fill_like_normal(out + first, count, key);
  });
}

void make_up(const MadeUpTensor& tensor, std::int64_t below, std::int64_t* out) {
  CHECK(below > 0, below);
  for_each_sample(tensor, [&](std::int64_t first, std::int64_t count, std::uint64_t key) {
    for (std::int64_t i = 0; i < count; ++i)
      out[first + i] =
          static_cast<std::int64_t>(mix(key ^ mix(static_cast<std::uint64_t>(i))) % static_cast<std::uint64_t>(below));
  });
}

MadeUpData::MadeUpData(const Scenario& scenario)
    : family_(scenario.workload.family),
      order_{scenario.seed, scenario.workload.devices},
      classes_(scenario.workload.keys.integer_or("classes", 1)) {}

void MadeUpData::image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                             std::int64_t* labels) const {
  make_up({order_, key, batch, 0, batch * inputs}, images);
  make_up({order_, key, batch, 1, batch}, classes_, labels);
}

void MadeUpData::next_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t*, std::int64_t*) const {
  CHECK(false, "text asked of made-up data for", family_);
}

void MadeUpData::masked_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t, std::int64_t*,
                                    std::int64_t*) const {
  CHECK(false, "text asked of made-up data for", family_);
}

std::string MadeUpData::remark() const {
  return "data: " + family_ +
         " is trained on made-up numbers, from which nothing can be learnt; times and memory are "
         "those of real data";
}

}  // namespace tandem
