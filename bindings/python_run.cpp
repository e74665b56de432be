#include "bindings/python_run.hpp"

#include <chrono>
#include <utility>

#include "analysis/analysis.hpp"
#include "core/run/load.hpp"
#include "core/workloads/workload.hpp"
#include "report/json_result.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "runtime/live_scenario.hpp"
#include "runtime/open_device.hpp"

namespace nb = nanobind;

namespace tandem {
namespace {

Scenario scenario_of(const RunRequest& request) {
  std::vector<std::string> settings = request.settings;
  const auto load = [&](const std::vector<std::string>& all) {
    if (!request.path.empty()) return load_scenario(request.path, all);
    return parse_scenario(request.text, "scenario", all, request.directory);
  };
  Scenario scenario = load_live_scenario(load, settings, request.device);
  if (!request.resume.empty()) resume_from(scenario, request.resume, /*verify=*/true);
  if (scenario.first_step >= scenario.steps)
    throw ConfigError("steps: " + scenario.resume_folder + " is from after training step " +
                      std::to_string(scenario.first_step) + " of " + std::to_string(scenario.steps) +
                      "; allowed: more steps");
  return scenario;
}

std::vector<BatchEntry> batch_of(const Scenario& scenario) {
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  if (family == nullptr || family->network == nullptr) return {};
  const Network network = network_of(scenario);
  std::vector<BatchEntry> entries;
  for (std::size_t i = 0; i < network.batch.size(); ++i) {
    const BatchTensor& tensor = network.batch[i];
    const auto& dims = tensor.shape.dims;
    const bool constant = network.load.body == "imported.load" && network.load.sizes.at(i) < 0;
    entries.push_back(
        {tensor.name, {dims.begin(), dims.end()}, std::string(name_of(tensor.shape.type)), tensor.below, constant});
  }
  return entries;
}

}  // namespace

PythonRun::PythonRun(const RunRequest& request) {
  Scenario scenario = scenario_of(request);
  batch_ = batch_of(scenario);
  held_from_ = scenario.first_step;
  if (request.batches_given && batch_.empty())
    throw ConfigError("batches: " + scenario.workload.family + " takes none; allowed: None");
  EmbeddedOptions options;
  options.open_device = [device = request.device] { return open_device(device); };
  options.batches_given = request.batches_given;
  run_ = std::make_unique<EmbeddedRun>(std::move(scenario), std::move(options));
}

PythonRun::~PythonRun() {
  const nb::gil_scoped_release unlocked;  // other Python threads go on while the run ends
  run_.reset();
}

std::vector<std::string> PythonRun::warnings() const {
  std::vector<std::string> all = run_->scenario().warnings;
  if (const std::string remark = run_->remark(); !remark.empty()) all.push_back(remark);
  return all;
}

EmbeddedRun::Request PythonRun::next(int patience_ms) {
  EmbeddedRun::Request request;
  {
    const nb::gil_scoped_release unlocked;
    request = run_->next(std::chrono::milliseconds(patience_ms));
  }
  if (request.need == EmbeddedRun::Need::Report)
    for (; held_from_ < request.report.step && !held_.empty(); ++held_from_) held_.pop_front();
  return request;
}

void PythonRun::give(std::vector<std::optional<Given>> tensors, const std::vector<bool>& shared) {
  GivenBatch batch;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    GivenTensor& tensor = batch.emplace_back();
    if (!tensors[i]) continue;
    tensor.bytes = static_cast<const std::byte*>(tensors[i]->data());
    tensor.count = static_cast<std::int64_t>(tensors[i]->nbytes());
    tensor.shared = shared.at(i);
  }
  held_.push_back(std::move(tensors));
  run_->give(std::move(batch));
}

std::string PythonRun::result() {
  const nb::gil_scoped_release unlocked;
  run_->require_outcome();
  const RunRecord record = run_->record();
  return to_json(analyse(record)).dump();
}

nb::dict PythonRun::parameters() {
  std::vector<NamedNumbers> all;
  {
    const nb::gil_scoped_release unlocked;
    run_->require_outcome();
    all = run_->parameters();
  }
  nb::dict out;
  for (NamedNumbers& of : all) {
    const std::vector<std::size_t> shape(of.shape.begin(), of.shape.end());
    auto owned = std::make_unique<std::vector<float>>(std::move(of.values));
    float* numbers = owned->data();
    const nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
    out[of.name.c_str()] = nb::ndarray<nb::pytorch, float>(numbers, shape.size(), shape.data(), owner);
  }
  return out;
}

}  // namespace tandem
