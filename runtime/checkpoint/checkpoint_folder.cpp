#include "runtime/checkpoint/checkpoint_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>

#include "core/base/errors.hpp"
#include "core/base/shell_text.hpp"
#include "core/base/system_calls.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/saved_file.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial";
constexpr mode_t kFolderMode = 0777;  // less what the process's mask takes

std::string step_folder(const std::string& directory, std::int32_t step) {
  std::array<char, 32> name;
  std::snprintf(name.data(), name.size(), "step-%08d", step);
  return directory + "/" + name.data();
}

// The step of "step-00000120<suffix>", -1 for any other name.
std::int32_t step_of(std::string_view name, std::string_view suffix) {
  if (!name.starts_with(kPrefix) || !name.ends_with(suffix)) return -1;
  name.remove_suffix(suffix.size());
  name.remove_prefix(kPrefix.size());
  std::int32_t step = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc() && end == name.data() + name.size() ? step : -1;
}

// The standard library's directory_iterator and remove_all end the process where there is no memory.
// errno, or 0.
int list(const std::string& directory, std::string_view suffix, std::vector<SavedState>& found) {
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(directory.c_str()), close);
  if (open == nullptr) return errno;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(open.get());  // NOLINT(concurrency-mt-unsafe): its own DIR
    if (entry == nullptr) return errno;
    if (const std::int32_t step = step_of(entry->d_name, suffix); step >= 0)
      found.push_back({step, directory + (directory.ends_with('/') ? "" : "/") + entry->d_name});
  }
}

std::vector<SavedState> folders(const std::string& directory, std::string_view suffix) {
  std::vector<SavedState> found;
  int failure = 0;
  do {
    found.clear();
    failure = list(directory, suffix, found);
  } while (failure == EINTR);
  // What cannot be listed is not empty: a run would take it for a place to begin in.
  if (failure != 0 && failure != ENOENT) fail_at("list", directory, failure);
  std::sort(found.begin(), found.end(), [](const SavedState& a, const SavedState& b) { return a.step < b.step; });
  return found;
}

bool is_there(const std::string& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (error && is_of_the_system(error.value())) fail_at("look at", path, error.value());
  return there;
}

void move(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_at("rename", from, errno);
}

// With all that is in it. 0, or errno.
int remove_tree(const std::string& folder) noexcept {
  constexpr int kOpenFolders = 8;
  const auto remove_one = [](const char* path, const struct stat*, int, FTW*) { return ::remove(path); };
  return ::nftw(folder.c_str(), remove_one, kOpenFolders, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT ? errno : 0;
}

void remove(const std::string& folder) {
  int error = 0;
  do error = remove_tree(folder);
  while (error == EINTR);
  if (error != 0) fail_at("remove", folder, error);
}

// The run went back to an earlier one: what came after is no longer what it goes on from, but it is not ours to delete.
bool set_aside_from(const std::string& directory, std::int32_t step) {
  bool any = false;
  for (const SavedState& later : folders(directory, "")) {
    if (later.step < step) continue;
    std::string to = later.folder + ".superseded";
    while (is_there(to)) to += "+";
    move(later.folder, to);
    any = true;
  }
  return any;
}

void delete_older(const CheckpointOptions& options, std::int32_t step) {
  std::vector<SavedState> all = complete_checkpoints(options.directory);
  std::erase_if(all, [&](const SavedState& checkpoint) { return checkpoint.step > step; });
  for (std::size_t i = 0; i + static_cast<std::size_t>(options.keep) < all.size(); ++i) {
    // Under this name it no longer counts, however little of it is left.
    const std::string doomed = all[i].folder + std::string(kPartial);
    move(all[i].folder, doomed);
    remove(doomed);
  }
}

}  // namespace

std::vector<SavedState> complete_checkpoints(const std::string& directory) {
  std::vector<SavedState> found = folders(directory, "");
  std::erase_if(found, [&](const SavedState& c) { return !is_there(c.folder + "/" + kManifestName); });
  return found;
}

std::string partial_folder(const std::string& directory, std::int32_t step) {
  return step_folder(directory, step) + std::string(kPartial);
}

