// Parameter servers (Li et al., OSDI 2014), synchronous: ranks beside those that train have the parameters' masters and
// the optimizer's states, each of some buckets (owners.hpp). A worker sends each gradient to its bucket's server once
// it is final; the server adds those of all workers in the order of their ranks, takes the mean, updates the bucket,
// and sends each worker the new parameter. Asynchronous ones wait for nobody (Dean et al., NIPS 2012): each gradient is
// an update by itself, in the order of arrivals.hpp, and its worker alone gets the parameter that is made of it.
//
//   send, receive       Work::sizes: bytes, whether to another host
//   mean_of_workers     reads each worker's gradient; writes the mean, in the first one's place. Work::sizes: elements
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/scenario/ranks.hpp"
#include "core/step/context.hpp"
#include "core/step/update.hpp"
#include "core/transforms/common/division.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/servers/arrivals.hpp"
#include "core/transforms/servers/owners.hpp"

namespace tandem {
namespace {

// What both sides do: transfers between a worker and a server.
class Transfers {
 public:
  Transfers(StepContext& context, std::shared_ptr<const Scenario> scenario)
      : context_(context), scenario_(std::move(scenario)) {}
  const Scenario& scenario() const { return *scenario_; }

  // A bucket's gradient goes to the server, its parameter comes back. Sends have a lane, and receives another: on all
  // ranks in one order, so that none waits for one behind it.
  Op between(Graph& graph, Rank from, Rank to, Rank own, std::size_t index, Phase phase) {
    const bool sends = from == own;
    const char* body = sends ? "send" : "receive";
    const std::int64_t bytes = context_.spec(index).elements * size_of(context_.plan().precision);
    const bool leaves = is_other_host(*scenario_, from, to);
    const auto [work, fresh] = works_.try_emplace({sends, bytes, leaves}, kNone);
    if (fresh)
      work->second =
          graph.add_work({body, context_.plan().precision, {bytes, std::int64_t{leaves}}, {memory_kernel(bytes)}});
    const std::string what = phase == Phase::Reduce ? ".gradient." : ".parameter.";
    Op op = context_.new_op(graph.intern(context_.spec(index).name + what + body), work->second, phase, index);
    op.engine = Engine::P2P;
    op.engines = engine_bit(Engine::P2P);
    op.lane_number = sends ? 0 : 1;
    const RankGroup group = transfer_group(*scenario_, from, to, {.backward = phase == Phase::Reduce});
    graph.add_group(group.number, group.members);
    op.match_group = group.number;
    op.match_sequence = graph.next_match(group.number);
    return op;
  }

 private:
  StepContext& context_;
  std::shared_ptr<const Scenario> scenario_;
  std::map<std::tuple<bool, std::int64_t, bool>, WorkId> works_;
};

// Each gradient goes, and the parameter that is made of it comes, while the backward goes on: nobody reads a layer's
// parameter after its last backward.
class Worker final : public StepTransform {
 public:
  Worker(StepContext& context, std::shared_ptr<const Scenario> scenario)
      : context_(context), transfers_(context, std::move(scenario)), own_(context.options.rank) {}

  void begin(Graph&) override {
    const Scenario& scenario = transfers_.scenario();
    for (const std::int32_t server : server_of(context_.plan(), server_count(scenario)))
      servers_.push_back(server == kNone ? kNone : server_rank(scenario, server));
  }
  void reduce(Graph& graph, std::size_t index) override {
    StepStage& stage = context_.stages[index];
    Op push = transfers_.between(graph, own_, servers_[index], own_, index, Phase::Reduce);
    push.reads.push_back(stage.gradient_value);
    graph.append(std::move(push));
    Op pull = transfers_.between(graph, servers_[index], own_, own_, index, Phase::Gather);
    const ValueId before = graph.tensor(stage.parameter).latest;
    stage.parameter_in_use = graph.new_version(stage.parameter);
    pull.writes.push_back({stage.parameter_in_use, before});
    graph.append(std::move(pull));
  }
  bool update(Graph&, std::size_t) override { return true; }

 private:
  StepContext& context_;
  Transfers transfers_;
  Rank own_;
  std::vector<Rank> servers_;  // by stage
};

// What servers of both kinds do with one bucket: buckets come in the order in which workers go backward.
class Server : public StepTransform {
 public:
  Server(StepContext& context, std::shared_ptr<const Scenario> scenario, Rank own)
      : context_(context),
        transfers_(context, std::move(scenario)),
        updates_(context),
        workers_(static_cast<Rank>(transfers_.scenario().workload.devices)),
        own_(own) {}
  bool update(Graph&, std::size_t) override { return true; }

