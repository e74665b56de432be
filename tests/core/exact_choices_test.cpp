// Small choices that policies call the best, the least or the fewest, against all that could have been chosen (R8).
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "core/policies/common/first_step.hpp"
#include "core/policies/common/hidden_offload.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/policies/common/update_costs.hpp"
#include "core/policies/cotrain/separation.hpp"
#include "core/policies/g10/migration_plan.hpp"
#include "core/policies/patrickstar/equal_chunks.hpp"
#include "core/policies/protrain/chunk_search.hpp"
#include "core/policies/stronghold/window.hpp"
#include "tests/common/fair_lanes.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t operator()(std::int64_t below) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(below));
  }

 private:
  std::mt19937_64 random_;
};

// Of uneven layers, some of which take no time at all somewhere.
std::vector<LayerTimes> uneven_layers(Draw& draw, std::int64_t most_layers) {
  std::vector<LayerTimes> layers(static_cast<std::size_t>(1 + draw(most_layers)));
  const auto ns = [&](std::int64_t below) { return draw(4) == 0 ? 0 : draw(below); };
  for (LayerTimes& layer : layers) {
    layer.forward_ns = ns(50);
    layer.backward_ns = ns(100);
    layer.recompute_ns = draw(2) == 0 ? 0 : ns(50);
    layer.gradient_copy_ns = ns(60);
    layer.cpu_update_ns = ns(200);
    layer.device_update_ns = ns(30);
    layer.parameter_copy_ns = ns(60);
  }
  return layers;
}

TEST(ExactChoices, SeparationIsTheSmallestOfTheBestOfAllDistances) {
  Draw draw(1);
  for (int turn = 0; turn < 20'000; ++turn) {
    const std::vector<LayerTimes> layers = uneven_layers(draw, 8);
    const auto most = static_cast<std::size_t>(draw(std::ssize(layers) + 1));
    std::size_t best = 0;
    std::int64_t least = kMost;
    for (std::size_t k = 0; k <= most; ++k)
      if (const std::int64_t ns = std::max(device_path_ns(layers, k), cpu_path_ns(layers, k)); ns < least)
        best = k, least = ns;
    ASSERT_EQ(choose_separation(layers, most), best) << turn;
  }
}

TEST(ExactChoices, EqualChunksAreTheSmallestOfTheLeastWasteful) {
  Draw draw(2);
  for (int turn = 0; turn < 5'000; ++turn) {
    std::vector<std::int64_t> layers(static_cast<std::size_t>(1 + draw(8)));
    for (std::int64_t& elements : layers) elements = draw(12);
    const std::int64_t largest = *std::max_element(layers.begin(), layers.end());
    std::int64_t best = 0, least = kMost;
    for (std::int64_t size = largest; size <= 2 * largest; ++size) {
      const EqualChunks chunks = pack_chunks(layers, size);
      if (chunks.count() * chunks.elements < least) least = chunks.count() * chunks.elements, best = size;
    }
    ASSERT_EQ(pack_chunks(layers).elements, best) << turn;
  }
}

// Each layer by itself, as the three conditions are written.
bool hides(const std::vector<LayerTimes>& layers, std::int64_t passes, std::size_t m) {
  std::int64_t computing = 0, updates = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    computing += layers[l].forward_ns + layers[l].recompute_ns + layers[l].backward_ns;
    updates += l >= m ? layers[l].cpu_update_ns : 0;
  }
  if (updates > passes * computing) return false;
  for (std::size_t l = m; l < layers.size(); ++l) {
    std::int64_t forward = 0, below = 0, above = 0;
    for (std::size_t i = l - (m - 1); i < l; ++i) {
      forward += layers[i].forward_ns;
      below += layers[i].recompute_ns + layers[i].backward_ns;
    }
    if (layers[l].parameter_copy_ns > forward || layers[l].gradient_copy_ns > below) return false;
    if (l + m > layers.size()) continue;  // there since the forward
    for (std::size_t i = l + 1; i < l + m; ++i) above += layers[i].recompute_ns + layers[i].backward_ns;
    if (layers[l].parameter_copy_ns > above) return false;
  }
  return true;
}

TEST(ExactChoices, AWindowIsTheSmallestThatHides) {
  Draw draw(3);
  int inside = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    std::vector<LayerTimes> layers = uneven_layers(draw, 8);
    const std::int64_t passes = 1 + draw(3);
    std::size_t best = 2;
    while (best < layers.size() && !hides(layers, passes, best)) ++best;
    ASSERT_EQ(choose_window(layers, passes, layers.size()), std::min(best, layers.size())) << turn;
    inside += best > 2 && best < layers.size() ? 1 : 0;
  }
  EXPECT_GT(inside, 1'000);
}

