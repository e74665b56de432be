// A pipeline: the network is cut into pieces, each rank computes one or several of them, and micro-batches go through
// all. A step's gradients are those of one device, to the bit: each piece takes its backward passes in the order of
// micro-batches (schedule.hpp), and what crosses a cut is added up as it is on one device (rank_plan.hpp). Pieces are
// rows of modules (pieces.hpp), or branches that are computed at the same time (branches.hpp). What generates has no
// backward: batches go through all pieces one after another (generation/generation_source.cpp).
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <variant>

#include "core/scenario/ranks.hpp"
#include "core/step/network_plan.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/transforms/pipeline/branches.hpp"
#include "core/transforms/pipeline/pieces.hpp"
#include "core/transforms/pipeline/rank_plan.hpp"
#include "core/transforms/pipeline/refuse.hpp"
#include "core/transforms/pipeline/schedule.hpp"
#include "core/transforms/recompute/recompute.hpp"
#include "core/transforms/row_by_row.hpp"

namespace tandem {
namespace {

void require_built(const Scenario& scenario, const Rewrites& rewrites) {
  const auto require = [](bool holds, const std::string& problem, std::string_view allowed) {
    require_pipeline(holds, "parallel.pipeline", problem, allowed);
  };
  require(scenario.switches.empty(), "no policy takes over in a pipeline so far", "1, or no switches");
  constexpr std::array<std::string_view, 10> kComposes = {
      "data",           "compressed_gradients", "expert",  "partition",  "recompute", "tensor",
      "movable_inputs", "stream_parameters",    kRowByRow, "split_batch"};
  const auto composes = [&](std::string_view name) {
    if (name == "weight_compression") return generates(scenario);
    return std::find(kComposes.begin(), kComposes.end(), name) != kComposes.end();
  };
  require(!goes_back_in_two(scenario) || find_rewrite(rewrites, "split_batch") == nullptr,
          "zero_bubble takes each backward in two, and policy " + scenario.policy.name + " gives some to the CPU",
          "1, or another parallel.schedule");
  for (const auto& rewrite : rewrites)
    require(composes(rewrite->name()),
            "with the transform " + std::string(rewrite->name()) + ", which policy " + scenario.policy.name +
                " or the workload asks for, it is not built",
            "1, or without that");
}

// Modules of each piece, where a scenario says them; else null.
const std::vector<std::int64_t>* modules_of_pieces(const Scenario& scenario) {
  const auto& keys = scenario.workload.parallel.all();
  const auto cut = keys.find("cut");
  return cut == keys.end() ? nullptr : std::get_if<std::vector<std::int64_t>>(&cut->second);
}

std::string cut_of(const Scenario& scenario) {
  return modules_of_pieces(scenario) != nullptr ? "" : scenario.workload.parallel.text_or("cut", "balanced");
}

// Pieces that do not wait for each other have one place in the order of passes: that of the stage of a plain pipeline
// from which it is as far to the end.
void require_schedule_of_branches(const ParallelOptions& parallel) {
  const std::string& schedule = parallel.schedule;
  require_pipeline(schedule == "gpipe" || schedule == "1f1b", "parallel.schedule",
                   schedule + " is not built for parallel.cut: branches", "gpipe, 1f1b");
}

// One forward after another, whatever the schedule.
void require_generates(const Scenario& scenario) {
  const bool one_piece = scenario.parallel.chunks == 1 && cut_of(scenario) != "branches";
  require_pipeline(one_piece, "parallel.chunks, parallel.cut", "what generates has one piece of the network a rank",
                   "chunks: 1, cut: balanced, layers or numbers");
}

// The order of a step's turns, of one rank.
std::vector<Turn> turns_of(const std::vector<StageTurn>& stage_turns, const std::vector<Turn>& forwards) {
  std::vector<Turn> turns;
  for (const StageTurn& stage_turn : stage_turns) {
    Turn turn = forwards.at(static_cast<std::size_t>(stage_turn.chunk));
    turn.backward = stage_turn.backward;
    turn.of = stage_turn.of;
    turn.micro_batch = stage_turn.micro_batch;
    turns.push_back(turn);
  }
  return turns;
}

class Divider {
 public:
  Divider(const Scenario& scenario, Rank rank)
      : scenario_(scenario),
        place_(place_of(scenario, rank)),
        shape_{static_cast<std::int32_t>(scenario.parallel.pipeline),
               static_cast<std::int32_t>(scenario.parallel.chunks),
               static_cast<std::int32_t>(scenario.workload.micro_batches)} {
    if (generates(scenario))
      require_generates(scenario);
    else if (by_branches())
      require_schedule_of_branches(scenario_.parallel);
    else
      turns_ = stage_turns(scenario_.parallel.schedule, shape_, place_.stage);
  }

