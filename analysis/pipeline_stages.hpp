// What a pipeline's stages do and send: each one's waiting, the bytes on its links, and the passes of one step that a
// diagram draws. Must not know formats or worlds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/steps.hpp"
#include "analysis/timeline.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct LinkTraffic {
  Engine kind = Engine::P2P;   // P2P: what a rank sends to another; Collective, H2D, D2H, DiskRead, DiskWrite
  bool between_hosts = false;  // P2P: to a rank of another host; Collective: of ranks on several
  double bytes = 0;            // a step and rank; of a collective: around its ring
};

struct StageShare {
  std::int64_t stage = 0;
  std::vector<std::size_t> ranks;  // of Timeline::ranks: those of the stage that are there
  double waiting = 0;              // of the timed steps in which the compute lane runs nothing, mean over ranks
  std::vector<LinkTraffic> links;  // that carry something, by kind, then within a host before between hosts
};

// By stage; empty: the run has no pipeline, or completed no step. A process of a run of several knows its own stage.
std::vector<StageShare> pipeline_stages(const Timeline& timeline, const Steps& steps, const Scenario& scenario);
// Mean over stages.
double waiting_share(const std::vector<StageShare>& stages);

// From the first of its commands on the compute lane to the last, with what it waits for between them.
struct StagePass {
  Phase phase = Phase::Forward;      // Backward: with what is recomputed for it
  std::int32_t micro_batch = kNone;  // kNone: of no single one, as an update
  std::int64_t begin_ns = 0, end_ns = 0;
};
std::vector<StagePass> stage_passes(const RankTimeline& rank, std::int32_t step);

}  // namespace tandem
