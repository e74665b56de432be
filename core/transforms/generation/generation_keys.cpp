#include "core/transforms/generation/generation_keys.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/check.hpp"
#include "core/base/ids.hpp"
#include "core/scenario/text_lengths.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostTokens = 1 << 24, kMostVocabulary = std::int64_t{1} << 31;
constexpr double kMostTemperature = 1000;
constexpr std::int64_t kMostDenoisingSteps = 999;
constexpr const char* kSteps = "steps";
constexpr const char* kOwnLength = "target_sequence";  // behind an encoder of text

constexpr std::size_t kMostValues = 1 << 16;

// One number, or a distribution.
FamilyKey length_key(const std::string& name, const std::string& description) {
  using Json = nlohmann::ordered_json;
  const auto described = [](const char* text, const Json& rule) {
    Json all = {{"description", text}};
    all.update(rule);
    return all;
  };
  const Json length = {{"type", "integer"}, {"minimum", 1}, {"maximum", kMostTokens}};
  const auto list = [&](std::size_t least, std::size_t most) {
    return Json{{"type", "array"}, {"minItems", least}, {"maxItems", most}, {"items", length}};
  };
  const Json lognormal = {{"type", "object"},
                          {"properties",
                           {{"median", described("Half of the texts have fewer.", length)},
                            {"sigma", described("The standard deviation of the logarithm.",
                                                {{"type", "number"}, {"minimum", 0}, {"maximum", 10}})},
                            {"most", described("Longer ones are cut.", length)}}},
                          {"required", {"median", "sigma", "most"}},
                          {"additionalProperties", false}};
  const Json distribution = {
      {"type", "object"},
      {"description", "Of each text of a block its own: given one after another, or drawn by the scenario's seed."},
      {"properties",
       {{"values", described("Of the texts in order, from the first one again.", list(1, kMostValues))},
        {"uniform", described("The least and the most: each length between is as likely.", list(2, 2))},
        {"lognormal", described("A few are much longer than most.", lognormal)}}},
      {"minProperties", 1},
      {"maxProperties", 1},
      {"additionalProperties", false}};
  const Json rule = {{"description", description}, {"oneOf", {length, distribution}}};
  return {name, rule.dump(), std::nullopt, /*required=*/true};
}

}  // namespace

const std::vector<FamilyKey>& generation_keys() {
  static const std::vector<FamilyKey> kKeys = {
      length_key("prompt",
                 "Tokens of a prompt, all computed in the first step. Shorter ones than a block's longest are "
                 "padded."),
      length_key("new_tokens",
                 "Tokens to generate of each text, one a step. A block goes on until its longest text is done: the "
                 "steps of the run."),
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
      guidance(workload.generate.has("guidance") ? workload.generate.number("guidance") : 0) {
  const auto of_each = [&](const char* key, std::vector<std::int64_t>& to) {
    if (workload.generate.has(key)) to = workload.generate.integers(key);
    CHECK(to.empty() || static_cast<std::int64_t>(to.size()) >= workload.batch * workload.micro_batches, key);
  };
  of_each(kPromptLengths, prompts);
  of_each(kOutputLengths, outputs);
}

std::vector<std::int64_t> GenerationSizes::padding() const {
  std::vector<std::int64_t> padding;
  for (const std::int64_t own : prompts) padding.push_back(prompt - own);
  const auto is_none = [](std::int64_t tokens) { return tokens == 0; };
  return std::all_of(padding.begin(), padding.end(), is_none) ? std::vector<std::int64_t>() : padding;
}

}  // namespace tandem
