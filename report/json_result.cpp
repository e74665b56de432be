#include "report/json_result.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/resources.hpp"
#include "analysis/staleness.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json step_times(const Analysis& analysis) {
  Json all = Json::array();
  for (std::int64_t ns : analysis.run.times_ns) all.push_back(seconds(ns));
  Json times = {
      {"median", analysis.step_s.median}, {"p10", analysis.step_s.p10}, {"p90", analysis.step_s.p90}, {"all", all}};
  if (const auto& interval = analysis.step_interval) times["interval_90"] = {interval->low, interval->high};
  return times;
}

Json busy_share(const Analysis& analysis) {
  Json shares = Json::object();
  const auto length = static_cast<double>(std::max<std::int64_t>(1, analysis.steps.windows_ns()));
  for (const LaneReport& lane : analysis.lanes)
    shares[lane_name(lane.rank, lane.lane)] = static_cast<double>(lane.use.busy_ns) / length;
  return shares;
}

Json idle(const Analysis& analysis) {
  Json lanes = Json::object();
  const double times = static_cast<double>(analysis.steps.window_steps());
  for (const LaneReport& lane : analysis.lanes) {
    Json causes = Json::object();
    for (int cause = 0; cause < kCauseCount; ++cause)
      if (const std::int64_t ns = lane.use.idle_ns[static_cast<std::size_t>(cause)]; ns != 0)
        causes[std::string(name_of(static_cast<Cause>(cause)))] = seconds(ns) / times;
    lanes[lane_name(lane.rank, lane.lane)] = causes;
  }
  return lanes;
}

Json bytes_moved(const Analysis& analysis) {
  Json bytes = Json::object();
  for (const LaneReport& lane : analysis.lanes)
    if (lane.use.bytes > 0) bytes[lane_name(lane.rank, lane.lane)] = lane.use.bytes;
  return bytes;
}

Json peak_bytes(const Analysis& analysis) {
  Json peaks = Json::object();
  for (const auto& [tier, bytes] : analysis.peak_bytes) peaks[tier] = bytes;
  return peaks;
}

Json evicted_bytes(const Analysis& analysis) {
  Json tiers = Json::object();
  for (const auto& [tier, bytes] : analysis.evicted_bytes) tiers[tier] = bytes;
  return tiers;
}

// A number that has diverged is no number of JSON: it is written as null.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json list(const std::vector<double>& values) {
  Json all = Json::array();
  for (double value : values) all.push_back(finite(value));
  return all;
}

Json validation_loss(const Analysis& analysis) {
  Json all = Json::array();
  for (const Validation& at : analysis.validation_loss) all.push_back({{"step", at.step}, {"loss", finite(at.loss)}});
  return all;
}

Json critical_path(const Analysis& analysis) {
  Json parts = Json::array();
  for (const PathPart& part : analysis.path)
    parts.push_back({{"cause", name_of(part.cause)}, {"what", part.what}, {"seconds", part.seconds}});
  return parts;
}

Json roofline(const Roofline& at) {
  return {{"flops", at.flops},
          {"bytes", at.bytes},
          {"flops_a_byte", at.intensity()},
          {"peak_flops_per_s", at.peak_flops},
          {"memory_bytes_per_s", at.bytes_per_s},
          {"balance_flops_a_byte", at.balance()},
          {"arithmetic_s", at.arithmetic_s},
          {"memory_s", at.memory_s}};
}

std::string name_of_link(const LinkTraffic& link) {
  return std::string(name_of(link.kind)) + (link.between_hosts ? "_between_hosts" : "");
}

Json pipeline(const std::vector<StageShare>& all) {
  Json stages = Json::array();
  for (const StageShare& stage : all) {
    Json bytes = Json::object();
    for (const LinkTraffic& link : stage.links) bytes[name_of_link(link)] = link.bytes;
    stages.push_back({{"stage", stage.stage}, {"waiting_share", stage.waiting}, {"bytes_a_step", bytes}});
  }
  return {{"waiting_share", waiting_share(all)}, {"stages", stages}};
}

Json measured_ops(const MeasuredShare& of) {
  Json modelled = Json::object();
  for (const auto& [body, share] : of.modelled) modelled[body] = share;
  return {{"share", of.share}, {"count", of.measured}, {"modelled", modelled}};
}

Json adaptation(const RunRecord& record) {
  Json all = Json::array();
  for (const AdaptDecision& decision : record.adaptation) {
    Json candidates = Json::array();
    for (const AdaptDecision::Candidate& c : decision.candidates) {
      Json candidate = {{"policy", c.policy}};
      if (c.why_not.empty())
        candidate.update({{"step_s", c.step_s}, {"switch_s", c.switch_s}});
      else
        candidate["why_not"] = c.why_not;
      candidates.push_back(std::move(candidate));
    }
    Json one = {{"asked_after_step", decision.step}, {"decided_after_step", decision.after_step},
                {"cause", decision.cause},           {"lane_times", decision.lane_times},
                {"candidates", candidates},          {"policy", decision.chosen},
                {"switches", decision.switches},     {"forecast_step_s", decision.forecast_step_s}};
    if (decision.measured_step_s) one["measured_step_s"] = *decision.measured_step_s;
    all.push_back(std::move(one));
  }
  return all;
}

