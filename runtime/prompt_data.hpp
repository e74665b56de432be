// Prompts as the batches of a run. Must not know where they are from.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/data.hpp"

namespace tandem {

class PromptData final : public DataSource {
 public:
  // Texts of a block in order, each with at most as many tokens as batches have: they end there together.
  explicit PromptData(std::vector<std::vector<std::int64_t>> prompts) : prompts_(std::move(prompts)) {}
  void next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                        std::int64_t* targets) const override {
    for (std::int64_t i = 0; i < batch; ++i) {
      const std::vector<std::int64_t>& prompt = prompts_.at(static_cast<std::size_t>(key.micro_batch * batch + i));
      const std::int64_t padding = sequence - static_cast<std::int64_t>(prompt.size());
      if (padding < 0) throw std::logic_error("a prompt that is longer than a block's");
      std::fill_n(inputs + i * sequence, padding, 0);
      std::copy(prompt.begin(), prompt.end(), inputs + i * sequence + padding);
      std::fill_n(targets + i * sequence, sequence, 0);  // nobody looks
    }
  }
  void masked_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t, std::int64_t*,
                          std::int64_t*) const override {
    throw std::logic_error("prompts have no masks");
  }
  void image_batch(BatchKey, std::int64_t, std::int64_t, float*, std::int64_t*) const override {
    throw std::logic_error("prompts are no images");
  }

 private:
  std::vector<std::vector<std::int64_t>> prompts_;
};

}  // namespace tandem
