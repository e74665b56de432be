// Hardware profiles: the shipped ones, curves, and the schema beside the code that reads it.
#include "core/machine/profile.hpp"

#include <regex.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/base/input_stages.hpp"
#include "core/yaml/schema.hpp"
#include "core/yaml/yaml_tree.hpp"
#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

HardwareProfile shipped(const std::string& name) {
  return load_profile(source_path("hardware_profiles/") + name + ".yaml");
}

TEST(ProfileCurve, InterpolatesInLogX) {
  const Curve curve{{1e3, 1e5, 1e6}, {0.2, 0.6, 1.0}};
  EXPECT_DOUBLE_EQ(curve.at(1e3), 0.2);
  EXPECT_DOUBLE_EQ(curve.at(1e4), 0.4);  // half way from 10^3 to 10^5 in log x
  EXPECT_DOUBLE_EQ(curve.at(1e5), 0.6);
  EXPECT_DOUBLE_EQ(curve.at(std::sqrt(1e11)), 0.8);
  EXPECT_DOUBLE_EQ(curve.at(1e6), 1.0);
}

TEST(ProfileCurve, IsConstantBeyondItsEnds) {
  const Curve curve{{1e3, 1e5}, {0.2, 0.6}};
  for (const double x : {0.0, -5.0, 1.0, 999.0, -std::numeric_limits<double>::infinity()}) EXPECT_EQ(curve.at(x), 0.2);
  for (const double x : {1e5, 1e9, std::numeric_limits<double>::infinity()}) EXPECT_EQ(curve.at(x), 0.6);
  EXPECT_EQ(curve.at(std::nan("")), 0.2);
  EXPECT_EQ((Curve{{7}, {0.3}}.at(1e9)), 0.3);
  EXPECT_EQ(Curve{}.at(42), 1);
}

TEST(Profile, RoundNumbers) {
  const HardwareProfile p = shipped("round_numbers");
  EXPECT_EQ(p.name, "round_numbers");
  for (const DType type : {DType::F32, DType::F16, DType::BF16, DType::F64}) EXPECT_EQ(p.peak_flops.at(type), 1e13);
  const auto tier = [&](Tier t) { return p.tiers[static_cast<std::size_t>(t)]; };
  EXPECT_EQ(tier(Tier::Device).capacity_bytes, 16LL << 30);
  EXPECT_EQ(tier(Tier::Device).bytes_per_s, 1e12);
  EXPECT_EQ(tier(Tier::HostPinned).capacity_bytes, 256LL << 30);
  EXPECT_EQ(tier(Tier::HostPinned).bytes_per_s, 1e11);
  EXPECT_EQ(tier(Tier::HostPageable).capacity_bytes, 0);
  EXPECT_EQ(tier(Tier::Disk).capacity_bytes, 1000000000000);
  EXPECT_EQ(p.h2d.bytes_per_s, 1e10);
  EXPECT_EQ(p.d2h.bytes_per_s, 1e10);
  EXPECT_EQ(p.disk_read.bytes_per_s, 1e9);
  EXPECT_EQ(p.pcie_bytes_per_s, 0);
  EXPECT_EQ(p.small_copy_bytes, 4096);
  EXPECT_EQ(p.cpu_optimizer_parameters_per_s, 1e9);
  EXPECT_EQ(p.loader_bytes_per_s, 1e10);
  for (const std::int64_t cost : {p.launch_ns, p.op_ns, p.cpu_op_ns, p.dispatch_ns, p.event_ns, p.h2d.latency_ns,
                                  p.d2h.latency_ns, p.collective_latency_ns})
    EXPECT_EQ(cost, 0);
  EXPECT_TRUE(p.efficiency.empty());
  EXPECT_TRUE(p.interference.empty());
  EXPECT_TRUE(p.uncertainty.empty());
}

TEST(Profile, H200) {
  const HardwareProfile p = shipped("h200");
  EXPECT_EQ(p.h2d.bytes_per_s, 55.3e9);
  EXPECT_EQ(p.pcie_bytes_per_s, 99.5e9);
  EXPECT_EQ(p.peak_flops.at(DType::BF16), 790e12);
  EXPECT_EQ(p.cpu_optimizer_parameters_per_s, 6.7e9);
  EXPECT_EQ(p.cores, 16);
  EXPECT_EQ(p.efficiency.at(KernelKind::Memory).at(1e12), 0.9);
}

TEST(Profile, TitanRtxHasNoBfloat16) {
  const HardwareProfile p = shipped("titan_rtx");
  EXPECT_FALSE(p.peak_flops.contains(DType::BF16));
  EXPECT_EQ(p.cores, 14);
  EXPECT_EQ(p.peak_flops.at(DType::F16), 130e12);
}

