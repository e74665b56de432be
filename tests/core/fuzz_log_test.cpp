// Logs mutated line by line and number by number: each is refused with file and line, or replayed to an answer.
#include <sstream>

#include "core/scheduler/log_check.hpp"
#include "core/scheduler/replay.hpp"
#include "tests/common/fuzz.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::test {
namespace {

constexpr int kPercent = 20, kParts = 2;

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

const std::vector<std::string>& numbers() {
  static const std::vector<std::string> kNumbers = {"0",
                                                    "1",
                                                    "2",
                                                    "3",
                                                    "5",
                                                    "7",
                                                    "11",
                                                    "12",
                                                    "17",
                                                    "100",
                                                    "4096",
                                                    "1000000000",
                                                    "2147483647",
                                                    "9223372036854775807",
                                                    "-9223372036854775808",
                                                    "-1",
                                                    "x",
                                                    "64",
                                                    "512"};
  return kNumbers;
}

// One number of a line is another.
void mutate_number(std::string& line, Dice& dice) {
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; (at = line.find(' ', at)) != std::string::npos;) begins.push_back(++at);
  if (begins.empty()) return;
  const std::size_t begin = dice.pick(begins);
  line.replace(begin, std::min(line.find(' ', begin), line.size()) - begin, dice.pick(numbers()));
}

std::string mutated(const Lines& seed, Dice& dice) {
  Lines lines = seed;
  for (std::size_t n = 1 + dice.below(2); n > 0; --n) {
    const std::size_t at = dice.below(8) == 0 ? dice.below(8) : dice.below(lines.size());
    switch (dice.below(6)) {
      case 0:
        lines.erase(lines.begin() + static_cast<long>(at));
        break;
      case 1:
        lines.insert(lines.begin() + static_cast<long>(at), dice.pick(lines));
        break;
      case 2:
        std::swap(lines[at], lines[dice.below(lines.size())]);
        break;
      case 3:
        if (at > 8) lines.resize(at);
        break;
      default:
        mutate_number(lines[at], dice);
    }
  }
  std::string text = joined(lines);
  if (dice.below(16) == 0) mutate_bytes(text, dice, numbers());
  return text;
}

class FuzzLog : public ::testing::TestWithParam<int> {};

TEST_P(FuzzLog, EveryLogIsRefusedWithItsLineOrReplays) {
  const Scenario scenario = testing::gpt_scenario("on_demand", std::int64_t{1} << 30);
  const testing::NullRun run = testing::run_null(scenario);
  std::ostringstream out;
  write_log(out, {1, "simulated", "a: 1", "b: 2", "test"}, run.log);
  const Lines seed = lines_of(out.str());
  Dice dice(fuzz_seed(GetParam()));
  FuzzAccount account("log");
  for (int i = 0; i < fuzz_inputs(kPercent) / kParts; ++i) {
    const std::string text = i == 0 ? out.str() : mutated(seed, dice);
    ReadLog log;
    std::string refusal;
    const auto attempt = [&](const auto& read) {
      try {
        read();
      } catch (const ConfigError& error) {
        refusal = error.what();
      }
    };
    attempt([&] {
      std::istringstream in(text);
      log = read_log(in, "fuzzed.log");
    });
    const bool past_parser = refusal.empty();
    account.count(past_parser, [&] {
      if (past_parser) attempt([&] { check_log(log, "fuzzed.log"); });
      if (!refusal.empty() || log.header.ranks != 1) return false;
      const CostModel estimate(scenario.machine);
      const auto scheduler = make_scheduler(scenario, estimate, log.header.rank);
      Scheduler* ranks[] = {scheduler.get()};
      return replay(log, ranks).difference.empty();
    });
    if (refusal.empty()) continue;
    EXPECT_TRUE(refusal.starts_with("fuzzed.log:")) << refusal;
    EXPECT_NE(refusal.find("log: "), std::string::npos) << refusal;
  }
  account.close();
}

INSTANTIATE_TEST_SUITE_P(Seeds, FuzzLog, ::testing::Range(0, kParts));

}  // namespace
}  // namespace tandem::test
