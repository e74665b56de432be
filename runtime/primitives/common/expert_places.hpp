// Tokens' choices by their places in experts' buffers, and the buffers' slots by choice. Must not know experts.
#pragma once

#include <ATen/core/Tensor.h>

namespace tandem {

// Of places [tokens, choices], -1 for none.
struct SlotTable {
  SlotTable(const at::Tensor& places, std::int64_t slots);
  at::Tensor choice;  // [slots]: token * choices + choice; 0 where the slot is empty
  at::Tensor empty;   // [slots, 1]
};

// The rows of buffers [slots, hidden] that choices have: [tokens, choices, hidden], zeros for those that have none.
at::Tensor rows_of_choices(const at::Tensor& buffers, const at::Tensor& places);

}  // namespace tandem
