// Products with rows and sums of rows: each instruction set gives the same bits, near what double precision gives, and
// touches no number beside.
#include "runtime/optimizer/attended_rows.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/optimizer/low_precision.hpp"

namespace tandem {
namespace {

// Heads of one number, of fewer than a vector's, of whole vectors, and of some more; groups; rows with gaps.
struct Case {
  std::int64_t count, heads, size, group, gap;
};
constexpr Case kCases[] = {{1, 1, 1, 1, 0}, {7, 3, 12, 1, 0}, {9, 2, 31, 3, 5}, {33, 4, 64, 2, 64}, {5, 1, 100, 4, 1}};
constexpr Isa kIsas[] = {Isa::Scalar, Isa::Avx2, Isa::Avx512};

template <class T>
T stored(float number) {
  if constexpr (std::is_same_v<T, Float16>)
    return to_float16(number);
  else if constexpr (std::is_same_v<T, BFloat16>)
    return to_bfloat16(number);
  else
    return number;
}

template <class T>
void expect_sums(DType type, const Case& c) {
  SCOPED_TRACE(std::string(name_of(type)) + ", heads of " + std::to_string(c.size));
  const std::int64_t stride = c.heads * c.size + c.gap, queries = c.heads * c.group, pitch = c.count + 2;
  std::vector<T> rows(static_cast<std::size_t>(c.count * stride));  // no byte behind the last head of the last row
  rows.resize(rows.size() - static_cast<std::size_t>(c.gap));
  std::vector<float> query(static_cast<std::size_t>(queries * c.size));
  const auto number = [](std::size_t i) { return std::sin(static_cast<float>(i * i % 1009)); };
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = stored<T>(number(i));
  for (std::size_t i = 0; i < query.size(); ++i) query[i] = number(i + 77);
  const AttendedRows span{rows.data(), type, c.count, stride, c.heads, c.size, c.group};
  std::vector<float> first_scores, first_sums;
  for (const Isa isa : kIsas) {
    if (!has_isa(isa)) continue;
    std::vector<float> scores(static_cast<std::size_t>(queries * pitch), -9), sums(query.size(), 0.5F);
    score_rows(span, query.data(), scores.data(), pitch, isa);
    add_rows(span, scores.data(), pitch, sums.data(), isa);
    for (std::int64_t q = 0; q < queries; ++q) {
      std::vector<double> expected(static_cast<std::size_t>(c.size), 0.5);
      for (std::int64_t i = 0; i < c.count; ++i) {
        const T* head = rows.data() + i * stride + q / c.group * c.size;
        const float score = scores[static_cast<std::size_t>(q * pitch + i)];
        double product = 0;
        for (std::int64_t k = 0; k < c.size; ++k) {
          product += static_cast<double>(query[static_cast<std::size_t>(q * c.size + k)]) * to_float(head[k]);
          expected[static_cast<std::size_t>(k)] += static_cast<double>(score) * to_float(head[k]);
        }
        EXPECT_NEAR(score, product, 1e-5) << i;
      }
      for (std::int64_t k = 0; k < c.size; ++k)
        EXPECT_NEAR(sums[static_cast<std::size_t>(q * c.size + k)], expected[static_cast<std::size_t>(k)], 1e-3);
      for (std::int64_t i = c.count; i < pitch; ++i) EXPECT_EQ(scores[static_cast<std::size_t>(q * pitch + i)], -9);
    }
    if (first_scores.empty()) first_scores = scores, first_sums = sums;
    EXPECT_EQ(std::memcmp(scores.data(), first_scores.data(), scores.size() * sizeof(float)), 0);
    EXPECT_EQ(std::memcmp(sums.data(), first_sums.data(), sums.size() * sizeof(float)), 0);
  }
}

TEST(AttendedRows, AreTheSameOnEveryInstructionSet) {
  for (const Case& c : kCases) {
    expect_sums<float>(DType::F32, c);
    expect_sums<BFloat16>(DType::BF16, c);
    expect_sums<Float16>(DType::F16, c);
  }
}

}  // namespace
}  // namespace tandem
