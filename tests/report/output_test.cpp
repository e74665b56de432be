// What reaches files and terminals: JSON keys, trace, HTML, summary, and files that appear only when they are whole.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "cli/atomic_file.hpp"
#include "cli/attempts.hpp"
#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/base/shell_text.hpp"
#include "report/html.hpp"
#include "report/json_result.hpp"
#include "report/origin.hpp"
#include "report/provenance.hpp"
#include "report/summary.hpp"
#include "report/trace.hpp"
#include "tests/common/fake_run.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TwoSteps;
using ::testing::UnorderedElementsAre;

nlohmann::json trace_of(const RunRecord& record) {
  const Analysis analysis = analyse(record);
  std::string text;
  write_trace({&analysis}, [&](std::string_view piece) { text += piece; });
  return nlohmann::json::parse(text);
}

std::vector<std::string> keys(const nlohmann::ordered_json& json) {
  std::vector<std::string> all;
  for (const auto& [key, value] : json.items()) all.push_back(key);
  return all;
}

TEST(JsonResult, HasTheContractsKeys) {
  TwoSteps run;
  const RunRecord record = run.record();
  const auto json = to_json(analyse(record));
  for (const char* key :
       {"schema", "mode", "scenario", "machine", "policy", "steps", "step_time_s", "throughput", "peak_bytes",
        "busy_share", "exposed_s", "bytes_moved", "lower_bound_s", "policy_bound_s", "commands", "simulator"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_THAT(keys(json["step_time_s"]), UnorderedElementsAre("median", "p10", "p90", "all"));
  EXPECT_THAT(keys(json["throughput"]), UnorderedElementsAre("tokens_per_s", "samples_per_s", "model_flops_per_s"));
  EXPECT_THAT(keys(json["peak_bytes"]), UnorderedElementsAre("device0", "host", "host_pinned", "disk"));
  EXPECT_THAT(keys(json["simulator"]), UnorderedElementsAre("wall_s", "events_per_s"));
  for (const char* key : {"h2d", "d2h", "cpu_optimizer", "disk"}) EXPECT_TRUE(json["exposed_s"].contains(key)) << key;
  for (const char* key : {"compute", "h2d", "d2h", "cpu_optimizer", "disk", "critical_path", "overall"})
    EXPECT_TRUE(json["lower_bound_s"].contains(key)) << key;
  EXPECT_DOUBLE_EQ(json["busy_share"]["device0/compute"].get<double>(), 30.0 / 90);
  EXPECT_EQ(json["bytes_moved"]["device0/h2d"], 2000);
  EXPECT_EQ(json["commands"], 11);  // releases are notes
  EXPECT_FALSE(json.contains("loss"));
}

TEST(JsonResult, AMeasuredRunHasTheSameKeysAndLosses) {
  TwoSteps run;
  const RunRecord simulated = run.record("simulated");
  auto predicted = to_json(analyse(simulated));
  const RunRecord trained = run.record("measured");
  auto measured = to_json(analyse(trained));
  EXPECT_EQ(measured["loss"], (nlohmann::ordered_json{3.0, 2.0}));
  measured.erase("loss");
  predicted.erase("simulator");
  EXPECT_EQ(keys(predicted), keys(measured));
}

TEST(JsonResult, ValidationLossesAreListedByStepsDone) {
  TwoSteps run;
  const OpId op = run.op("evaluate", Phase::Evaluate, Engine::Compute, 1, {}, {}, 5, 0, /*has_result=*/true);
  run.run(op, Engine::Compute, {}, 200, 205, 2.5);
  const RunRecord record = run.record("measured");
  const Analysis analysis = analyse(record);
  const auto json = to_json(analysis);
  EXPECT_EQ(json["validation_loss"], nlohmann::ordered_json::parse(R"([{"step": 2, "loss": 2.5}])"));
  EXPECT_FALSE(json.contains("gradient_norm"));
  EXPECT_THAT(summary(analysis), HasSubstr("validation   2.5000 after step 2"));
}

TEST(JsonResult, ALossThatIsNotFiniteIsNull) {
  TwoSteps run;
  run.events[2].result = std::bit_cast<std::int64_t>(std::numeric_limits<double>::quiet_NaN());  // the first forward's
  const RunRecord record = run.record("measured");
  EXPECT_TRUE(to_json(analyse(record))["loss"][0].is_null());
}

TEST(Trace, HasEveryCommandOnceAndNoOverlapOnATrack) {
  TwoSteps run;
  const RunRecord record = run.record();
  std::map<std::pair<int, int>, double> free_from;
  int slices = 0;
  const nlohmann::json trace = trace_of(record);
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    if (event["cat"] != "step" && event["cat"] != "idle") ++slices;
    double& from = free_from[{event["pid"].get<int>(), event["tid"].get<int>()}];
    EXPECT_GE(event["ts"].get<double>(), from - 1e-9) << event;
    from = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(slices, 11);
}

// A clock's grain can make neighbours overlap by a little: the trace must not, or a viewer drops one.
TEST(Trace, CutsOverlapsOfAClocksGrain) {
  TwoSteps run;
  run.events[2].finished = {62};  // the first forward, into the backward that starts at 60
  const RunRecord record = run.record();
  double end = 0;
  const nlohmann::json trace = trace_of(record);  // outlives the loop
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["tid"] != 2) continue;
    EXPECT_GE(event["ts"].get<double>(), end - 1e-9);
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
}

TEST(Trace, ArrowsLeadFromEveryLaneToWhatWaitedInAnother) {
  TwoSteps run;
  const RunRecord record = run.record();
  std::map<int, std::pair<double, double>> arrows;
  const nlohmann::json trace = trace_of(record);  // outlives the loop
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "s") arrows[event["id"].get<int>()].first = event["ts"].get<double>();
    if (event["ph"] == "f") arrows[event["id"].get<int>()].second = event["ts"].get<double>();
  }
  // Both steps: what made the parameter to its copy up, that to the forward, backward to the copy down, that to update.
  ASSERT_EQ(arrows.size(), 8u);
  std::vector<double> ends;
  for (const auto& [id, times] : arrows) {
    EXPECT_LE(times.first, times.second);
    ends.push_back(times.second);
  }
  EXPECT_THAT(ends, ElementsAre(0.010, 0.040, 0.070, 0.080, 0.100, 0.130, 0.160, 0.170));
}

