// FlexGen's linear program (Sheng et al., ICML 2023, section 4.3): where weights, keys and values, and hidden states of
// a block are placed, by shares of device, host and disk, so that its texts are complete soonest. A pass takes as long
// as the slowest of: copies to the device, copies to the host, reads and writes of the disk, computing. Beyond the
// paper's, the host may have memory that is not pinned, at rates of its own. Must not know how candidates are tried.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "plan/block_figures.hpp"

namespace tandem {

// In percent, as policy `flexgen` takes them; the disk has the rest.
struct Placement {
  int wg = 0, wc = 0, cg = 0, cc = 0, hg = 0, hc = 0;
  bool cpu_attention = false;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// What holds a block up: by how much its texts would come faster for one more GB (10^9 bytes) or GB/s of it, at the
// same batches, where 0.02 are 2%. Of a memory, the program's dual; of a rate, the dual's row with that rate.
struct Hold {
  enum class Of : std::uint8_t {
    DeviceMemory,
    PinnedMemory,
    HostMemory,
    Disk,
    ToDevice,
    ToHost,
    DiskRead,
    DiskWrite,
    Computing
  } of;
  double gain = 0;   // 0 of Computing
  double share = 0;  // of the block's time that it alone sets; of a memory 0
};

// "copies to the device", and what there may be more of: "GB/s"; "" of Computing.
std::string_view name_of(Hold::Of of);
std::string_view unit_of(Hold::Of of);

struct PlacementProgram {
  const BlockFigures& figures;
  const Scenario& scenario;  // whose machine and limits there are
  std::int64_t batches = 1;  // of the block
  bool cpu_attention = false;
  std::array<double, kTierCount> kept_bytes{};  // of each tier's capacity, what is left free

  struct Solution {
    Placement placement;
    double block_s = 0;       // from the prompts to the last token
    std::vector<Hold> holds;  // what sets most of the time first, then what brings most
  };
  // None where nothing fits.
  std::optional<Solution> solve() const;
};

}  // namespace tandem
