#include "runtime/bodies/common/decode_on_device.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/step/inputs.hpp"
#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/bodies/common/operands.hpp"

namespace tandem {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t pixel_bytes(const PictureSize& size) { return 3 * std::int64_t{size.height} * size.width; }

class Decoding {
 public:
  Decoding(BodyCall& call, const MediaShape& shape, const std::vector<SlotHeader>& slots, std::int64_t slot_bytes)
      : call_(call), shape_(shape), slots_(slots), slot_bytes_(slot_bytes) {}

  // Those that need no decoder, and the rest in groups whose pixels the workspace holds.
  void run() {
    std::vector<std::int64_t> group;
    std::int64_t bytes = 0;
    const std::int64_t room = call_.op.workspace_bytes - kPictureWorkspace / 2;
    for (std::int64_t item = 0; item < shape_.items; ++item) {
      const SlotHeader& slot = slots_[place(item)];
      if (slot.kind != SlotKind::Jpeg) {
        place_item(item, slot.kind == SlotKind::Pixels);
        continue;
      }
      if (bytes + pixel_bytes(slot.size) > room) decode(group), group.clear(), bytes = 0;
      group.push_back(item);
      bytes += pixel_bytes(slot.size);
    }
    decode(group);
  }

 private:
  std::byte* file_of(std::int64_t item) const { return call_.reads.front() + item * slot_bytes_ + kSlotHeaderBytes; }
  std::byte* out_of(std::int64_t item) const { return call_.writes.front() + item * shape_.item_bytes; }

  void place_item(std::int64_t item, bool has_pixels) const {
    if (has_pixels)
      copy_bytes(call_, file_of(item), out_of(item), shape_.item_bytes);
    else
      tensor_at(call_.processor, out_of(item), {shape_.item_bytes}, at::kByte).zero_();
  }

  at::Tensor bytes(std::int64_t count) const {
    return at::empty({count}, at::TensorOptions(at::kByte).device(at::kCUDA));
  }

  void decode(const std::vector<std::int64_t>& group) const {
    if (group.empty()) return;
    std::int64_t all = 0, rows = 0;
    for (const std::int64_t item : group) {
      all += pixel_bytes(slots_[place(item)].size);
      rows = std::max<std::int64_t>(rows, slots_[place(item)].size.height);
    }
    const auto side = static_cast<std::int32_t>(shape_.dims.back());
    const at::Tensor pixels = bytes(all), between = bytes(3 * rows * side);
    std::vector<DeviceJpeg> pictures;
    auto* to = static_cast<std::byte*>(pixels.data_ptr());
    for (const std::int64_t item : group) {
      const SlotHeader& slot = slots_[place(item)];
      pictures.push_back({file_of(item), slot.bytes, slot.size, to});
      to += pixel_bytes(slot.size);
    }
    device_kernels().decode_jpegs(pictures);
    for (std::size_t i = 0; i < group.size(); ++i)
      device_kernels().resize({pictures[i].pixels, pictures[i].size, slots_[place(group[i])].box,
                               slots_[place(group[i])].mirrored, side, static_cast<std::byte*>(between.data_ptr()),
                               out_of(group[i])});
  }

  BodyCall& call_;
  const MediaShape& shape_;
  const std::vector<SlotHeader>& slots_;
  std::int64_t slot_bytes_;
};

}  // namespace

void decode_on_device(BodyCall& call, const MediaShape& shape, const std::vector<SlotHeader>& slots,
                      std::int64_t slot_bytes) {
  const c10::InferenceMode no_graph;
  Decoding(call, shape, slots, slot_bytes).run();
}

}  // namespace tandem
