#include "runtime/primitives/common/expert_places.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>

namespace tandem {

// Who has no place writes to one behind the last, which nobody reads: so places alone decide.
SlotTable::SlotTable(const at::Tensor& places, std::int64_t slots) {
  const at::Tensor flat = places.view(-1);
  at::Tensor table = at::full({slots + 1}, -1, places.options());
  table.scatter_(0, flat.masked_fill(flat.lt(0), slots), at::arange(flat.numel(), places.options()));
  table = table.narrow(0, 0, slots);
  empty = table.lt(0).unsqueeze(1);
  choice = table.clamp_min(0);
}

at::Tensor rows_of_choices(const at::Tensor& buffers, const at::Tensor& places) {
  const at::Tensor flat = places.view(-1);
  const at::Tensor rows = at::index_select(buffers, 0, flat.clamp_min(0));
  rows.masked_fill_(flat.lt(0).unsqueeze(1), 0);
  return rows.view({places.size(0), places.size(1), buffers.size(1)});
}

}  // namespace tandem
