#include "cli/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/cli.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

[[noreturn]] void fail(int error) {
  throw DeviceError(std::string("cannot write to standard output: ") + std::strerror(error) +
                    "; redirect it elsewhere");
}

}  // namespace

void guard_standard_descriptors() {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // For reading: a write to it fails, here and in the programs that this one becomes or starts. What would have been
    // said on standard error is for nobody.
    const int opened = ::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened != descriptor) std::_Exit(kDeviceFailure);  // no descriptor to say it on
  }
}

void write_to_stdout(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail(errno);
  finish_stdout();
}

void finish_stdout() {
  errno = 0;
  if (std::fflush(stdout) != 0) fail(errno);
  if (std::ferror(stdout) != 0) fail(EIO);
}

}  // namespace tandem
