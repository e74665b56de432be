#include "runtime/optimizer/sent_code.hpp"

#include <algorithm>
#include <vector>

#include "core/base/check.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/one_bit.hpp"
#include "runtime/optimizer/one_bit_formula.hpp"
#include "runtime/optimizer/sent_code_formula.hpp"

namespace tandem {
namespace {

template <class Narrow>
void encode_each(const float* numbers, float* kept, std::int64_t elements, std::byte* sent) {
  auto* const narrow = reinterpret_cast<Narrow*>(sent);
  for (std::int64_t i = 0; i < elements; ++i) {
    const float all = kept == nullptr ? numbers[i] : rounded::add(numbers[i], kept[i]);
    narrow[i] = sent_as(Narrow{}, all);
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

void encode_numbers(const SentCode& code, const float* numbers, float* kept, std::int64_t elements, std::byte* sent) {
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

void decode_numbers(const SentCode& code, const std::byte* sent, std::int64_t elements, float* numbers) {
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

using Numbers = std::vector<float>;

void mean_of_codes(const EncodeSpan& span, Numbers& mean) {
  const SentNumbers& of = span.numbers;
  Numbers other(mean.size());
  decode_numbers(span.code, of.codes, span.elements, mean.data());
  for (std::int64_t rank = 1; rank < of.ranks; ++rank) {
    decode_numbers(span.code, of.codes + rank * of.stride, span.elements, other.data());
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = rounded::add(mean[i], other[i]);
  }
  for (float& number : mean) number = rounded::divide(number, static_cast<float>(of.ranks));
}

template <class Gradient>
void take_gradient(const SentNumbers& of, Numbers& numbers) {
  const auto* gradient = static_cast<const Gradient*>(of.gradient);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = of.momentum == nullptr ? to_float(gradient[i])
                                        : momentum_to_send(of.momentum_weight, of.momentum[i], of.gradient_weight,
                                                           to_float(gradient[i]), /*gradient_scale=*/1);
}

Numbers numbers_of(const EncodeSpan& span) {
  Numbers numbers(static_cast<std::size_t>(span.elements));
  if (span.numbers.gradient == nullptr)
    mean_of_codes(span, numbers);
  else if (span.numbers.gradient_type == DType::F32)
    take_gradient<float>(span.numbers, numbers);
  else
    take_gradient<BFloat16>(span.numbers, numbers);
  return numbers;
}

}  // namespace

void encode(const EncodeSpan& span) {
  CHECK(span.numbers.gradient_type == DType::F32 || span.numbers.gradient_type == DType::BF16,
        name_of(span.numbers.gradient_type));
  encode_numbers(span.code, numbers_of(span).data(), span.kept, span.elements, span.sent);
}

void decode(const DecodeSpan& span) {
  CHECK(span.type == DType::F32 || span.type == DType::BF16, name_of(span.type));
  if (span.type == DType::F32)
    return decode_numbers(span.code, span.sent, span.elements, static_cast<float*>(span.numbers));
  Numbers numbers(static_cast<std::size_t>(span.elements));
  decode_numbers(span.code, span.sent, span.elements, numbers.data());
  auto* const narrow = static_cast<BFloat16*>(span.numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) narrow[i] = to_bfloat16(numbers[i]);
}

EncodeSpan part_of(const EncodeSpan& span, std::int64_t first, std::int64_t elements) {
  CHECK(first % span.code.unit() == 0 && elements <= span.elements - first, first, elements, span.code.unit());
  EncodeSpan part = span;
  SentNumbers& of = part.numbers;
  if (of.gradient != nullptr)
    of.gradient = static_cast<const std::byte*>(of.gradient) + first * size_of(of.gradient_type);
  if (of.momentum != nullptr) of.momentum += first;
  if (of.codes != nullptr) of.codes += span.code.bytes(first);
  if (part.kept != nullptr) part.kept += first;
  part.sent += span.code.bytes(first);
  part.elements = elements;
  return part;
}

DecodeSpan part_of(const DecodeSpan& span, std::int64_t first, std::int64_t elements) {
  CHECK(first % span.code.unit() == 0 && elements <= span.elements - first, first, elements, span.code.unit());
  DecodeSpan part = span;
  part.sent += span.code.bytes(first);
  part.numbers = static_cast<std::byte*>(span.numbers) + first * size_of(span.type);
  part.elements = elements;
  return part;
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
