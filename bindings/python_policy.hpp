// A policy whose decisions a Python object takes. Must not know worlds.
#pragma once

#include <nanobind/nanobind.h>

#include "core/scheduler/policy.hpp"

namespace tandem {

// An object of tandem.Policy: `may_evict`, home(view, tensor), decide(view, decisions). What it raises goes through, as
// nanobind's python_error. To be used by the thread that holds Python's lock.
class PythonPolicy final : public Policy {
 public:
  explicit PythonPolicy(nanobind::object policy);
  PolicyTraits traits() const override;
  Tier home(const View& view, TensorId tensor) override;
  void decide(const View& view, Decisions& decisions) override;

 private:
  nanobind::object policy_, home_, decide_;
};

}  // namespace tandem
