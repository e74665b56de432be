#include "core/scenario/ranks.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace tandem {
namespace {

Rank at_least_one(std::int64_t count) { return static_cast<Rank>(std::max<std::int64_t>(count, 1)); }

// How many there are of each kind.
struct Shape {
  explicit Shape(const Scenario& scenario)
      : tensor(at_least_one(scenario.workload.tensor)),
        data(at_least_one(scenario.workload.devices)),
        stages(at_least_one(scenario.parallel.pipeline)),
        servers(static_cast<Rank>(server_count(scenario))),
        folded(scenario.parallel.fold) {}
  Rank tensor, data, stages, servers;
  bool folded;
  // Whose ranks are there, of one that folds none.
  Rank copies() const { return folded ? 1 : data; }
  Rank parts() const { return folded ? 1 : tensor; }
  Rank trainers() const { return stages * copies() * parts(); }
  Rank count() const { return trainers() + servers; }
  Rank at(RankPlace p) const {
    return p.server != kNone ? trainers() + p.server : (p.stage * copies() + p.data) * parts() + p.tensor;
  }
  RankPlace place(Rank rank) const {
    if (rank >= trainers()) return {.server = rank - trainers()};
    return {rank / parts() % copies(), rank / parts() / copies(), rank % parts()};
  }
};

}  // namespace

std::int64_t server_count(const Scenario& scenario) { return scenario.workload.parallel.integer_or("servers", 0); }

Rank server_rank(const Scenario& scenario, std::int32_t server) { return rank_at(scenario, {.server = server}); }

Rank rank_count(const Scenario& scenario) { return Shape(scenario).count(); }

std::int64_t device_count(const Scenario& scenario) {
  const Shape shape(scenario);
  return std::int64_t{shape.tensor} * shape.data * shape.stages + shape.servers;
}

RankPlace place_of(const Scenario& scenario, Rank rank) {
  const Shape shape(scenario);
  CHECK(rank >= 0 && rank < shape.count(), rank, shape.count());
  return shape.place(rank);
}

Rank rank_at(const Scenario& scenario, RankPlace place) {
  const Shape shape(scenario);
  const Rank rank = shape.at(place);
  CHECK(rank >= 0 && shape.place(rank) == place, place.data, place.stage, place.tensor);
  return rank;
}

Rank leading_rank(const Scenario& scenario) {
  return rank_at(scenario, {.data = 0, .stage = Shape(scenario).stages - 1});
}

namespace {

// It does nothing together with all that are like it.
RankGroup alone(Rank rank) { return {kNone, {rank}, 1}; }

}  // namespace

// Numbers of groups: first those that add up gradients, by stage and part; then pipelines, by copy and part; then those
// that divide layers, by stage and copy; then four for each pair of ranks.
RankGroup data_group(const Scenario& scenario, Rank rank) {
  const Shape shape(scenario);
  RankPlace place = place_of(scenario, rank);
  if (place.server != kNone) return alone(rank);
  RankGroup group{place.stage * shape.parts() + place.tensor, {}, shape.data};
  for (place.data = 0; place.data < shape.copies(); ++place.data) group.members.push_back(shape.at(place));
  return group;
}

RankGroup pipeline_group(const Scenario& scenario, Rank rank) {
  const Shape shape(scenario);
  RankPlace place = place_of(scenario, rank);
  if (place.server != kNone) return alone(rank);
  const Rank before = shape.stages * shape.parts();
  RankGroup group{before + place.data * shape.parts() + place.tensor, {}, shape.stages};
  for (place.stage = 0; place.stage < shape.stages; ++place.stage) group.members.push_back(shape.at(place));
  return group;
}

RankGroup tensor_group(const Scenario& scenario, Rank rank) {
  const Shape shape(scenario);
  RankPlace place = place_of(scenario, rank);
  if (place.server != kNone) return alone(rank);
  const Rank before = (shape.stages + shape.copies()) * shape.parts();
  RankGroup group{before + place.stage * shape.copies() + place.data, {}, shape.tensor};
  for (place.tensor = 0; place.tensor < shape.parts(); ++place.tensor) group.members.push_back(shape.at(place));
  return group;
}

RankGroup transfer_group(const Scenario& scenario, Rank from, Rank to, TransferKind kind) {
  CHECK(from != to, from);
  const Shape shape(scenario);
  const Rank before = (shape.stages + shape.copies()) * shape.parts() + shape.stages * shape.copies();
  const Rank pair = from * shape.count() + to;
  return {before + 4 * pair + (kind.of_bucket ? 2 : 0) + (kind.backward ? 1 : 0), {from, to}, 2};
}

std::vector<RankGroup> collective_groups(const Scenario& scenario, Rank rank) {
  std::vector<RankGroup> groups;
  for (RankGroup& group :
       std::vector{data_group(scenario, rank), pipeline_group(scenario, rank), tensor_group(scenario, rank)})
    if (group.members.size() > 1) groups.push_back(std::move(group));
  return groups;
}

std::vector<RankGroup> transfer_groups(const Scenario& scenario, Rank rank) {
  std::vector<RankGroup> groups;
  for (const Rank other : pipeline_group(scenario, rank).members)
    for (const bool backward : {false, true})
      for (const bool of_bucket : {false, true}) {
        if (other == rank) continue;
        groups.push_back(transfer_group(scenario, rank, other, {.backward = backward, .of_bucket = of_bucket}));
        groups.push_back(transfer_group(scenario, other, rank, {.backward = backward, .of_bucket = of_bucket}));
      }
  return groups;
}

std::int64_t members_on_a_host(const Scenario& scenario, std::int64_t stride, std::int64_t count) {
  const std::int64_t most = scenario.machine.devices_per_host;
  if (most == 0 || stride * (count - 1) < most) return 0;
  return std::max<std::int64_t>(1, (most + stride - 1) / stride);
}

std::int64_t data_members_on_a_host(const Scenario& scenario) {
  return members_on_a_host(scenario, Shape(scenario).tensor, Shape(scenario).data);
}

bool is_other_host(const Scenario& scenario, Rank from, Rank to) {
  const std::int64_t most = scenario.machine.devices_per_host;
  const auto host = [&](Rank rank) {
    Shape all(scenario);
    const RankPlace place = all.place(rank);
    all.folded = false;
    return all.at(place) / most;
  };
  return most > 0 && host(from) != host(to);
}

}  // namespace tandem
