#include "core/base/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/base/system_calls.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = std::size_t{1} << 20;

// Of what is open, not of what its path means by now.
bool is_pipe_without_name(int descriptor) {
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  std::array<char, 16> target{};
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)).starts_with("pipe:");
}

const char* what_is_open(mode_t mode) {
  if (S_ISDIR(mode)) return "is a folder";
  if (S_ISFIFO(mode)) return "is a named pipe";
  if (S_ISSOCK(mode)) return "is a socket";
  return "is a device";
}

}  // namespace

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

InputFile::InputFile(const std::string& path, Pipes pipes) {
  // Opening some devices does something: they are told by their name. O_NONBLOCK is for what takes a file's place after
  // that, as a named pipe would wait for a writer; to a file it means nothing.
  if (const std::string why = why_not_read(path); !why.empty()) throw UnreadableFile(why);
  descriptor_ = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); });
  if (descriptor_ < 0) throw UnreadableFile(std::string("cannot be opened: ") + std::strerror(errno));
  std::string problem;
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    problem = std::string("cannot be looked at: ") + std::strerror(errno);
  } else if (S_ISREG(status.st_mode)) {
    bytes_ = status.st_size;
  } else if (!S_ISFIFO(status.st_mode) || !is_pipe_without_name(descriptor_)) {
    problem = what_is_open(status.st_mode);
  } else if (pipes == Pipes::Refused) {
    problem = "is a pipe";
  } else if (const int flags = ::fcntl(descriptor_, F_GETFL);
             flags < 0 || ::fcntl(descriptor_, F_SETFL, flags & ~O_NONBLOCK) < 0) {
    problem = std::string("cannot be read: ") + std::strerror(errno);
  }
  if (problem.empty()) return;
  ::close(descriptor_);
  throw UnreadableFile(problem);
}

InputFile::~InputFile() { ::close(descriptor_); }

std::size_t InputFile::read(char* out, std::size_t count) const {
  const ssize_t got = uninterrupted([&] { return ::read(descriptor_, out, count); });
  if (got < 0) throw UnreadableFile(std::string("cannot be read: ") + std::strerror(errno));
  return static_cast<std::size_t>(got);
}

bool InputFile::read_at(std::int64_t first, void* out, std::int64_t count) const {
  char* begin = static_cast<char*>(out);
  for (std::int64_t done = 0; done < count;) {
    const auto left = static_cast<std::size_t>(count - done);
    const ssize_t got = uninterrupted([&] { return ::pread(descriptor_, begin + done, left, first + done); });
    if (got == 0) return false;
    if (got < 0) throw UnreadableFile(std::string("cannot be read: ") + std::strerror(errno));
    done += got;
  }
  return true;
}

std::string InputFile::rest(std::int64_t most) const {
  const std::string too_large = "is larger than " + std::to_string(most) + " bytes";
  if (bytes_ > most) throw UnreadableFile(too_large);
  std::string text;
  // By what comes, not by what a size promises: it may grow, and files of the kernel have the size 0.
  for (std::size_t length = 0;; length = text.size()) {
    const std::size_t piece = std::min(kPiece, static_cast<std::size_t>(most) + 1 - length);
    text.resize(length + piece);
    const std::size_t got = read(text.data() + length, piece);
    text.resize(length + got);
    if (got == 0) return text;
    if (text.size() > static_cast<std::size_t>(most)) throw UnreadableFile(too_large);
  }
}

std::string read_input_file(const std::string& path, std::int64_t most, Pipes pipes) {
  return InputFile(path, pipes).rest(most);
}

InputBuffer::int_type InputBuffer::underflow() {
  const std::size_t got = file_.read(bytes_.data(), bytes_.size());
  setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
  return got == 0 ? traits_type::eof() : traits_type::to_int_type(bytes_.front());
}

}  // namespace tandem
