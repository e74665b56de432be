// The GPU decodes JPEGs nearly as libjpeg does, and scales pictures as the CPU does, to the bit. Without a GPU there is
// nothing to run.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/cuda/cuda_check.hpp"
#include "runtime/cuda/jpeg_decoder.hpp"
#include "runtime/cuda/kernels.hpp"
#include "runtime/media/decode.hpp"
#include "runtime/media/made_up.hpp"
#include "tests/cuda/shared_bytes.hpp"

namespace tandem {
namespace {

bool has_gpu() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

std::byte* on_device(const void* bytes, std::size_t count) {
  void* made = nullptr;
  cuda_check(cudaMalloc(&made, count), "test memory");
  if (bytes != nullptr) cuda_check(cudaMemcpy(made, bytes, count, cudaMemcpyHostToDevice), "test bytes");
  return static_cast<std::byte*>(made);
}

TEST(PicturesOnTheDevice, AreScaledAsOnTheCpu) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  for (const auto& [width, height, side] :
       {std::array{500, 375, 224}, std::array{61, 640, 32}, std::array{30, 20, 64}, std::array{3000, 2000, 224}}) {
    const Image image = made_up_image(width, height, 7);
    for (const Box& box : {centre_square(image), Box{1.25, 2.5, width / 3.0, height / 2.0}}) {
      Image expected = resize(image, box, side);
      const bool mirrored = box.left == 1.25;
      if (mirrored) mirror(expected);
      DeviceResize span{on_device(image.pixels.data(), image.pixels.size()), {height, width}, box, mirrored, side};
      span.between = on_device(nullptr, 3 * static_cast<std::size_t>(height) * static_cast<std::size_t>(side));
      span.out = shared_bytes(expected.pixels.size());
      launch_resize(span, nullptr);
      cuda_check(cudaDeviceSynchronize(), "resize");
      EXPECT_EQ(std::memcmp(span.out, expected.pixels.data(), expected.pixels.size()), 0) << width << " x " << height;
    }
  }
}

TEST(PicturesOnTheDevice, AreDecodedNearlyAsOnTheCpu) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  if (const std::string missing = missing_jpeg_decoder(); !missing.empty()) GTEST_SKIP() << missing;
  struct One {
    DeviceJpeg picture;
    Image expected;
  };
  std::vector<One> ones;
  std::vector<DeviceJpeg> pictures;
  for (int i = 0; i < 70; ++i) {
    const Image image = made_up_image(100 + 13 * i, 80 + 7 * i, static_cast<std::uint64_t>(i));
    const std::string bytes = as_jpeg(image, 90, i % 2 == 0 ? Chroma::Halved : Chroma::Full);
    const auto size = plain_jpeg(bytes);
    ASSERT_TRUE(size.has_value());
    Image expected = decode_jpeg({"a.jpg", bytes}, {});
    std::byte* pixels = shared_bytes(expected.pixels.size());
    ones.push_back({{on_device(bytes.data(), bytes.size()), static_cast<std::int64_t>(bytes.size()), *size, pixels},
                    std::move(expected)});
    pictures.push_back(ones.back().picture);
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{5}, pictures.size()}) {
    decode_jpegs(std::span(pictures).first(count), nullptr);
    cuda_check(cudaDeviceSynchronize(), "decoding");
    for (std::size_t i = 0; i < count; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < ones[i].expected.pixels.size(); ++k) {
        sum += std::abs(std::to_integer<int>(pictures[i].pixels[k]) - int{ones[i].expected.pixels[k]});
        pictures[i].pixels[k] = std::byte{0};
      }
      const double mean = sum / static_cast<double>(ones[i].expected.pixels.size());
      EXPECT_LT(mean, 1.5) << i << " of " << count;
      RecordProperty("mean_difference", std::to_string(mean));
    }
  }
}

}  // namespace
}  // namespace tandem
