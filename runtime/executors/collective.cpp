#include "runtime/executors/collective.hpp"

#include <algorithm>
#include <cstring>

namespace tandem {

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

}  // namespace tandem
