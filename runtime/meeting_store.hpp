// The store at which ranks meet, as c10d has it.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "core/base/ids.hpp"
#include "runtime/rank_identity.hpp"

namespace tandem {

// `meeting`:
//   FILE                     of one host, that did not exist before the run
//   tcp://HOST:PORT          rank 0 serves it there, and listens at no other address
//   tcp://HOST:PORT/PREFIX   another process does: the run has what begins with PREFIX
// Throws DeviceError.
c10::intrusive_ptr<c10d::Store> open_meeting(const std::string& meeting, Rank rank, std::int32_t ranks,
                                             std::chrono::milliseconds timeout);
// This host's address towards the meeting.
std::string own_address(const std::string& meeting);

class StoreBoard final : public Blackboard {
 public:
  explicit StoreBoard(c10d::Store& store) : store_(store) {}
  void write(const std::string& key, const std::string& text) override { store_.set(key, text); }
  std::string read(const std::string& key) override {
    if (!store_.check({key})) return "";
    const std::vector<std::uint8_t> bytes = store_.get(key);
    return {bytes.begin(), bytes.end()};
  }

 private:
  c10d::Store& store_;
};

}  // namespace tandem