// Whether the first blocks' activations are back in time, by the second model: what happens at a known moment is a
// command that takes until then.
bool is_back(const std::vector<BlockTimes>& blocks, std::int64_t count, std::int64_t ahead) {
  std::vector<testing::FairCommand> commands;
  std::size_t lanes = 2;  // the ways out and back; all else has a lane to itself
  const auto add = [&](std::size_t lane, std::int64_t ns, std::vector<std::size_t> waits) {
    testing::FairCommand command;
    command.lane = lane;
    command.latency_ns = static_cast<double>(ns);
    command.waits = std::move(waits);
    commands.push_back(command);
    return commands.size() - 1;
  };
  std::vector<std::size_t> gone, back;
  for (std::int64_t i = 0; i < count; ++i) {
    const BlockTimes& block = blocks[static_cast<std::size_t>(i)];
    const std::size_t out = add(0, block.out.busy_ns, {add(lanes++, block.saved_ns, {})});
    gone.push_back(add(lanes++, block.out.delay_ns, {out}));
  }
  for (std::int64_t i = count; i-- > 0;) {
    const BlockTimes& block = blocks[static_cast<std::size_t>(i)];
    const auto from = static_cast<std::size_t>(std::min(i + ahead, std::ssize(blocks) - 1));
    const std::size_t begun = add(lanes++, blocks[from].wanted_ns, {});
    back.push_back(
        add(lanes++, block.back.delay_ns, {add(1, block.back.busy_ns, {begun, gone[static_cast<std::size_t>(i)]})}));
  }
  const auto times = testing::FairLanes(commands, {}).run();
  for (std::int64_t i = 0; i < count; ++i)
    if (times[back[static_cast<std::size_t>(count - 1 - i)]].finished_ns >
        static_cast<double>(blocks[static_cast<std::size_t>(i)].wanted_ns) + 0.5)
      return false;
  return true;
}

TEST(ExactChoices, HiddenBlocksAreTheMostAndSetOutTheFewestBackwardsAhead) {
  Draw draw(4);
  for (int turn = 0; turn < 1'000; ++turn) {
    std::vector<BlockTimes> blocks(static_cast<std::size_t>(1 + draw(5)));
    std::int64_t now = 0;
    for (BlockTimes& block : blocks) block.saved_ns = now += draw(20);
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) block->wanted_ns = now, now += draw(40);
    for (BlockTimes& block : blocks) {
      block.out = {draw(30), draw(3) == 0 ? draw(20) : 0};
      block.back = {draw(30), draw(3) == 0 ? draw(20) : 0};
    }
    const std::int64_t least = draw(3);
    std::int64_t most = 0;
    for (std::int64_t count = 0; count <= std::ssize(blocks); ++count) {
      std::optional<std::int64_t> fewest;
      for (std::int64_t ahead = std::max(least, std::ssize(blocks)); ahead >= least; --ahead)
        if (is_back(blocks, count, ahead)) fewest = ahead;
      ASSERT_EQ(backwards_ahead(blocks, count, least), fewest) << turn << ' ' << count;
      if (fewest) most = count;
    }
    ASSERT_EQ(most_hidden(blocks, least), most) << turn;
  }
}

// Of every layout that could have been chosen.
TEST(ExactChoices, ProTrainsLayoutIsTheQuickestOfAllThatFit) {
  Draw draw(5);
  int fitted = 0;
  for (int turn = 0; turn < 8; ++turn) {
    const int layers = 1 + static_cast<int>(draw(3));
    Scenario scenario = testing::gpt_scenario("protrain", 300'000 + draw(6) * 200'000, layers);
    scenario.machine.h2d.bytes_per_s = scenario.machine.d2h.bytes_per_s = draw(2) ? 1e9 : 1e10;
    scenario.workload.micro_batches = 1 + draw(2);
    std::int64_t least = kMost, tried = 0;
    for (std::int64_t swapped = 0; swapped <= layers; ++swapped)
      for (std::int64_t recomputed = 0; swapped + recomputed <= layers; ++recomputed)
        for (std::int64_t persistent = 0; persistent <= layers + 2; ++persistent)
          for (std::int64_t buffers = 1; buffers <= layers + 2; ++buffers, ++tried) {
            const ChunkLayout layout = choose_chunks(
                scenario,
                {.persistent = persistent, .buffers = buffers, .activations = BlockActivations{swapped, recomputed}});
            if (layout.fits) least = std::min(least, layout.step_ns);
          }
    const ChunkLayout chosen = choose_chunks(scenario, {});
    EXPECT_EQ(chosen.fits, least < kMost) << turn;
    if (chosen.fits) {
      EXPECT_EQ(chosen.step_ns, least) << turn;
    }
    fitted += chosen.fits ? 1 : 0;
  }
  EXPECT_GE(fitted, 4);
}

