#include "runtime/prompts.hpp"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin UTF-8 with it: no text of a prompt

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
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const std::string where = (path == "-" ? "standard input" : path) + ":" + std::to_string(number) + ": the prompt ";
    Prompt& prompt = prompts.emplace_back(prompts.size(), line);
    prompt.tokens = text.tokens_of(line, where);
  }
  if (prompts.empty()) throw ConfigError("--prompts: " + path + " has no prompts; allowed: a line each");
  return prompts;
}

std::vector<PromptBlock> blocks_of(std::vector<Prompt> prompts, std::int64_t batch, std::int64_t micro_batches,
                                   bool one_length) {
  std::stable_sort(prompts.begin(), prompts.end(),
                   [](const Prompt& a, const Prompt& b) { return a.tokens.size() < b.tokens.size(); });
  std::vector<PromptBlock> blocks;
  for (auto first = prompts.begin(); first != prompts.end();) {
    const auto end = one_length ? std::find_if(first, prompts.end(),
                                               [&](const Prompt& p) { return p.tokens.size() != first->tokens.size(); })
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
