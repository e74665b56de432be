// A folder with data files, a scenario that names them, and what batches or refusals come of it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "runtime/data.hpp"

namespace tandem {

using Tokens = std::vector<std::int64_t>;

class DataTest : public ::testing::Test {
 protected:
  DataTest() : folder_(std::filesystem::path(::testing::TempDir()) / ("tandem_data_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    scenario_.path = (folder_ / "question.yaml").string();
    scenario_.workload.family = "gpt";
    for (const auto& [key, size] : {std::pair("layers", 1), {"hidden", 8}, {"heads", 2}})
      scenario_.workload.keys[key] = size;
    scenario_.workload.keys["vocabulary"] = 256;
    scenario_.workload.keys["sequence"] = 8;
    scenario_.workload.keys["inputs"] = 64;
    scenario_.workload.keys["classes"] = 10;
    scenario_.seed = 3;
  }
  ~DataTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string refusal() const {
    try {
      open_data(scenario_);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
  struct Batch {
    Tokens inputs, targets;
    bool operator==(const Batch&) const = default;
  };
  static Batch next_tokens(const DataSource& data, BatchKey key, std::int64_t batch, std::int64_t sequence) {
    Batch out{Tokens(static_cast<std::size_t>(batch * sequence)), Tokens(static_cast<std::size_t>(batch * sequence))};
    data.next_token_batch(key, batch, sequence, out.inputs.data(), out.targets.data());
    return out;
  }

  const std::filesystem::path folder_;
  Scenario scenario_;
};

}  // namespace tandem
