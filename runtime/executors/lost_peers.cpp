#include "runtime/executors/lost_peers.hpp"

#include "core/base/errors.hpp"

namespace tandem {

bool LostPeers::is_lost(Rank peer) {
  const std::lock_guard lock(mutex_);
  return lost_.contains(peer);
}

bool LostPeers::transfer(Rank peer, std::int32_t step, const std::function<void()>& action) {
  if (is_lost(peer)) return false;
  try {
    action();
    return true;
  } catch (const DeviceError&) {
    if (!spared_.contains(peer)) throw;
  }
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = lost_.insert(peer).second;
  }
  if (first && told_) told_(peer, step);
  return false;
}

void LostPeers::note_absent(ValueId value) {
  const std::lock_guard lock(mutex_);
  absent_.insert(value);
}

bool LostPeers::take_absent(ValueId value) {
  const std::lock_guard lock(mutex_);
  return absent_.erase(value) > 0;
}

}  // namespace tandem
