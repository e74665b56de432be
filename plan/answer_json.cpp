// An answer for programs.
#include "plan/answer.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Answer& answer, const Plan& plan) {
  Json json{{"words", plan.words}, {"settings", plan.settings}, {"exact", plan.others == 0}};
  if (plan.run.kind == CandidateRun::Kind::Ran) {
    json["step_time_s"] = plan.run.step_s;
    if (plan.run.interval_s) json["interval_s"] = *plan.run.interval_s;
    json["tokens_per_s"] = plan.run.tokens_per_s;
    json["samples_per_s"] = plan.run.samples_per_s;
    if (plan.run.first_token_s > 0) json["first_token_s"] = plan.run.first_token_s;
    if (answer.price_per_hour > 0)
      json[plan.run.tokens_per_s > 0 ? "price_per_million_tokens" : "price_per_million_samples"] =
          price_of_million(answer, plan);
  }
  json["memory"] = Json::object();
  for (const CandidateRun::Memory& memory : plan.run.memory)
    json["memory"][memory.name] = {{"peak_bytes", memory.peak}, {"capacity_bytes", memory.capacity}};
  json["costs"] = Json::array();
  for (const Cost& cost : plan.costs)
    json["costs"].push_back(
        {{"choice", cost.choice}, {"words", cost.words}, {"changes_mathematics", cost.other_mathematics}});
  return json;
}

Json needed_by(const Answer& answer) {
  Json bytes = Json::object();
  for (std::size_t tier = 0; tier < kTierCount; ++tier)
    if (answer.enough.bytes[tier] > 0) bytes[std::string(name_of(static_cast<Tier>(tier)))] = answer.enough.bytes[tier];
  return {{"plan", to_json(answer, *answer.nearest)}, {"enough_bytes", bytes}, {"tried", answer.enough.found}};
}

}  // namespace

nlohmann::ordered_json answer_json(const Answer& answer) {
  Json json{{"schema", 1}, {"verdict", verdict(answer)}, {"fits", !answer.best.empty()}, {"best", Json::array()}};
  for (const Plan& plan : answer.best) json["best"].push_back(to_json(answer, plan));
  json["fastest_samples_per_s"] = answer.fastest_samples_per_s;
  if (answer.exact) json["exact"] = to_json(answer, *answer.exact);
  if (answer.nearest) json["nearest"] = needed_by(answer);
  json["devices"] = answer.devices;
  if (answer.price_per_hour > 0) json["price_per_hour"] = answer.price_per_hour;
  for (const Hold& held : answer.held_by)
    json["held_by"].push_back(
        {{"name", name_of(held.of)}, {"unit", unit_of(held.of)}, {"gain", held.gain}, {"share", held.share}});
  const Counts& counts = answer.counts;
  json["candidates"] = {
      {"all", counts.all},         {"simulated", counts.simulated}, {"too_large", counts.too_large},
      {"bounded", counts.bounded}, {"estimated", counts.estimated}, {"not_allowed", counts.not_allowed},
      {"left", counts.left}};
  json["commands"] = answer.commands;
  json["cut"] = answer.cut;
  json["ruled_out"] = answer.ruled_out;
  json["scenario"] = answer.scenario;
  return json;
}

nlohmann::ordered_json devices_json(const std::vector<Answer>& answers) {
  Json json = answer_json(answers[fastest(answers)]);
  if (answers.size() < 2) return json;
  json["by_devices"] = Json::array();
  for (const Answer& answer : answers) {
    Json& row = json["by_devices"].emplace_back(Json{{"devices", answer.devices}, {"fits", !answer.best.empty()}});
    if (!answer.best.empty()) row["best"] = to_json(answer, answer.best.front());
  }
  return json;
}

}  // namespace tandem
