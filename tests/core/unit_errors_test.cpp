// A figure of a profile that is off by the factor of a wrong unit is refused (R4): 1000 and 1024 (GB for MB, GiB for
// MiB) and 8 (bits for bytes), up and down, each key figure of each shipped profile alone. What somebody only asks
// about, twice and four times as much or as little, is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/yaml/yaml_tree.hpp"
#include "tests/common/source_dir.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Capacities, rates and latencies: what a schedule is decided by. Not the disk's capacity, which may be anything.
constexpr const char* kFigures[] = {"tiers.device.capacity",
                                    "tiers.device.bandwidth",
                                    "tiers.host_pinned.capacity",
                                    "tiers.host_pinned.bandwidth",
                                    "compute.peak.fp32",
                                    "compute.peak.fp16",
                                    "compute.peak.bf16",
                                    "compute.peak.fp64",
                                    "compute.launch",
                                    "compute.op",
                                    "copies.h2d.bandwidth",
                                    "copies.h2d.latency",
                                    "copies.d2h.bandwidth",
                                    "copies.d2h.latency",
                                    "copies.peer.bandwidth",
                                    "copies.peer.latency",
                                    "copies.disk_read.bandwidth",
                                    "copies.disk_read.latency",
                                    "copies.disk_write.bandwidth",
                                    "copies.disk_write.latency",
                                    "copies.shared_bandwidth",
                                    "copies.host_bandwidth",
                                    "cpu.cores",
                                    "cpu.peak",
                                    "cpu.optimizer.rate",
                                    "cpu.op",
                                    "host.dispatch",
                                    "host.event",
                                    "host.wake",
                                    "loader.bandwidth",
                                    "collective.bandwidth",
                                    "collective.latency"};

struct Factor {
  const char* name;
  double by;
};
constexpr Factor kUnitErrors[] = {{"x1000", 1000},       {"x1024", 1024},       {"x8", 8},
                                  {"/1000", 1.0 / 1000}, {"/1024", 1.0 / 1024}, {"/8", 1.0 / 8}};
constexpr Factor kWhatIfs[] = {{"x4", 4}, {"/4", 0.25}};  // what is allowed has no holes

// A profile with all that it derives from, as a text of its own.
std::string whole(const std::string& name) {
  return parse_scenario("machine: " + name +
                            "\nworkload: {family: mlp, layers: 2, hidden: 8, inputs: 64, classes: 10, batch: 1}\n"
                            "policy: {name: resident}\n",
                        "question.yaml")
      .machine.text;
}

// Without what takes long to read and has none of the figures.
std::string figures_of(const std::string& name) {
  Node root = read_yaml(whole(name), "profile.yaml");
  const auto erase = [](Node& map, const char* key) {
    std::erase_if(map.entries, [&](const Entry& entry) { return entry.key == key; });
  };
  for (const char* key : {"interference", "launches_beside", "uncertainty", "fingerprint"}) erase(root, key);
  for (const char* key : {"bodies", "efficiency", "recording"}) erase(*root.find("compute"), key);
  return to_yaml(root);
}

Node* find(Node& root, const std::string& path) {
  Node* node = &root;
  std::istringstream keys(path);
  for (std::string key; node != nullptr && std::getline(keys, key, '.');) node = node->find(key);
  if (node != nullptr && node->find("value") != nullptr) node = node->find("value");
  return node;
}

// "672GB/s" times 1000: "672000GB/s". Cores stay whole. "" for a figure of 0.
std::string scaled(const std::string& text, double by, bool whole_number) {
  std::size_t end = 0;
  double number = std::stod(text, &end) * by;
  if (number == 0) return "";
  if (whole_number) number = std::max(1.0, std::round(number));
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.*f", whole_number ? 0 : 9, number);
  return digits + text.substr(end);
}

std::string scaled_profile(const std::string& text, const std::string& path, double by) {
  Node root = read_yaml(text, "profile.yaml");
  Node* figure = find(root, path);
  if (figure == nullptr || figure->kind != NodeKind::Scalar) return "";
  figure->text = scaled(figure->text, by, path == "cpu.cores");
  return figure->text.empty() ? "" : to_yaml(root);
}

bool is_refused(const std::string& text) {
  try {
    parse_profile(text, "profile.yaml");
  } catch (const ConfigError&) {
    return true;
  }
  return false;
}

// Profiles whose figures are from somewhere: round figures that stand for no machine contradict nothing.
std::vector<std::string> sourced_profiles() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source_path("hardware_profiles")))
    if (const std::string name = entry.path().stem(); name != "round_numbers") names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

// Its figures are from calibration, where they name no source of their own.
bool is_measured(const std::string& text) { return read_yaml(text, "profile.yaml").find("source") != nullptr; }

struct Count {
  int refused = 0, all = 0;
  void take(bool is) { refused += is ? 1 : 0, ++all; }
};

void print(const std::map<std::string, std::map<std::string, Count>>& table) {
  std::printf("%-30s", "refused of profiles");
  for (const Factor& factor : kUnitErrors) std::printf("%10s", factor.name);
  for (const char* path : kFigures) {
    if (!table.contains(path)) continue;
    std::printf("\n%-30s", path);
    for (const Factor& factor : kUnitErrors) {
      const Count& count = table.at(path).at(factor.name);
      std::printf("   %3d/%3d", count.refused, count.all);
    }
  }
  std::printf("\n");
}

