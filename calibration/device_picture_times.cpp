#include "calibration/device_picture_times.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <vector>

#include "calibration/kernel_clock.hpp"
#include "calibration/media_times.hpp"
#include "calibration/text.hpp"
#include "core/base/errors.hpp"
#include "runtime/bodies/common/device_kernels.hpp"
#include "runtime/media/made_up.hpp"

namespace tandem {
namespace {

constexpr int kBatch = 32, kRepeats = 15, kQuickRepeats = 5, kQuality = 90;
constexpr std::int32_t kWidths[] = {128, 320, 800};  // of pictures of 4:3

// A batch on the device. Tensors hold its bytes.
struct Batch {
  std::vector<at::Tensor> bytes;
  std::vector<DeviceJpeg> pictures;
};

at::Tensor device_bytes(std::int64_t count) {
  return at::empty({count}, at::TensorOptions(at::kByte).device(at::kCUDA));
}

Batch batch_of(std::int32_t width) {
  Batch batch;
  for (int i = 0; i < kBatch; ++i) {
    std::string file =
        as_jpeg(made_up_image(width, 3 * width / 4, static_cast<std::uint64_t>(i)), kQuality, Chroma::Halved);
    const auto count = static_cast<std::int64_t>(file.size());
    const PictureSize size = plain_jpeg(file).value();
    const at::Tensor there = device_bytes(count), pixels = device_bytes(3 * std::int64_t{size.height} * size.width);
    there.copy_(at::from_blob(file.data(), {count}, at::kByte));
    batch.pictures.push_back(
        {static_cast<const std::byte*>(there.data_ptr()), count, size, static_cast<std::byte*>(pixels.data_ptr())});
    batch.bytes.insert(batch.bytes.end(), {there, pixels});
  }
  return batch;
}

}  // namespace

void measure_device_pictures(const std::shared_ptr<Device>& device, bool quick, HardwareProfile& profile,
                             Notes& notes) {
  notes.say("pictures on the device");
  const std::unique_ptr<KernelClock> clock = open_clock({device, /*cuda=*/true});
  std::vector<StageTime> times;
  try {
    for (const std::int32_t width : kWidths) {
      Batch batch;
      clock->prepare([&] { batch = batch_of(width); });
      const auto decode = [&] { device_kernels().decode_jpegs(batch.pictures); };
      clock->time_ns(decode, 1, [] {});
      std::vector<double> ns;
      for (int i = 0; i < (quick ? kQuickRepeats : kRepeats); ++i)
        ns.push_back(clock->time_ns(decode, 1, [] {}) / kBatch);
      const double pixels = static_cast<double>(width) * (3 * width / 4);
      times.push_back({"device_jpeg_decode", pixels, summarize(ns)});
      notes.figure(printed("a JPEG of %.0f pixels", pixels), times.back().ns, 1e3, "us");
    }
  } catch (const DeviceError& error) {
    notes.remark("not measured: device_jpeg_decode: " + std::string(error.what()));
    return;
  }
  for (const auto& [stage, rate] : fit_stages(times)) profile.input_stages[stage] = rate;
}

}  // namespace tandem