// What the driver shows of a card (nvidia-smi, in MiB) less CUDA's context: 1.5 to 4.5%, of a small card more. A
// datasheet's GB read as 10^9 bytes would be 7% too little, read as GiB too much.
TEST(Profile, DeviceMemoryIsWhatAProgramCanAllocate) {
  const struct {
    const char* name;
    double shown_mib, least_share = 0.955;
  } cards[] = {
      {"rtx_4090", 24564},        {"titan_rtx", 24220},     {"gtx_1650", 3911, 0.85},  {"flexgen_t4", 15360},
      {"v100_vm", 32510},         {"dgx2_v100", 32510},     {"yard_v100", 32510},      {"v100_dgx2_nvme", 32510},
      {"dgx_a100", 81920},        {"superpod_a100", 40960}, {"h100", 81559},           {"h100_node", 81559},
      {"h100_node_nvme", 326236}, {"h100_measured", 81559}, {"h200_measured", 143771}, {"h200", 143771}};
  for (const auto& card : cards) {
    const auto bytes = shipped(card.name).tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes;
    const double share = static_cast<double>(bytes) / (card.shown_mib * 1024 * 1024);
    EXPECT_GE(share, card.least_share) << card.name;
    EXPECT_LE(share, 0.995) << card.name;
  }
}

TEST(Profile, EveryKey) {
  const HardwareProfile p = parse_profile(
      "name: all\ntiers:\n  device: {capacity: 1GiB, bandwidth: 10GB/s}\n  host_pinned: {capacity: 2GiB, bandwidth: "
      "20GB/s}\n  host_pageable: {capacity: 3GiB, bandwidth: 3GB/s}\n  disk: {capacity: 4GiB}\n"
      "compute: {peak: {fp32: 1TFLOPS}, efficiency: {attention: [[1kFLOP, 0.5], [1GFLOP, 0.75]], optimizer: {value: "
      "[[1KiB, 2]], source: x}}, launch: 1us, op: 2us}\n"
      "copies: {h2d: {bandwidth: 1GB/s, latency: 3us, efficiency: [[1B, 0.1]]}, d2h: {bandwidth: 2GB/s}, disk_read: "
      "{bandwidth: 3GB/s}, disk_write: {bandwidth: 4GB/s}, peer: {bandwidth: 5GB/s}, shared_bandwidth: 2.5GB/s, "
      "host_bandwidth: 4.5GB/s, small_copy: 1KiB, pageable_h2d: {bandwidth: 0.5GB/s, latency: 9us}, pageable_d2h: "
      "{bandwidth: 0.25GB/s}}\nlanes: [{lane: compute, count: 2}, {lane: cpu_optimizer, count: 3, cores: 1}]\n"
      "cpu: {cores: 3, peak: 5GFLOPS, compute: {peak: {fp32: 4GFLOPS}, op: 7us, bodies: [{body: a.b, op: 1us, gemm: "
      "2}]}, optimizer: {rate: 2Mparameters/s, efficiency: [[1parameters, 0.5]]}, op: 4us}\n"
      "host: {devices: 4, dispatch: 5us, event: 6us}\nloader: {bandwidth: 6GB/s}\ncollective: {bandwidth: 7GB/s, "
      "latency: 8us}\n"
      "input_stages: {jpeg_decode: {item: 20us, unit: 1.5ns}, cache_copy: {item: 0ps, unit: {value: 90ps, source: "
      "x}}}\n"
      "interference: [{lane: compute, while_busy: cpu_optimizer, factor: 1.25}]\n"
      "launches_beside: [{lane: h2d, starts: 0.2, repeated_starts: {value: 0.1, source: x}, launch: 1.5}, {lane: d2h, "
      "starts: 0, repeated_starts: 0}]\n"
      "uncertainty: {compute: {value: 0.02, source: held out}, copies: 0, cpu_optimizer: 0.03, dispatch: 1, sharing: "
      "0.5}\n",
      "all.yaml");
  EXPECT_EQ(p.tiers[static_cast<std::size_t>(Tier::HostPageable)].capacity_bytes, 3LL << 30);
  EXPECT_EQ(p.tiers[static_cast<std::size_t>(Tier::HostPageable)].bytes_per_s, 3e9);
  EXPECT_EQ(p.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes, 4LL << 30);
  EXPECT_EQ(p.pageable_h2d.bytes_per_s, 0.5e9);
  EXPECT_EQ(p.pageable_h2d.latency_ns, 9000);
  EXPECT_EQ(p.pageable_d2h.bytes_per_s, 0.25e9);
  EXPECT_EQ(p.lanes.at(Engine::Compute), (LaneRow{2, 0}));
  EXPECT_EQ(p.lanes.at(Engine::CpuOptimizer), (LaneRow{3, 1}));
  EXPECT_FALSE(p.one_pool);
  ASSERT_NE(p.cpu_compute, nullptr);
  EXPECT_EQ(p.cpu_compute->peak_flops.at(DType::F32), 4e9);
  EXPECT_EQ(p.cpu_compute->op_ns, 7000);
  EXPECT_EQ(p.cpu_compute->bodies.at("a.b").factor.at(KernelKind::Gemm), 2);
  EXPECT_EQ(p.cpu_compute->tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s, 20e9) << "the host's";
  EXPECT_EQ(p.efficiency.at(KernelKind::Attention).x, (std::vector<double>{1e3, 1e9}));
  EXPECT_EQ(p.efficiency.at(KernelKind::Attention).y, (std::vector<double>{0.5, 0.75}));
  EXPECT_EQ(p.efficiency.at(KernelKind::Optimizer).x, (std::vector<double>{1024}));
  EXPECT_EQ(p.launch_ns, 1000);
  EXPECT_EQ(p.op_ns, 2000);
  EXPECT_EQ(p.h2d.latency_ns, 3000);
  EXPECT_EQ(p.h2d.efficiency.at(1), 0.1);
  EXPECT_EQ(p.disk_write.bytes_per_s, 4e9);
  EXPECT_EQ(p.peer.bytes_per_s, 5e9);
  EXPECT_EQ(p.pcie_bytes_per_s, 2.5e9);
  EXPECT_EQ(p.host_copy_bytes_per_s, 4.5e9);
  EXPECT_EQ(p.devices_per_host, 4);
  EXPECT_EQ(p.small_copy_bytes, 1024);
  EXPECT_EQ(p.cpu_flops, 5e9);
  EXPECT_EQ(p.cpu_optimizer_parameters_per_s, 2e6);
  EXPECT_EQ(p.cpu_optimizer_efficiency.at(1), 0.5);
  EXPECT_EQ(p.uncertainty.at(TimeCause::Compute).relative, 0.02);
  EXPECT_EQ(p.uncertainty.at(TimeCause::Compute).source, "held out");
  EXPECT_EQ(p.uncertainty.at(TimeCause::Copies).relative, 0);
  EXPECT_EQ(p.uncertainty.at(TimeCause::Dispatch).relative, 1);
  EXPECT_FALSE(p.uncertainty.contains(TimeCause::Disk));
  EXPECT_EQ(p.cpu_op_ns, 4000);
  EXPECT_EQ(p.dispatch_ns, 5000);
  EXPECT_EQ(p.event_ns, 6000);
  EXPECT_EQ(p.input_stages.size(), 2U);
  EXPECT_EQ(p.input_stages.at("jpeg_decode"), (StageRate{20000, 1.5}));
  EXPECT_EQ(p.input_stages.at("cache_copy"), (StageRate{0, 0.09}));
  EXPECT_EQ(p.collective_bytes_per_s, 7e9);
  EXPECT_EQ(p.collective_latency_ns, 8000);
  EXPECT_EQ((p.interference.at({Engine::Compute, Engine::CpuOptimizer})), 1.25);
  EXPECT_EQ(p.launches_beside.at(Engine::H2D), (LaunchSlowDown{0.2, 0.1, 1.5}));
  EXPECT_EQ(p.launches_beside.at(Engine::D2H), LaunchSlowDown{});
}

