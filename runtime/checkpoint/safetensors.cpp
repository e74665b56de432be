#include "runtime/checkpoint/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/base/errors.hpp"
#include "runtime/checkpoint/saved_file.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLengthBytes = 8;
// As the format's own reader allows.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

std::string format_name(DType type) {
  switch (type) {
    case DType::F16:
      return "F16";
    case DType::BF16:
      return "BF16";
    case DType::F64:
      return "F64";
    case DType::I64:
      return "I64";
    case DType::I16:
      return "I16";
    case DType::U8:
      return "U8";
    default:
      return "F32";
  }
}

}  // namespace

std::int64_t TensorBytes::size() const {
  std::int64_t elements = 1;
  for (std::int64_t d : shape) elements *= d;
  return elements * size_of(type);
}

std::string safetensors_header(const std::vector<TensorBytes>& tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}, {"writer", "tandem"}}}};
  std::int64_t offset = 0;
  for (const TensorBytes& tensor : tensors) {
    header[tensor.name] = {{"dtype", format_name(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.size()}}};
    offset += tensor.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  std::string length;
  for (std::size_t byte = 0; byte < kLengthBytes; ++byte)
    length += static_cast<char>(text.size() >> (8 * byte) & 0xFFU);  // little endian
  return length + text;
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK, a named pipe in its place would wait for a writer. To a file it means nothing.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_reading(path_, errno);
  try {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail_reading(path_, errno);
    if (!S_ISREG(status.st_mode)) fail("it is no file");
    read_header(status.st_size);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { ::close(descriptor_); }

void SafetensorsFile::read_header(std::int64_t file_bytes) {
  std::array<unsigned char, kLengthBytes> raw{};
  read_at(0, raw.data(), kLengthBytes);
  std::uint64_t length = 0;
  for (std::size_t byte = kLengthBytes; byte-- > 0;) length = length << 8U | raw[byte];
  if (length > kMostHeaderBytes || static_cast<std::int64_t>(length + kLengthBytes) > file_bytes)
    fail("its header does not fit in it");
  const auto data = static_cast<std::int64_t>(length + kLengthBytes);
  std::string text(length, '\0');
  read_at(kLengthBytes, text.data(), static_cast<std::int64_t>(length));
  try {
    const Json header = Json::parse(text);
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      Entry& read = entries_[name];
      read.type = entry.at("dtype").get<std::string>();
      read.shape = entry.at("shape").get<std::vector<std::int64_t>>();
      read.begin = data + entry.at("data_offsets").at(0).get<std::int64_t>();
      read.end = data + entry.at("data_offsets").at(1).get<std::int64_t>();
    }
  } catch (const Json::exception& error) {
    fail(std::string("its header is malformed: ") + error.what());
  }
}

void SafetensorsFile::read(const std::string& name, DType type, const std::vector<std::int64_t>& shape,
                           std::byte* target) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail("it holds no tensor " + name);
  const Entry& entry = found->second;
  const TensorBytes wanted{name, type, shape, nullptr};
  if (entry.type != format_name(type) || entry.shape != shape || entry.end - entry.begin != wanted.size())
    fail("tensor " + name + " is of another type or shape than the network's");
  read_at(entry.begin, target, wanted.size());
}

void SafetensorsFile::read_at(std::int64_t offset, void* target, std::int64_t bytes) const {
  char* begin = static_cast<char*>(target);
  for (std::int64_t done = 0; done < bytes;) {
    const ssize_t got = ::pread(descriptor_, begin + done, static_cast<std::size_t>(bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_reading(path_, errno);
    if (got == 0) fail("it is cut short");
    done += got;
  }
}

void SafetensorsFile::fail(const std::string& problem) const {
  throw DeviceError(path_ + ": " + problem + "; resume from another checkpoint");
}

}  // namespace tandem
