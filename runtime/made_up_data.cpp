#include "runtime/made_up_data.hpp"

#include <cmath>
#include <numbers>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Calls write(i, key of the sample, place in the tensor's stream of numbers) for each element.
template <typename Write>
void for_each_element(const MadeUpTensor& t, const Write& write) {
  CHECK(t.samples > 0 && t.elements % t.samples == 0, t.elements, t.samples);
  constexpr std::int64_t kStream = std::int64_t{1} << 40;  // numbers of a tensor's sample
  const std::int64_t of_sample = t.elements / t.samples;
  for (std::int64_t sample = 0; sample < t.samples; ++sample) {
    const RowKey row = row_key(t.order, t.key, t.samples, sample);
    for (std::int64_t i = 0; i < of_sample; ++i) write(sample * of_sample + i, row, t.tensor * kStream + i);
  }
}

// Of (0, 1].
double uniform(std::uint64_t bits) { return static_cast<double>((bits >> 11) + 1) * 0x1p-53; }

}  // namespace

void make_up(const MadeUpTensor& tensor, float* out) {
  for_each_element(tensor, [&](std::int64_t i, const RowKey& row, std::int64_t draw) {
    // Box and Muller 1958.
    const double radius = std::sqrt(-2 * std::log(uniform(row.draw(2 * draw))));
    out[i] = static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform(row.draw(2 * draw + 1))));
  });
}

void make_up(const MadeUpTensor& tensor, std::int64_t below, std::int64_t* out) {
  CHECK(below > 0, below);
  for_each_element(tensor, [&](std::int64_t i, const RowKey& row, std::int64_t draw) {
    out[i] = static_cast<std::int64_t>(row.draw(2 * draw) % static_cast<std::uint64_t>(below));
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