 protected:
  ValueId take_gradient(Graph& graph, std::size_t index, Rank worker, TensorId tensor) {
    Op receive = transfers_.between(graph, worker, own_, own_, index, Phase::Reduce);
    const ValueId gradient = graph.new_version(tensor);
    receive.writes.push_back({gradient, kNone});
    graph.append(std::move(receive));
    return gradient;
  }
  void give_parameter(Graph& graph, std::size_t index, Rank worker) {
    Op send = transfers_.between(graph, own_, worker, own_, index, Phase::Gather);
    send.reads.push_back(context_.stages[index].parameter_in_use);
    graph.append(std::move(send));
  }

  StepContext& context_;
  Transfers transfers_;
  UpdatePart updates_;
  Rank workers_, own_;
};

// Waits for all workers' gradients of a bucket, before it comes to the next.
class SynchronousServer final : public Server {
 public:
  using Server::Server;

  void add_gradient(Graph& graph, std::size_t index) override {
    const Tensor first = graph.tensor(context_.stages[index].gradient);
    for (Rank worker = 1; worker < workers_; ++worker) {
      Tensor tensor = first;
      tensor.name = context_.spec(index).name + ".gradient_of_worker" + std::to_string(worker);
      received_[index].push_back(graph.add_tensor(std::move(tensor)));
    }
  }
  void before_updates(Graph& graph) override {
    for (std::size_t i = context_.stage_count(); i-- > 0;) {
      take_mean(graph, i);
      updates_.optimize(graph, i);
      for (Rank worker = 0; worker < workers_; ++worker) give_parameter(graph, i, worker);
    }
  }

 private:
  void take_mean(Graph& graph, std::size_t index) {
    StepStage& stage = context_.stages[index];
    std::vector<ValueId> gradients;
    for (Rank worker = 0; worker < workers_; ++worker) {
      const TensorId tensor = worker == 0 ? stage.gradient : received_[index][static_cast<std::size_t>(worker - 1)];
      gradients.push_back(take_gradient(graph, index, worker, tensor));
    }
    stage.gradient_value = gradients.front();
    if (workers_ == 1) return;
    Op mean = context_.new_op(graph.intern(context_.spec(index).name + ".mean"), mean_work(graph, index), Phase::Reduce,
                              index);
    mean.workspace_bytes = division_workspace(context_.plan().precision);
    mean.reads.assign(gradients.begin(), gradients.end());
    stage.gradient_value = graph.new_version(stage.gradient);
    mean.writes.push_back({stage.gradient_value, gradients.front()});
    graph.append(std::move(mean));
  }
  WorkId mean_work(Graph& graph, std::size_t index) {
    const std::int64_t elements = context_.spec(index).elements;
    const DType type = context_.plan().precision;
    const auto [work, fresh] = works_.try_emplace(elements, kNone);
    if (fresh)
      work->second = graph.add_work(
          {"mean_of_workers", type, {elements}, {memory_kernel((workers_ + 1) * elements * size_of(type))}});
    return work->second;
  }

  std::map<std::size_t, std::vector<TensorId>> received_;  // of workers but the first
  std::map<std::int64_t, WorkId> works_;                   // by elements
};

// A step has as many arrivals as there are workers, whoever's: a fast one's twice, perhaps. Which of them an op belongs
// to, its micro-batch says: updates are numbered by it, from one arrival to the next.
class AsynchronousServer final : public Server {
 public:
  AsynchronousServer(StepContext& context, const std::shared_ptr<const Scenario>& scenario, Rank own)
      : Server(context, scenario, own), arrivals_(arrival_shape(*scenario)) {}

  void before_updates(Graph& graph) override {
    const std::int32_t last = context_.micro_batch;
    for (context_.micro_batch = 0; context_.micro_batch < workers_; ++context_.micro_batch) {
      const Rank worker = arrivals_.next().worker;
      for (std::size_t i = context_.stage_count(); i-- > 0;) {
        StepStage& stage = context_.stages[i];
        stage.gradient_value = take_gradient(graph, i, worker, stage.gradient);
        updates_.optimize(graph, i);
        give_parameter(graph, i, worker);
      }
    }
    context_.micro_batch = last;
  }

 private:
  Arrivals arrivals_;
};

class ParameterServers final : public Rewrite {
 public:
  explicit ParameterServers(const Scenario& scenario) : scenario_(std::make_shared<const Scenario>(scenario)) {}
  std::string_view name() const override { return "servers"; }
  Order order() const override { return Order::Ranks; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    const Rank first = context.options.data_group.members.front();  // of a server, itself
    if (place_of(*scenario_, first).server == kNone) return std::make_unique<Worker>(context, scenario_);
    if (staleness_bound(*scenario_) > 0) return std::make_unique<AsynchronousServer>(context, scenario_, first);
    return std::make_unique<SynchronousServer>(context, scenario_, first);
  }

