#include "runtime/executors/collective.hpp"

#include <algorithm>
#include <cstring>

namespace tandem {

void Collective::gather_numbers(std::int32_t group, std::int64_t members, const std::vector<std::int64_t>& owners,
                                const std::vector<std::byte*>& reads, const std::vector<std::byte*>& writes) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(members), 0);
  std::vector<std::size_t> places;  // of a number, among those of its owner
  for (const std::int64_t owner : owners)
    places.push_back(static_cast<std::size_t>(count.at(static_cast<std::size_t>(owner))++));
  const auto most = static_cast<std::size_t>(*std::max_element(count.begin(), count.end()));
  std::vector<double> own(most, 0), all(most * count.size());
  for (std::size_t i = 0; i < reads.size(); ++i) std::memcpy(&own[i], reads[i], sizeof(double));
  all_gather(group, reinterpret_cast<const std::byte*>(own.data()), reinterpret_cast<std::byte*>(all.data()),
             static_cast<std::int64_t>(most * sizeof(double)));
  for (std::size_t i = 0; i < writes.size(); ++i)
    std::memcpy(writes[i], &all[static_cast<std::size_t>(owners[i]) * most + places[i]], sizeof(double));
}

void Collective::copy(std::byte* target, const std::byte* source, std::int64_t bytes) {
  std::memcpy(target, source, static_cast<std::size_t>(bytes));
}

}  // namespace tandem
