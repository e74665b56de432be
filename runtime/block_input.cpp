#include "runtime/block_input.hpp"

#include <algorithm>
#include <utility>

#include "cli/atomic_file.hpp"
#include "core/base/errors.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "runtime/batches.hpp"
#include "runtime/prompt_data.hpp"
#include "runtime/sample_data.hpp"

namespace tandem {
namespace {

// What an encoder reads of each text, and the first token of the one that grows.
class SourceData final : public TensorSource {
 public:
  explicit SourceData(const PromptBlock& block) : block_(block) {}
  void read(BatchKey key, std::size_t index, const BatchPlace& place) const override {
    auto* const out = static_cast<std::int64_t*>(place.bytes);
    const std::int64_t each = place.elements / block_.batch;
    std::fill_n(out, place.elements, 0);
    for (std::int64_t i = 0; index == 0 && i < block_.batch; ++i) {
      const Prompt& prompt = block_.prompts.at(static_cast<std::size_t>(key.micro_batch * block_.batch + i));
      std::copy_n(prompt.tokens.begin(), std::min(each, prompt.length), out + i * each);
    }
  }

 private:
  const PromptBlock& block_;
};

std::string numbers_of(const Prompt& prompt) {
  std::string numbers;
  for (const std::int64_t token : prompt.tokens) numbers += (numbers.empty() ? "" : " ") + std::to_string(token);
  return numbers;
}

std::string quoted(const std::string& cell) {
  std::string out = "\"";
  for (const char c : cell) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

BlockInput::BlockInput(const Scenario& scenario, PromptBlock block)
    : kind_(prompt_kind(scenario)), block_(std::move(block)) {
  const GenerationSizes sizes(scenario.workload);
  outputs_ = sizes.outputs;
  if (kind_ != PromptKind::Sources) return;
  if (sizes.prompt != 1)
    throw ConfigError("generate.prompt: is " + std::to_string(sizes.prompt) + ", and a text of " +
                      scenario.workload.family + " begins with one token, 0, behind what --prompts has; allowed: 1");
  target_ = std::max(scenario.workload.keys.integer_or("target_sequence", 0), 1 + sizes.new_tokens);
}

std::vector<std::string> BlockInput::settings() const {
  std::vector<std::string> settings = {"workload.batch=" + std::to_string(block_.batch),
                                       "workload.micro_batches=" + std::to_string(block_.micro_batches)};
  const auto set = [&](const std::string& key, const std::string& value) { settings.push_back(key + "=" + value); };
  const auto set_each = [&](const std::string& key, const auto& of) {
    std::string list;
    for (const Prompt& prompt : block_.prompts) list += (list.empty() ? "" : ", ") + std::to_string(of(prompt));
    set(key, "{values: [" + list + "]}");
  };
  if (kind_ == PromptKind::Text) {
    set_each("generate.prompt", [](const Prompt& prompt) { return prompt.length; });
  } else if (kind_ == PromptKind::Sources) {
    set("workload.sequence", std::to_string(block_.prompts.front().length));
    set("workload.target_sequence", std::to_string(target_));
  } else {
    set("generate.prompt", std::to_string(block_.prompts.front().length));
    set("data.manifest", file());
    set("data.pipeline.on_error", "fail");  // nobody asked what else there is
  }
  if (!outputs_.empty())
    set_each("generate.new_tokens", [&](const Prompt& prompt) { return outputs_[prompt.number % outputs_.size()]; });
  return settings;
}

std::unique_ptr<DataSource> BlockInput::open(const Scenario& run) const {
  if (kind_ == PromptKind::Sources) return std::make_unique<SourceData>(block_);
  if (kind_ == PromptKind::Samples) {
    SampleData::Texts texts;
    for (const Prompt& prompt : block_.prompts) texts.emplace_back(prompt.tokens.begin(), prompt.tokens.end());
    return std::make_unique<SampleData>(run, std::move(texts));
  }
  std::vector<std::vector<std::int64_t>> tokens;
  for (const Prompt& prompt : block_.prompts) tokens.push_back(prompt.tokens);
  return std::make_unique<PromptData>(std::move(tokens));
}

std::string BlockInput::lines() const {
  std::string lines;
  for (const Prompt& prompt : block_.prompts) lines += numbers_of(prompt) + "\n";
  return lines;
}

std::string BlockInput::manifest() const {
  std::string rows = "sample,text";
  for (const Modality modality : kModalities) rows += "," + std::string(name_of(modality));
  rows += "\n";
  for (const Prompt& prompt : block_.prompts) {
    rows += std::to_string(prompt.number) + "," + numbers_of(prompt);
    for (const std::string& file : prompt.files) rows += "," + (file.empty() ? file : quoted(file));
    rows += "\n";
  }
  return rows;
}

std::string BlockInput::file() const {
  const std::string path = folder_.file("prompts");
  write_file(path, kind_ == PromptKind::Samples ? manifest() : lines());
  return path;
}

}  // namespace tandem