 private:
  std::shared_ptr<const Scenario> scenario_;
};

void require_built(const Scenario& scenario) {
  const auto require = [](bool holds, const std::string& problem, std::string_view allowed) {
    if (!holds) throw ConfigError("parallel.servers: " + problem + "; allowed: " + std::string(allowed));
  };
  const WorkloadOptions& w = scenario.workload;
  require(scenario.parallel.pipeline == 1 && w.tensor == 1, "workers that divide the network among them are not built",
          "0, or parallel.data alone beside it");
  require(!scenario.parallel.fold, "a server serves all workers, of which none stands for others", "0, or no fold");
  require(w.partition == "none", "states are the servers', and not divided otherwise", "0, or partition: none");
  require(scenario.policy.name == "resident", "policy " + scenario.policy.name + " places states that a worker has not",
          "0, or policy: resident");
  require(scenario.optimizer.clip_norm == 0, "no norm is taken over the gradients of several servers so far",
          "0, or no optimizer.clip_norm");
  require(w.precision != DType::F16 || !scenario.optimizer.loss_scaling,
          "no server says whether the gradients of all are finite, by which a loss is scaled", "0, or bf16 or fp32");
  require(scenario.validation.every == 0, "nothing is evaluated beside servers so far", "0, or no validation.every");
  require(scenario.checkpoint.directory.empty() && scenario.first_step == 0,
          "a checkpoint holds all states, of which each server has its own",
          "0, or no checkpoint.directory and no --resume");
  require(scenario.switches.empty(), "no policy takes over beside servers so far", "0, or no switches");
}

std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  if (server_count(scenario) == 0) {
    if (staleness_bound(scenario) > 0)
      throw ConfigError(
          "parallel.staleness: is of workers beside parameter servers, and there are none; "
          "allowed: 0, or parallel.servers of 1 or more");
    return nullptr;
  }
  require_built(scenario);
  return std::make_shared<ParameterServers>(scenario);
}

// A server has buckets alone, in one order with the whole network's; a worker has no states.
TrainingPlan plan_of(TrainingPlan whole, std::int64_t servers, std::int32_t server) {
  if (!whole.update_reads_parameter())
    throw ConfigError(
        "parallel.servers: updates that read a master beside the parameter are not built for servers; "
        "allowed: 0, or a network in fp32 or bf16");
  if (server == kNone) {
    whole.states.clear();
    return whole;
  }
  const std::vector<std::int32_t> owners = server_of(whole, servers);
  std::vector<StageSpec> own;
  for (std::size_t i = 0; i < whole.stages.size(); ++i) {
    if (owners[i] != server) continue;
    StageSpec& stage = own.emplace_back();
    stage.name = whole.stages[i].name;
    stage.layout = whole.stages[i].layout;
    stage.elements = whole.stages[i].elements;
    stage.backward_reads_parameter = false;
  }
  whole.stages = std::move(own);
  whole.ops.clear();
  whole.batch = {};
  whole.order = {Turn{}};  // of no stage: it waits for what workers send
  return whole;
}

std::function<TrainingPlan(TrainingPlan)> of_rank(const Scenario& scenario, const Rewrites& rewrites, Rank rank) {
  const std::int64_t servers = server_count(scenario);
  if (servers == 0) return nullptr;
  constexpr std::array kComposes = {"servers", "recompute", "movable_inputs"};
  for (const auto& rewrite : rewrites)
    if (std::find(kComposes.begin(), kComposes.end(), rewrite->name()) == kComposes.end())
      throw ConfigError("parallel.servers: with the transform " + std::string(rewrite->name()) +
                        ", which the policy or the workload asks for, it is not built; allowed: 0, or without that");
  return [servers, server = place_of(scenario, rank).server](TrainingPlan whole) {
    return plan_of(std::move(whole), servers, server);
  };
}

const std::vector<FamilyKey> kKeys = {
    size_key("servers", {0, 1024}, 0,
             "Parameter servers: devices beside the data-parallel ones, of the same kind, which have the optimizer's "
             "states, add up gradients and update the parameters, each of some modules."),
    size_key("staleness", {0, 1 << 20}, 0,
             "With servers: by how many steps a worker may be ahead of the slowest. 0: servers wait for the gradients "
             "of all. From 1 on they update with each by itself, in an order that is said beforehand.")};

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM_ENTRY(servers, "Ranks beside the workers have the states: gradients go to them, parameters come back",
                       "parallel.servers: K", of_scenario, nullptr, of_rank, &kKeys)
