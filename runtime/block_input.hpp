// A block of prompts as what a run reads: the keys that say how large it is, and its data. Must not know how runs go.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "report/temporary_file.hpp"
#include "runtime/data.hpp"
#include "runtime/prompts.hpp"

namespace tandem {

class BlockInput {
 public:
  // Of `scenario`, as a person gave it. Throws ConfigError for keys that its prompts do not go with.
  BlockInput(const Scenario& scenario, PromptBlock block);

  // KEY=VALUE of a run of this block alone.
  std::vector<std::string> settings() const;
  // The data of such a run.
  std::unique_ptr<DataSource> open(const Scenario& run) const;
  // What another rank takes for --prompts, with --tokens. Written when asked for.
  std::string file() const;
  const PromptBlock& block() const { return block_; }

 private:
  std::string lines() const;
  std::string manifest() const;

  const PromptKind kind_;
  const PromptBlock block_;
  std::vector<std::int64_t> outputs_;  // new tokens of the scenario's texts; none: all have as many
  std::int64_t target_ = 0;            // behind an encoder of text, places of the text that grows
  TemporaryFolder folder_;
};

}  // namespace tandem
