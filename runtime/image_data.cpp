#include "runtime/image_data.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "runtime/batch_hash.hpp"
#include "runtime/checkpoint/checksum.hpp"
#include "runtime/data_files.hpp"
#include "runtime/data_kind.hpp"

namespace tandem {
namespace {

std::string checksum_of(const Images& images) {
  Hasher hasher;
  hasher.update(images.bytes.data(), images.bytes.size());
  hasher.update(images.labels.data(), images.labels.size());
  return hasher.checksum().text();
}

}  // namespace

ImageData::ImageData(Images images, const Scenario& scenario, const SavedData& saved)
    : images_(std::move(images)),
      order_{scenario.seed, scenario.workload.devices, saved.by_micro_batch},
      training_(images_.labels.size()) {
  const std::int64_t pixels = pixels_of(scenario);
  if (pixels != images_.pixels)
    data_error(scenario, scenario.workload.keys.has("inputs") ? "workload.inputs" : "workload.image",
               (scenario.workload.keys.has("inputs") ? "is " : "makes ") + std::to_string(pixels),
               std::to_string(images_.pixels) + ", the pixels of an image of " + images_.name);
  if (scenario.workload.keys.integer("classes") < images_.classes)
    data_error(scenario, "workload.classes", "is " + std::to_string(scenario.workload.keys.integer("classes")),
               std::to_string(images_.classes) + " or more for " + images_.name);
  if (keeps_checksum(scenario)) checksum_ = checksum_of(images_);
  require_same_data(scenario.resume_folder, "data.images", saved.checksum, checksum_);
  if (scenario.validation.every == 0) return;
  const auto all = static_cast<std::int64_t>(images_.labels.size());
  const std::int64_t held_out = held_out_items(scenario.validation, all);
  if (held_out < 1 || held_out >= all)
    data_error(
        scenario, "validation.fraction",
        "holds out " + std::to_string(held_out) + " of the " + std::to_string(all) + " images of " + images_.name,
        "at least one, and one left for training");
  training_ -= static_cast<std::size_t>(held_out);
}

void ImageData::image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                            std::int64_t* labels) const {
  CHECK(inputs == images_.pixels, inputs, images_.pixels);
  const std::size_t first = key.held_out ? training_ : 0;
  const std::size_t count = key.held_out ? images_.labels.size() - training_ : training_;
  CHECK(count > 0, "no images are held out");
  for (std::int64_t row = 0; row < batch; ++row) {
    const std::size_t image = first + row_key(order_, key, batch, row).draw(0) % count;
    const unsigned char* pixels = images_.bytes.data() + image * static_cast<std::size_t>(inputs);
    for (std::int64_t i = 0; i < inputs; ++i) *images++ = static_cast<float>(pixels[i]) / images_.brightest;
    *labels++ = images_.labels[image];
  }
}

void ImageData::next_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t*, std::int64_t*) const {
  CHECK(false, "tokens asked of the images of", images_.name);
}

void ImageData::masked_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t, std::int64_t*,
                                   std::int64_t*) const {
  CHECK(false, "tokens asked of the images of", images_.name);
}

}  // namespace tandem