// Of a run that generates text, or images.
Json generated_json(const Generated& of) {
  if (of.images_per_s > 0)
    return {{"first_step_s", of.first_token_s}, {"step_s", of.token_s}, {"images_per_s", of.images_per_s}};
  Json told = {{"first_token_s", of.first_token_s},
               {"token_s", of.token_s},
               {"tokens_per_s", of.tokens_per_s},
               {"later_tokens_per_s", of.later_tokens_per_s},
               {"has_cache", of.has_cache}};
  if (of.unused) told["unused_share"] = {{"prompts", of.unused->of_prompts}, {"new_tokens", of.unused->of_new_tokens}};
  return told;
}

}  // namespace

nlohmann::ordered_json to_json(const Analysis& analysis) {
  const RunRecord& record = *analysis.record;
  Json result = {
      {"schema", kResultSchema},
      {"mode", record.mode},
      {"scenario", record.scenario->path},
      {"machine", record.scenario->machine.name},
      {"policy", record.scenario->policy.name},
      {"steps", analysis.run.steps},
      {"step_time_s", step_times(analysis)},
      {"mean_step_s", analysis.mean_step_s},
      {"steady_step_s", analysis.steady_step_s},
      {"head_s", seconds(analysis.run.head_ns)},
      {"tail_s", seconds(analysis.run.tail_ns)},
      {"makespan_s", seconds(analysis.run.makespan_ns)},
      {"throughput",
       {{"tokens_per_s", analysis.tokens_per_s},
        {"samples_per_s", analysis.samples_per_s},
        {"model_flops_per_s", analysis.model_flops_per_s}}},
      {"model_flop_use", analysis.flop_use},
      {"peak_bytes", peak_bytes(analysis)},
      {"busy_share", busy_share(analysis)},
      {"compute_s", analysis.compute_s},
      {"exposed_s", analysis.exposed_s},
      {"limited_by", {{"cause", analysis.holder.cause}, {"share", analysis.holder.share}}},
      {"critical_path", critical_path(analysis)},
      {"roofline", roofline(analysis.roofline)},
      {"idle_s", idle(analysis)},
      {"idle_share", idle_shares(analysis.timeline, analysis.steps)},
      {"bytes_moved", bytes_moved(analysis)},
      {"bytes_a_step", bytes_a_step(analysis.timeline, analysis.steps)},
      {"lower_bound_s", analysis.bound.step_s},
      {"lower_bound_held_by", analysis.bound.held_by},
      {"policy_bound_s", analysis.bound.policy_step_s},
      {"policy_bound_held_by", analysis.bound.policy_held_by},
  };
  if (analysis.generated) result["generation"] = generated_json(*analysis.generated);
  if (!analysis.stages.empty()) result["pipeline"] = pipeline(analysis.stages);
  if (const auto all = staleness(*record.scenario, analysis.run.steps))
    result["staleness"] = {{"mean", all->mean}, {"max", all->most}, {"updates", all->updates}};
  if (!record.adaptation.empty()) result["adaptation"] = adaptation(record);
  if (!analysis.evicted_bytes.empty()) result["evicted_bytes"] = evicted_bytes(analysis);
  result["parameters"] = analysis.parameters;
  if (const WorkloadOptions& w = record.scenario->workload; !w.trained.empty() || w.lora.rank > 0)
    result["trained_parameters"] = analysis.trained_parameters;
  if (analysis.compressed_parameters > 0) result["compressed_parameters"] = analysis.compressed_parameters;
  if (record.totals != nullptr) result["detailed_steps"] = analysis.steps.ends_ns.size();
  result["first_step"] = record.scenario->first_step;
  result["checkpoint_s"] = analysis.checkpoint_s;
  if (!record.told.empty()) result["told_ranks"] = record.told;
  if (record.mode == "measured") result["loss"] = list(analysis.loss);
  if (!analysis.validation_loss.empty()) result["validation_loss"] = validation_loss(analysis);
  if (!analysis.gradient_norm.empty()) {
    result["gradient_norm"] = list(analysis.gradient_norm);
    result["skipped_steps"] = analysis.skipped_steps;
  }
  if (analysis.loss_scale) result["loss_scale"] = *analysis.loss_scale;
  if (analysis.measured.any) result["measured_ops"] = measured_ops(analysis.measured);
  if (!record.other_machine.empty()) result["other_machine"] = record.other_machine;
  if (record.pinning_s > 0) {
    result["pinning_s"] = record.pinning_s;
    result["far_host_bytes"] = record.far_host_bytes;
  }
  result["commands"] = analysis.run.commands;
  if (record.mode == "simulated") {
    const auto events = static_cast<double>(analysis.run.commands);
    result["simulator"] = {{"wall_s", record.wall_s}, {"events_per_s", record.wall_s > 0 ? events / record.wall_s : 0}};
  }
  return result;
}

}  // namespace tandem
