// The devices of tandem-train: none.
#include "runtime/open_device.hpp"

namespace tandem {

bool has_device(const std::string& name) { return name == "cpu"; }

std::shared_ptr<Device> open_device(const std::string&, Rank, Rank) { return nullptr; }

}  // namespace tandem
