#include "runtime/embedded_run.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/executors/start_thread.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/starting_weights.hpp"
#include "runtime/stored_values.hpp"
#include "runtime/torch_setup.hpp"

namespace tandem {
namespace {

// That a scheduler may append before it answers again: it keeps three ahead, and a decision may use up all of them.
constexpr std::int64_t kStepsAtOnce = 3;
// Batches that the caller may prepare while the run has enough.
constexpr std::int64_t kSpareBatches = 2;
// Reports that may wait for the caller.
constexpr std::size_t kMostUnheard = 1;

std::int64_t appended_steps(const Graph& graph) {
  return graph.op_count() == 0 ? 0 : std::int64_t{graph.op(graph.op_count() - 1).step} + 1;
}

void refuse(const Scenario& scenario, const EmbeddedOptions& options) {
  if (rank_count(scenario) > 1)
    throw ConfigError("workload.devices: a run inside another program has one rank; allowed: 1, or tandem train");
  if (options.batches_given && scenario.validation.every > 0)
    throw ConfigError(
        "validation.every: of batches that are given none is held out; allowed: 0, or no batches but the scenario's");
}

}  // namespace

EmbeddedRun::EmbeddedRun(Scenario scenario, EmbeddedOptions options)
    : scenario_(std::move(scenario)), options_(std::move(options)), batches_(scenario_.first_step, [this] {
        const std::lock_guard lock(mutex_);
        news_.notify_all();
      }) {
  refuse(scenario_, options_);
  thread_ = start_thread("a run", [this] { run(); });
}

EmbeddedRun::~EmbeddedRun() {
  interrupt();
  interrupt();  // whether it saves or not
  thread_.join();
  training_.reset();
  if (scenario_.workload.keys.has("path")) StoredValues::forget(scenario_);
}

void EmbeddedRun::run() {
  std::exception_ptr error;
  try {
    train();
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  error_ = error;
  over_ = true;
  news_.notify_all();
}

void EmbeddedRun::train() {
  const TorchSettings as_before;
  if (scenario_.workload.keys.has("path")) StoredValues::forget(scenario_);  // the folder may be another by now
  StartingWeights::check_files(scenario_, /*quiet=*/true);
  if (options_.batches_given) shorten();
  if (interrupt_) return void(interrupted_ = true);
  std::optional<CheckpointLock> lock;
  if (!scenario_.checkpoint.directory.empty()) lock.emplace(scenario_);
  TrainOptions options;
  options.interrupt = &interrupt_;
  if (options_.open_device) options.device = options_.open_device();
  if (options_.batches_given)
    options.open_data = [this] { return std::make_unique<QueuedData>(batches_, scenario_.workload.micro_batches); };
  training_ = std::make_unique<Training>(scenario_, options);
  remark_ = training_->data().remark();
  other_machine_ = other_machine(scenario_.machine, options.device.get());
  StepReports reports(training_->graph(), scenario_, [this](StepReport report) { tell(std::move(report)); });
  training_->run(&reports, [this] { return inputs(training_->graph()); });
  interrupted_ = training_->interrupted();
}

// A caller who is behind holds the run up: what he says of a step is to reach the run while it is near that step.
void EmbeddedRun::tell(StepReport report) {
  std::unique_lock lock(mutex_);
  reports_.push_back(std::move(report));
  news_.notify_all();
  heard_.wait(lock, [this] { return reports_.size() <= kMostUnheard || hurries_; });
}

// To the batches that there are, where these end before the first steps are appended.
void EmbeddedRun::shorten() {
  const std::int64_t steps = scenario_.steps - scenario_.first_step;
  const std::int64_t given = batches_.require(std::min(steps, 2 * kStepsAtOnce), kSpareBatches);
  if (given == 0 && !interrupt_) throw ConfigError("batches: there are none; allowed: one for each training step");
  if (batches_.ended()) scenario_.steps = scenario_.first_step + static_cast<std::int32_t>(std::min(steps, given));
}

// What there is to say before the scheduler goes on. No step is appended whose batch is not there: the scheduler is
// told of the end while it can still end right there.
std::vector<Input> EmbeddedRun::inputs(const Graph& graph) {
  if (ends_.exchange(false)) {
    end_told_ = true;
    return {SwitchPolicy{std::string(kNoPolicy), {}, kNone}};
  }
  if (!options_.batches_given || end_told_) return {};
  const std::int64_t steps = scenario_.steps - scenario_.first_step;
  const std::int64_t needed = std::min(steps, appended_steps(graph) + kStepsAtOnce);
  const std::int64_t given = batches_.require(needed, needed < steps ? kSpareBatches : 0);
  if (!batches_.ended() || given >= steps) return {};
  end_told_ = true;
  return {SwitchPolicy{std::string(kNoPolicy), {}, scenario_.first_step + static_cast<std::int32_t>(given)}};
}

EmbeddedRun::Request EmbeddedRun::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  for (const auto end = std::chrono::steady_clock::now() + patience;;) {
    if (!reports_.empty()) {
      Request request{Need::Report, std::move(reports_.front())};
      reports_.pop_front();
      heard_.notify_all();
      batches_.drop(request.report.step - scenario_.first_step);
      return request;
    }
    if (over_) return {Need::Over, {}};
    if (options_.batches_given && batches_.wants()) return {Need::Batch, {}};
    if (std::chrono::steady_clock::now() >= end) return {};
    news_.wait_until(lock, end);
  }
}

void EmbeddedRun::give(GivenBatch batch) { batches_.give(std::move(batch)); }

void EmbeddedRun::end_of_batches() { batches_.end(); }

void EmbeddedRun::end_at_border() { ends_ = true; }

// A run that waits for its caller waits no longer.
void EmbeddedRun::interrupt() {
  interrupt_ = true;
  batches_.end();
  const std::lock_guard lock(mutex_);
  hurries_ = true;
  heard_.notify_all();
}

void EmbeddedRun::require_outcome() {
  const std::lock_guard lock(mutex_);
  CHECK(over_, "asked for the outcome of what still runs");
  if (error_) std::rethrow_exception(error_);
  CHECK(training_ != nullptr && !interrupted_, "a run that was interrupted has no outcome");
}

RunRecord EmbeddedRun::record() const {
  RunRecord record = training_->record();
  record.other_machine = other_machine_;
  return record;
}

std::vector<NamedNumbers> EmbeddedRun::parameters() {
  std::map<std::string, std::vector<float>> values = training_->parameters();
  std::vector<NamedNumbers> out;
  const Graph& graph = training_->graph();
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.role != Role::Parameter || tensor.layout == nullptr) continue;
    const std::string stage = tensor.name.substr(0, tensor.name.find('.') + 1);
    for (const Field& field : tensor.layout->fields)
      if (auto found = values.extract(stage + field.name))
        out.push_back({found.key(), {field.shape.begin(), field.shape.end()}, std::move(found.mapped())});
  }
  return out;
}

}  // namespace tandem