// The numbers of blocks with which a step fits have no holes: bisection finds the fewest.
TEST(ExactChoices, MoreBlocksAwayNeverNeedMoreMemory) {
  for (const int layers : {1, 3, 5})
    for (const int micro_batches : {1, 2})
      for (const char* precision : {"fp32", "bf16"}) {
        Scenario scenario = testing::gpt_scenario("ssdtrain", std::int64_t{1} << 30, layers);
        scenario.workload.micro_batches = micro_batches;
        scenario.workload.precision = precision[0] == 'f' ? DType::F32 : DType::BF16;
        const std::vector<std::int32_t> blocks = blocks_of(scenario);
        for (std::int64_t recomputed = 0; recomputed <= std::ssize(blocks); ++recomputed) {
          std::int64_t before = -kMost;
          for (std::int64_t away = 0; away + recomputed <= std::ssize(blocks); ++away) {
            const std::int64_t left = bytes_left_beside_states(first_step(scenario, BlockActivations{away, recomputed}),
                                                               0, first_blocks(blocks, away));
            EXPECT_GE(left, before) << layers << ' ' << micro_batches << ' ' << recomputed << ' ' << away;
            before = left;
          }
        }
      }
}

// By shares of a 1000th.
TEST(ExactChoices, AnUpdatesShareEndsItSoonest) {
  Draw draw(7);
  double most_behind = 0;
  for (int turn = 0; turn < 5'000; ++turn) {
    UpdateCosts costs;
    costs.upload_ns = static_cast<double>(1 + draw(100));
    costs.stream_ns = costs.upload_ns + static_cast<double>(draw(400));
    costs.cpu_ns = static_cast<double>(1 + draw(400));
    const auto later_ns = static_cast<double>(draw(3) == 0 ? 0 : draw(400) - 200);
    const auto ends = [&](double share) {
      return std::max(share * costs.stream_ns + (1 - share) * costs.upload_ns, later_ns + (1 - share) * costs.cpu_ns);
    };
    double least = ends(0);
    for (int i = 1; i <= 1000; ++i) least = std::min(least, ends(i / 1000.0));
    most_behind = std::max(most_behind, ends(costs.device_share(later_ns)) / least - 1);
    ASSERT_LE(ends(costs.device_share(later_ns)), least + 1e-9)
        << turn << " cpu " << costs.cpu_ns << " stream " << costs.stream_ns << " upload " << costs.upload_ns
        << " later " << later_ns;
  }
  std::printf("at most %.2g longer than the best share\n", most_behind);
}

// Each update is cut for itself, as `balanced` does: cut in any other way, all of them together end at most so much
// sooner.
TEST(ExactChoices, SharedUpdatesAreNoSoonerThanAllCutsAndAtMostHalfAsLongAgain) {
  Draw draw(8);
  double most = 0;
  for (int turn = 0; turn < 20; ++turn) {
    Scenario scenario = testing::gpt_scenario("balanced", std::int64_t{1} << 30, 1);
    HardwareProfile& machine = scenario.machine;
    machine.h2d.bytes_per_s = machine.d2h.bytes_per_s = draw(2) ? 1e10 : 3e10;
    machine.h2d.latency_ns = machine.d2h.latency_ns = draw(2) ? 10'000 : 0;
    machine.cpu_optimizer_parameters_per_s = draw(2) ? 1e9 : 4e9;
    machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = draw(2) ? 1e11 : 4e10;
    scenario.workload.precision = draw(2) ? DType::F32 : DType::BF16;
    const Graph step = first_step(scenario, BlockActivations{});
    const CostModel estimate(machine);
    std::vector<UpdateCosts> updates;
    for_updates(step, estimate, [&](const UpdateCosts& costs) { updates.push_back(costs); });
    ASSERT_EQ(updates.size(), 3U);
    const auto ends = [&](const std::array<double, 3>& shares) {
      double cpu = 0, bus = 0, dram = 0;
      for (std::size_t i = 0; i < updates.size(); ++i) {
        const UpdateCosts& u = updates[i];
        cpu += (1 - shares[i]) * u.cpu_ns;
        bus += shares[i] * u.stream_ns + (1 - shares[i]) * u.upload_ns;
        dram += shares[i] * 2 * u.state_bytes + (1 - shares[i]) * (u.cpu_bytes + 2 * u.parameter_bytes);
      }
      const double rate = machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
      return std::max({cpu, bus, dram / rate * 1e9});
    };
    constexpr int kParts = 40;
    double least = ends({0, 0, 0});
    for (int a = 0; a <= kParts; ++a)
      for (int b = 0; b <= kParts; ++b)
        for (int c = 0; c <= kParts; ++c)
          least = std::min(least, ends({a / double{kParts}, b / double{kParts}, c / double{kParts}}));
    const auto found = static_cast<double>(shared_updates_ns(step, estimate, 0));
    most = std::max(most, found / least);
    EXPECT_GE(found, least * 0.97 - 1) << turn << ": cuts at every 40th find no less";
  }
  std::printf("shared updates take at most %.3f times the least over all shares\n", most);
  EXPECT_LT(most, 1.5);
}

