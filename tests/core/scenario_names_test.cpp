// How a scenario is named: by its path, by a name of scenarios/, or as a part of a file; and what is told where it is
// none of these.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/scenario/dirs.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(const std::string& path) {
  try {
    load_scenario(path);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ScenarioNames, ANameIsAFileOfTheFolderOfScenarios) {
  EXPECT_THAT(scenario_file("demo"), EndsWith("scenarios/demo.yaml"));
  EXPECT_EQ(load_scenario("demo").workload.family, load_scenario(scenario_file("demo")).workload.family);
  EXPECT_EQ(scenario_file("no/demo"), "no/demo");
  EXPECT_EQ(check_file("demo").kind, CheckedFile::Kind::Scenario);
}

TEST(ScenarioNames, ASlipIsMet) {
  EXPECT_THAT(refusal("dmeo"),
              HasSubstr("dmeo:1:1: file: cannot be opened: No such file or directory, did you mean 'demo'?"));
  const std::string beside = scenario_file("demo");
  EXPECT_THAT(refusal(beside.substr(0, beside.rfind('/')) + "/dem.yaml"), HasSubstr("did you mean '"));
  EXPECT_THAT(refusal("nothing_like_it_at_all"), AllOf(HasSubstr("cannot be opened"), Not(HasSubstr("did you mean"))));
}

TEST(ScenarioNames, APartOfAFileKeepsItsPlaces) {
  const std::string path = ::testing::TempDir() + std::to_string(::getpid()) + "part.yaml";
  std::ofstream(path)
      << "first: 1\nbase:\n  machine: round_numbers\n  workload: {family: gpt, layers: 1, hidden: 32, heads: 2, "
         "vocabulary: 64, sequence: 8, batch: 1}\n  policy: {name: resident}\nlast: {a: 1}\n";
  EXPECT_EQ(load_scenario(path + "#base").policy.name, "resident");
  EXPECT_THAT(refusal(path + "#first"), HasSubstr("first: is no map"));
  EXPECT_THAT(refusal(path + "#none"), HasSubstr("none: is no map"));
  std::ofstream(path) << "base: {machine: round_numbers, workload: {family: gpt}, polcy: {name: resident}}\nlast: 1\n";
  EXPECT_THAT(refusal(path + "#base"), HasSubstr("part.yaml:1:57: polcy: is not a key here, did you mean 'policy'?"));
}

TEST(ScenarioNames, TextOfAPart) {
  const std::string text = "a: 1\nb:\n  c: 2 # why\n  d: 3\ne: 4\n";
  const Node root = read_yaml(text, "file");
  EXPECT_EQ(text_of_part(text, root, "b"), "\n\n  c: 2 # why\n  d: 3\n");
  EXPECT_EQ(read_yaml(text_of_part(text, root, "b"), "file").find("d")->at.line, 4);
}

}  // namespace
}  // namespace tandem
