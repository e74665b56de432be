// Policies side by side: by hand, on results of round numbers.
#include "report/policy_comparison.hpp"

#include <gmock/gmock.h>

#include "report/charts.hpp"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

Json result(double step_s) {
  return {{"step_time_s", {{"median", step_s}}},
          {"steady_step_s", step_s},
          {"throughput", {{"tokens_per_s", 1000 / step_s}, {"samples_per_s", 10 / step_s}}},
          {"peak_bytes",
           {{"device0", 1 << 30}, {"device1", 2 << 20}, {"host", 3 << 20}, {"host_pinned", 1 << 20}, {"disk", 0}}},
          {"bytes_a_step",
           {{"device0/h2d", 100.0}, {"device1/h2d", 10.0}, {"device0/h2d_small", 1.0}, {"device0/d2h", 7.0}}},
          {"idle_share", {{"gpu", 0.25}, {"cpu", 0.5}, {"h2d", 0.75}, {"d2h", 0.875}, {"disk", 1.0}}},
          {"lower_bound_s", {{"overall", 1.0}}},
          {"policy_bound_s", 0},
          {"parameters", 2'000'000}};
}

PolicyRun run(const std::string& policy, double step_s) {
  PolicyRun made;
  made.policy = policy;
  made.result = result(step_s);
  return made;
}

PolicyRun without_room(const std::string& policy) {
  PolicyRun made;
  made.policy = policy;
  made.exit_code = 3;
  made.does_not_fit = true;
  made.why_not = "does not fit: <b>\"device\"</b> memory";
  return made;
}

double figure(const char* name) { return policy_figure(name).of(result(2)); }

TEST(PolicyComparison, FiguresOfAResult) {
  EXPECT_EQ(figure("step_s"), 2);
  EXPECT_EQ(figure("tokens_per_s"), 500);
  EXPECT_EQ(figure("device_bytes"), 1 << 30);  // of the device that holds most
  EXPECT_EQ(figure("host_pinned_bytes"), 1 << 20);
  EXPECT_EQ(figure("host_bytes"), 3 << 20);
  EXPECT_EQ(figure("h2d_bytes_a_step"), 111);  // all devices, small copies too
  EXPECT_EQ(figure("d2h_bytes_a_step"), 7);
  EXPECT_EQ(figure("disk_read_bytes_a_step"), 0);
  EXPECT_EQ(figure("cpu_idle_share"), 0.5);
  EXPECT_EQ(figure("above_lower_bound"), 1);
  EXPECT_EQ(figure("above_policy_bound"), 0);  // has none
}

TEST(PolicyComparison, TheFastestComesFirstAndWhatDoesNotFitLast) {
  PolicyComparison comparison{"dir/a.yaml", "machine", "",
                              "",           {""},      {without_room("c"), run("slow", 2), run("fast", 1)}};
  sort_by_step(comparison.runs);
  EXPECT_EQ(comparison.runs.front().policy, "fast");
  EXPECT_EQ(comparison.runs.back().policy, "c");
  const std::string text = policies_text(comparison);
  EXPECT_LT(text.find("fast"), text.find("slow"));
  EXPECT_THAT(text, HasSubstr("does not fit: <b>"));
  EXPECT_THAT(text, HasSubstr("2.00"));  // of the best
  EXPECT_THAT(text, Not(HasSubstr("above bound")));
  EXPECT_THAT(policies_text(comparison, /*wide=*/true), HasSubstr("above bound"));
  EXPECT_THAT(text, Not(HasSubstr("disk")));
  const std::string csv = policies_csv(comparison);
  EXPECT_THAT(csv, HasSubstr("policy,parameters,step_s,"));
  EXPECT_THAT(csv, HasSubstr("\n\"slow\",2000000,2,500,"));
  EXPECT_THAT(csv, HasSubstr("\"does not fit: <b>\"\"device\"\"</b> memory\"\n"));
}

// Of images, graphs and the like.
TEST(PolicyComparison, NetworksWithoutTokensAreComparedBySamples) {
  PolicyComparison comparison{"a.yaml", "machine", "", "", {""}, {run("a", 2)}};
  EXPECT_THAT(policies_text(comparison), AllOf(HasSubstr("tokens/s"), Not(HasSubstr("samples/s"))));
  comparison.runs.front().result["throughput"]["tokens_per_s"] = 0;
  EXPECT_THAT(policies_text(comparison), AllOf(HasSubstr("samples/s"), Not(HasSubstr("tokens/s"))));
  const std::string html = policies_html(comparison);
  EXPECT_THAT(html, HasSubstr(">samples/s<"));
}

TEST(PolicyComparison, ValuesOfAKeyAreColumns) {
  PolicyComparison comparison{"a.yaml", "machine", "workload.layers", "", {"4", "8"}, {}};
  for (const char* value : {"4", "8"})
    for (PolicyRun made : {run("a", 1), value[0] == '8' ? without_room("b") : run("b", 2)}) {
      made.value = value;
      comparison.runs.push_back(made);
    }
  const std::string text = policies_text(comparison);
  EXPECT_THAT(text, HasSubstr("tokens/s by workload.layers\n"));
  EXPECT_THAT(text, HasSubstr("no room\n"));
  EXPECT_THAT(text, HasSubstr("b (8): does not fit"));
  const Json json = policies_json(comparison);
  EXPECT_EQ(json["over"], "workload.layers");
  EXPECT_EQ(json["policies"][3]["value"], "8");
  EXPECT_FALSE(json["policies"][3].contains("result"));
  EXPECT_THAT(policies_html(comparison), HasSubstr(">workload.layers</text>"));
}

