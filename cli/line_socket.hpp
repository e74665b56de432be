// Lines between two processes that a socket joins. Must not know what they say.
#pragma once

#include <optional>
#include <string>

namespace tandem {

class LineSocket {
 public:
  // Owns the descriptor.
  explicit LineSocket(int descriptor) : descriptor_(descriptor) {}
  ~LineSocket();
  LineSocket(const LineSocket&) = delete;
  LineSocket& operator=(const LineSocket&) = delete;

  // Whole lines, with their ends. False where the other end is gone.
  bool send(const std::string& lines);
  // The next line, without its end. None: there is none yet, which `waits` rules out, or the other end is gone.
  std::optional<std::string> take(bool waits);
  bool is_gone() const { return gone_; }
  int descriptor() const { return descriptor_; }

 private:
  bool receive(bool waits);

  int descriptor_;
  bool gone_ = false;
  std::string text_;  // received, and not taken
};

}  // namespace tandem
