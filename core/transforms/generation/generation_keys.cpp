#include "core/transforms/generation/generation_keys.hpp"

#include "core/base/ids.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostTokens = 1 << 24, kMostVocabulary = std::int64_t{1} << 31;
constexpr double kMostTemperature = 1000;
constexpr std::int64_t kMostDenoisingSteps = 999;
constexpr const char* kSteps = "steps";
constexpr const char* kOwnLength = "target_sequence";  // behind an encoder of text

}  // namespace

const std::vector<FamilyKey>& generation_keys() {
  static const std::vector<FamilyKey> kKeys = {
      size_key("prompt", {1, kMostTokens}, "Tokens of a prompt, all computed in the first step."),
      size_key("new_tokens", {1, kMostTokens}, "Tokens to generate of each text, one a step: the steps of the run."),
      size_key("page", {1, kMostTokens}, 16,
               "Tokens whose keys and values are kept together, and move together. Those of a prompt are, too."),
      {"cache_bits",
       R"({"description": "Keys and values are kept as codes of so many bits, by blocks of 64 numbers with a scale. Not given: as numbers.", "type": "integer", "enum": [4]})",
       {}},
      word_key(
          "codes", {"fused", "eager"},
          "How codes of weights and of the cache are made and read. fused: by one kernel; eager: by a dozen and by "
          "six, one operation each, as FlexLLMGen's."),
      optional_key("stop_token", {0, kMostVocabulary - 1},
                   "The token that ends a text; none where not given. A run of several texts goes on to the end."),
      number_key("temperature", 0, kMostTemperature, 0,
                 "Tokens are drawn by the softmax of logits over this, by the scenario's seed. 0: the likeliest one is "
                 "taken."),
      size_key("top_k", {0, kMostVocabulary - 1}, 0,
               "Tokens are drawn of so many of the likeliest; 0: of all. With a temperature.")};
  return kKeys;
}

const std::vector<FamilyKey>& denoising_keys() {
  static const std::vector<FamilyKey> kKeys = {
      size_key(kSteps, {1, kMostDenoisingSteps},
               "Of a network that is trained to tell noise, instead of the keys of text: steps from noise to an image, "
               "each with a forward (DDIM)."),
      {"guidance",
       R"({"description": "How far an image follows its context: the forward is of each image twice, with it and with one of nothing, and the difference counts so often. Not given: of each once.", "type": "number", "exclusiveMinimum": 0, "maximum": 1000})",
       {}}};
  return kKeys;
}

const char* text_length_key(const KeyValues& keys) {
  return keys.integer_or(kOwnLength, 0) > 0 ? kOwnLength : "sequence";
}

void set_text_length(KeyValues& keys, std::int64_t tokens) {
  keys[keys.has(kOwnLength) ? kOwnLength : "sequence"] = tokens;
}

bool denoises(const WorkloadOptions& workload) { return workload.generate.has(kSteps); }
bool generates(const WorkloadOptions& workload) { return workload.generate.has("prompt") || denoises(workload); }

GenerationSizes::GenerationSizes(const WorkloadOptions& workload)
    : denoises(tandem::denoises(workload)),
      prompt(denoises ? 1 : workload.generate.integer("prompt")),
      new_tokens(workload.generate.integer(denoises ? kSteps : "new_tokens")),
      page(denoises ? 0 : workload.generate.integer_or("page", 16)),
      cache_bits(workload.generate.integer_or("cache_bits", 0)),
      eager_codes(workload.generate.text_or("codes", "fused") == "eager"),
      stop_token(workload.generate.integer_or("stop_token", kNone)),
      temperature(workload.generate.has("temperature") ? workload.generate.number("temperature") : 0),
      top_k(workload.generate.integer_or("top_k", 0)),
      guidance(workload.generate.has("guidance") ? workload.generate.number("guidance") : 0) {}

}  // namespace tandem
