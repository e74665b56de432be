#include "runtime/optimizer/sent_code.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/check.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/one_bit.hpp"
#include "runtime/optimizer/one_bit_formula.hpp"

namespace tandem {
namespace {

constexpr float kLargestFloat16 = 65504;

Float16 rounded_to(Float16, float number) {
  return to_float16(std::isfinite(number) ? std::clamp(number, -kLargestFloat16, kLargestFloat16) : number);
}
BFloat16 rounded_to(BFloat16, float number) { return to_bfloat16(number); }

template <class Narrow>
void encode_each(const float* numbers, float* kept, std::int64_t elements, std::byte* sent) {
  auto* const narrow = reinterpret_cast<Narrow*>(sent);
  for (std::int64_t i = 0; i < elements; ++i) {
    const float all = kept == nullptr ? numbers[i] : rounded::add(numbers[i], kept[i]);
    narrow[i] = rounded_to(Narrow{}, all);
    if (kept != nullptr) kept[i] = rounded::subtract(all, to_float(narrow[i]));
  }
}

template <class Narrow>
void decode_each(const std::byte* sent, std::int64_t elements, float* numbers) {
  const auto* const narrow = reinterpret_cast<const Narrow*>(sent);
  for (std::int64_t i = 0; i < elements; ++i) numbers[i] = to_float(narrow[i]);
}

// The loop that a momentum is sent by to the host, of a momentum that is there.
void encode_signs(std::int64_t block, const float* numbers, float* kept, std::int64_t elements, std::byte* sent) {
  std::vector<float> nothing(kept == nullptr ? static_cast<std::size_t>(elements) : 0, 0.0F);
  compress_momentum({.gradient = numbers,
                     .kept = kept == nullptr ? nothing.data() : kept,
                     .signs = reinterpret_cast<std::uint32_t*>(sent),
                     .elements = elements,
                     .block = block,
                     .kept_weight = 1,
                     .gradient_weight = 1,
                     .error_feedback = true},
                    /*gradient_scale=*/1);
}

void decode_signs(std::int64_t block, const std::byte* sent, std::int64_t elements, float* numbers) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(sent);
  for (std::int64_t first = 0; first < elements; first += block) {
    const std::uint32_t scale = *words++;
    const std::int64_t count = std::min(block, elements - first);
    for (std::int64_t i = 0; i < count; ++i)
      numbers[first + i] = sent_number(scale, words[i / kSignsPerWord] >> (i % kSignsPerWord) & 1U);
    words += rounded_up_quotient(count, kSignsPerWord);
  }
}

}  // namespace

void encode(const SentCode& code, const float* numbers, float* kept, std::int64_t elements, std::byte* sent) {
  switch (code.kind) {
    case SentCode::Kind::BFloat16:
      return encode_each<BFloat16>(numbers, kept, elements, sent);
    case SentCode::Kind::Float16:
      return encode_each<Float16>(numbers, kept, elements, sent);
    case SentCode::Kind::Signs:
      return encode_signs(code.block, numbers, kept, elements, sent);
    case SentCode::Kind::None:
      break;
  }
  CHECK(false, "numbers without a code are sent as they are");
}

void decode(const SentCode& code, const std::byte* sent, std::int64_t elements, float* numbers) {
  switch (code.kind) {
    case SentCode::Kind::BFloat16:
      return decode_each<BFloat16>(sent, elements, numbers);
    case SentCode::Kind::Float16:
      return decode_each<Float16>(sent, elements, numbers);
    case SentCode::Kind::Signs:
      return decode_signs(code.block, sent, elements, numbers);
    case SentCode::Kind::None:
      break;
  }
  CHECK(false, "numbers without a code are sent as they are");
}

void mean_of_codes(const SentCode& code, const std::byte* sent, std::int64_t ranks, std::int64_t stride,
                   std::int64_t elements, float* mean) {
  std::vector<float> other(static_cast<std::size_t>(elements));
  decode(code, sent, elements, mean);
  for (std::int64_t rank = 1; rank < ranks; ++rank) {
    decode(code, sent + rank * stride, elements, other.data());
    for (std::int64_t i = 0; i < elements; ++i) mean[i] = rounded::add(mean[i], other[static_cast<std::size_t>(i)]);
  }
  for (std::int64_t i = 0; i < elements; ++i) mean[i] = rounded::divide(mean[i], static_cast<float>(ranks));
}

// A number whose v is 0 had no gradient in the warm-up, and is not updated.
bool one_bit_update(const UpdateStep& step, const SentSpan& span) {
  constexpr std::int64_t kTile = 1024;  // elements: 12 KiB beside the tile's other operands
  alignas(64) float sent[kTile], m[kTile] = {}, v[kTile];
  bool finite = true;
  for (std::int64_t first = 0; first < span.masters.elements; first += kTile) {
    UpdateSpan tile = part_of(span.masters, first, std::min(kTile, span.masters.elements - first));
    for (std::int64_t i = 0; i < tile.elements; ++i) sent[i] = span.v[first + i] == 0 ? 0 : span.m[first + i];
    std::copy_n(span.v + first, tile.elements, v);
    tile.gradient = sent;
    tile.m = m;
    tile.v = v;
    finite &= update_elements(step, tile);
  }
  return finite;
}

SentSpan part_of(const SentSpan& span, std::int64_t first, std::int64_t elements) {
  return {span.m + first, span.v + first, part_of(span.masters, first, elements)};
}

}  // namespace tandem
