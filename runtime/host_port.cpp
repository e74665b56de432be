#include "runtime/host_port.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Found find(const HostPort& at, int type) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = type;
  if (const int error = getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found); error != 0)
    throw DeviceError(at.host + ": " + gai_strerror(error));
  return {found, freeaddrinfo};
}

}  // namespace

HostPort parse_host_port(const std::string& flag, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  HostPort at;
  if (colon != std::string::npos && colon > 0) {
    const char *const begin = text.data() + colon + 1, *const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(begin, end, at.port);
    at.host = text.substr(0, colon);
    if (error == std::errc{} && stopped == end) return at;
  }
  throw ConfigError(flag + ": \"" + text + "\" is no address; allowed: HOST:PORT, such as 10.0.0.2:4711");
}

// No packet is sent.
std::string own_address_towards(const HostPort& at) {
  const Found found = find(at, SOCK_DGRAM);
  const int end = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  std::array<char, NI_MAXHOST> text{};
  const bool known = end >= 0 && ::connect(end, found->ai_addr, found->ai_addrlen) == 0 &&
                     ::getsockname(end, reinterpret_cast<sockaddr*>(&own), &bytes) == 0 &&
                     ::getnameinfo(reinterpret_cast<sockaddr*>(&own), bytes, text.data(), text.size(), nullptr, 0,
                                   NI_NUMERICHOST) == 0;
  if (end >= 0) ::close(end);
  if (!known) throw DeviceError("there is no way to that host");
  return text.data();
}

int listen_at(const HostPort& at) {
  constexpr int kWaiting = 1024, kYes = 1;
  const Found found = find(at, SOCK_STREAM);
  const int end = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (end >= 0) ::setsockopt(end, SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes);
  if (end >= 0 && ::bind(end, found->ai_addr, found->ai_addrlen) == 0 && ::listen(end, kWaiting) == 0) return end;
  const int error = errno;
  if (end >= 0) ::close(end);
  throw DeviceError(at.text() + " cannot be listened at: " + std::strerror(error));
}

}  // namespace tandem
