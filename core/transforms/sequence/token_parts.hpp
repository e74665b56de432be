// Which of a sample's tokens a rank has of those that divide them. Must not know networks.
#pragma once

#include "core/scenario/scenario.hpp"

namespace tandem {

// Keys and values go round a ring of ranks.
inline bool is_ring(const WorkloadOptions& w) {
  return w.parallel.integer_or("sequence", 1) > 1 && w.parallel.text_or("sequence_kind", "ulysses") == "ring";
}

// Of N ranks, the one of part p has tokens p, p + N, p + 2N and so on. Else a part in a row.
inline bool has_every_nth_token(const WorkloadOptions& w) {
  return is_ring(w) && w.parallel.text_or("ring_layout", "striped") == "striped";
}

}  // namespace tandem
