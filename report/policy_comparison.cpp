#include "report/policy_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/units.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

double peak(const Json& result, std::string_view tier) {
  double most = 0;
  for (const auto& [name, bytes] : result.at("peak_bytes").items())
    if (name == tier || (tier == "device" && name.starts_with("device"))) most = std::max(most, bytes.get<double>());
  return most;
}

// Of all lanes whose name ends so.
double moved(const Json& result, std::initializer_list<std::string_view> lanes) {
  double sum = 0;
  for (const auto& [name, bytes] : result.at("bytes_a_step").items())
    for (const std::string_view lane : lanes)
      if (std::string_view(name).ends_with(lane)) sum += bytes.get<double>();
  return sum;
}

double idle(const Json& result, const char* resource) { return result.at("idle_share").at(resource).get<double>(); }

// Above a bound; 0 where the run has no bound, and where its steps are within rounding of it.
double above(const Json& result, double bound_s) {
  constexpr double kRounding = 1e-6;
  const double share = bound_s > 0 ? result.at("steady_step_s").get<double>() / bound_s - 1 : 0;
  return std::abs(share) < kRounding ? 0 : share;
}

std::string bytes_text(double bytes) { return format_bytes(static_cast<std::int64_t>(bytes)); }

double rate(const Json& result, const char* key) { return result.at("throughput").at(key).get<double>(); }

}  // namespace

const std::vector<PolicyFigure>& policy_figures() {
  static const std::vector<PolicyFigure> kAll{
      {"parameters", "parameters", [](const Json& r) { return r.at("parameters").get<double>(); }, format_count, true},
      {"step_s", "step", [](const Json& r) { return r.at("step_time_s").at("median").get<double>(); }, format_time},
      {"tokens_per_s", "tokens/s", [](const Json& r) { return rate(r, "tokens_per_s"); }, format_count, true},
      {"samples_per_s", "samples/s", [](const Json& r) { return rate(r, "samples_per_s"); }, format_count, true},
      {"device_bytes", "device", [](const Json& r) { return peak(r, "device"); }, bytes_text},
      {"host_pinned_bytes", "host pinned", [](const Json& r) { return peak(r, "host_pinned"); }, bytes_text},
      {"host_bytes", "host", [](const Json& r) { return peak(r, "host"); }, bytes_text},
      {"disk_bytes", "disk", [](const Json& r) { return peak(r, "disk"); }, bytes_text},
      {"h2d_bytes_a_step", "H2D a step",
       [](const Json& r) {
         return moved(r, {"/h2d", "/h2d_small"});
       },
       bytes_text},
      {"d2h_bytes_a_step", "D2H a step",
       [](const Json& r) {
         return moved(r, {"/d2h", "/d2h_small"});
       },
       bytes_text},
      {"disk_read_bytes_a_step", "read a step", [](const Json& r) { return moved(r, {"/disk_read"}); }, bytes_text},
      {"disk_write_bytes_a_step", "written a step", [](const Json& r) { return moved(r, {"/disk_write"}); },
       bytes_text},
      {"gpu_idle_share", "GPU idle", [](const Json& r) { return idle(r, "gpu"); }, format_percent},
      {"cpu_idle_share", "CPU idle", [](const Json& r) { return idle(r, "cpu"); }, format_percent},
      {"h2d_idle_share", "H2D idle", [](const Json& r) { return idle(r, "h2d"); }, format_percent},
      {"d2h_idle_share", "D2H idle", [](const Json& r) { return idle(r, "d2h"); }, format_percent},
      {"disk_idle_share", "disk idle", [](const Json& r) { return idle(r, "disk"); }, format_percent},
      {"above_lower_bound", "above bound",
       [](const Json& r) { return above(r, r.at("lower_bound_s").at("overall").get<double>()); }, format_percent},
      {"above_policy_bound", "above own bound",
       [](const Json& r) { return above(r, r.at("policy_bound_s").get<double>()); }, format_percent}};
  return kAll;
}

const PolicyFigure& policy_figure(const std::string& name) {
  const auto& all = policy_figures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const PolicyFigure& f) { return f.name == name; });
  CHECK(found != all.end(), name);
  return *found;
}

const char* rate_figure(const PolicyComparison& comparison) {
  const auto reads_tokens = [](const PolicyRun& run) { return run.ran() && rate(run.result, "tokens_per_s") > 0; };
  const bool any = std::any_of(comparison.runs.begin(), comparison.runs.end(), reads_tokens);
  return any ? "tokens_per_s" : "samples_per_s";
}

void sort_by_step(std::vector<PolicyRun>& runs) {
  const PolicyFigure& step = policy_figure("step_s");
  std::stable_sort(runs.begin(), runs.end(), [&](const PolicyRun& a, const PolicyRun& b) {
    if (a.ran() != b.ran()) return a.ran();
    return a.ran() && step.of(a.result) < step.of(b.result);
  });
}

}  // namespace tandem
