// SampleData's part where the device decodes pictures: workers put files into slots, which the compute lane decodes.
// What the device does not take, workers decode.
#include <cstring>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/media/decode.hpp"
#include "runtime/sample_data.hpp"

namespace tandem {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

void SampleData::read_files(BatchKey key, const MediaShape& shape, std::int64_t slot_bytes, std::byte* out) const {
  CHECK(slot_bytes >= kSlotHeaderBytes + shape.item_bytes, slot_bytes, shape.item_bytes);
  const std::shared_ptr<const SampleLayout> layout = layouts_.of(key);
  const std::vector<SampleItem>& items = layout->of(shape.modality).items;
  CHECK(shape.items <= std::ssize(items), shape.items, items.size());
  std::vector<SlotHeader> slots(place(shape.items));
  ThreadTeam::mine(workers_).share(static_cast<int>(shape.items), [&](int i) {
    std::byte* const slot = out + i * slot_bytes;
    const SampleItem& item = items[place(i)];
    SlotHeader& header = slots[place(i)];
    if (item.sample != kNone) header = read_item(item, key, shape, slot_bytes, slot);
    std::memset(slot, 0, place(kSlotHeaderBytes));
    std::memcpy(slot, &header, sizeof header);
    const std::int64_t used = kSlotHeaderBytes + header.bytes;
    std::memset(slot + used, 0, place(slot_bytes - used));
  });
  const std::lock_guard lock(mutex_);
  slots_[{key.held_out, key.step, key.micro_batch, key.rank}] = std::move(slots);
}

SlotHeader SampleData::read_item(const SampleItem& item, BatchKey key, const MediaShape& shape, std::int64_t slot_bytes,
                                 std::byte* slot) const {
  std::byte* const to = slot + kSlotHeaderBytes;
  const std::int64_t sample = actual(item.sample);
  try {
    const MediaFile file = read_media(manifest_rows()[place(sample)].file(shape.modality), options_.limits);
    const auto bytes = static_cast<std::int64_t>(file.bytes.size());
    const std::optional<PictureSize> size = plain_jpeg(file.bytes);
    if (size && fits_device(*size, static_cast<std::int32_t>(shape.dims.back())) &&
        bytes <= slot_bytes - kSlotHeaderBytes) {
      std::memcpy(to, file.bytes.data(), file.bytes.size());
      ++decoded_;
      const auto [cropping, seed] = cut_of(sample, item.use, shape.modality);
      return {bytes, SlotKind::Jpeg, *size, draws_flip(cropping.flip, seed),
              chosen_box({size->height, size->width, {}}, cropping, seed)};
    }
  } catch (const MediaError&) {  // decode_item() sees the same, and knows what to do
  }
  decode_item(item, key.step, shape, to);
  return {shape.item_bytes, SlotKind::Pixels, {}, false, {}};
}

std::vector<SlotHeader> SampleData::take_slots(BatchKey key) const {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find({key.held_out, key.step, key.micro_batch, key.rank});
  CHECK(found != slots_.end(), "pictures are decoded that were not read", key.step, key.micro_batch);
  std::vector<SlotHeader> slots = std::move(found->second);
  slots_.erase(found);
  return slots;
}

void SampleData::decode_files(BatchKey key, const MediaShape& shape, std::int64_t slot_bytes, const std::byte* files,
                              std::byte* out) const {
  const std::vector<SlotHeader> slots = take_slots(key);
  const std::shared_ptr<const SampleLayout> layout = layouts_.of(key);
  ThreadTeam::mine(workers_).share(static_cast<int>(shape.items), [&](int i) {
    const SlotHeader& header = slots[place(i)];
    const std::byte* const from = files + i * slot_bytes + kSlotHeaderBytes;
    std::byte* const to = out + i * shape.item_bytes;
    if (header.kind == SlotKind::Blank) {
      std::memset(to, 0, place(shape.item_bytes));
    } else if (header.kind == SlotKind::Pixels) {
      std::memcpy(to, from, place(shape.item_bytes));
    } else {
      const std::int64_t sample = actual(layout->of(shape.modality).items[place(i)].sample);
      const ManifestRow& row = manifest_rows()[place(sample)];
      try {
        const MediaFile file{row.file(shape.modality), {reinterpret_cast<const char*>(from), place(header.bytes)}};
        Image square =
            resize(decode_jpeg(file, options_.limits), header.box, static_cast<std::int32_t>(shape.dims.back()));
        if (header.mirrored) mirror(square);
        std::memcpy(to, square.pixels.data(), square.pixels.size());
      } catch (const MediaError& error) {
        damaged_on_device(row.sample, error.what());
      }
    }
  });
}

// By then ops have begun that go by which samples have a picture.
void SampleData::damaged_on_device(const std::string& sample, const std::string& what) const {
  throw DeviceError("data.manifest: sample \"" + sample + "\": " + what + " (data.pipeline.decode: cpu " +
                    (scenario_.pipeline.skips_bad_samples ? "skips it)" : "finds it before the step)"));
}

}  // namespace tandem
