#include "core/scenario/scenario.hpp"

namespace tandem {

std::int64_t WorkloadOptions::items_of(const std::string& modality, std::int64_t otherwise) const {
  const auto found = items.find(modality);
  return found == items.end() ? otherwise : found->second;
}

}  // namespace tandem
