#include "runtime/checkpoint/safetensors.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json_shape.hpp"
#include "runtime/checkpoint/json_text.hpp"
#include "runtime/checkpoint/saved_file.hpp"

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
// Of one stage: tens of tensors. The format allows headers of 100 MB.
constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{4} << 20;
constexpr std::size_t kMostTensors = 1 << 16;
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

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

JsonText array_of(const std::vector<std::int64_t>& numbers) {
  JsonText array = JsonText::array();
  for (const std::int64_t number : numbers) array.push_back(JsonText::number(number));
  return array;
}

// All that the format has in whole bytes: what is not read may stand beside what is.
std::int64_t bytes_of_format(const std::string& name) {
  static const std::map<std::string, std::int64_t> kBytes = {
      {"F64", 8}, {"I64", 8},  {"U64", 8},     {"C64", 8},     {"F32", 4},    {"I32", 4},
      {"U32", 4}, {"F16", 2},  {"BF16", 2},    {"I16", 2},     {"U16", 2},    {"I8", 1},
      {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}};
  const auto found = kBytes.find(name);
  if (found == kBytes.end()) throw BadJson("dtype: is unknown; allowed: F32, F16, BF16 and the format's others");
  return found->second;
}

}  // namespace

std::int64_t TensorBytes::size() const {
  std::int64_t elements = 1;
  for (std::int64_t d : shape) elements *= d;
  return elements * size_of(type);
}

std::string safetensors_header(const std::vector<TensorBytes>& tensors) {
  JsonText header = JsonText::object(), metadata = JsonText::object();
  metadata.append("format", JsonText::text("pt")).append("writer", JsonText::text("tandem"));
  header.append("__metadata__", std::move(metadata));
  std::int64_t offset = 0;
  for (const TensorBytes& tensor : tensors) {
    JsonText fields = JsonText::object();
    fields.append("dtype", JsonText::text(format_name(tensor.type)))
        .append("shape", array_of(tensor.shape))
        .append("data_offsets", array_of({offset, offset + tensor.size()}));
    header.append(tensor.name, std::move(fields));
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
  std::array<unsigned char, kLengthBytes> raw{};
  std::string text;
  try {
    file_ = std::make_unique<InputFile>(path_);
    read_at(0, raw.data(), kLengthBytes);
    std::uint64_t length = 0;
    for (std::size_t byte = kLengthBytes; byte-- > 0;) length = length << 8U | raw[byte];
    if (length > kMostHeaderBytes || static_cast<std::int64_t>(length + kLengthBytes) > file_->bytes())
      fail("byte 1: its header of " + std::to_string(length) + " bytes does not fit in it");
    text.resize(length);
    read_at(kLengthBytes, text.data(), static_cast<std::int64_t>(length));
    read_header(text, static_cast<std::int64_t>(length + kLengthBytes));
  } catch (const UnreadableFile& error) {
    throw DamagedCheckpoint(path_ + " " + error.what());
  } catch (const BadJson& error) {
    fail(std::string("its header is malformed: ") + error.what());
  }
}

void SafetensorsFile::read_header(const std::string& text, std::int64_t data) {
  const std::int64_t most = file_->bytes() - data;
  const Json header = parse_json<Json>(text, {.members = kMostTensors});
  if (!header.is_object()) throw BadJson("is no map; allowed: tensors by name");
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    Entry& entry = entries_[name];
    entry.type = json_text(json_member(json, "dtype"), "dtype");
    std::int64_t bytes = bytes_of_format(entry.type);
    const Json& shape = json_member(json, "shape");
    if (!shape.is_array()) throw BadJson("shape: is no list; allowed: whole numbers");
    for (const Json& size : shape) {
      entry.shape.push_back(whole_number(size, "shape", 0, kMostElements));
      if (__builtin_mul_overflow(bytes, entry.shape.back(), &bytes))
        throw BadJson("shape: is too large; allowed: what the file holds");
    }
    const Json& offsets = json_member(json, "data_offsets");
    if (!offsets.is_array() || offsets.size() != 2) throw BadJson("data_offsets: are not two; allowed: begin and end");
    entry.begin = data + whole_number(offsets[0], "data_offsets", 0, most);
    entry.end = data + whole_number(offsets[1], "data_offsets", 0, most);
    if (entry.end - entry.begin != bytes)
      throw BadJson("data_offsets: are of other bytes than type and shape; allowed: " + std::to_string(bytes) +
                    " bytes");
  }
  require_no_gaps(data);
}

// As the format's own reader: no byte is in two tensors, or in none.
void SafetensorsFile::require_no_gaps(std::int64_t data) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const auto& [name, entry] : entries_) ranges.emplace_back(entry.begin, entry.end);
  std::sort(ranges.begin(), ranges.end());
  for (const auto& [begin, end] : ranges) {
    if (begin != data)
      throw BadJson("data_offsets: byte " + std::to_string(std::min(begin, data) + 1) +
                    " is in two tensors, or in none; allowed: one after another");
    data = end;
  }
  if (data != file_->bytes())
    throw BadJson("data_offsets: the file goes on after byte " + std::to_string(data) + "; allowed: to its end");
}

std::int64_t SafetensorsFile::find(const TensorBytes& tensor) const {
  const auto found = entries_.find(tensor.name);
  if (found == entries_.end()) fail("it holds no tensor " + tensor.name);
  const Entry& entry = found->second;
  if (entry.type != format_name(tensor.type) || entry.shape != tensor.shape || entry.end - entry.begin != tensor.size())
    fail("tensor " + tensor.name + " is of another type or shape than the network's");
  return entry.begin;
}

void SafetensorsFile::read(const std::string& name, DType type, const std::vector<std::int64_t>& shape,
                           std::byte* target) const {
  const TensorBytes wanted{name, type, shape, nullptr};
  read_at(find(wanted), target, wanted.size());
}

void SafetensorsFile::read_part(const TensorBytes& tensor, std::int64_t first, std::int64_t bytes,
                                std::byte* target) const {
  read_at(find(tensor) + first, target, bytes);
}

void SafetensorsFile::read_at(std::int64_t offset, void* target, std::int64_t bytes) const {
  try {
    if (file_->read_at(offset, target, bytes)) return;
  } catch (const UnreadableFile& error) {
    throw DamagedCheckpoint(path_ + " " + error.what());
  }
  fail("it is cut short");
}

void SafetensorsFile::fail(const std::string& problem) const {
  throw DamagedCheckpoint(path_ + " is damaged: " + problem);
}

}  // namespace tandem
