// Of two figures that contradict each other the nearer one is told: the person's own, whatever he derives from and
// however he changes it.
#include "core/yaml/position.hpp"
#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

struct Change {
  const char* path;    // of the machine, from its root
  const char* value;   // what contradicts a value of machines/m.yaml
  const char* beside;  // which one, and its place there
};

constexpr Change kChanges[] = {
    {"tiers.device.bandwidth", "50MB/s", "copies.h2d.bandwidth of 10GB/s (machines/m.yaml:6:27)"},
    {"tiers.host_pinned.bandwidth", "5GB/s", "cpu.optimizer.rate of 1Gparameters/s (machines/m.yaml:7:52)"},
    {"tiers.host_pinned.bandwidth", "19GB/s", "cpu.optimizer.rate of 1Gparameters/s (machines/m.yaml:7:52)"},
    {"copies.h2d.bandwidth", "30GB/s", "tiers.host_pinned.bandwidth of 20GB/s (machines/m.yaml:4:44)"},
    {"copies.d2h.bandwidth", "30GB/s", "tiers.host_pinned.bandwidth of 20GB/s (machines/m.yaml:4:44)"},
    {"copies.peer.bandwidth", "200GB/s", "tiers.device.bandwidth of 100GB/s (machines/m.yaml:3:39)"},
    {"cpu.optimizer.rate", "2Gparameters/s", "tiers.host_pinned.bandwidth of 20GB/s (machines/m.yaml:4:44)"},
    {"compute.peak.fp32", "2PFLOPS", "tiers.device.bandwidth of 100GB/s (machines/m.yaml:3:39)"},
    {"compute.peak.fp16", "2PFLOPS", "tiers.device.bandwidth of 100GB/s (machines/m.yaml:3:39)"},
    {"compute.peak.fp16", "2GFLOPS", "compute.peak.fp32 of 1TFLOPS (machines/m.yaml:5:24)"},
    {"copies.shared_bandwidth", "8GB/s", "h2d reaches alone, 10GB/s (machines/m.yaml:6:27)"},
};

constexpr const char* kMlp = "workload: {family: mlp, layers: 2, hidden: 8, inputs: 4, classes: 2}\n";

// "a.b.c" and v as lines "a:", "  b:", "    c: v", indented; the value begins at `column` of the last one.
std::string nested(const Change& change, std::size_t indent, std::size_t& lines, std::size_t& column) {
  std::string out, path = change.path;
  lines = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.')) {
    out += std::string(indent + 2 * lines++, ' ') + path.substr(0, dot) + ":\n";
    path.erase(0, dot + 1);
  }
  const std::string last = std::string(indent + 2 * lines++, ' ') + path + ": ";
  column = last.size() + 1;
  return out + last + change.value + "\n";
}

void expect_told(const std::string& message, const std::string& start, const Change& change) {
  std::string lines = message;
  const std::string folder = kHostileFolder + "/";
  for (std::size_t at = lines.find(folder); at != std::string::npos; at = lines.find(folder, at))
    lines.erase(at, folder.size());
  EXPECT_EQ(ConfigError(lines).findings().size(), 1u) << lines;
  EXPECT_TRUE(lines.starts_with(start + ": ")) << lines << "\nnot at\n" << start;
  EXPECT_NE(lines.find(change.beside), std::string::npos) << lines << "\nnot beside\n" << change.beside;
  EXPECT_NE(lines.find(change.value), std::string::npos) << lines;
}

TEST(ScenarioOrigin, InlineMachinesAreToldAtTheirOwnValue) {
  for (const Change& change : kChanges) {
    std::size_t lines = 0, column = 0;
    const std::string text = "machine:\n  derive_from: m\n" + nested(change, 2, lines, column) + kMlp;
    expect_told(scenario_error(text),
                "bad.yaml:" + std::to_string(2 + lines) + ":" + std::to_string(column) + ": machine." + change.path,
                change);
  }
}

TEST(ScenarioOrigin, ProfilesAreToldAtTheirOwnValue) {
  for (const Change& change : kChanges) {
    std::size_t lines = 0, column = 0;
    const std::string text = "derive_from: m\n" + nested(change, 0, lines, column);
    expect_told(profile_error(text),
                "bad.yaml:" + std::to_string(1 + lines) + ":" + std::to_string(column) + ": " + change.path, change);
  }
}

TEST(ScenarioOrigin, FlagsAreToldByTheirName) {
  for (const Change& change : kChanges) {
    const std::string path = std::string("machine.") + change.path;
    for (const char* machine : {"machine: m\n", "machine: {derive_from: m}\n",
                                "machine: {derive_from: slow_bus, copies: {h2d: {bandwidth: 10GB/s}}}\n"}) {
      const std::string message = scenario_error(std::string(machine) + kMlp, {path + "=" + change.value});
      EXPECT_TRUE(message.starts_with("--set " + path + ": " + path + ": ")) << message;
      EXPECT_EQ(ConfigError(message).findings().size(), 1u) << message;
    }
  }
}

// The same contradiction inside one file is told where it always was: at the value that is bounded.
TEST(ScenarioOrigin, InsideOneFileTheBoundedValueIsTold) {
  const std::string message = scenario_error(
      "machine: {derive_from: m, tiers: {host_pinned: {bandwidth: 5GB/s}}, copies: {h2d: {bandwidth: "
      "8GB/s}, d2h: {bandwidth: 4GB/s}}, cpu: {optimizer: {rate: 0.1Gparameters/s}}}\n" +
      std::string(kMlp));
  EXPECT_EQ(message,
            "bad.yaml:1:95: machine.copies.h2d.bandwidth: 8GB/s is not plausible beside tiers.host_pinned.bandwidth of "
            "5GB/s: a copy reads the one memory and writes the other; allowed: at most 5GB/s");
}

}  // namespace
}  // namespace tandem::test
