// Weight decay by kind of parameter: a bucket and its parts are cut at the borders of fields, and nowhere else.
#include "runtime/bodies/common/decay_groups.hpp"

#include <gtest/gtest.h>

#include "core/formats/layout.hpp"

namespace tandem {
namespace {

// Norm of 40 (two fields of 64 elements with padding), a matrix of 96, its bias of 3 (32 with padding), a matrix of 32.
const Layout& layout() {
  static const auto kLayout =
      LayoutBuilder().add_norm("ln", 40).add_linear("up", 3, 32).add("down.weight", {4, 8}).build();
  return *kLayout;
}

OptimizerOptions options(const char* decay, double weight_decay = 0.1) {
  OptimizerOptions o;
  o.decay = decay;
  o.weight_decay = weight_decay;
  return o;
}

std::vector<std::vector<std::int64_t>> groups(const OptimizerOptions& o, std::int64_t first, std::int64_t elements) {
  std::vector<std::vector<std::int64_t>> out;
  for (const DecayGroup& group : decay_groups(o, layout(), first, elements))
    out.push_back({group.first, group.elements, group.decays});
  return out;
}

using Groups = std::vector<std::vector<std::int64_t>>;

TEST(DecayGroups, FieldsOfOneKindAndTheirPaddingAreOneGroup) {
  ASSERT_EQ(layout().elements, 2 * 64 + 96 + 32 + 32);
  EXPECT_EQ(groups(options("matrices"), 0, 288), (Groups{{0, 128, 0}, {128, 96, 1}, {224, 32, 0}, {256, 32, 1}}));
}

TEST(DecayGroups, APartIsCutAsTheWholeIs) {
  EXPECT_EQ(groups(options("matrices"), 48, 96), (Groups{{0, 80, 0}, {80, 16, 1}}));
  EXPECT_EQ(groups(options("matrices"), 144, 64), (Groups{{0, 64, 1}}));
  for (std::int64_t cut = 16; cut < 288; cut += 16) {
    std::vector<bool> decays;
    for (const auto& [first, elements] : {std::pair{std::int64_t{0}, cut}, {cut, 288 - cut}})
      for (const DecayGroup& group : decay_groups(options("matrices"), layout(), first, elements)) {
        EXPECT_EQ(first + group.first, static_cast<std::int64_t>(decays.size()));
        decays.insert(decays.end(), static_cast<std::size_t>(group.elements), group.decays);
      }
    ASSERT_EQ(decays.size(), 288U);
    for (std::size_t i = 0; i < 288; ++i) EXPECT_EQ(decays[i], (i >= 128 && i < 224) || i >= 256) << i;
  }
}

TEST(DecayGroups, WhatIsTreatedAlikeIsOneGroup) {
  EXPECT_EQ(groups(options("all"), 16, 200), (Groups{{0, 200, 1}}));
  EXPECT_EQ(groups(options("matrices", 0), 16, 200), (Groups{{0, 200, 1}}));
}

}  // namespace
}  // namespace tandem
