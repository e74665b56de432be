#include "cli/line_socket.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/base/system_calls.hpp"

namespace tandem {

LineSocket::~LineSocket() { ::close(descriptor_); }

bool LineSocket::send(const std::string& lines) {
  for (std::size_t sent = 0; sent < lines.size() && !gone_;) {
    const ssize_t count =
        uninterrupted([&] { return ::send(descriptor_, lines.data() + sent, lines.size() - sent, MSG_NOSIGNAL); });
    if (count <= 0)
      gone_ = true;
    else
      sent += static_cast<std::size_t>(count);
  }
  return !gone_;
}

bool LineSocket::receive(bool waits) {
  std::array<char, 4096> buffer{};
  const ssize_t count =
      uninterrupted([&] { return ::recv(descriptor_, buffer.data(), buffer.size(), waits ? 0 : MSG_DONTWAIT); });
  if (count > 0) text_.append(buffer.data(), static_cast<std::size_t>(count));
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) gone_ = true;
  return count > 0;
}

std::optional<std::string> LineSocket::take(bool waits) {
  for (;;) {
    if (const std::size_t end = text_.find('\n'); end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      return line;
    }
    if (gone_ || !receive(waits)) return std::nullopt;
  }
}

}  // namespace tandem
