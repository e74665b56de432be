// Which tier each of many tensors is kept in, so that each tier has its share of their bytes, evenly spread. Must not
// know what the tensors are.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "core/base/ids.hpp"

namespace tandem {

class Shares {
 public:
  // Percent of the device and the host; the disk has the rest.
  Shares(double device, double host) : percent_{device, host, 100 - device - host} {}
  double device() const { return percent_[0]; }
  double host() const { return percent_[1]; }
  bool uses_disk() const { return percent_[2] > 0; }

  // Of the next tensor: the tier that lacks most of its share of what there is by then.
  Tier next(std::int64_t bytes) {
    total_ += bytes;
    std::size_t best = 0;
    for (std::size_t i = 1; i < percent_.size(); ++i)
      if (lacks(i) > lacks(best)) best = i;
    given_[best] += bytes;
    constexpr std::array<Tier, 3> kTiers = {Tier::Device, Tier::HostPinned, Tier::Disk};
    return kTiers[best];
  }

 private:
  double lacks(std::size_t i) const {
    return percent_[i] / 100 * static_cast<double>(total_) - static_cast<double>(given_[i]);
  }
  std::array<double, 3> percent_;
  std::array<std::int64_t, 3> given_{};
  std::int64_t total_ = 0;
};

}  // namespace tandem
