// The network of a step that generates, made of the one that is trained: nothing is kept for a backward, attention
// reads the keys and values of earlier steps, and what comes out is a token of each text. Must not know steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/network.hpp"

namespace tandem {

// Which tokens of each text a step computes, and which pages of keys and values it finds: page 0 has the prompt's, each
// later one so many tokens'.
struct GeneratingStep {
  std::int64_t tokens = 1, position = 0;  // how many, and the place of the first
  std::int64_t prompt = 1, page = 1;      // page 0: nothing is kept from step to step
  std::int64_t places = 1;                // that the network has positions for
  std::int64_t cache_bits = 0;
  bool eager_codes = false;
  double temperature = 0;  // 0: the likeliest token
  std::int64_t top_k = 0;
  std::vector<std::int64_t> padding = {};  // tokens before each text's prompt; none: all have the longest

  std::int64_t pages_before() const;  // those that other steps have filled
  bool begins_page() const;           // else it goes on with one
  std::int64_t rows() const { return position == 0 ? prompt : page; }
};

// Of each attention of a network in forward order, the tokens that one sees; 0: all before it. A network of a step's
// few tokens says none that are more than these: of whole sequences, all are known.
std::vector<std::int64_t> attention_windows(const Network& of_whole_sequences);

// The likeliest token of a row of logits, or one that is drawn, as the step says.
LocalId add_choice(ModuleScope& scope, const std::string& name, std::vector<LocalId> logits, const GeneratingStep& step,
                   std::int64_t padding = 0);

struct GeneratingNetwork {
  Network network;
  std::int32_t text = 0;  // the place of what grows in the batch; pages of keys and values come behind the batch
};

// Of a call that is made in the first step alone: it reads nothing of the text. What others read of it stays.
inline constexpr const char* kOnce = "once";

// Modules are the trained network's; pages that one begins are its last outputs. `trained`: of sequences of step.tokens
// tokens. `windows`: see above. Pages come as tensors behind those of the batch: that of attention a and page p is a *
// most_pages
// + p of these; one that the step goes on with is carried. Throws ConfigError for a network that has no text that
// grows.
GeneratingNetwork generating_network(const Network& trained, const GeneratingStep& step,
                                     const std::vector<std::int64_t>& windows, std::int64_t most_pages);

}  // namespace tandem
