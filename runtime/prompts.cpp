#include "runtime/prompts.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"
#include "core/samples/manifest.hpp"
#include "core/workloads/sample_plan.hpp"
#include "runtime/data_kind.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin UTF-8 with it: no text of a prompt
constexpr std::string_view kUtf16[] = {"\xFF\xFE", "\xFE\xFF"};

std::string all_of(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  try {
    return InputFile(path, Pipes::Read).rest(kMostBytes);
  } catch (const UnreadableFile& error) {
    throw ConfigError("--prompts: " + path + " " + error.what() + "; allowed: a text file, or - for standard input");
  }
}

std::vector<Prompt> read_lines(const std::string& path, TokenText& text) {
  const std::string name = path == "-" ? "standard input" : path;
  std::vector<Prompt> prompts;
  std::string all = all_of(path);
  for (const std::string_view mark : kUtf16)
    if (all.starts_with(mark)) throw ConfigError("--prompts: " + name + " is UTF-16; allowed: UTF-8");
  if (all.starts_with(kByteOrderMark)) all.erase(0, kByteOrderMark.size());
  std::istringstream in(all);
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    Prompt& prompt = prompts.emplace_back(prompts.size(), line);
    prompt.tokens = text.tokens_of(line, name + ":" + std::to_string(number) + ": the prompt ");
    prompt.length = std::ssize(prompt.tokens);
  }
  if (prompts.empty()) throw ConfigError("--prompts: " + name + " has no prompts; allowed: a line each");
  return prompts;
}

// Each has what the network reads. One that tells samples with a picture from others takes both.
void require_modalities(const Scenario& scenario, const Network& network, const ManifestRow& row,
                        const std::string& where) {
  const bool mixes = takes_a_mix(*find_workload(scenario.workload.family));
  for (const Modality modality : kModalities) {
    const bool reads = encoded_items(network, modality) > 0, has = row.modalities().has(modality);
    const std::string name(name_of(modality));
    if (has && !reads)
      throw ConfigError(where + "has a file in the column " + name + ", and " + scenario.workload.family +
                        " reads none; allowed: an empty cell");
    if (reads && !has && !mixes)
      throw ConfigError(where + "has no file in the column " + name + "; allowed: one, as " + scenario.workload.family +
                        " reads it");
  }
}

std::vector<Prompt> read_samples(const std::string& path, TokenText& text, const Scenario& scenario) {
  if (path == "-")
    throw ConfigError("--prompts: " + scenario.workload.family +
                      " reads more than text; allowed: a CSV file of samples, as of data.manifest");
  const SampleManifest manifest = read_sample_manifest(path, "--prompts");
  const Network network = network_of(scenario);
  std::vector<Prompt> prompts;
  for (const ManifestRow& row : manifest.rows) {
    const std::string where = path + ": the prompt \"" + row.sample + "\" ";
    require_modalities(scenario, network, row, where);
    Prompt& prompt = prompts.emplace_back(prompts.size(), row.text);
    prompt.tokens = text.tokens_of(row.text, where);
    prompt.length = std::ssize(prompt.tokens);
    for (const Modality modality : kModalities) {
      if (row.file(modality).empty()) continue;
      prompt.files[static_cast<std::size_t>(modality)] = std::filesystem::absolute(row.file(modality)).string();
      prompt.length += tokens_of_item(network, modality);
    }
  }
  return prompts;
}

}  // namespace

PromptKind prompt_kind(const Scenario& scenario) {
  if (data_kind(scenario) == DataKind::Text) return PromptKind::Text;
  const Network network = network_of(scenario);
  if (find_tensor(network, "sources") != nullptr) return PromptKind::Sources;
  const bool reads_media = std::any_of(std::begin(kModalities), std::end(kModalities),
                                       [&](Modality modality) { return encoded_items(network, modality) > 0; });
  if (find_tensor(network, "tokens") != nullptr && reads_media) return PromptKind::Samples;
  throw ConfigError("--prompts: " + scenario.workload.family +
                    " reads what no prompt gives; allowed: none, so that data are the scenario's");
}

std::vector<Prompt> read_prompts(const std::string& path, TokenText& text, const Scenario& scenario) {
  return prompt_kind(scenario) == PromptKind::Samples ? read_samples(path, text, scenario) : read_lines(path, text);
}

std::vector<PromptBlock> blocks_of(std::vector<Prompt> prompts, std::int64_t batch, std::int64_t micro_batches,
                                   bool one_length) {
  std::stable_sort(prompts.begin(), prompts.end(),
                   [](const Prompt& a, const Prompt& b) { return a.length < b.length; });
  std::vector<PromptBlock> blocks;
  for (auto first = prompts.begin(); first != prompts.end();) {
    const auto end =
        one_length ? std::find_if(first, prompts.end(), [&](const Prompt& p) { return p.length != first->length; })
                   : prompts.end();
    const std::int64_t left = end - first;
    PromptBlock& block = blocks.emplace_back();
    block.batch = std::min(batch, left);
    block.micro_batches = std::min(micro_batches, left / block.batch);
    const auto next = first + block.batch * block.micro_batches;
    std::move(first, next, std::back_inserter(block.prompts));
    first = next;
  }
  return blocks;
}

}  // namespace tandem
