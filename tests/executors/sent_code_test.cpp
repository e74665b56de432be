// Numbers to codes and back: what codes can say, they say.
#include "runtime/optimizer/sent_code.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace tandem {
namespace {

using Floats = std::vector<float>;

void to_code(const SentCode& code, const float* numbers, float* kept, std::int64_t elements, std::byte* sent) {
  encode({.code = code, .numbers = {.gradient = numbers}, .kept = kept, .sent = sent, .elements = elements});
}
void from_code(const SentCode& code, const std::byte* sent, std::int64_t elements, float* numbers) {
  decode({.code = code, .sent = sent, .numbers = numbers, .elements = elements});
}

// Of 16 bits the code says all, and of signs where all numbers of a block have one magnitude, the same signs on all
// ranks: means are exact, and nothing is kept.
TEST(SentCode, SaysAllOfNumbersThatItCanSay) {
  constexpr std::int64_t kElements = 200, kRanks = 4;
  for (const SentCode code : {SentCode{SentCode::Kind::Signs, 64}, SentCode{SentCode::Kind::BFloat16, 0},
                              SentCode{SentCode::Kind::Float16, 0}}) {
    const auto bytes = static_cast<std::size_t>(code.bytes(kElements));
    std::vector<std::byte> sent(bytes * kRanks);
    Floats exact(kElements), mean(kElements), kept(kElements);
    for (std::int64_t rank = 0; rank < kRanks; ++rank) {
      Floats numbers;
      for (std::int64_t i = 0; i < kElements; ++i)
        numbers.push_back(static_cast<float>(rank + 1 + i / 64) * (i % 3 == 0 ? -0.25F : 0.25F));
      to_code(code, numbers.data(), kept.data(), kElements, &sent[bytes * static_cast<std::size_t>(rank)]);
      for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += numbers[i] / kRanks;
      EXPECT_EQ(kept, Floats(kElements, 0));
    }
    std::vector<std::byte> common(bytes);
    encode({.code = code,
            .numbers = {.codes = sent.data(), .ranks = kRanks, .stride = static_cast<std::int64_t>(bytes)},
            .kept = kept.data(),
            .sent = common.data(),
            .elements = kElements});
    from_code(code, common.data(), kElements, mean.data());
    EXPECT_EQ(mean, exact);
    EXPECT_EQ(kept, Floats(kElements, 0));
  }
}

// Cut anywhere at a whole unit, the code is the same. What fp16 cannot say is kept for later.
TEST(SentCode, IsTheSameInPartsAndKeepsWhatIsTooLarge) {
  for (const SentCode code : {SentCode{SentCode::Kind::Signs, 32}, SentCode{SentCode::Kind::Float16, 0}}) {
    Floats numbers;
    for (int i = 0; i < 333; ++i) numbers.push_back(std::sin(static_cast<float>(i)));
    Floats kept(333, 0.125F), kept_in_parts = kept;
    std::vector<std::byte> whole(static_cast<std::size_t>(code.bytes(333))), parts = whole;
    to_code(code, numbers.data(), kept.data(), 333, whole.data());
    for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 96}, {96, 160}, {256, 77}})
      to_code(code, &numbers[static_cast<std::size_t>(first)], &kept_in_parts[static_cast<std::size_t>(first)], count,
              &parts[static_cast<std::size_t>(code.bytes(first))]);
    EXPECT_EQ(parts, whole);
    EXPECT_EQ(kept_in_parts, kept);
  }
  const SentCode half{SentCode::Kind::Float16, 0};
  const Floats large{1e5F, -1e5F};
  Floats kept(2, 0), sent(2);
  std::byte bytes[4];
  to_code(half, large.data(), kept.data(), 2, bytes);
  from_code(half, bytes, 2, sent.data());
  EXPECT_EQ(sent, (Floats{65504, -65504}));
  EXPECT_EQ(kept, (Floats{1e5F - 65504, 65504 - 1e5F}));
}

}  // namespace
}  // namespace tandem