// The forward of the second step waits 60 ns for the parameter, whose copy begins after 30 of them.
TEST(Trace, IdleTimeSaysWhatItWaitsFor) {
  TwoSteps run;
  const RunRecord record = run.record();
  const nlohmann::json trace = trace_of(record);
  std::vector<std::string> waits;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "idle" || event["ts"] != 0.07) continue;
    EXPECT_EQ(event["dur"], 0.06);
    EXPECT_EQ(event["args"]["cause"], "h2d");
    waits.push_back(event["name"]);
  }
  EXPECT_THAT(waits, ElementsAre("waits for copy p@1"));
}

TEST(Trace, HasATrackOfSteps) {
  TwoSteps run;
  const RunRecord record = run.record();
  const nlohmann::json trace = trace_of(record);
  std::vector<std::pair<double, double>> steps;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "step") steps.emplace_back(event["ts"], event["dur"]);
  // From forward to forward; the last to its update's end.
  EXPECT_THAT(steps, ElementsAre(std::pair(0.040, 0.090), std::pair(0.130, 0.060)));
}

// 1,000 bytes in 30 ns up, in 10 ns down.
TEST(Trace, CountersGiveTheRateOfCopies) {
  TwoSteps run;
  const RunRecord record = run.record();
  const nlohmann::json trace = trace_of(record);
  std::map<std::string, std::vector<double>> rates;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "C" && event["name"].get<std::string>().ends_with(" GB/s"))
      rates[event["name"]].push_back(event["args"]["GB/s"]);
  EXPECT_THAT(rates["h2d GB/s"], ElementsAre(33.333, 0, 33.333, 0));
  EXPECT_THAT(rates["d2h GB/s"], ElementsAre(100, 0, 100, 0));
}

TEST(Trace, SaysWhatItWasMadeOf) {
  TwoSteps run;
  run.scenario.text = "steps: 2\n";
  const RunRecord record = run.record();
  tell_program("1.2.3", {"/usr/bin/tandem-simulate", "a b.yaml"});
  const nlohmann::json trace = trace_of(record);
  tell_program("", {});
  const nlohmann::json& origin = trace["otherData"]["origin"];
  EXPECT_EQ(origin["version"], "1.2.3");
  EXPECT_EQ(origin["command"], "tandem simulate 'a b.yaml'");
  EXPECT_EQ(origin["scenario"], "steps: 2\n");
  EXPECT_EQ(origin["machine"]["provenance"], "from datasheets and estimates");
}

TEST(Trace, CountersFollowMemory) {
  TwoSteps run;
  const RunRecord record = run.record();
  bool seen = false;
  const nlohmann::json trace = trace_of(record);  // outlives the loop
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "C" || event["name"] != "device bytes" || event["ts"] != 0.04) continue;
    EXPECT_EQ(event["args"]["activation"], 500);
    EXPECT_EQ(event["args"]["parameter"], 1000);
    seen = true;
  }
  EXPECT_TRUE(seen);
}

