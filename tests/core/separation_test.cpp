// CoTrain's separation distance: bisection against brute force over every k, and paths checked by hand.
#include "core/policies/cotrain/separation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tandem {
namespace {

TEST(Separation, PathsOfThreeLayersByHand) {
  const std::vector<LayerTimes> layers(
      3,
      {.backward_ns = 10, .gradient_copy_ns = 2, .cpu_update_ns = 20, .device_update_ns = 1, .parameter_copy_ns = 3});
  EXPECT_EQ(device_path_ns(layers, 0), 30);
  EXPECT_EQ(device_path_ns(layers, 2), 32);
  // Gradients arrive at 12, 22, 32; updates end at 32, 52, 72; the last parameters are back at 75.
  EXPECT_EQ(cpu_path_ns(layers, 0), 75);
  EXPECT_EQ(cpu_path_ns(layers, 2), 35);  // 10 + 2 + 20 + 3
  EXPECT_EQ(cpu_path_ns(layers, 3), 0);
  EXPECT_EQ(choose_separation(layers, 3), 3u);  // 33 against 35 at k = 2
}

// A gradient that takes longer to leave than the next one to be made keeps that waiting.
TEST(Separation, GradientsLeaveOneAfterTheOther) {
  const std::vector<LayerTimes> layers(
      3,
      {.backward_ns = 10, .gradient_copy_ns = 15, .cpu_update_ns = 1, .device_update_ns = 1, .parameter_copy_ns = 3});
  // Gradients arrive at 25, 40, 55; the last update ends at 56, and its parameters are back at 59.
  EXPECT_EQ(cpu_path_ns(layers, 0), 59);
}

TEST(Separation, EqualsBruteForce) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 2000; ++turn) {
    std::vector<LayerTimes> layers(1 + random() % 40);
    const LayerTimes common{.backward_ns = static_cast<std::int64_t>(1 + random() % 100),
                            .gradient_copy_ns = static_cast<std::int64_t>(random() % 50),
                            .cpu_update_ns = static_cast<std::int64_t>(1 + random() % 400),
                            .device_update_ns = static_cast<std::int64_t>(1 + random() % 50),
                            .parameter_copy_ns = static_cast<std::int64_t>(random() % 50)};
    std::fill(layers.begin(), layers.end(), common);
    const std::size_t most = random() % (layers.size() + 1);
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (std::size_t k = 0; k <= most; ++k)
      best = std::min(best, std::max(device_path_ns(layers, k), cpu_path_ns(layers, k)));
    const std::size_t chosen = choose_separation(layers, most);
    EXPECT_LE(chosen, most);
    EXPECT_EQ(std::max(device_path_ns(layers, chosen), cpu_path_ns(layers, chosen)), best);
  }
}

}  // namespace
}  // namespace tandem
