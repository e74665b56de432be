// Ranks that this one goes on without once they are lost, and what has not come from them. Must not know ops or lanes.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "core/base/ids.hpp"

namespace tandem {

// From any thread.
class LostPeers {
 public:
  using Told = std::function<void(Rank lost, std::int32_t step)>;
  // `spared`: those that it can do without. `told`: called once of each that is lost, with the step of the transfer
  // that failed.
  LostPeers(const std::vector<Rank>& spared, Told told)
      : spared_(spared.begin(), spared.end()), told_(std::move(told)) {}

  // What sends to the peer, or receives from it. False: the peer is lost, or has been; of others, throws what the
  // transfer does.
  bool transfer(Rank peer, std::int32_t step, const std::function<void()>& action);
  // A value that was to be received.
  void note_absent(ValueId value);
  // Whether it is absent; asked once, by its one reader.
  bool take_absent(ValueId value);

 private:
  bool is_lost(Rank peer);

  const std::set<Rank> spared_;
  const Told told_;
  std::mutex mutex_;  // guards all below
  std::set<Rank> lost_;
  std::set<ValueId> absent_;
};

}  // namespace tandem