namespace {

// `make` is one of std::filesystem's, which leave an interrupted call to the caller.
template <class Make>
void make_folder(const std::string& folder, Make make) {
  std::error_code error;
  do make(folder, error);
  while (error.value() == EINTR);
  if (error) fail_at("make the folder", folder, error.value());
}

}  // namespace

void begin_checkpoint(const std::string& directory, std::int32_t step) {
  make_folder(directory, [](const std::string& folder, std::error_code& e) { fs::create_directories(folder, e); });
  for (const SavedState& left : folders(directory, kPartial)) remove(left.folder);
  const std::string partial = partial_folder(directory, step);
  make_folder(partial, [](const std::string& folder, std::error_code& e) { fs::create_directory(folder, e); });
}

void commit_checkpoint(const CheckpointOptions& options, std::int32_t step, const std::string& manifest) {
  const std::string partial = partial_folder(options.directory, step);
  SavedFile file(partial + "/" + kManifestName);
  file.write(manifest.data(), static_cast<std::int64_t>(manifest.size()));
  file.finish();
  sync_folder(partial);
  set_aside_from(options.directory, step);
  move(partial, step_folder(options.directory, step));
  sync_folder(options.directory);
  delete_older(options, step);
}

void go_back_to(const std::string& directory, std::int32_t step) {
  if (set_aside_from(directory, step + 1)) sync_folder(directory);
}

void discard_checkpoint(const std::string& directory, std::int32_t step) noexcept {
  try {
    remove_tree(partial_folder(directory, step));
  } catch (const std::bad_alloc&) {  // what cannot be removed is swept away by the next save
  }
}

namespace {

// Those that are not there, the outermost last. `failure` is errno where that cannot be told.
std::vector<fs::path> missing_folders(const std::string& directory, int& failure) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = directory; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
    if (error && (failure = error.value()) != 0) break;
    missing.push_back(at);
  }
  return missing;
}

// With the names of new folders synced: what is saved in them is nowhere if they are lost.
void make_folders(const std::string& directory) {
  int failure = 0;
  const std::vector<fs::path> missing = missing_folders(directory, failure);
  for (auto folder = missing.rbegin(); failure == 0 && folder != missing.rend(); ++folder)
    if (::mkdir(folder->c_str(), kFolderMode) != 0 && errno != EEXIST) failure = errno;
  std::error_code error;
  if (failure == 0 && !fs::is_directory(directory, error)) failure = error ? error.value() : ENOTDIR;
  if (failure == 0 && ::access(directory.c_str(), W_OK | X_OK) != 0) failure = errno;
  if (is_of_the_system(failure)) fail_at("make or write to", directory, failure);
  if (failure != 0)
    throw ConfigError("checkpoint.directory: " + directory + " cannot be made or written to: " +
                      std::strerror(failure) + "; allowed: a folder that you may write to");
  for (const fs::path& folder : missing) {
    const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
    // One that may be written to but not read cannot be opened to sync it.
    if (::access(parent.c_str(), R_OK) == 0) sync_folder(parent);
  }
}

}  // namespace

CheckpointLock::CheckpointLock(const Scenario& scenario) {
  const std::string& directory = scenario.checkpoint.directory;
  make_folders(directory);
  std::error_code error;
  const std::vector<SavedState> there = complete_checkpoints(directory);
  const fs::path from = fs::path(scenario.resume_folder).parent_path();
  const bool goes_on = !scenario.resume_folder.empty() && fs::equivalent(from.empty() ? "." : from, directory, error);
  if (error && is_of_the_system(error.value())) fail_at("look at", directory, error.value());
  if (!there.empty() && !goes_on)
    throw ConfigError("checkpoint.directory: " + directory + " holds checkpoints of another run, the latest after " +
                      std::to_string(there.back().step) + " training steps; to go on with it: --resume " +
                      shell_path(directory) + "; else choose another folder, or move them away");
  descriptor_ = uninterrupted([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor_ < 0) fail_at("open", directory, errno);
  // Where a file system has no locks, nothing is locked.
  if (uninterrupted([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw ConfigError("checkpoint.directory: another run saves into " + directory + "; choose another folder");
}

CheckpointLock::~CheckpointLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tandem
