// Layers in chunks of one size, and the size that wastes least.
#include "core/policies/patrickstar/equal_chunks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace tandem {
namespace {

TEST(EqualChunks, HoldLayersInOrderUntilTheyAreFull) {
  const EqualChunks chunks = pack_chunks({3, 3, 4, 1, 9, 1}, 10);
  EXPECT_EQ(chunks.elements, 10);
  EXPECT_EQ(chunks.of_layer, (std::vector<std::int32_t>{0, 0, 0, 1, 1, 2}));
  EXPECT_EQ(chunks.count(), 3);
}

TEST(EqualChunks, HoldTheLargestLayer) { EXPECT_EQ(pack_chunks({3, 7, 2}, 4).elements, 7); }

// An embedding and a head of 10, and six blocks of 6: chunks of 10 hold one each, chunks of 12 two blocks.
TEST(EqualChunks, WasteLeast) {
  const EqualChunks chunks = pack_chunks({10, 6, 6, 6, 6, 6, 6, 10});
  EXPECT_EQ(chunks.elements, 12);
  EXPECT_EQ(chunks.of_layer, (std::vector<std::int32_t>{0, 1, 1, 2, 2, 3, 3, 4}));
  EXPECT_EQ(pack_chunks({5, 5, 5}).elements, 5);
  EXPECT_EQ(pack_chunks(std::vector<std::int64_t>{}).count(), 0);
}

TEST(EqualChunks, NoOtherSizeWastesLess) {
  std::mt19937 random(1);
  for (int network = 0; network < 200; ++network) {
    std::vector<std::int64_t> layers(1 + random() % 8);
    for (auto& elements : layers) elements = 1 + random() % 12;
    const std::int64_t largest = *std::max_element(layers.begin(), layers.end());
    const EqualChunks chosen = pack_chunks(layers);
    for (std::int64_t size = largest; size <= 2 * largest; ++size) {
      const EqualChunks other = pack_chunks(layers, size);
      EXPECT_LE(chosen.count() * chosen.elements, other.count() * other.elements) << network << ' ' << size;
    }
  }
}

}  // namespace
}  // namespace tandem
