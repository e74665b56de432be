#include "core/model/imported/folder.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/yaml/position.hpp"

namespace tandem {

std::string file_in(const std::string& folder, const std::string& name) {
  namespace fs = std::filesystem;
  const std::string path = folder + "/" + name;
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(folder, error), file = fs::weakly_canonical(path, error);
  const auto [end, unused] = std::mismatch(inside.begin(), inside.end(), file.begin(), file.end());
  if (error || end != inside.end())
    refuse({std::make_shared<const std::string>(path)}, "path", "leads out of its folder", "files that lie in it");
  return path;
}

}  // namespace tandem
