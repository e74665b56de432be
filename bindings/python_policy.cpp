#include "bindings/python_policy.hpp"

#include <string>
#include <utility>

#include "bindings/sim_views.hpp"

namespace nb = nanobind;

namespace tandem {

PythonPolicy::PythonPolicy(nb::object policy)
    : policy_(std::move(policy)), home_(policy_.attr("home")), decide_(policy_.attr("decide")) {}

PolicyTraits PythonPolicy::traits() const { return {.may_evict = nb::cast<bool>(policy_.attr("may_evict"))}; }

Tier PythonPolicy::home(const View& view, TensorId tensor) {
  const nb::object tier = home_(view, python_tensor(view.graph(), tensor));
  if (!nb::isinstance<nb::str>(tier)) throw nb::type_error("home() returned no text; allowed: device, host, disk");
  return tier_named(nb::cast<nb::str>(tier).c_str());
}

void PythonPolicy::decide(const View& view, Decisions& decisions) { decide_(view, PythonDecisions{view, decisions}); }

}  // namespace tandem
