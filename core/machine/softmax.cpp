#include "core/machine/softmax.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Of one element, over the columns of a row. Forward reads a row three times, for its largest, its sum and the result;
// backward twice, and two operands. From 12,288 columns on a row does not fit into what a block has for itself, and
// rows that are under way at once (two on each of 132 multiprocessors) fit into the second-level cache up to some
// 24,576. Measured on an H200 (50 MiB of cache), 2,048 and 8,192 rows, as times beside those of a large addition.
struct Traffic {
  double columns, forward, backward;
};
constexpr std::array kTraffic = {Traffic{2048, 10.4, 12.7},  Traffic{4096, 13.4, 12.7},  Traffic{8192, 15.9, 12.4},
                                 Traffic{10240, 11.6, 12.4}, Traffic{12288, 10.9, 15.4}, Traffic{16384, 10.5, 15.5},
                                 Traffic{20480, 10.4, 16.1}, Traffic{24576, 11.5, 16.9}, Traffic{32768, 14.2, 17.4},
                                 Traffic{40960, 17.1, 17.7}, Traffic{50304, 18.0, 18.2}, Traffic{65536, 17.9, 17.5}};

static_assert(std::is_sorted(kTraffic.begin(), kTraffic.end(),
                             [](const Traffic& a, const Traffic& b) { return a.columns < b.columns; }));

double element_bytes(double columns, double Traffic::*of) {
  if (columns <= kTraffic.front().columns) return kTraffic.front().*of;
  const auto above =
      std::find_if(kTraffic.begin(), kTraffic.end(), [&](const Traffic& t) { return t.columns > columns; });
  if (above == kTraffic.end()) return kTraffic.back().*of;
  const Traffic& below = *(above - 1);
  const double way = std::log(columns / below.columns) / std::log(above->columns / below.columns);
  return below.*of + way * ((*above).*of - below.*of);
}

}  // namespace

double softmax_bytes(const Kernel& kernel, std::int32_t processors) {
  CHECK(is_softmax(kernel), static_cast<int>(kernel.kind), kernel.n);
  if (processors <= 0) return static_cast<double>(kernel.bytes);
  return static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
         element_bytes(static_cast<double>(kernel.n), kernel.backward ? &Traffic::backward : &Traffic::forward);
}

}  // namespace tandem
