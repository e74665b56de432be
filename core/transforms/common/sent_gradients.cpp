#include "core/transforms/common/sent_gradients.hpp"

#include <string>

#include "core/scenario/ranks.hpp"

namespace tandem {
namespace {

SentCode::Kind kind_of(const std::string& word) {
  if (word == "bf16") return SentCode::Kind::BFloat16;
  if (word == "fp16") return SentCode::Kind::Float16;
  return word == "one_bit" ? SentCode::Kind::Signs : SentCode::Kind::None;
}

}  // namespace

SentGradients sent_gradients(const Scenario& scenario) {
  const KeyValues& keys = scenario.workload.parallel;
  SentGradients sent;
  if (scenario.workload.devices * sequence_ranks(scenario) == 1) return sent;  // nobody to send to
  sent.code.kind = kind_of(keys.text_or("compress", "none"));
  sent.error_feedback = !keys.has("error_feedback") || keys.flag("error_feedback");
  if (sent.code.kind != SentCode::Kind::Signs) return sent;
  sent.code.block = keys.integer_or("compress_block", kSignBlock);
  sent.warmup_steps = keys.integer_or("compress_warmup", default_warmup_steps(scenario.steps));
  return sent;
}

}  // namespace tandem
