// A refusal for want of memory: the message, and the numbers in it that a search for what would fit starts from.
// Must not know how anything is tried.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/errors.hpp"
#include "core/base/ids.hpp"

namespace tandem {

class OutOfRoom : public DoesNotFit {
 public:
  // Bytes are those of the whole tier, of all ranks that share it and with what a product keeps: what a limit would be.
  struct Figures {
    Tier tier = Tier::Device;
    std::int64_t capacity_bytes = 0;
    // With less, the same command would be refused again; more than the capacity.
    std::int64_t least_bytes = 0;
    // Bytes enough are free, but not in a row.
    bool holes = false;
  };
  // `facts` say what, where and how many bytes; `outlook` what would fit and what to do, as far as the scheduler knows.
  OutOfRoom(const std::string& facts, const std::string& outlook, Figures figures)
      : DoesNotFit("does not fit: " + facts + "; " + outlook), facts_(facts), figures_(figures) {}
  const std::string& facts() const { return facts_; }
  const Figures& figures() const { return figures_; }

 private:
  std::string facts_;
  Figures figures_;
};

// "26570752 bytes (26 MiB)"
std::string with_bytes(std::int64_t bytes);

}  // namespace tandem
