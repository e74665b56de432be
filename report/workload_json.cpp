// A workload for programs: docs/analyze.md documents the keys.
#include "report/workload_report.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json names(Modalities modalities) {
  Json list = Json::array();
  for (const std::string_view name : names_of(modalities)) list.push_back(name);
  return list;
}

Json time(const ProcessorTime& t) {
  return {{"seconds", t.seconds}, {"evidence", t.evidence()}, {"measured_s", t.measured_s}, {"fitted_s", t.fitted_s}};
}

Json trial(const PlacementTrial& t) {
  Json json = {{"modules", t.modules}, {"to", t.to_cpu ? "cpu" : "device"}, {"cpu_modules", t.on_cpu}};
  if (t.step_s)
    json.update({{"step_s", *t.step_s}, {"device_bytes", t.device_bytes}});
  else
    json.update({{"does_not_fit", t.does_not_fit}, {"why_not", t.why_not}});
  return json;
}

Json group(const WorkloadReport& r, const GroupReport& g) {
  const GroupCosts& c = g.costs;
  Json access = Json::object(), trials = Json::array();
  for (int i = 0; i < kAccessCount; ++i)
    access[std::string(name_of(static_cast<Access>(i)))] = g.access.bytes[static_cast<std::size_t>(i)];
  for (const PlacementTrial& t : g.trials) trials.push_back(trial(t));
  return {{"kind", g.group.kind},
          {"modules", g.words},
          {"count", g.group.modules.size()},
          {"modality", label_of(g.group.modalities)},
          {"modalities", names(g.group.modalities)},
          {"flops", {{"forward", c.forward_flops}, {"backward", c.backward_flops}, {"recompute", c.recompute_flops}}},
          {"bytes", {{"forward", c.forward_bytes}, {"backward", c.backward_bytes}, {"recompute", c.recompute_bytes}}},
          {"flops_a_byte", c.intensity()},
          {"access", name_of(g.access.most())},
          {"access_bytes", access},
          {"device", time(c.device)},
          {"cpu", time(c.cpu)},
          {"moves", {{"in_bytes", c.in_bytes}, {"out_bytes", c.out_bytes}, {"seconds", c.transfer_s}}},
          {"memory",
           {{"parameter_bytes", c.parameter_bytes},
            {"gradient_bytes", c.gradient_bytes},
            {"state_bytes", c.state_bytes},
            {"activation_bytes", c.activation_bytes}}},
          {"independent_s", g.independent_s},
          {"critical_path_s", g.share.path_s},
          {"critical_path_share", r.step_s ? Json(g.share.path_s / *r.step_s) : Json(nullptr)},
          {"exposed_s", g.share.exposed_s},
          {"on_cpu", g.on_cpu},
          {"suggested_on_cpu", g.suggested_on_cpu},
          {"reason", reason_of(r, g)},
          {"trials", trials}};
}

Json meeting(const WorkloadReport& r, const Meeting& m) {
  Json branches = Json::array();
  for (const Meeting::Branch& branch : m.branches)
    branches.push_back({{"module", branch.module},
                        {"modalities", names(branch.modalities)},
                        {"ready_s", r.step_s ? Json(branch.ready_s) : Json(nullptr)}});
  return {{"modules", r.groups[m.group].words}, {"branches", branches}};
}

Json roof(const Roof& of) { return {{"flops_per_s", of.flops_per_s}, {"bytes_per_s", of.bytes_per_s}}; }

}  // namespace

Json workload_json(const WorkloadReport& r) {
  Json groups = Json::array(), meetings = Json::array();
  for (const GroupReport& g : r.groups) groups.push_back(group(r, g));
  for (const Meeting& m : r.meetings) meetings.push_back(meeting(r, m));
  Json json{{"schema", 1},
            {"sentence", answer(r)},
            {"scenario", r.scenario},
            {"machine", r.machine},
            {"policy", r.policy},
            {"family", r.family},
            {"precision", r.precision},
            {"set", r.settings},
            {"roofs", {{"device", roof(r.device)}, {"cpu", roof(r.cpu)}}},
            {"fits", r.step_s.has_value()},
            {"step_s", r.step_s ? Json(*r.step_s) : Json(nullptr)},
            {"compute_s", r.compute_s},
            {"device_bytes", {{"capacity", r.device_capacity_bytes}, {"peak", r.device_peak_bytes}}},
            {"suggestion", r.best ? trial(*r.best) : Json(nullptr)},
            {"modules", groups},
            {"no_module", {{"critical_path_s", r.others.path_s}, {"exposed_s", r.others.exposed_s}}},
            {"meetings", meetings},
            {"input",
             {{"body", r.input.body},
              {"bytes", r.input.bytes},
              {"load_s", r.input.load_s},
              {"copy_s", r.input.copy_s},
              {"exposed_s", r.input.exposed_s},
              {"compute_s", r.input.compute_s}}}};
  put_origin(json, r.origin);
  return json;
}

}  // namespace tandem
