// The names of the native module. A composition root, as runtime/main.cpp is: it joins Python and the LibTorch runtime.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <torch/version.h>

#include "bindings/errors.hpp"
#include "bindings/python_run.hpp"
#include "core/base/errors.hpp"

namespace nb = nanobind;

namespace {

using tandem::EmbeddedRun;
using tandem::PythonRun;
using tandem::StepReport;

nb::dict to_dict(const StepReport& report) {
  nb::dict bytes, out;
  for (const auto& [lane, count] : report.bytes) bytes[lane.c_str()] = count;
  out["step"] = report.step;
  out["loss"] = report.loss;
  out["validation_loss"] = report.validation_loss;
  out["gradient_norm"] = report.gradient_norm;
  out["learning_rate"] = report.learning_rate;
  out["step_time_s"] = report.step_time_s;
  out["tokens_per_s"] = report.tokens_per_s > 0 ? nb::cast(report.tokens_per_s) : nb::none();
  out["bytes"] = bytes;
  return out;
}

// ("report", {...}), ("batch", None), ("over", None) or ("nothing", None).
nb::tuple next(PythonRun& run, int patience_ms) {
  const EmbeddedRun::Request request = run.next(patience_ms);
  switch (request.need) {
    case EmbeddedRun::Need::Report:
      return nb::make_tuple("report", to_dict(request.report));
    case EmbeddedRun::Need::Batch:
      return nb::make_tuple("batch", nb::none());
    case EmbeddedRun::Need::Over:
      return nb::make_tuple("over", nb::none());
    case EmbeddedRun::Need::Nothing:
      break;
  }
  return nb::make_tuple("nothing", nb::none());
}

void make_run(PythonRun* self, const std::string& path, const std::string& text, const std::string& directory,
              std::vector<std::string> settings, const std::string& device, const std::string& resume,
              bool batches_given) {
  new (self) PythonRun({path, text, directory, std::move(settings), device, resume, batches_given});
}

nb::list batch(const PythonRun& run) {
  nb::list out;
  for (const tandem::BatchEntry& e : run.batch())
    out.append(nb::make_tuple(e.name, nb::tuple(nb::cast(e.shape)), e.type, e.below, e.constant));
  return out;
}

void add_run(nb::module_& m) {
  nb::class_<PythonRun>(m, "Run")
      .def("__init__", &make_run, nb::kw_only(), nb::arg("path"), nb::arg("text"), nb::arg("directory"),
           nb::arg("settings"), nb::arg("device"), nb::arg("resume"), nb::arg("batches_given"))
      .def_prop_ro("batch", &batch)
      .def_prop_ro("micro_batches", [](const PythonRun& run) { return run.scenario().workload.micro_batches; })
      .def_prop_ro("samples", [](const PythonRun& run) { return run.scenario().workload.batch; })
      .def_prop_ro("warnings", &PythonRun::warnings)
      .def_prop_ro("interrupted", [](PythonRun& run) { return run.run().interrupted(); })
      .def("next", &next)
      .def("give", &PythonRun::give)
      .def("end_of_batches", [](PythonRun& run) { run.run().end_of_batches(); })
      .def("end_at_border", [](PythonRun& run) { run.run().end_at_border(); })
      .def("interrupt", [](PythonRun& run) { run.run().interrupt(); })
      .def("result", &PythonRun::result)
      .def("parameters", &PythonRun::parameters);
}

}  // namespace

NB_MODULE(TANDEM_MODULE, m) {
  m.attr("torch_version") = TORCH_VERSION;
  tandem::translate_errors();
  add_run(m);
}
