// Bad input as data: every case of tests/data/hostile/*.cases is refused with exactly its message.
#include <cstdlib>
#include <sstream>

#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

// Messages about profiles that a scenario names have their paths; the cases have them relative to their folder.
std::string message_of(const HostileCase& hostile) {
  std::string message =
      hostile.is_profile ? profile_error(hostile.text) : scenario_error(hostile.text, hostile.overrides);
  const std::string folder = kHostileFolder + "/";
  for (std::size_t at = message.find(folder); at != std::string::npos; at = message.find(folder, at))
    message.erase(at, folder.size());
  return message;
}

// Writes the messages of today into the file, to be read before they are kept.
void record(const std::string& path, const std::vector<HostileCase>& cases) {
  std::ostringstream out;
  std::ifstream in(path);
  std::size_t index = 0;
  for (std::string line; std::getline(in, line);) {
    out << line << '\n';
    if (line != "@expect") continue;
    out << message_of(cases.at(index++)) << "\n\n";
    while (std::getline(in, line) && !line.empty()) continue;  // the messages so far
  }
  in.close();
  std::ofstream(path) << out.str();
}

class Hostile : public testing::TestWithParam<const char*> {};

TEST_P(Hostile, IsRefusedWithItsMessage) {
  const std::string path = kHostileFolder + "/" + GetParam() + ".cases";
  const std::vector<HostileCase> cases = read_cases(path);
  EXPECT_GE(cases.size(), 20u);
  if (std::getenv("TANDEM_RECORD") != nullptr) {
    record(path, cases);
    GTEST_SKIP() << "recorded";
  }
  for (const HostileCase& hostile : cases) {
    const std::string message = message_of(hostile);
    EXPECT_NE(message, "") << hostile.name << ": was accepted";
    EXPECT_EQ(message, hostile.expected) << hostile.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Hostile,
                         testing::Values("yaml", "keys", "values", "units", "machines", "profiles", "plausible", "set"),
                         [](const auto& file) { return std::string(file.param); });

TEST(Hostile, ThereAreAtLeastTwoHundred) {
  std::size_t count = 0;
  for (const char* file : {"yaml", "keys", "values", "units", "machines", "profiles", "plausible", "set"})
    count += read_cases(kHostileFolder + "/" + file + ".cases").size();
  EXPECT_GE(count, 200u);
}

}  // namespace
}  // namespace tandem::test