TEST(Html, NoTextBecomesMarkup) {
  TwoSteps run;
  run.scenario.path = "dir/<img src=x onerror=alert(1)>.yaml";
  run.scenario.machine.name = "</script><script>alert(2)</script>";
  run.scenario.policy.name = "{{data}}\"'&";
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  const std::string page = html_report({&analysis});
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x"));
  // Two scripts open, the data and the view, and two close.
  std::size_t closes = 0;
  for (std::size_t at = page.find("</script"); at != std::string::npos; at = page.find("</script", at + 1)) ++closes;
  EXPECT_EQ(closes, 2u);
}

TEST(Html, SaysWhatHoldsAStepAndWhatItWasMadeOf) {
  TwoSteps run;
  run.scenario.machine.gpu = true;
  run.scenario.text = "name: <b>\n";
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  tell_program("1.2.3", {"tandem", "simulate", "fake.yaml", "--set", "steps=2"});
  const std::string page = html_report({&analysis});
  tell_program("", {});
  EXPECT_THAT(page,
              HasSubstr("<p class=\"headline\">A step takes 90.0 ns: the GPU waits 33.3% of the step for copies to "
                        "it.</p>"));
  EXPECT_THAT(page, HasSubstr("<code>tandem simulate fake.yaml --set steps=2</code>"));
  EXPECT_THAT(page, HasSubstr("Tandem 1.2.3"));
  EXPECT_THAT(page, HasSubstr("name: &lt;b&gt;\n"));
}

TEST(Html, NeedsNoNetwork) {
  TwoSteps run;
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  const std::string page = html_report({&analysis, &analysis}, {{"step time, median", "1 s", "2 s", -0.5}});
  for (const char* outside : {"http://", "https://", "src=", "@import", "url("})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, HasSubstr("-50.0%"));
}

TEST(Summary, TellsWhereTheStepGoes) {
  TwoSteps run;
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  const std::string text = summary(analysis);
  EXPECT_THAT(text, HasSubstr("layers · fake · policy by_hand · simulated · 2 steps · Tandem's own run\n"));
  EXPECT_THAT(text, HasSubstr("step time    90.0 ns · head 70.0 ns, tail 30.0 ns\n"));
  // 60 characters for 90 ns: 20 of compute, 20 of H2D, 7 of D2H (ends at 46.67) and 13 of the optimizer.
  EXPECT_THAT(text, HasSubstr("[####################hhhhhhhhhhhhhhhhhhhhdddddddooooooooooooo]"));
  EXPECT_THAT(
      text, HasSubstr("# compute 33.3%  h exposed h2d 33.3%  d exposed d2h 11.1%\n             o cpu optimizer 22.2%"));
  EXPECT_THAT(text, HasSubstr("lower bound  90.0 ns, held by critical_path; the mean step of 90.0 ns is 0.0%\n"));
  EXPECT_THAT(text, HasSubstr("model        250 parameters\n"));
  EXPECT_THAT(text, HasSubstr("profile      from datasheets and estimates: no error bar\n"));
}

TEST(Summary, EndsWithWhatHoldsTheStepAndHowToFindOutMore) {
  TwoSteps run;
  run.scenario.machine.gpu = true;
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  EXPECT_THAT(
      summary(analysis, {.columns = kAnyColumns}),
      EndsWith("\nlimited by   the GPU waits 33.3% of the step for copies to it; what would help: tandem explain "
               "fake.yaml; better policies: tandem compare-policies fake.yaml\n"));
  run.scenario.path = "";
  EXPECT_THAT(summary(analysis), EndsWith("\nlimited by   the GPU waits 33.3% of the step for copies to it\n"));
}

TEST(Summary, FitsATerminalUnlessAllIsAskedFor) {
  TwoSteps run;
  run.scenario.path = "a/folder/of/scenarios/whose/name/is/so/long/that/it/has/to/be/broken.yaml";
  run.scenario.machine.source = std::string(30, 'x') + " " + std::string(50, 'y');
  const RunRecord record = run.record();
  const Analysis analysis = analyse(record);
  const std::string text = summary(analysis), wide = summary(analysis, {.columns = kAnyColumns});
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool has_path = line.find(run.scenario.path) != std::string::npos;
    EXPECT_TRUE(has_path || columns_of(line) <= kTerminalColumns) << line;
  }
  EXPECT_THAT(text, HasSubstr("moved        h2d 1.95 KiB, d2h 1.95 KiB over"));
  EXPECT_THAT(wide, HasSubstr("moved        device0/h2d 1.95 KiB, device0/d2h 1.95 KiB over"));
}

