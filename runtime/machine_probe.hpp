// What the machine is and has: processor, cores, memory that this process may use. Must not know what runs on it.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

struct MachineFacts {
  std::string processor;          // "AMD EPYC"; "unknown processor" where the system does not say
  std::int32_t cores = 1;         // that this process may use: affinity and control-group quota counted
  std::int64_t memory_bytes = 0;  // that this process may use: the machine's, or the control group's limit
  std::string memory_source;      // which of the two
};

MachineFacts probe_machine();

}  // namespace tandem