bool is_number(const Schema& schema) {
  return schema.type == ValueType::Quantity || schema.type == ValueType::Integer || schema.type == ValueType::Number ||
         schema.type == ValueType::List;
}

// Numbers without {value:, source:} are listed by path.
void find_unsourced(const Node& node, const Schema& schema, const std::string& path, std::vector<std::string>& out) {
  const bool takes_source = !schema.one_of.empty() && is_number(schema.one_of.front());
  if (takes_source) {
    const Node* source = node.find("source");
    if (source == nullptr || source->text.size() < 10) out.push_back(path);
    return;
  }
  for (const Entry& entry : node.entries)
    if (const Property* property = schema.find(entry.key))
      find_unsourced(entry.value, property->schema, path + "." + entry.key, out);
}

// A profile of a real machine says of every number where it is from; a top-level `source` speaks for all.
TEST(Profile, EveryShippedNumberHasASource) {
  for (const auto& file : std::filesystem::directory_iterator(source_path("hardware_profiles"))) {
    const Node root = read_yaml(read_text_file(file.path().string()), file.path().string());
    std::vector<std::string> unsourced;
    if (root.find("source") == nullptr) find_unsourced(root, profile_schema(), "", unsourced);
    EXPECT_TRUE(unsourced.empty()) << file.path() << ": " << testing::PrintToString(unsourced);
    EXPECT_EQ(load_profile(file.path().string()).name, file.path().stem().string());
  }
}

