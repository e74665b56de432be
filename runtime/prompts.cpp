#include "runtime/prompts.hpp"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

std::string all_of(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  try {
    return InputFile(path, Pipes::Read).rest(kMostBytes);
  } catch (const UnreadableFile& error) {
    throw ConfigError("--prompts: " + path + " " + error.what() + "; allowed: a text file, or - for standard input");
  }
}

}  // namespace

std::vector<Prompt> read_prompts(const std::string& path, TokenText& text) {
  std::vector<Prompt> prompts;
  std::istringstream in(all_of(path));
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const std::string where = (path == "-" ? "standard input" : path) + ":" + std::to_string(number) + ": the prompt ";
    Prompt& prompt = prompts.emplace_back(prompts.size(), line);
    prompt.tokens = text.tokens_of(line, where);
  }
  if (prompts.empty()) throw ConfigError("--prompts: " + path + " has no prompts; allowed: a line each");
  return prompts;
}

std::vector<PromptBlock> blocks_of(std::vector<Prompt> prompts, std::int64_t batch, std::int64_t micro_batches) {
  std::map<std::size_t, std::vector<Prompt>> by_length;
  for (Prompt& prompt : prompts) by_length[prompt.tokens.size()].push_back(std::move(prompt));
  std::vector<PromptBlock> blocks;
  for (auto& [length, all] : by_length)
    for (std::size_t first = 0; first < all.size();) {
      const auto left = static_cast<std::int64_t>(all.size() - first);
      PromptBlock& block = blocks.emplace_back();
      block.batch = std::min(batch, left);
      block.micro_batches = std::min(micro_batches, left / block.batch);
      const auto count = static_cast<std::size_t>(block.batch * block.micro_batches);
      std::move(all.begin() + static_cast<std::ptrdiff_t>(first),
                all.begin() + static_cast<std::ptrdiff_t>(first + count), std::back_inserter(block.prompts));
      first += count;
    }
  return blocks;
}

}  // namespace tandem
