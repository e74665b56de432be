// Processes of tandem-simulate that answer one question after another, each at the same time as the others. Must not
// know what is asked, nor in what order.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/interrupt.hpp"
#include "cli/line_socket.hpp"

namespace tandem {

class Simulators {
 public:
  // Starts them. Throws ConfigError if this build has no simulator, and DeviceError.
  explicit Simulators(int count);
  ~Simulators();  // ends them at once
  Simulators(const Simulators&) = delete;
  Simulators& operator=(const Simulators&) = delete;

  int count() const { return static_cast<int>(all_.size()); }
  // One that was not asked, or has answered. `arguments`: of tandem-simulate.
  void ask(int simulator, const std::vector<std::string>& arguments);

  struct Reply {
    int simulator = 0;
    int exit_code = 0;  // 128 + the signal's number, if one ended it
    std::string output, errors;
  };
  // The next to answer; none after a tenth of a second. Throws Interrupted on SIGINT or SIGTERM.
  std::optional<Reply> wait();

 private:
  struct One {
    pid_t process = -1;
    std::unique_ptr<LineSocket> socket;
    bool asked = false;
  };
  static One start();
  static int end(One& one);
  std::optional<Reply> reply_of(int simulator);

  InterruptCount interrupts_;
  std::vector<One> all_;
};

}  // namespace tandem
