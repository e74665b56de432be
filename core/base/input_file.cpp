#include "core/base/input_file.hpp"

#include <filesystem>

namespace tandem {

namespace fs = std::filesystem;

std::string other_than_a_file(const std::string& path) {
  std::error_code error;
  switch (fs::status(path, error).type()) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::fifo:
      // What a shell hands over as /dev/fd/N is a link to no path.
      return fs::canonical(path, error).empty() ? "a pipe" : "a named pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::character:
    case fs::file_type::block:
      return "a device";
    default:
      return "";
  }
}

std::string why_not_read(const std::string& path) {
  const std::string other = other_than_a_file(path);
  return other.empty() || other == "a pipe" ? "" : "is " + other;
}

}  // namespace tandem
