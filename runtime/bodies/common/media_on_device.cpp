#include "runtime/bodies/common/media_on_device.hpp"

#include <ATen/ATen.h>

#include <vector>

#include "runtime/bodies/common/operands.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

using at::Tensor;

Tensor column(const std::array<float, 3>& values, const Tensor& like) {
  return at::tensor(at::ArrayRef<float>(values.data(), values.size())).view({1, 3, 1, 1}).to(like.device());
}

void normalise_pictures(BodyCall& call, const MediaShape& shape, const Normal& normal) {
  const std::int64_t rows = shape.dims[0], side = shape.dims.back();
  const Tensor pixels = tensor_at(call.processor, call.reads.front(), {rows, side, side, 3}, at::kByte);
  Tensor out = tensor_at(call.processor, call.writes.front(), shape.dims, torch_type(call.work.type));
  const Tensor numbers = pixels.permute({0, 3, 1, 2}).to(at::kFloat).div_(255.0F);
  out.copy_(numbers.sub(column(normal.mean, out)).div_(column(normal.deviation, out)));
}

void log_mel(BodyCall& call, const MediaShape& shape) {
  const std::int64_t items = shape.dims[0], mels = shape.dims[1], frames = shape.dims[2];
  constexpr std::int64_t kWindow = 400, kHop = 160;
  const Tensor samples = tensor_at(call.processor, call.reads.front(),
                                   {items, shape.item_bytes / static_cast<std::int64_t>(sizeof(float))}, at::kFloat);
  Tensor out = tensor_at(call.processor, call.writes.front(), shape.dims, torch_type(call.work.type));
  const Tensor window = at::hann_window(kWindow, samples.options());
  const Tensor spectrum = at::stft(samples, kWindow, kHop, kWindow, window, /*center=*/true, "reflect",
                                   /*normalized=*/false, /*onesided=*/true, /*return_complex=*/true);
  const Tensor powers = spectrum.narrow(2, 0, frames).abs().square_();
  const std::vector<float> bands = mel_filters({.mels = static_cast<std::int32_t>(mels)});
  const Tensor filters = at::tensor(at::ArrayRef<float>(bands)).view({mels, kWindow / 2 + 1}).to(samples.device());
  Tensor levels = at::matmul(filters, powers).clamp_min_(1e-10).log10_();
  const Tensor least = levels.amax({1, 2}, /*keepdim=*/true).sub_(8.0F);
  out.copy_(at::maximum(levels, least).add_(4.0F).div_(4.0F));
}

}  // namespace

std::int64_t transform_on_device(BodyCall& call, const MediaShape& shape, const MediaOptions& options) {
  const c10::InferenceMode no_graph;
  if (shape.modality == Modality::Audio)
    log_mel(call, shape);
  else
    normalise_pictures(call, shape, options.picture.normal);
  return 0;
}

}  // namespace tandem
