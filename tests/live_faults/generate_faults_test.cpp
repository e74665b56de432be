// A run that generates, with one of its calls on files failing: on its prompts, the scratch file that has weights,
// cache and hidden states, and the texts that it writes. It ends rightly or clearly, and its texts are whole ones or
// none.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/generate.hpp"
#include "tests/file_faults/common/clear_end.hpp"
#include "tests/live_faults/faulted_program.hpp"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::vector<std::int64_t>>;

constexpr std::size_t kMostFaults = 24, kTexts = 3, kNew = 6;
constexpr const char* kOldTexts = "of an earlier run\n";
constexpr const char* kScenario = R"(machine: round_numbers
limits: {device_bytes: 1MiB, host_bytes: 1MiB, disk_bytes: 8MiB, cores: 2}
workload: {family: gpt, layers: 2, hidden: 32, heads: 2, vocabulary: 256, sequence: 16, batch: 3, precision: fp32}
generate: {prompt: 3, new_tokens: 6, page: 2}
policy: {name: flexgen, wg: 0, wc: 0, cg: 0, cc: 0, hg: 0, hc: 0}
)";

void prepare(const std::string& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder + "/scratch");
  std::ofstream(folder + "/scenario.yaml") << kScenario;
  std::ofstream(folder + "/prompts.txt") << "1 2 3\n70 60 50\n9 9 8\n";
  std::ofstream(folder + "/texts") << kOldTexts;
}

Ended generate_with(const Fault& fault, const std::string& folder) {
  return run_with(folder, fault, [&] {
    std::vector<std::string> words = {"tandem-train",   kGenerate,   folder + "/scenario.yaml", "--quiet",
                                      "--tokens",       "--prompts", folder + "/prompts.txt",   "--texts",
                                      folder + "/texts"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::setenv("TANDEM_SCRATCH", (folder + "/scratch").c_str(), 1);
    return tandem_train_main(static_cast<int>(words.size()), arguments.data());
  });
}

// Of the file of texts, which is the old one, or whole: then a line of JSON each.
Texts texts_of(const std::string& folder) {
  const std::string text = bytes_of(folder + "/texts");
  Texts texts;
  if (text == kOldTexts) return texts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << "part of a line: " << line;
    texts.push_back(nlohmann::json::parse(line).at("tokens").get<std::vector<std::int64_t>>());
  }
  EXPECT_EQ(texts.size(), kTexts);
  return texts;
}

bool begins(const std::vector<std::int64_t>& text, const std::vector<std::int64_t>& whole) {
  return text.size() <= whole.size() && std::equal(text.begin(), text.end(), whole.begin());
}

TEST(GenerateFaultsTest, ARunWhoseCallFailsEndsClearlyAndItsTextsAreTrue) {
  const std::string root = new_folder(), straight = root + "/straight", folder = root + "/faulted";
  prepare(straight);
  const Ended clean = generate_with({}, straight);
  ASSERT_EQ(clean.code, kDone) << clean.output;
  const Texts whole = texts_of(straight);
  ASSERT_EQ(whole.size(), kTexts);
  ASSERT_EQ(whole.front().size(), kNew);
  const std::vector<Fault> faults = chosen(clean.calls, kMostFaults);
  int met = 0;
  for (const Fault& fault : faults) {
    SCOPED_TRACE(text(fault));
    prepare(folder);
    const Ended run = generate_with(fault, folder);
    const TracedCall* call = run.faulted();
    if (call == nullptr) continue;
    ++met;
    SCOPED_TRACE(call->name + " " + call->path + "\n" + run.output);
    expect_clear(run, fault, call->path.ends_with("prompts.txt") || call->path.ends_with("scenario.yaml"),
                 named_file(*call));
    const Texts texts = texts_of(folder);
    if (run.code == kDone) {
      EXPECT_EQ(texts, whole);
    }
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_TRUE(begins(texts[i], whole[i])) << i;
    if (HasFailure()) break;  // one is told in full
  }
  EXPECT_GE(met * 10, static_cast<int>(faults.size()) * 9) << "of all faults, few were met";
  std::printf("%d faults in %zu calls\n", met, clean.calls.size());
  fs::remove_all(root);
}

}  // namespace
}  // namespace tandem::testing
