#include "calibration/lane_times.hpp"
#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr int kTurns = 200, kQuickTurns = 60;
constexpr std::int64_t kTinyBytes = 64;  // a command that is all hand-over
constexpr int kBatch = 64;               // commands handed over at once

double between_ns(TimeNs from, TimeNs to) { return static_cast<double>(to.ns - from.ns); }

}  // namespace

HandOver time_hand_over(Workbench& bench, bool quick) {
  std::vector<double> submit, start, wake, seen;
  for (int turn = 0; turn < (quick ? kQuickTurns : kTurns); ++turn) {
    // A chain over two lanes that sleep in between.
    const CommandId first = bench.add_copy(Engine::H2D, bench.scratch_offset(), kTinyBytes);
    bench.add_copy(Engine::D2H, bench.scratch_offset(), kTinyBytes, first);
    const Workbench::Turn chain = bench.execute();
    CHECK(chain.events.size() == 2, chain.events.size());
    start.push_back(between_ns(chain.before_submit, chain.events[0].started));
    wake.push_back(between_ns(chain.events[0].finished, chain.events[1].started));
    seen.push_back(between_ns(chain.events[1].finished, chain.last_seen));
    for (int i = 0; i < kBatch; ++i) bench.add_copy(Engine::H2D, bench.scratch_offset(), kTinyBytes);
    const Workbench::Turn batch = bench.execute();
    submit.push_back(between_ns(batch.before_submit, batch.submitted) / kBatch);
  }
  return {summarize(submit), summarize(start), summarize(wake), summarize(seen)};
}

}  // namespace tandem
