// What people read: the verdict's sentence, lines of 80 columns, what each choice costs, why something was ruled out.
#include "plan/answer.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace tandem::testing {
namespace {

Plan plan(const std::string& words, double tokens_per_s, int others = 0) {
  Plan plan;
  plan.settings = {"workload.batch=4"};
  plan.words = words;
  plan.others = others;
  plan.run.kind = CandidateRun::Kind::Ran;
  plan.run.step_s = 8 * 4096 / tokens_per_s;
  plan.run.tokens_per_s = tokens_per_s;
  plan.run.samples_per_s = tokens_per_s / 4096;
  plan.run.memory = {{"device0", 22'000'000'000, 24'000'000'000}, {"host", 31 << 20, 64'000'000'000}, {"disk", 0, 1}};
  return plan;
}

Answer yes() {
  Answer answer;
  answer.what = "llama-2-7b";
  answer.machine = "rtx_4090";
  answer.with = "64GB of host memory";
  answer.best = {plan("balanced, bf16, recompute, 8-bit moments, batch 4 x 2", 2081.3, 1), plan("cotrain, bf16", 1900)};
  answer.best[0].costs = {{"8-bit moments", "a loss of 2.253 became 2.255", true}, {"recompute", "twice", false}};
  answer.exact = plan("g10, bf16, batch 8", 1190);
  answer.counts = {.all = 1216, .simulated = 64, .too_large = 1000, .bounded = 152};
  answer.ruled_out = {"resident, ssdtrain: too little device memory"};
  return answer;
}

void expect_80_columns(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(PlanAnswer, SaysYesInASentence) {
  EXPECT_EQ(verdict(yes()),
            "Yes: llama-2-7b trains on rtx_4090 with 64GB of host memory at 2,081 tokens/s "
            "(balanced, bf16, recompute, 8-bit moments, batch 4 x 2).");
  Answer images = yes();
  images.best.front().run.tokens_per_s = 0;
  images.best.front().run.samples_per_s = 3.456;
  images.with.clear();
  EXPECT_EQ(verdict(images),
            "Yes: llama-2-7b trains on rtx_4090 at 3.46 samples/s (balanced, bf16, recompute, "
            "8-bit moments, batch 4 x 2).");
}

TEST(PlanAnswer, TellsWhatTheChoicesCost) {
  const std::string text = answer_text(yes());
  expect_80_columns(text);
  EXPECT_TRUE(text.starts_with("Yes: llama-2-7b trains on rtx_4090")) << text;
  EXPECT_NE(text.find("  8-bit moments *: a loss of 2.253 became 2.255\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  recompute: twice\n"), std::string::npos) << text;
  EXPECT_NE(text.find("* computes something else than plain training does; --exact forbids it"), std::string::npos);
  EXPECT_NE(text.find("Computing just what plain training does: 27.5 s a step, 1,190 tokens/s"), std::string::npos);
  EXPECT_NE(text.find("20.5 of 22.4 GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("31.0 MiB of 59.6 GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("180 M"), std::string::npos) << "tokens a day" << text;
  EXPECT_NE(text.find("resident, ssdtrain: too little device memory"), std::string::npos);
  EXPECT_NE(text.find("No error bar"), std::string::npos);
}

TEST(PlanAnswer, ShowsTheIntervalWhereThereIsOne) {
  Answer answer = yes();
  answer.best.front().run.interval_s = {15, 16.2};
  const std::string text = answer_text(answer);
  EXPECT_NE(text.find("90% interval of the step 15.0 to 16.2 s"), std::string::npos) << text;
  EXPECT_EQ(text.find("No error bar"), std::string::npos);
}

TEST(PlanAnswer, TellsWhatAMillionTokensCost) {
  Answer answer = yes();
  answer.price_per_hour = 1.5;
  answer.devices = 4;
  // 6 an hour, over 3,600 x 2,081.3 tokens.
  EXPECT_NEAR(price_of_million(answer, answer.best.front()), 6.0 / (3600 * 2081.3) * 1e6, 1e-9);
  const std::string text = answer_text(answer);
  expect_80_columns(text);
  EXPECT_NE(text.find("costs 0.80 a million tokens, 144 a day"), std::string::npos) << text;
  EXPECT_NEAR(answer_json(answer)["best"][0]["price_per_million_tokens"].get<double>(), 0.8008, 1e-4);
  EXPECT_FALSE(answer_json(yes())["best"][0].contains("price_per_million_tokens"));
}

TEST(PlanAnswer, ComparesNumbersOfDevices) {
  std::vector<Answer> answers{yes(), yes(), Answer{}};
  EXPECT_EQ(devices_text({yes()}), "");
  answers[1].devices = 2;
  answers[1].best = {plan("protrain, bf16", 3900)};
  answers[2].devices = 4;
  EXPECT_EQ(fastest(answers), 1u);
  const std::string text = devices_text(answers);
  expect_80_columns(text);
  EXPECT_NE(text.find("3,900"), std::string::npos) << text;
  EXPECT_NE(text.find("does not fit"), std::string::npos) << text;
  const auto json = devices_json(answers);
  EXPECT_EQ(json["devices"], 2);
  EXPECT_EQ(json["by_devices"].size(), 3u);
  EXPECT_FALSE(json["by_devices"][2]["fits"].get<bool>());
}

TEST(PlanAnswer, SaysThatTheSearchWasCut) {
  Answer answer = yes();
  answer.cut = "12 candidates that may be faster were not simulated: the search ended after --time-budget 1s.";
  EXPECT_NE(answer_text(answer).find("12 candidates that may be faster were not simulated"), std::string::npos);
  EXPECT_EQ(answer_json(answer)["cut"], answer.cut);
}

TEST(PlanAnswer, SaysNoAndHowMuchIsMissing) {
  Answer answer = yes();
  answer.nearest = answer.best.front();
  answer.nearest->run.refusal = {Tier::HostPinned, 64'000'000'000, 90'000'000'000, false};
  answer.best.clear();
  answer.enough.found = true;
  answer.enough.bytes[static_cast<std::size_t>(Tier::HostPinned)] = 91'000'000'000;
  EXPECT_EQ(
      verdict(answer),
      "No: llama-2-7b does not train on rtx_4090 with 64GB of host memory: the nearest (balanced, bf16, recompute, "
      "8-bit moments, batch 4 x 2) needs about 84.8 GiB of host memory, and there is 59.6 GiB.");
  expect_80_columns(answer_text(answer));
  EXPECT_EQ(answer_json(answer)["fits"], false);
  EXPECT_EQ(answer_json(answer)["nearest"]["enough_bytes"]["host_pinned"], 91'000'000'000);
}

TEST(PlanAnswer, SaysNoWhereNothingWasEvenTried) {
  Answer answer = yes();
  answer.best.clear();
  answer.least_bytes = std::int64_t{400} << 30;
  answer.room_bytes = std::int64_t{80} << 30;
  EXPECT_EQ(verdict(answer),
            "No: llama-2-7b does not train on rtx_4090 with 64GB of host memory: parameters and "
            "optimizer states alone take 400 GiB, and all memory together has 80.0 GiB.");
}

TEST(PlanAnswer, WrapsAtEightyColumns) {
  const std::string word(30, 'x');
  EXPECT_EQ(wrapped(word + " " + word + " " + word, 4), word + " " + word + "\n    " + word + "\n");
  EXPECT_EQ(wrapped("short"), "short\n");
}

}  // namespace
}  // namespace tandem::testing
