// Places on a network where processes meet. Must not know what for.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  std::string text() const { return host + ":" + std::to_string(port); }
};
// "HOST:PORT". Throws ConfigError that names the flag.
HostPort parse_host_port(const std::string& flag, const std::string& text);

// The address of this host on the way to that one. Throws DeviceError.
std::string own_address_towards(const HostPort& at);
// A socket that listens at that address of this host, and at no other. Throws DeviceError.
int listen_at(const HostPort& at);

}  // namespace tandem
