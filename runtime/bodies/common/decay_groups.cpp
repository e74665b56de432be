#include "runtime/bodies/common/decay_groups.hpp"

#include <algorithm>

namespace tandem {

bool decays(const OptimizerOptions& options, const Field& field) {
  return options.decay == "all" || field.shape.size() > 1;
}

std::vector<DecayGroup> decay_groups(const OptimizerOptions& options, const Layout& layout, std::int64_t first,
                                     std::int64_t elements) {
  if (options.weight_decay == 0 || options.decay == "all") return {{0, elements, true}};
  std::vector<DecayGroup> groups;
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const bool last = i + 1 == layout.fields.size();
    const std::int64_t next = last ? layout.elements : layout.fields[i + 1].offset / size_of(DType::F32);
    const std::int64_t begin = std::max(first, layout.fields[i].offset / size_of(DType::F32));
    const std::int64_t end = std::min(first + elements, next);
    if (begin >= end) continue;
    const bool decay = decays(options, layout.fields[i]);
    if (groups.empty() || groups.back().decays != decay) groups.push_back({begin - first, 0, decay});
    groups.back().elements += end - begin;
  }
  return groups;
}

}  // namespace tandem
