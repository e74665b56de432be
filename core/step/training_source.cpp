#include "core/step/training_source.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/scenario/schedule.hpp"

namespace tandem {

TrainingSource::TrainingSource(TrainingPlan plan, const Scenario& scenario, const Rewrites& rewrites, Rank rank)
    : TrainingSource(one_size(std::move(plan)), scenario, rewrites, rank) {}

TrainingSource::TrainingSource(StepSizes sizes, const Scenario& scenario, const Rewrites& rewrites, Rank rank)
    : sizes_(std::move(sizes)), context_(plan_of(sizes_.of_step(scenario.first_step)), scenario, rank) {
  TrainingPlan& plan = plans_.begin()->second;
  for (const auto& rewrite : rewrites) {
    context_.transforms.push_back(rewrite->make(context_));
    context_.transforms.back()->rewrite(plan);
  }
}

TrainingSource::Sized::Sized(StepContext& context, const TrainingPlan& plan_of_it, const std::string& prefix)
    : plan(plan_of_it) {
  for (std::int32_t i = 0; i < plan.at_once; ++i)
    micro_batches.push_back(
        std::make_unique<MicroBatch>(context, prefix + (i == 0 ? "" : "flight" + std::to_string(i) + "_")));
}

TrainingPlan& TrainingSource::plan_of(std::int64_t sizes) {
  const auto [found, fresh] = plans_.try_emplace(sizes);
  if (fresh) found->second = sizes_.plan_of(sizes);
  return found->second;
}

namespace {

// Of another size, where steps go on with the same buckets.
bool goes_on(const TrainingPlan& plan, const TrainingPlan& from) {
  const auto same = [](const StageSpec& a, const StageSpec& b) {
    return a.elements == b.elements && a.trains() == b.trains() && (a.backward == kNone) == (b.backward == kNone) &&
           a.recomputable == b.recomputable && a.contributed == b.contributed;
  };
  return plan.precision == from.precision && plan.master == from.master && plan.states.size() == from.states.size() &&
         plan.batch.load.body.empty() == from.batch.load.body.empty() &&
         std::equal(plan.stages.begin(), plan.stages.end(), from.stages.begin(), from.stages.end(), same);
}

}  // namespace

void TrainingSource::use_sizes(Graph& graph, std::int64_t sizes) {
  std::unique_ptr<Sized>& sized = sized_[sizes];
  const bool fresh = sized == nullptr;
  if (fresh && !plans_.contains(sizes)) {
    TrainingPlan& plan = plan_of(sizes);
    for (const auto& transform : context_.transforms) transform->rewrite(plan);
    CHECK(goes_on(plan, context_.plan()), "a plan of other sizes has other buckets", plan.family, sizes);
  }
  if (fresh) {
    const std::string prefix = sized_.size() == 1 ? "" : "size" + std::to_string(sizes) + "_";
    sized = std::make_unique<Sized>(context_, plan_of(sizes), prefix);
  }
  now_ = sized.get();
  context_.use(now_->plan);
  if (!fresh) return;
  for (const auto& micro_batch : now_->micro_batches) {
    micro_batch->passes.add_works(graph);
    micro_batch->batch.add(graph);
  }
  for (const KeptSpec& kept : now_->plan.batch.kept) now_->keeps.push_back(graph.add_work(kept.work));
  if (sized_.size() == 1) return;  // the prologue adds stage by stage
  for (const auto& micro_batch : now_->micro_batches)
    for (std::size_t i = 0; i < context_.stage_count(); ++i) micro_batch->passes.add_stage(graph, i);
}

void TrainingSource::take_over(Graph& graph, std::int32_t step) {
  graph.begin_era(step);
  context_.step = step;
  begin(graph);
}

void TrainingSource::begin(Graph& graph) {
  CHECK(now_ == nullptr && context_.step == graph.era().first_step, "a prologue comes once, and first",
        context_.plan().family, context_.step);
  use_sizes_of_step(graph);
  control_.add(graph);
  tell(&StepTransform::begin, graph);
  for (std::size_t i = 0; i < context_.stage_count(); ++i) add_stage(graph, i);
  tell(&StepTransform::add, graph);
  saves_.add(graph);
  control_.load_scale(graph);
  if (context_.options.first_step > 0) graph.set_first_step(context_.options.first_step);
  for (std::size_t i = 0; i < context_.stage_count(); ++i)
    if (context_.spec(i).elements > 0) load_stage(graph, i);
}

void TrainingSource::add_stage(Graph& graph, std::size_t index) {
  const bool trains = context_.trains(index);
  buckets_.add(graph, index);
  if (trains) tell(&StepTransform::add_gradient, graph, index);
  if (trains) control_.add_stage(graph, index);
  for (const auto& micro_batch : now_->micro_batches) micro_batch->passes.add_stage(graph, index);
  if (!trains) return;
  update_.add_stage(graph, index);
  tell(&StepTransform::add_works, graph, index);
  control_.add_works(graph, index);
}

void TrainingSource::load_stage(Graph& graph, std::size_t index) {
  const bool resumes = context_.options.first_step > 0 && !graph.era().takes_over();
  if (resumes && context_.trains(index)) return saves_.load(graph, index);
  buckets_.load(graph, index);
  if (context_.trains(index)) tell(&StepTransform::load, graph, index);
}

bool TrainingSource::append_step(Graph& graph, std::int64_t) {
  CHECK(now_ != nullptr, "the prologue comes first", context_.plan().family);
  const StepOptions& options = context_.options;
  if (context_.step >= options.steps) return false;
  use_sizes_of_step(graph);
  train(graph);
  context_.micro_batch = static_cast<std::int32_t>(options.micro_batches) - 1;  // the update belongs to the last one
  update(graph);
  saves_.after_updates(graph);
  if (evaluates_after(options.validation, context_.training_step(), options.first_step + options.steps))
    evaluate(graph);
  if (++context_.step == options.steps) tell(&StepTransform::end, graph);
  return true;
}

// All micro-batches, in the plan's order.
void TrainingSource::train(Graph& graph) {
  if (now_->plan.order.empty()) {
    const auto stages = static_cast<std::int32_t>(context_.stage_count());
    for (std::int32_t m = 0; m < context_.options.micro_batches; ++m) {
      take(graph, {.backward = false, .end = stages, .micro_batch = m}, /*loads=*/true);
      take(graph, {.backward = true, .end = stages, .micro_batch = m}, /*loads=*/false);
    }
    return;
  }
  std::int32_t loaded = 0;  // they begin in their order
  for (const Turn& turn : now_->plan.order) {
    take(graph, turn, turn.micro_batch == loaded);
    loaded += turn.micro_batch == loaded;
  }
}

void TrainingSource::take(Graph& graph, const Turn& turn, bool loads) {
  context_.micro_batch = turn.micro_batch;
  MicroBatch& in_hand = micro_batch_in_hand();
  if (loads) in_hand.batch.load(graph);
  if (turn.backward) return go_backward(graph, turn, in_hand.passes);
  in_hand.passes.forward(graph, static_cast<std::size_t>(turn.first), static_cast<std::size_t>(turn.end));
  keep(graph, turn);
}

void TrainingSource::go_backward(Graph& graph, const Turn& turn, PassesPart& passes) {
  if (turn.of != Gradients::Weights) tell(&StepTransform::turn_back);
  const bool last = context_.micro_batch + 1 == context_.options.micro_batches;
  for (auto i = static_cast<std::size_t>(turn.end); i-- > static_cast<std::size_t>(turn.first);) {
    if (!context_.goes_backward(i)) continue;
    if (turn.of != Gradients::Weights) tell(&StepTransform::before_backward, graph, i, passes);
    if (turn.of == Gradients::All) passes.backward(graph, i);
    if (turn.of == Gradients::Inputs) passes.backward_inputs(graph, i);
    if (turn.of == Gradients::Weights) passes.backward_weights(graph, i);
    if (turn.of == Gradients::Inputs || !context_.trains(i)) continue;
    tell(&StepTransform::after_backward, graph, i);
    if (last) reduce(graph, i);
  }
}

// Outputs that later steps read from beside the graph.
void TrainingSource::keep(Graph& graph, const Turn& turn) {
  const std::vector<KeptSpec>& kept = now_->plan.batch.kept;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].stage < turn.first || kept[i].stage >= turn.end) continue;
    const auto stage = static_cast<std::size_t>(kept[i].stage);
    const std::int32_t label = graph.intern(context_.spec(stage).name + ".keep");
    Op op = context_.loader_op(label, now_->keeps[i], Phase::Keep, stage);
    op.reads.push_back(micro_batch_in_hand().passes.output(stage, static_cast<std::size_t>(kept[i].output)));
    graph.append(std::move(op));
  }
}