  // Plans of all sizes are cut where the first one is.
  TrainingPlan operator()(const TrainingPlan& whole) {
    for (const StageSpec& stage : whole.stages)
      if (!generates(scenario_)) require_no_state(stage), require_halves(stage);
    if (piece_of_.empty()) choose_pieces(whole);
    PipelineCut cut{
        .piece_of = piece_of_, .stages = shape_.stages, .own_stage = place_.stage, .branches = by_branches()};
    const auto rank_of = [this](std::int32_t piece) {
      RankPlace place = place_;
      place.stage = piece % shape_.stages;
      return rank_at(scenario_, place);
    };
    cut.leaves_host = [this, rank_of](std::int32_t from, std::int32_t to) {
      return is_other_host(scenario_, rank_of(from), rank_of(to));
    };
    cut.group = [this, rank_of](std::int32_t from, std::int32_t to, bool backward, bool of_bucket) {
      const Rank sender = rank_of(backward ? to : from), receiver = rank_of(backward ? from : to);
      return transfer_group(scenario_, sender, receiver, {.backward = backward, .of_bucket = of_bucket});
    };
    RankPlan own = rank_plan(whole, cut);
    if (generates(scenario_)) return std::move(own.plan);
    own.plan.order = turns_of(turns_, own.forwards);
    own.plan.buckets = owners_of(whole);
    own.plan.at_once = micro_batches_at_once(turns_, shape_.micro_batches);
    return std::move(own.plan);
  }

 private:
  bool by_branches() const { return cut_of(scenario_) == "branches"; }
  void choose_pieces(const TrainingPlan& whole) {
    const PassTimes times{scenario_.machine, recomputes_blocks(scenario_.workload)};
    if (const std::vector<std::int64_t>* given = modules_of_pieces(scenario_)) {
      const auto pieces = static_cast<std::size_t>(shape_.stages) * static_cast<std::size_t>(shape_.chunks);
      require_pipeline(given->size() == pieces, "parallel.cut",
                       "has " + std::to_string(given->size()) + " numbers for " + std::to_string(pieces) + " pieces",
                       "one for each: parallel.pipeline times parallel.chunks");
      piece_of_ = pieces_of(whole, *given, times);
      return;
    }
    if (!by_branches()) {
      const CutBy by = cut_of(scenario_) == "layers" ? CutBy::Layers : CutBy::Time;
      piece_of_ = pieces_of(whole, shape_.stages * shape_.chunks, times, by);
      return;
    }
    BranchPieces branches = branches_of(whole, shape_.stages, times);
    piece_of_ = std::move(branches.piece_of);
    const std::int32_t until_end = branches.until_end.at(static_cast<std::size_t>(place_.stage));
    turns_ = stage_turns(scenario_.parallel.schedule, shape_, shape_.stages - 1 - until_end);
  }
  BucketOwners owners_of(const TrainingPlan& whole) const {
    BucketOwners owners{pipeline_group(scenario_, rank_at(scenario_, place_)), place_.stage, {}, {}};
    for (std::size_t i = 0; i < whole.stages.size(); ++i) {
      if (!whole.stages[i].trains()) continue;
      owners.members.push_back(piece_of_[i] % shape_.stages);
      owners.names.push_back(whole.stages[i].name);
    }
    return owners;
  }
  static void require_no_state(const StageSpec& stage) {
    const auto stays = [](const OutputSpec& output) { return output.persistent; };
    require_pipeline(stage.carried.empty() && std::none_of(stage.outputs.begin(), stage.outputs.end(), stays),
                     "parallel.pipeline", stage.name + " goes on from what the step before left", "1");
  }

  void require_halves(const StageSpec& stage) const {
    const bool given_whole = stage.backward != kNone && !stage.goes_back_in_two() && stage.exchange == Exchange::None;
    require_pipeline(!given_whole || !goes_back_in_two(scenario_), "parallel.schedule",
                     "zero_bubble takes each backward in two, and that of " + stage.name + " is given whole",
                     "naive, gpipe, 1f1b, hippie, interleaved or axonn");
  }

  Scenario scenario_;
  RankPlace place_;
  PipelineShape shape_;
  std::vector<StageTurn> turns_;
  std::vector<std::int32_t> piece_of_;
};

std::function<TrainingPlan(TrainingPlan)> of_rank(const Scenario& scenario, const Rewrites& rewrites, Rank rank) {
  if (scenario.parallel.pipeline <= 1) return nullptr;
  require_built(scenario, rewrites);
  auto divider = std::make_shared<Divider>(scenario, rank);
  return [divider](TrainingPlan whole) { return (*divider)(whole); };
}

const std::vector<FamilyKey> kKeys = {
    {"cut",
     R"({"description": "Where the network is cut into pieces. balanced: so that the longest takes as little time as can be. With layers: so that all have the same number of layers, as Megatron-LM cuts. With branches: parts that do not depend on each other, such as two encoders, are on different devices and computed at the same time. A list: modules of each piece, as many numbers as stages times chunks; an embedding, each block and the head are one.", "oneOf": [)"
     R"({"type": "string", "enum": ["balanced", "layers", "branches"]}, )"
     R"({"type": "array", "minItems": 1, "maxItems": 4096, "items": {"type": "integer", "minimum": 1, "maximum": 65536}}]})",
     KeyValue(std::string("balanced"))}};

}  // namespace
}  // namespace tandem

TANDEM_RANK_TRANSFORM(pipeline, of_rank,
                      "Each rank computes a piece of the network, through which micro-batches go one after another",
                      "parallel.pipeline: N", &kKeys)
