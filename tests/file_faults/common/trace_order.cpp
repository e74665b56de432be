#include "tests/file_faults/common/trace_order.hpp"

#include <filesystem>
#include <map>
#include <set>

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }
std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }
bool lies_in(const std::string& path, const std::string& folder) { return path.starts_with(folder + "/"); }

bool is_checkpoint(const std::string& name) { return name.starts_with("step-") && name.find('.') == std::string::npos; }

class Order {
 public:
  std::string take(const TracedCall& call) {
    if (call.result < 0 || name_of(call.path) == "(no name)") return "";  // that is gone when the power fails
    if (call.name == "open to make" || call.name == "mkdir") return made(call);
    if (call.name == "write" || call.name == "writev" || call.name == "pwrite" || call.name == "ftruncate")
      unsynced_.insert(call.path);
    if (call.name == "fsync" || call.name == "fdatasync") synced(call.path);
    if (call.name == "rename") return renamed(call.path, call.second);
    if (call.name == "unlink" || call.name == "rmdir") return removed(call.path);
    return "";
  }
  std::string at_end() const {
    if (!unsynced_.empty()) return *unsynced_.begin() + " is never synced";
    if (!renamed_into_.empty()) return renamed_into_.begin()->first + ": its names are never synced";
    return "";
  }

 private:
  std::string made(const TracedCall& call) {
    if (call.name == "mkdir") {
      if (!name_of(call.path).ends_with(".partial")) new_folders_.insert(call.path);
      return "";
    }
    if (!there_.insert(call.path).second) return "";  // opened again
    new_names_.insert(folder_of(call.path));
    if (name_of(call.path) != "manifest.json") {
      unsynced_.insert(call.path);  // empty is not what it is to be
      return "";
    }
    for (const std::string& file : unsynced_)
      if (lies_in(file, folder_of(call.path))) return file + " is not synced, and its manifest is made";
    if (has_table_ && !table_synced_) return call.path + " is made, and the table was not synced since the last one";
    table_synced_ = false;
    unsynced_.insert(call.path);
    return "";
  }

  void synced(const std::string& path) {
    unsynced_.erase(path);
    new_names_.erase(path);
    renamed_into_.erase(path);
    std::erase_if(new_folders_, [&](const std::string& folder) { return folder_of(folder) == path; });
    if (path.find(".csv") != std::string::npos) table_synced_ = true;
  }

  std::string renamed(const std::string& from, const std::string& to) {
    const std::string folder = folder_of(to);
    if ((is_checkpoint(name_of(from)) || is_checkpoint(name_of(to))) && renamed_into_.contains(folder))
      return from + " is renamed, and the names in " + folder + " were not synced since " + renamed_into_[folder];
    for (const std::string& file : unsynced_)
      if ((file == from || lies_in(file, from)) && !is_checkpoint(name_of(from)))
        return from + " is renamed, and " + file + " is not synced";
    if (new_names_.contains(from)) return from + " is renamed, and the names in it are not synced";
    if (is_checkpoint(name_of(to)))
      for (const std::string& fresh : new_folders_)
        if (folder == fresh || lies_in(folder, fresh))
          return to + " is complete, and the name " + fresh + " is not synced";
    // What is renamed away is to be deleted, or is where an earlier sync has put it: its new name need not last.
    if (!is_checkpoint(name_of(from))) renamed_into_[folder] = name_of(to);
    if (to.ends_with(".csv")) {
      has_table_ = true;
      table_synced_ = false;  // its rows are still to come
    }
    std::set<std::string> moved;
    for (const std::string& path : there_)
      moved.insert(path == from || lies_in(path, from) ? to + path.substr(from.size()) : path);
    there_ = moved;
    return "";
  }

  std::string removed(const std::string& path) {
    there_.erase(path);
    unsynced_.erase(path);
    if (is_checkpoint(name_of(folder_of(path)))) return path + " of a complete checkpoint is removed";
    return "";
  }

  std::set<std::string> there_, unsynced_;
  std::set<std::string> new_names_;                  // folders with names that were made and not synced
  std::set<std::string> new_folders_;                // for checkpoints, whose own names are not synced
  std::map<std::string, std::string> renamed_into_;  // folders, with the name that was renamed into them and not synced
  bool has_table_ = false, table_synced_ = false;
};

}  // namespace

std::string first_out_of_order(const std::vector<TracedCall>& calls) {
  Order order;
  for (const TracedCall& call : calls)
    if (std::string problem = order.take(call); !problem.empty())
      return "call " + std::to_string(call.number) + ": " + problem;
  return order.at_end();
}

}  // namespace tandem::testing