TEST(Summary, OfManyDevicesTellsTheFullest) {
  TwoSteps run;
  RunRecord record = run.record();
  Analysis analysis = analyse(record);
  record.ranks.resize(3, record.ranks.front());
  analysis.peak_bytes = {{"device0", 1}, {"device1", 3072}, {"device2", 2}, {"host", 5}};
  const std::string text = summary(analysis);
  EXPECT_THAT(text, HasSubstr("device1  [                    ] 3.00 KiB of 1.00 MiB (0.3%), of 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("device0")));
  EXPECT_THAT(text, HasSubstr("             host     ["));
  EXPECT_THAT(summary(analysis, {.columns = kAnyColumns}), HasSubstr("device2  ["));
}

// A first step of 470 ns beside one of 90: 380 of all 590.
TEST(Summary, TellsHowMuchOfTheMeanIsStartUp) {
  TwoSteps run;
  const RunRecord record = run.record();
  Analysis analysis = analyse(record);
  EXPECT_THAT(summary(analysis), Not(HasSubstr("start-up")));
  analysis.run.head_ns = 470;
  analysis.run.makespan_ns = 590;
  analysis.mean_step_s = 295e-9;
  EXPECT_THAT(summary(analysis),
              HasSubstr("start-up     380 ns beyond a step: 64.4% of the mean over the whole run, 295 ns"));
}

TEST(Summary, TellsTheShareOfTheDevicesPeak) {
  TwoSteps run;
  const RunRecord record = run.record();
  Analysis analysis = analyse(record);
  analysis.model_flops_per_s = 4e12;
  analysis.flop_use = 0.4;
  EXPECT_THAT(summary(analysis),
              HasSubstr("model        250 parameters, 4.00 TFLOP/s: 40.0% of the fp32 peak (MFU)\n"));
}

TEST(Summary, TellsWhereTheProfileIsFrom) {
  HardwareProfile profile;
  EXPECT_EQ(provenance(profile), "from datasheets and estimates");
  profile.source = "chosen by hand";
  EXPECT_EQ(provenance(profile), "chosen by hand");
  profile.uncertainty[TimeCause::Compute] = {0.1, ""};
  EXPECT_EQ(provenance(profile), "measured, then changed");
  profile.fingerprint.emplace().processor = "a CPU";
  EXPECT_EQ(provenance(profile), "measured on a CPU");
  profile.fingerprint->device = "a GPU";
  profile.fingerprint->busy = "others ran";
  EXPECT_EQ(provenance(profile), "measured on a GPU, which was busy");
}

TEST(Summary, HostileNamesCannotDriveTheTerminal) {
  TwoSteps run;
  run.scenario.policy.name = "x\x1b[2Jy\n";
  const RunRecord record = run.record();
  EXPECT_THAT(summary(analyse(record)), HasSubstr("policy x?[2Jy? "));
}

TEST(Units, ThreeDigits) {
  EXPECT_EQ(format_time(1.3591), "1.36 s");
  EXPECT_EQ(format_time(0.9999), "1.00 s");
  EXPECT_EQ(format_time(2.222e-3), "2.22 ms");
  EXPECT_EQ(format_time(0), "0 s");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(std::int64_t{16} << 30), "16.0 GiB");
  EXPECT_EQ(format_count(65000), "65.0 k");
}

// Of the environment, for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    CHECK(::setenv(name, value.c_str(), 1) == 0);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class Files : public ::testing::Test {
 protected:
  Files() : folder_(std::filesystem::temp_directory_path() / ("report_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string content(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(Files, AppearOnlyWhenCommitted) {
  write_file(path("a"), "old");
  {
    AtomicFile file(path("a"));
    file.write("new");
    EXPECT_EQ(content("a"), "old");
  }
  EXPECT_EQ(content("a"), "old");
  EXPECT_EQ(count(), 1u);  // the temporary file is gone
  write_file(path("a"), "new");
  EXPECT_EQ(content("a"), "new");
  EXPECT_EQ(count(), 1u);
}

// A full disk, by way of the limit on a file's size: the write fails midway.
TEST_F(Files, AFailedWriteLeavesNothingAndSaysWhatToDo) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 100'000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    write_file(path("big"), std::string(3'000'000, 'x'));
  } catch (const DeviceError& error) {
    message = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr(path("big")));
  EXPECT_THAT(message, HasSubstr("nothing was written under that name"));
  EXPECT_EQ(count(), 0u);
}

