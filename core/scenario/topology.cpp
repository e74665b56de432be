// A profile's `topology`: its values to the struct, and rules between its parts.
#include "core/machine/topology.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "core/base/check.hpp"
#include "core/scenario/build.hpp"

namespace tandem {
namespace {

LinkRate link(const Values& values, const std::string& path) {
  return {values.number(path + ".bandwidth"), values.integer(path + ".latency")};
}

std::size_t level_count(const Values& values, const std::string& tree) {
  std::size_t count = 0;
  while (count < std::size(kTreeLevels) && values.has(tree + kTreeLevels[count] + ".down")) ++count;
  return count;
}

CollectiveAlgorithm algorithm_named(const std::string& name) {
  constexpr std::pair<const char*, CollectiveAlgorithm> kNames[] = {
      {"auto", CollectiveAlgorithm::Auto},
      {"ring", CollectiveAlgorithm::Ring},
      {"tree", CollectiveAlgorithm::Tree},
      {"halving_doubling", CollectiveAlgorithm::HalvingDoubling},
      {"hierarchical", CollectiveAlgorithm::Hierarchical}};
  for (const auto& [known, algorithm] : kNames)
    if (name == known) return algorithm;
  CHECK(name.empty(), name);  // the schema lists the names
  return CollectiveAlgorithm::Auto;
}

void build_tree(const Values& values, const std::string& tree, Topology& out) {
  double below = out.nic.bytes_per_s;  // of a port down
  for (std::size_t i = 0; i < level_count(values, tree); ++i) {
    const std::string at = tree + kTreeLevels[i] + ".";
    FatTreeLevel& level = out.levels.emplace_back();
    level.down = values.integer(at + "down");
    level.up.latency_ns = values.integer(at + "latency");
    level.links = values.integer(at + "up");
    level.up.bytes_per_s = values.has(at + "oversubscription")
                               ? static_cast<double>(level.down) * below / values.number(at + "oversubscription")
                               : static_cast<double>(level.links) * values.number(at + "bandwidth");
    below = level.up.bytes_per_s;
  }
  if (!out.levels.empty()) out.levels.back().up = {};
}

bool is_given(const Values& values, const std::string& topology) {
  for (const char* key : {"nvlink.bandwidth", "pcie.bandwidth", "nics.count", "fat_tree.leaf.down", "torus.bandwidth"})
    if (values.has(topology + key)) return true;
  return false;
}

// Adds what is wrong with a value that is there.
class Rules {
 public:
  Rules(const Values& values, std::string topology, Findings& findings)
      : values_(&values), topology_(std::move(topology)), findings_(&findings) {}
  bool has(const std::string& key) const { return values_->has(topology_ + key); }
  bool known(const std::string& key) const { return findings_->are_known({topology_ + key}); }
  std::int64_t integer(const std::string& key) const { return values_->integer(topology_ + key); }
  void require(bool holds, const std::string& key, const std::string& problem, const std::string& allowed) {
    const std::string path = topology_ + key;
    if (holds || !values_->has(path) || !findings_->are_known({path})) return;
    findings_->add(Finding(*values_->position(path), path, problem, allowed));
  }