TEST(PolicyComparison, PagesNeedNoNetworkAndNoTextBecomesMarkup) {
  PolicyComparison comparison{"<img src=x>.yaml", "<script>", "", "", {""}, {run("a", 1), without_room("<i>")}};
  const std::string page = policies_html(comparison);
  for (const char* outside : {"http://", "https://", "<script", "@import", "url(", "<img", "<i>&", "<b>", "script-src"})
    EXPECT_THAT(page, Not(HasSubstr(outside))) << outside;
  EXPECT_THAT(page, HasSubstr("does not fit"));
  EXPECT_THAT(page, HasSubstr("peak, GiB"));
}

TEST(PolicyComparison, ASentenceNamesTheBest) {
  PolicyComparison comparison{"a.yaml", "machine", "", "", {""}, {run("slow", 3), run("fast", 2), without_room("c")}};
  EXPECT_EQ(policies_sentence(comparison),
            "fast is the fastest: 2.00 s a step; slow comes next and takes 1.50 times as long; 1 of 3 cannot run it.");
  comparison.runs = {without_room("c")};
  EXPECT_EQ(policies_sentence(comparison), "None of 1 policies can run this scenario.");
}

TEST(PolicyComparison, ASentenceNamesTheBestAtEachValue) {
  PolicyComparison comparison{"a.yaml", "machine", "workload.layers", "", {"4", "8", "16"}, {}};
  for (const std::string value : {"4", "8", "16"})
    for (PolicyRun made : {run("a", 2), run("b", value == "4" ? 1 : 3)}) {
      if (value == "16") made = without_room(made.policy);
      made.value = value;
      comparison.runs.push_back(made);
    }
  EXPECT_EQ(policies_sentence(comparison),
            "By workload.layers: a is the fastest at 8; b is the fastest at 4; none runs at 16.");
}

TEST(PolicyComparison, PagesMarkTheBestAndDropWhatIsTheSameForAll) {
  PolicyRun slow = run("slow", 2);
  slow.result["peak_bytes"]["host"] = 5 << 20;
  PolicyComparison comparison{"a.yaml", "machine", "", "", {""}, {run("fast", 1), slow, without_room("c")}};
  const std::string page = policies_html(comparison);
  EXPECT_THAT(page, AllOf(HasSubstr(">★ fast</text>"), Not(HasSubstr(">★ slow</text>"))));
  EXPECT_THAT(page, HasSubstr("<span class=\"best\">1.00 s</span>"));
  // Peaks: all but the host's are alike, and so is all traffic.
  EXPECT_THAT(page, HasSubstr("device 1.00 GiB, host pinned 1.00 MiB, H2D a step 111 B"));
  EXPECT_THAT(page, Not(HasSubstr("<h2>Traffic</h2>")));
  EXPECT_THAT(page, HasSubstr("<h2>Memory by tier</h2>"));
}

// Of the two pictures of a chart the one for roomy pages.
std::string roomy(const std::string& drawn) { return drawn.substr(0, drawn.find("</svg>")); }

std::size_t count(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

TEST(Charts, UnitsMakeShortNumbers) {
  EXPECT_EQ(time_unit(0.5).name, "ms");
  EXPECT_EQ(time_unit(2).name, "s");
  EXPECT_EQ(byte_unit(0x1p33).name, "GiB");
  EXPECT_EQ(count_unit(1.5e9).name, "billions of ");
}

// Places are as far apart as their numbers; a hole in the values is a hole in the line.
TEST(Charts, LinesFollowTheirNumbers) {
  const std::string drawn = svg(LineChart{"x", "y", {"0", "1", "4"}, {{"s", {1.0, std::nullopt, 3.0}}}});
  EXPECT_EQ(count(roomy(drawn), "<polyline"), 2u);
  EXPECT_EQ(count(drawn, "<polyline"), 4u);  // and for narrow pages
  EXPECT_THAT(drawn, HasSubstr("<title>s, 4: 3</title>"));
}

TEST(Charts, ALineThatEndsForWantOfRoomSaysSo) {
  const LineChart::Series ends{"s", {1.0, 2.0, std::nullopt}, {"", "", "no room"}};
  EXPECT_THAT(svg(LineChart{"x", "y", {"0", "1", "4"}, {ends}}),
              AllOf(HasSubstr("<title>s, 4: no room</title>"), HasSubstr(">no room</text>")));
  const LineChart::Series begins{"s", {std::nullopt, 1.0, 2.0}, {"no room", "", ""}};
  EXPECT_THAT(svg(LineChart{"x", "y", {"0", "1", "4"}, {begins}}), Not(HasSubstr(">no room</text>")));
}

TEST(Charts, LinesBeyondTheFifthWaitToBePointedAt) {
  LineChart chart{"x", "y", {"0", "1"}, {}};
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) chart.series.push_back({name, {1.0, 2.0}});
  EXPECT_EQ(count(roomy(svg(chart)), "series rest\" tabindex"), 2u);
}

