#include "runtime/executors/collective.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/check.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {
namespace {

template <typename Number, typename Rounded>
void add_numbers(std::byte* to, const std::byte* more, std::int64_t elements, const Rounded& rounded) {
  for (std::int64_t i = 0; i < elements; ++i) {
    Number a{}, b{};
    std::memcpy(&a, to + i * static_cast<std::int64_t>(sizeof(Number)), sizeof(Number));
    std::memcpy(&b, more + i * static_cast<std::int64_t>(sizeof(Number)), sizeof(Number));
    a = rounded(to_float(a) + to_float(b));
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof(Number)), &a, sizeof(Number));
  }
}

}  // namespace

void Collective::gather_each(std::int32_t group, std::int64_t members, const std::vector<std::int64_t>& owners,
                             std::int64_t bytes, const std::vector<std::byte*>& reads,
                             const std::vector<std::byte*>& writes) {
  const auto size = static_cast<std::size_t>(bytes);
  std::vector<std::int64_t> count(static_cast<std::size_t>(members), 0);
  std::vector<std::size_t> places;  // of each, among those of its owner
  for (const std::int64_t owner : owners)
    places.push_back(static_cast<std::size_t>(count.at(static_cast<std::size_t>(owner))++));
  const auto most = static_cast<std::size_t>(*std::max_element(count.begin(), count.end()));
  std::vector<std::byte> own(most * size), all(own.size() * count.size());
  for (std::size_t i = 0; i < reads.size(); ++i) std::memcpy(&own[i * size], reads[i], size);
  all_gather(group, own.data(), all.data(), static_cast<std::int64_t>(own.size()));
  for (std::size_t i = 0; i < writes.size(); ++i)
    std::memcpy(writes[i], &all[(static_cast<std::size_t>(owners[i]) * most + places[i]) * size], size);
}

void Collective::copy(std::byte* target, const std::byte* source, std::int64_t bytes) {
  std::memcpy(target, source, static_cast<std::size_t>(bytes));
}

void Collective::copy_rows(Rows<std::byte> target, Rows<const std::byte> source, std::int64_t bytes,
                           std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(target.first + row * target.pitch, source.first + row * source.pitch, static_cast<std::size_t>(bytes));
}

void Collective::add(std::byte* to, const std::byte* more, std::int64_t elements, DType type) {
  CHECK(type == DType::F32 || type == DType::BF16 || type == DType::F16, name_of(type));
  if (type == DType::F32) add_numbers<float>(to, more, elements, [](float x) { return x; });
  if (type == DType::BF16) add_numbers<BFloat16>(to, more, elements, [](float x) { return to_bfloat16(x); });
  if (type == DType::F16) add_numbers<Float16>(to, more, elements, [](float x) { return to_float16(x); });
}

}  // namespace tandem