 private:
  const Values* values_;
  std::string topology_;
  Findings* findings_;
};

// What goes up from all but the top level: `up` links of `bandwidth`, or `oversubscription`.
void check_levels(Rules& rules, std::size_t count) {
  for (std::size_t i = 0; i < std::size(kTreeLevels); ++i) {
    const std::string level = std::string("fat_tree.") + kTreeLevels[i], at = level + ".";
    const bool up = rules.has(at + "up"), bandwidth = rules.has(at + "bandwidth"),
               over = rules.has(at + "oversubscription");
    if (i >= count) {
      if (i > 0)  // nothing is below the first
        rules.require(false, at + "down", std::string("there is no ") + kTreeLevels[i - 1] + " below it",
                      "all levels below");
    } else if (i + 1 == count) {
      for (const char* key : {"up", "bandwidth", "oversubscription"})
        rules.require(false, at + key, "there is no level above it", "none of it, or a level above");
    } else if (over) {
      rules.require(!up, at + "up", "oversubscription says what goes up", "one of both");
      rules.require(!bandwidth, at + "bandwidth", "oversubscription says what goes up", "one of both");
    } else {
      rules.require(up && bandwidth, at + "down", "nothing says what goes up",
                    "beside up and bandwidth, or oversubscription");
    }
  }
}

}  // namespace

std::shared_ptr<const Topology> build_topology(const Values& values, const std::string& prefix) {
  const std::string topology = prefix + "topology.";
  if (!is_given(values, topology)) return nullptr;
  auto out = std::make_shared<Topology>();
  out->devices_per_host = std::max<std::int64_t>(values.integer(prefix + "host.devices"), 1);
  out->nvlink = link(values, topology + "nvlink");
  out->pcie = link(values, topology + "pcie");
  out->pcie_uplink = link(values, topology + "pcie.uplink");
  out->devices_per_switch = values.integer(topology + "pcie.devices_per_switch", out->devices_per_host);
  out->nics = values.integer(topology + "nics.count");
  out->nic = link(values, topology + "nics");
  out->rails = values.flag(topology + "fat_tree.rails");
  build_tree(values, topology + "fat_tree.", *out);
  for (std::size_t i = 0; i < values.count(topology + "torus.dimensions"); ++i)
    out->dimensions.push_back(values.integer(topology + "torus.dimensions." + std::to_string(i)));
  out->torus = link(values, topology + "torus");
  out->algorithm = algorithm_named(values.text(prefix + "collective.algorithm"));
  return out;
}

void check_topology(const Values& values, const std::string& prefix, Findings& findings) {
  const std::string topology = prefix + "topology.";
  const std::string algorithm = prefix + "collective.algorithm";
  if (!is_given(values, topology)) {
    if (values.has(algorithm) && values.text(algorithm) != "auto" && findings.are_known({prefix + "topology"}))
      findings.add(Finding(*values.position(algorithm), algorithm, "the machine has no topology for it to go by",
                           "auto, or a machine with topology"));
    return;
  }
  Rules rules(values, topology, findings);
  const std::int64_t devices = std::max<std::int64_t>(values.integer(prefix + "host.devices"), 1);
  const std::string of_a_host = "a host has " + std::to_string(devices) + " of host.devices";
  rules.require(rules.integer("nics.count") <= devices, "nics.count", of_a_host, "at most as many");
  rules.require(rules.integer("pcie.devices_per_switch") <= devices, "pcie.devices_per_switch", of_a_host,
                "at most as many");
  rules.require(rules.integer("pcie.devices_per_switch") >= devices || !rules.has("pcie.devices_per_switch") ||
                    rules.has("nvlink.bandwidth") || rules.has("pcie.uplink.bandwidth"),
                "pcie.devices_per_switch", "nothing joins a host's switches", "with pcie.uplink or nvlink");
  for (const char* key : {"nvlink.bandwidth", "pcie.bandwidth", "nics.count", "torus.bandwidth"})
    rules.require(values.has(prefix + "host.devices") || !findings.are_known({prefix + "host"}), key,
                  "host.devices does not say how many devices a host has", "beside host.devices");
  const bool inside = devices == 1 || rules.has("nvlink.bandwidth") || rules.has("pcie.bandwidth");
  for (const char* key : {"nics.count", "fat_tree.leaf.down", "torus.bandwidth"})
    rules.require(inside || !rules.known("nvlink") || !rules.known("pcie"), key,
                  "nothing joins a host's " + std::to_string(devices) + " devices", "beside nvlink or pcie");
  rules.require(!rules.has("fat_tree.leaf.down"), "torus.bandwidth", "hosts are joined by a fat_tree, too",
                "one of both");
  rules.require(rules.has("nics.count") || !rules.known("nics"), "fat_tree.leaf.down", "hosts have no cards",
                "beside nics");
  rules.require(
      !values.flag(topology + "fat_tree.rails") || rules.integer("nics.count") <= 1 || rules.has("fat_tree.spine.down"),
      "fat_tree.rails", "nothing joins the leaf switches of a host's cards", "false, or with a spine");
  check_levels(rules, level_count(values, topology + "fat_tree."));
}

}  // namespace tandem