TEST(Charts, ALineKeepsItsColourWhereverItStands) {
  const LineChart::Series third{"s", {1.0, 2.0}, {}, 3};
  EXPECT_THAT(svg(LineChart{"x", "y", {"0", "1"}, {third}}), HasSubstr("stroke:var(--series3)"));
}

TEST(Charts, EqualLinesAreDrawnOnce) {
  std::vector<LineChart::Series> series{{"a", {1.0, 2.0}}, {"b", {1.0, 3.0}}, {"c", {1.0, 2.0}}};
  EXPECT_EQ(drop_equal(series), "The same line: c as a.");
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[1].name, "b");
  EXPECT_EQ(drop_equal(series), "");
}

TEST(Charts, TheBestLinesComeFirst) {
  LineChart chart{
      "x", "y", {"0", "1"}, {{"short", {0.5, std::nullopt}}, {"slow", {3.0, 3.0}}, {"fast", {1.0, 2.0}}}, false};
  best_first(chart);
  EXPECT_EQ(chart.series[0].name, "fast");
  EXPECT_EQ(chart.series[1].name, "slow");
  EXPECT_EQ(chart.series[2].name, "short");
  EXPECT_THAT(svg(chart),
              AllOf(HasSubstr("<title>short, 0: 0.5, the best</title>"),
                    HasSubstr("<title>fast, 1: 2, the best</title>"), HasSubstr("<title>slow, 1: 3</title>")));
}

// 1, 4 and 16 are as far apart, 1, 2 and 3 too.
TEST(Charts, PlacesThatSpanALotAreLogarithmic) {
  const auto middle = [](const std::vector<std::string>& x) {
    const std::string drawn = svg(LineChart{"x", "y", x, {{"s", {1.0, 1.0, 1.0}}}});
    const std::size_t at = drawn.find("<circle", drawn.find("<circle") + 1);
    return drawn.substr(at, drawn.find(" cy=", at) - at);
  };
  EXPECT_EQ(middle({"1", "4", "16"}), middle({"1", "2", "3"}));
  EXPECT_NE(middle({"1", "2", "4"}), middle({"1", "2", "3"}));
}

TEST(Charts, ABarWithoutAValueSaysWhy) {
  const std::string drawn = svg(BarChart{"s", {"step"}, {{"a", {2.0}, ""}, {"b", {}, "refused"}}});
  EXPECT_THAT(drawn, HasSubstr(">refused</text>"));
  EXPECT_THAT(drawn, HasSubstr(">2</text>"));
}

// What is too long for its place ends in an ellipsis, and is told in full when it is pointed at.
TEST(Charts, LongNamesStayInTheirPlace) {
  const std::string name = std::string(40, 'n') + "<b>", full = std::string(40, 'n') + "&lt;b&gt;";
  const auto all_short = AllOf(HasSubstr("n…</text>"), HasSubstr("<title>" + full + "</title>"), Not(HasSubstr("<b>")),
                               Not(HasSubstr(">" + full + "</text>")));
  EXPECT_THAT(roomy(svg(BarChart{"s", {"step"}, {{name, {2.0}, ""}}})), all_short);
  EXPECT_THAT(roomy(svg(LineChart{"x", "y", {"0", "1"}, {{name, {1.0, 2.0}}}})), all_short);
  EXPECT_THAT(roomy(svg(LineChart{"x", "y", {name, "1", "2"}, {{"s", {1.0, 2.0, 3.0}}}})), all_short);
  EXPECT_THAT(svg(HeatMap{"x", "y", "v", {"1", "2"}, {name}, {{1.0, 2.0}}, "none"}), all_short);
}

TEST(PolicyComparison, WhereNoneRunsThePageDrawsNothing) {
  PolicyComparison none{"folder/a.yaml", "m", "", "", {""}, {without_room("a"), without_room("b")}};
  EXPECT_THAT(policies_html(none), AllOf(HasSubstr("None of 2 policies can run"), Not(HasSubstr("<svg"))));
}

TEST(PolicyComparison, OneReasonIsSaidOnceForAllThatItHoldsFor) {
  const auto refused = [](const std::string& policy) {
    PolicyRun run;
    run.policy = policy;
    run.exit_code = 2;
    run.why_not = "a.yaml:3:4: workload.precision: " + policy + " does not train in fp16; allowed: bf16";
    return run;
  };
  const PolicyComparison comparison{
      "a.yaml", "round", "", "", {""}, {run("a", 1), refused("b"), refused("long_name"), without_room("c")}};
  EXPECT_THAT(policies_text(comparison),
              AllOf(HasSubstr("\nb, long_name: a.yaml:3:4: workload.precision: it does not train in fp16\n"),
                    HasSubstr("\nc: does not fit: ")));
}

}  // namespace
}  // namespace tandem
