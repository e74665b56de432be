// The config.json files of tests/data/configs, as parameters of tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/common/source_dir.hpp"

namespace tandem {

inline std::vector<std::string> published_configs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/data/configs")))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

// A parameter as a part of a test's name, which has letters, digits and '_'.
inline std::string name_of_test(const ::testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

}  // namespace tandem
