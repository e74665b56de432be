// What the tests of media share: a folder of their own, and what a decoder says of a file.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "runtime/media/media.hpp"

namespace tandem {

class MediaFolder {
 public:
  MediaFolder() {
    std::string name = ::testing::TempDir() + "/tandem-media-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the test");
    path_ = name;
  }
  ~MediaFolder() { std::filesystem::remove_all(path_); }
  MediaFolder(const MediaFolder&) = delete;
  MediaFolder& operator=(const MediaFolder&) = delete;

  std::string path() const { return path_; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

// "damaged: a.jpg: is damaged: ..."; "" where nothing is wrong. Another error than a MediaError fails the test.
inline std::string fault_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const MediaError& error) {
    return std::string(name_of(error.fault())) + ": " + error.what();
  }
  return "";
}

}  // namespace tandem