// Whether a step fits with these periods away, ways hidden or not, and so much on the host.
bool fits_without(const StepUse& step, const Room& room, unsigned periods) {
  std::vector<std::int64_t> live = step.live_bytes, host(step.live_bytes.size(), 0);
  for (std::size_t i = 0; i < step.periods.size(); ++i) {
    if (!(periods >> i & 1)) continue;
    const InactivePeriod& p = step.periods[i];
    for (std::int32_t op = p.after + 1; op < p.before - 1; ++op) live[static_cast<std::size_t>(op)] -= p.bytes;
    for (std::int32_t op = p.after; op < p.before; ++op) host[static_cast<std::size_t>(op)] += p.bytes;
  }
  const auto within = [](const std::vector<std::int64_t>& bytes, std::int64_t most) {
    return std::all_of(bytes.begin(), bytes.end(), [&](std::int64_t b) { return b <= most; });
  };
  return within(live, room.device_bytes) && within(host, room.host_bytes);
}

// Of all sets of periods: where the host has room for all, one of them makes a step fit if any does. Where it has not,
// it is filled by worth alone, and some sets that would do are missed.
TEST(ExactChoices, G10sPlanFitsWheneverAnySetOfMigrationsDoes) {
  Draw draw(9);
  constexpr std::int64_t kGB = 1'000'000'000, kSecond = 1'000'000'000;
  constexpr std::int32_t kOps = 10;
  const HardwareProfile machine = testing::round_machine(1 << 30);
  const CostModel estimate(machine);
  int fit = 0, missed = 0, full = 0;
  for (int turn = 0; turn < 4'000; ++turn) {
    StepUse step{std::vector<std::int64_t>(kOps, kSecond), std::vector<std::int64_t>(kOps, 0), {}};
    for (std::int64_t& live : step.live_bytes) live = (2 + draw(4)) * kGB;
    for (TensorId id = 0; id < 6; ++id) {
      const auto after = static_cast<std::int32_t>(draw(kOps - 3));
      const auto before = static_cast<std::int32_t>(after + 3 + draw(kOps - after - 3));
      step.periods.push_back({.tensor = id, .bytes = (1 + draw(3)) * kGB, .after = after, .before = before});
      for (std::int32_t op = after; op < before; ++op)
        step.live_bytes[static_cast<std::size_t>(op)] += step.periods.back().bytes;
    }
    const bool ample = turn % 2 == 0;
    const Room room{
        .device_bytes = (5 + draw(6)) * kGB, .host_bytes = (ample ? 100 : 2 + draw(6)) * kGB, .disk = false};
    bool any = false;
    for (unsigned periods = 0; periods < 1U << step.periods.size(); ++periods)
      any = any || fits_without(step, room, periods);
    const bool plan_fits = plan_migrations(step, estimate, room).fits(room);
    ASSERT_TRUE(any || !plan_fits) << turn;
    if (ample) {
      ASSERT_EQ(plan_fits, any) << turn;
    }
    (ample ? fit : full) += any ? 1 : 0;
    missed += any && !plan_fits ? 1 : 0;
  }
  std::printf("host of ample size: all %d that can fit do; host that is short: %d of %d are missed\n", fit, missed,
              full);
  EXPECT_GT(fit, 200);
  EXPECT_LT(missed, full / 5);
}

}  // namespace
}  // namespace tandem