// What a bucket's gradient goes through once its last micro-batch is in.
void TrainingSource::reduce(Graph& graph, std::size_t index) {
  context_.final_gradients = {index};
  tell(&StepTransform::reduce, graph, index);
  for (const std::size_t final : context_.final_gradients) {
    control_.sum_squares(graph, final);
    tell(&StepTransform::finish_gradient, graph, final);
  }
}

void TrainingSource::update(Graph& graph) {
  if (context_.controls_update()) {
    tell(&StepTransform::before_control, graph, control_);
    control_.sum_up(graph);
  }
  tell(&StepTransform::before_updates, graph);
  for (std::size_t i = 0; i < context_.stage_count(); ++i)
    if (context_.trains(i)) update(graph, i);
}

void TrainingSource::update(Graph& graph, std::size_t index) {
  for (const auto& transform : context_.transforms)
    if (transform->update(graph, index)) return;
  update_.optimize(graph, index);
}

// With the parameters that the next forward would use.
void TrainingSource::evaluate(Graph& graph) {
  if (sizes_.of_evaluation) use_sizes(graph, sizes_.of_evaluation());
  for (context_.micro_batch = 0; context_.micro_batch < context_.options.validation.batches; ++context_.micro_batch) {
    MicroBatch& in_hand = micro_batch_in_hand();
    in_hand.batch.load_held_out(graph);
    in_hand.passes.evaluate(graph);
  }
}

}  // namespace tandem