// The schema spells lanes, tiers and precisions as the code does.
TEST(ProfileSchema, NamesMatchTheCode) {
  std::vector<std::string> lanes, tiers, precisions;
  for (int i = 0; i < kEngineCount; ++i) lanes.emplace_back(name_of(static_cast<Engine>(i)));
  for (int i = 0; i < kTierCount; ++i) tiers.emplace_back(name_of(static_cast<Tier>(i)));
  for (const DType type : {DType::F32, DType::F16, DType::BF16, DType::F64}) precisions.emplace_back(name_of(type));
  const Schema& pair = profile_schema().find("interference")->schema.items.front();
  EXPECT_EQ(pair.find("lane")->schema.words, lanes);
  EXPECT_EQ(pair.find("while_busy")->schema.words, lanes);
  EXPECT_EQ(profile_schema().find("launches_beside")->schema.items.front().find("lane")->schema.words, lanes);
  EXPECT_EQ(profile_schema().find("input_stages")->schema.keys(),
            std::vector<std::string>(std::begin(kInputStages), std::end(kInputStages)));
  tiers.insert(tiers.begin() + 1, "one_pool");
  EXPECT_EQ(profile_schema().find("tiers")->schema.keys(), tiers);
  EXPECT_EQ(profile_schema().find("compute")->schema.find("peak")->schema.keys(), precisions);
  EXPECT_EQ(registered_names().scenario->find("workload")->schema.find("precision")->schema.words, precisions);
}

void expect_described(const Schema& schema, const std::string& path) {
  for (const Property& property : schema.properties) {
    const std::string at = path + "." + property.key;
    EXPECT_GT(property.schema.description.size(), 8u) << at << " has no description";
    expect_described(property.schema, at);
    for (const Schema& branch : property.schema.one_of)
      if (branch.type == ValueType::Map) expect_described(branch, at);
  }
}

TEST(ProfileSchema, EveryKeyIsDescribed) {
  expect_described(*registered_names().scenario, "scenario");
  for (const Case& family : registered_names().scenario->find("workload")->schema.cases)
    for (const Property& property : family.properties)
      EXPECT_GT(property.schema.description.size(), 4u) << family.value << "." << property.key;
  expect_described(profile_schema(), "profile");
}

// Editors read what `tandem schema` prints.
TEST(ProfileSchema, TheScenariosFileIsWhatTheFamiliesDeclare) {
  EXPECT_EQ(read_text_file(source_path("docs/scenario.schema.json")), scenario_schema_text())
      << "run: build/bin/tandem schema >docs/scenario.schema.json";
}

// The text after `from` up to the next quote, with JSON's escaped backslashes undone; moves `at` behind it.
std::string json_text_after(const std::string& json, const std::string& from, std::size_t& at) {
  at = json.find(from, at);
  if (at == std::string::npos) return "";
  const std::size_t start = at + from.size();
  at = json.find('"', start);
  std::string out;
  for (std::size_t i = start; i < at; ++i) {
    if (json[i] == '\\') ++i;
    out += json[i];
  }
  return out;
}

class Pattern {  // POSIX, which agrees with JSON Schema's dialect on all that these patterns use
 public:
  explicit Pattern(const std::string& text) { EXPECT_EQ(regcomp(&compiled_, text.c_str(), REG_EXTENDED), 0) << text; }
  ~Pattern() { regfree(&compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  bool matches(const std::string& word) const { return regexec(&compiled_, word.c_str(), 0, nullptr, 0) == 0; }

 private:
  regex_t compiled_;
};

// Editors check quantities by pattern, the program by its table of units: both accept the same.
TEST(ProfileSchema, PatternsAgreeWithTheUnits) {
  const std::string json = kProfileSchemaText;
  int patterns = 0;
  std::size_t at = 0;
  for (std::string family; !(family = json_text_after(json, "\"x-unit\": \"", at)).empty();) {
    ++patterns;
    const Pattern editor(json_text_after(json, "\"pattern\": \"", at));
    for (const std::string& unit : unit_family(family).names()) {
      for (const char* number : {"1", "0", "12.5", "1e3", "1.5E-3"})
        EXPECT_TRUE(editor.matches(number + unit)) << number << unit;
      for (const char* number : {"", "01", "-1", "+1", ".5", "1.", "1 ", "0x1", "1_0", "nan"})
        EXPECT_FALSE(editor.matches(number + unit)) << number << unit;
      EXPECT_FALSE(editor.matches("1" + unit + "x")) << unit;
    }
    EXPECT_FALSE(editor.matches("1"));
  }
  EXPECT_EQ(patterns, 8);
}

}  // namespace
}  // namespace tandem::test
