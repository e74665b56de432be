// What core/formats/sent_code.hpp says, done on the CPU: numbers to codes and back, and the mean of codes. The same
// bits however numbers are cut at whole units. Must not know LibTorch, graphs or threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/formats/sent_code.hpp"
#include "runtime/optimizer/update.hpp"

namespace tandem {

// The code of `numbers`, and of what earlier codes left out, in `kept`, which gets what this one leaves out. Null:
// nothing is kept. A number beyond fp16's largest is sent as that.
void encode(const SentCode& code, const float* numbers, float* kept, std::int64_t elements, std::byte* sent);
void decode(const SentCode& code, const std::byte* sent, std::int64_t elements, float* numbers);
// Of `ranks` codes, `stride` bytes from each other: the sum in their order, then one division.
void mean_of_codes(const SentCode& code, const std::byte* sent, std::int64_t ranks, std::int64_t stride,
                   std::int64_t elements, float* mean);

// Adam's step by a momentum that was sent (one_bit_step), over elements of one field. `masters` has no gradient and no
// moments. Returns as update_elements does.
struct SentSpan {
  const float* m = nullptr;
  const float* v = nullptr;
  UpdateSpan masters;
};
bool one_bit_update(const UpdateStep& step, const SentSpan& span);
SentSpan part_of(const SentSpan& span, std::int64_t first, std::int64_t elements);

}  // namespace tandem