TEST(UnitErrors, Of95PercentOfAllFiguresOfShippedProfilesAreRefused) {
  std::map<std::string, std::map<std::string, Count>> table;
  std::map<std::string, Count> typed_in;  // by factor: of profiles that people wrote, from specifications
  Count all, eights;
  for (const std::string& name : sourced_profiles()) {
    const std::string text = figures_of(name);
    ASSERT_FALSE(is_refused(text)) << name;
    for (const char* path : kFigures)
      for (const Factor& factor : kUnitErrors) {
        const std::string wrong = scaled_profile(text, path, factor.by);
        if (wrong.empty()) continue;
        const bool refused = is_refused(wrong);
        if (!refused && std::getenv("TANDEM_SHOW_MISSED") != nullptr)
          std::printf("missed: %s %s %s\n", name.c_str(), path, factor.name);
        table[path][factor.name].take(refused);
        all.take(refused);
        if (!is_measured(text)) typed_in[factor.name].take(refused);
        if (factor.by == 8 || factor.by * 8 == 1) eights.take(refused);
      }
  }
  print(table);
  std::printf("%d of %d refused, of factors of 8 alone %d of %d\n", all.refused, all.all, eights.refused, eights.all);
  EXPECT_GE(all.refused, 0.95 * all.all);
  // What calibration writes is no slip of a person's.
  for (const auto& [name, count] : typed_in) {
    std::printf("typed in, %s: %d of %d\n", name.c_str(), count.refused, count.all);
    EXPECT_GE(count.refused, 0.95 * count.all) << name;
  }
  EXPECT_GE(eights.refused, 0.93 * eights.all) << "what calibration measures of a host varies by more than that";
}

// A nanosecond is the least: what would be read as no time at all is refused, and 0 stays what is not counted.
TEST(UnitErrors, WhatWouldBeReadAsNothingIsRefused) {
  const std::string text = figures_of("titan_rtx");
  for (const char* path : {"host.dispatch", "copies.h2d.latency", "compute.launch"}) {
    const auto with = [&](const char* value) {
      Node root = read_yaml(text, "profile.yaml");
      find(root, path)->text = value;
      return to_yaml(root);
    };
    try {
      parse_profile(with("0.0004us"), "profile.yaml");
      ADD_FAILURE() << path;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("would round to 0; allowed: a duration"), std::string::npos)
          << error.what();
    }
    EXPECT_FALSE(is_refused(with("0us"))) << path;
  }
}

// Of what a person asks by --set, nothing is refused but what no machine can be: a copy faster than the memory it
// reads, 16 bits by far slower than on any.
TEST(UnitErrors, WhatIfsOfFourTimesAndAFourthAreAllowed) {
  for (const std::string& name : sourced_profiles()) {
    Node root = read_yaml(whole(name), "profile.yaml");
    for (const char* path : kFigures) {
      const Node* figure = find(root, path);
      if (figure == nullptr || figure->kind != NodeKind::Scalar) continue;
      for (const Factor& factor : kWhatIfs) {
        const std::string value = scaled(figure->text, factor.by, std::string(path) == "cpu.cores");
        if (value.empty()) continue;
        try {
          parse_scenario("machine: " + name +
                             "\nworkload: {family: mlp, layers: 2, hidden: 8, inputs: 64, classes: 10, batch: 1}\n"
                             "policy: {name: resident}\n",
                         "question.yaml", {std::string("machine.") + path + "=" + value});
        } catch (const ConfigError& error) {
          const std::string text = error.what();
          EXPECT_TRUE(text.find("shared_bandwidth") != std::string::npos ||
                      text.find("reads the one memory") != std::string::npos ||
                      text.find("no device does 16 bits at less") != std::string::npos ||
                      text.find("at least 20 bytes") != std::string::npos)
              << text;
        }
      }
    }
  }
}

// A question may be odd: it is remarked on. Terabytes for gigabytes are no question.
TEST(UnitErrors, AFlagIsRemarkedOnAndRefusedWhereNoMachineIsNearIt) {
  const std::string text =
      "machine: titan_rtx\nworkload: {family: mlp, layers: 2, hidden: 8, inputs: 64, classes: 10, batch: 1}\n"
      "policy: {name: resident}\n";
  const auto with = [&](const char* setting) { return parse_scenario(text, "question.yaml", {setting}); };
  EXPECT_TRUE(with("machine.copies.h2d.bandwidth=20GB/s").warnings.empty());
  const std::vector<std::string> remarks = with("machine.tiers.device.capacity=185GiB").warnings;
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_NE(remarks[0].find("machine.tiers.device.capacity: 198.6GB is not plausible beside tiers.device.bandwidth"),
            std::string::npos)
      << remarks[0];
  EXPECT_THROW(with("machine.tiers.device.capacity=141TB"), ConfigError);
  EXPECT_THROW(with("machine.tiers.host_pinned.capacity=128TB"), ConfigError);
}

}  // namespace
}  // namespace tandem
