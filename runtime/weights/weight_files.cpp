#include "runtime/weights/weight_files.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/errors.hpp"
#include "core/base/json_shape.hpp"
#include "core/yaml/position.hpp"
#include "runtime/checkpoint/saved_file.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char *kFile = "model.safetensors", *kIndex = "model.safetensors.index.json", *kEnd = ".safetensors",
                     *kAllowed = "a .safetensors file, a model.safetensors.index.json, or a folder with one of them";
// A line a tensor: models with the most experts have some 100,000.
constexpr std::int64_t kMostIndexBytes = std::int64_t{64} << 20;
constexpr std::size_t kMostTensors = 1 << 20;
constexpr std::size_t kMostFiles = 4096;

[[noreturn]] void refuse_weights(const std::string& problem, const std::string& allowed) {
  throw ConfigError("weights: " + problem + "; allowed: " + allowed);
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// What of a folder is read: the index before the file, as files that were saved anew in parts may stand beside an old
// whole one; else the one safetensors file that there is.
std::string file_of_folder(const std::string& folder) {
  for (const char* name : {kIndex, kFile})
    if (is_file(fs::path(folder) / name)) return (fs::path(folder) / name).string();
  std::vector<std::string> found;
  std::string pickled;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(kEnd)) found.push_back(entry->path().string());
    if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth")) pickled = name;
  }
  if (found.size() == 1) return found.front();
  if (!found.empty())
    refuse_weights(
        "there are " + std::to_string(found.size()) + " safetensors files in " + folder + " and no " + kIndex,
        "one of them, by its path, or an index beside them");
  refuse_weights("there is no safetensors file in " + folder +
                     (pickled.empty() ? "" : ", but " + printable(pickled) + ", which may hold code and is not read"),
                 std::string(kAllowed) + (pickled.empty() ? "" : "; transformers' save_pretrained() writes one"));
}

std::string file_of(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) refuse_weights("there is no " + printable(path), kAllowed);
  const std::string found = fs::is_directory(path, error) ? file_of_folder(path) : path;
  if (!found.ends_with(kEnd) && !found.ends_with(".json"))
    refuse_weights(printable(path) + " is another kind of file", kAllowed);
  return found;
}

}  // namespace

std::string shown_shape(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> words;
  for (const std::int64_t size : shape) words.push_back(std::to_string(size));
  return "[" + join(words) + "]";
}

std::string StoredTensor::shown() const { return "tensor " + tandem::shown(name) + " of " + file->path(); }

WeightFiles::WeightFiles(const std::string& path) : path_(file_of(path)) {
  folder_ = fs::path(path_).parent_path().string();
  if (folder_.empty()) folder_ = ".";
  if (path_.ends_with(".json")) {
    read_index();
    return;
  }
  const SafetensorsFile& file = open(path_);
  for (const auto& [name, entry] : file.entries()) tensors_[name] = {name, &file, &entry};
}

std::vector<std::string> WeightFiles::files() const {
  std::vector<std::string> paths;
  for (const auto& [path, file] : files_) paths.push_back(path);
  return paths;
}

const SafetensorsFile& WeightFiles::open(const std::string& path) {
  auto& file = files_[path];
  if (file != nullptr) return *file;
  if (files_.size() > kMostFiles)
    refuse_weights(path_ + " names more than " + std::to_string(kMostFiles) + " files", "fewer");
  try {
    file = std::make_unique<SafetensorsFile>(path);
  } catch (const DamagedCheckpoint& damage) {
    refuse_weights(damage.what(), "a whole safetensors file");
  }
  return *file;
}

void WeightFiles::read_index() {
  try {
    const Json json = parse_json<Json>(read_input_file(path_, kMostIndexBytes), {.members = kMostTensors});
    const Json& map = json_member(json, "weight_map");
    if (!map.is_object() || map.empty()) throw BadJson("weight_map: names no tensors; allowed: files by tensor");
    for (const auto& [name, value] : map.items()) {
      const std::string& where = json_text(value, "weight_map");
      if (!is_plain_name(where) || !where.ends_with(kEnd))
        throw BadJson("weight_map: " + shown(where) + " is no name of a safetensors file; allowed: " + kPlainNames);
      const SafetensorsFile& file = open((fs::path(folder_) / where).string());
      const auto found = file.entries().find(name);
      if (found == file.entries().end())
        throw BadJson("weight_map: " + shown(where) + " holds no tensor " + shown(name) +
                      "; allowed: the file that it is in");
      tensors_[name] = {name, &file, &found->second};
    }
  } catch (const BadJson& error) {
    throw ConfigError("weights: " + path_ + ": " + error.what());  // it says what is allowed
  } catch (const UnreadableFile& error) {
    refuse_weights(path_ + " " + error.what(), kAllowed);
  }
}

}  // namespace tandem
