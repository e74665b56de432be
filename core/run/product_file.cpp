#include "core/run/product_file.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/dirs.hpp"
#include "core/yaml/checker.hpp"
#include "core/yaml/decimal.hpp"
#include "core/yaml/schema.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {
namespace {

// 0.16 is later than 0.9.
std::vector<int> numbers_of(const std::string& version) {
  std::vector<int> numbers(1);
  for (const char c : version) {
    if (c == '.')
      numbers.push_back(0);
    else if (c >= '0' && c <= '9' && numbers.back() < 1'000'000)
      numbers.back() = numbers.back() * 10 + (c - '0');
    else
      return {};
  }
  return numbers;
}

const Node& needed(const Node& map, const std::string& key) {
  const Node* node = map.find(key);
  if (node == nullptr) refuse(map.at, key, "is missing", "products/ has files to go by");
  return *node;
}

// A number, with a unit of bytes if it has one; 0 where there is none.
double amount(const Node& map, const std::string& key) {
  const Node* node = map.find(key);
  if (node == nullptr) return 0;
  std::size_t length = 0;
  NumberFault fault;
  const std::optional<Decimal> number = read_decimal(node->text, length, fault);
  const std::string unit = number ? node->text.substr(length) : "?";
  double factor = unit.empty() ? 1 : 0;
  for (const auto& [name, bytes] : unit_family("bytes").units)
    if (name == unit) factor = static_cast<double>(bytes);
  if (!number || number->is_negative || factor == 0)
    refuse(node->at, key, shown(node->text) + " is no number of bytes", "24 or 3GB");
  return number->approximate * factor;
}

bool is_true(const Node& map, const std::string& key, bool otherwise) {
  const Node* node = map.find(key);
  return node == nullptr ? otherwise : node->text == "true";
}

// Without those that are of 16-bit parameters, where these stay on the device.
std::vector<ProductBuffer> buffers_of(const Node& version, const std::string& key, bool has_parameters) {
  using Block = ProductBuffer::Block;
  std::vector<ProductBuffer> buffers;
  const Node* list = version.find(key);
  if (list == nullptr) return buffers;
  for (const Node& item : list->items) {
    needed(item, "what");
    needed(item, "source");
    if (is_true(item, "parameters", false) && !has_parameters) continue;
    ProductBuffer buffer{amount(item, "bytes"), is_true(item, "pinned", false)};
    const Node* block = item.find("block");
    if (block != nullptr && block->text != "tensor" && block->text != "sub_group")
      refuse(block->at, "block", shown(block->text) + " is none", "tensor, sub_group, or no block: all of a process");
    if (block != nullptr) buffer.block = block->text == "tensor" ? Block::Tensor : Block::SubGroup;
    buffers.push_back(buffer);
  }
  return buffers;
}

std::vector<std::string> products() {
  std::vector<std::string> names;
  for (const std::string& folder : product_dirs())
    for (std::string& stem : yaml_stems(folder)) names.push_back(std::move(stem));
  return names;
}

Node file_of(const std::string& like) {
  for (const std::string& folder : product_dirs()) {
    const std::string path = folder + "/" + like + ".yaml";
    std::error_code error;
    if (like.find('/') == std::string::npos && std::filesystem::is_regular_file(path, error))
      return read_yaml(read_text_file(path), path);
  }
  throw ConfigError("product.like: there is no product " + shown(like) + hint(like, products()) +
                    "; allowed: " + join(products()));
}

// The latest of those that are not later than the one asked for.
const Node& version_of(const Node& file, const std::string& asked) {
  const std::vector<int> wanted = numbers_of(asked);
  const Node* found = nullptr;
  for (const Node& version : needed(file, "versions").items)
    if (asked.empty() || numbers_of(needed(version, "from").text) <= wanted) found = &version;
  if (found != nullptr && !(wanted.empty() && !asked.empty())) return *found;
  throw ConfigError("product.version: " + shown(asked) + " is not known; allowed: " +
                    needed(needed(file, "versions").items.front(), "from").text + " or later, as in 0.16");
}

// It predicts the product's memory only where copies go as the product's do.
void require_policy(const Node& file, const Scenario& scenario) {
  const Node& policy = needed(file, "policy");
  const PolicyOptions& own = scenario.policy;
  const bool same = std::all_of(policy.entries.begin(), policy.entries.end(), [&](const Entry& entry) {
    const auto option = own.options.find(entry.key);
    const std::string is = entry.key == "name" ? own.name : option != own.options.end() ? option->second : "";
    const std::vector<Node> may = entry.value.kind == NodeKind::Sequence ? entry.value.items : std::vector{entry.value};
    return std::any_of(may.begin(), may.end(), [&](const Node& one) { return one.text == is; });
  });
  if (!same)
    throw ConfigError("product.like: " + scenario.product.like + " is another policy than " + own.name +
                      " as it is here; allowed: policy: " + to_flow(policy) + ", one of each list");
}

}  // namespace

ProductMemory product_memory(const Scenario& scenario) {
  const Node file = file_of(scenario.product.like);
  const Node& version = version_of(file, scenario.product.version);
  require_policy(file, scenario);
  const DType precision = scenario.workload.precision;
  if (precision == DType::F32)
    throw ConfigError("product.like: is known for 16 bits; allowed: workload.precision of fp16 or bf16");
  if (scenario.optimizer.masters && !is_true(file, "masters", true))
    throw ConfigError("product.like: " + scenario.product.like + " has no masters; allowed: optimizer.masters: false");
  const Node& held = needed(file, "held");
  ProductMemory memory;
  memory.name = needed(file, "product").text;
  memory.version = scenario.product.version;
  const auto parameters = scenario.policy.options.find("parameters");
  const bool on_host = parameters == scenario.policy.options.end() || parameters->second != "device";
  memory.host = buffers_of(version, "host", on_host);
  memory.device = buffers_of(version, "device", on_host);
  memory.power_of_two = is_true(version, "power_of_two", false);
  memory.host_bytes = amount(version, "host_bytes");
  memory.device_bytes = amount(version, "device_bytes");
  memory.load_bytes = amount(version, "load_bytes");
  memory.held_bytes =
      amount(held, precision == DType::BF16 ? "bf16" : "fp16") + (on_host ? amount(held, "parameters") : 0);
  memory.holds_states = is_true(held, "states", true);
  if (held.find("tier") != nullptr) memory.held_tier = Tier::Device;
  return memory;
}

}  // namespace tandem