TEST_F(Files, AFullDeviceIsReported) {
  EXPECT_THROW(write_file("/dev/full", "x"), DeviceError);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));  // and is not replaced by a file
}

TEST_F(Files, AMissingFolderIsReported) { EXPECT_THROW(write_file(path("none/a"), "x"), DeviceError); }

TEST_F(Files, KeepTheModeOfWhatTheyReplace) {
  for (const mode_t mode : {0600, 0640, 0755}) {
    write_file(path("a"), "old");
    ASSERT_EQ(::chmod(path("a").c_str(), mode), 0);
    write_file(path("a"), "new");
    struct stat status {};
    ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, mode);
  }
}

TEST_F(Files, ATemporaryNameThatIsALinkIsNotFollowed) {
  write_file(path("victim"), "precious");
  std::filesystem::create_symlink(path("victim"), path("a.partial-" + std::to_string(::getpid())));
  write_file(path("a"), "new");
  EXPECT_EQ(content("victim"), "precious");
  EXPECT_EQ(content("a"), "new");
}

TEST_F(Files, WhatAKilledProcessLeftGoesAndWhatIsInUseStays) {
  for (const char* left : {"a.partial-4000000", "a.partial-4000001-2", "a.partial-notes", "b.partial-4000000"})
    write_file(path(left), "x");
  AtomicFile in_use(path("a"));
  write_file(path("a"), "new");
  EXPECT_FALSE(std::filesystem::exists(path("a.partial-4000000")));
  EXPECT_FALSE(std::filesystem::exists(path("a.partial-4000001-2")));
  EXPECT_TRUE(std::filesystem::exists(path("a.partial-notes"))) << "is no temporary file";
  EXPECT_TRUE(std::filesystem::exists(path("b.partial-4000000"))) << "is of another file";
  in_use.write("late");
  in_use.commit();
  EXPECT_EQ(content("a"), "late");
}

TEST_F(Files, FoldersOfKilledProcessesGoAndThoseInUseStay) {
  const Variable folder_of_temporary_files("TMPDIR", path(""));
  std::filesystem::create_directory(path("tandem-run.4000000.AbCdEf"));
  write_file(path("tandem-run.4000000.AbCdEf/run.log"), "x");
  std::filesystem::create_directory(path("tandem-run.notes"));
  const TemporaryFolder first, second;
  EXPECT_FALSE(std::filesystem::exists(path("tandem-run.4000000.AbCdEf")));
  EXPECT_TRUE(std::filesystem::exists(path("tandem-run.notes")));
  EXPECT_TRUE(std::filesystem::exists(first.path()) && std::filesystem::exists(second.path()));
  write_file(first.file("a"), "x");
  remove_temporary_files();
  EXPECT_EQ(count(), 1u) << "folders of a process that ends go with what is in them";
}

TEST(Attempts, AllAreMadeAndTheFailuresTold) {
  Attempts attempt;
  int done = 0;
  for (const char* failure : {"first", "", "last"})
    attempt([&] {
      ++done;
      if (*failure != '\0') throw DeviceError(failure);
    });
  EXPECT_EQ(done, 3);
  ::testing::internal::CaptureStderr();
  try {
    attempt.finish();
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "last");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tandem: first\n");
  EXPECT_NO_THROW(attempt.finish());
}

// As a shell reads it back.
TEST(ShellPath, IsReadBackAsItWas) {
  for (const std::string word : {"plain/a-b_c.yaml", "two words", "it's", "$HOME `id` \"x\" \\", "a;b&c|d", "*?[x]",
                                 "~/x", "#x", "tab\tline\nend", "\x1b[2J", "caf\xc3\xa9", ""}) {
    const std::string command = "bash -c " + ("'printf %s " + [&] {
                                  std::string quoted;
                                  for (const char c : shell_path(word))
                                    quoted += c == '\'' ? std::string("'\\''") : std::string{c};
                                  return quoted;
                                }() + "'");
    FILE* pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string read;
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) read += static_cast<char>(c);
    EXPECT_EQ(::pclose(pipe), 0) << command;
    EXPECT_EQ(read, word) << shell_path(word);
  }
  EXPECT_EQ(shell_path("plain/a-b_c.yaml"), "plain/a-b_c.yaml");
  EXPECT_EQ(shell_path("-x"), "./-x") << "is no flag";
}

TEST_F(Files, AnEndingProcessRemovesWhatIsUnfinished) {
  AtomicFile file(path("a"));
  EXPECT_EQ(count(), 1u);
  remove_temporary_files();
  EXPECT_EQ(count(), 0u);
}

}  // namespace
}  // namespace tandem
