// Runs of several ranks that send each other compressed gradients, or signs of momentum: what each rank compressed,
// what it got for it, and what it had at the end.
#pragma once

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis.hpp"
#include "core/scenario/ranks.hpp"
#include "runtime/body_table.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem::compressed_runs {

using Floats = std::vector<float>;

struct Way {
  std::string compress = "bf16", precision = "fp32", optimizer = "adamw";
  std::int64_t devices = 2, steps = 5, warmup = 2, block = 64, micro_batches = 1, stages = 1, feedback = 1, looks = 1;
};

inline std::vector<std::string> arguments_of(const Way& w) {
  return {"--compress=" + w.compress,
          "--precision=" + w.precision,
          "--optimizer=" + w.optimizer,
          "--devices=" + std::to_string(w.devices),
          "--steps=" + std::to_string(w.steps),
          "--warmup=" + std::to_string(w.warmup),
          "--block=" + std::to_string(w.block),
          "--micro=" + std::to_string(w.micro_batches),
          "--stages=" + std::to_string(w.stages),
          "--feedback=" + std::to_string(w.feedback),
          "--looks=" + std::to_string(w.looks)};
}
inline void PrintTo(const Way& w, std::ostream* out) {
  for (const std::string& argument : arguments_of(w)) *out << argument << ' ';
}

inline Way from_arguments() {
  return {argument("compress"),          argument("precision"),
          argument("optimizer"),         std::stoi(argument("devices")),
          std::stoi(argument("steps")),  std::stoi(argument("warmup")),
          std::stoi(argument("block")),  std::stoi(argument("micro")),
          std::stoi(argument("stages")), std::stoi(argument("feedback")),
          std::stoi(argument("looks"))};
}

inline Scenario scenario_of(const Way& w) {
  Scenario s = testing::gpt_scenario("resident", std::int64_t{64} << 20, 2);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = std::int64_t{256} << 20;
  s.workload.precision = w.precision == "bf16" ? DType::BF16 : DType::F32;
  s.workload.devices = w.devices;
  s.workload.micro_batches = w.micro_batches;
  s.parallel.pipeline = w.stages;
  s.workload.parallel["compress"] = w.compress;
  s.workload.parallel["error_feedback"] = w.feedback != 0;
  if (w.compress == "one_bit") {
    s.workload.parallel["compress_warmup"] = w.warmup;
    s.workload.parallel["compress_block"] = w.block;
  }
  s.optimizer.name = w.optimizer;
  s.optimizer.weight_decay = 0.1;
  s.steps = static_cast<std::int32_t>(w.steps);
  s.seed = 5;
  return s;
}

// What bodies of this process read and wrote, by label and step: the gradients that were compressed, and what came of
// them.
inline std::map<std::string, std::vector<Floats>> seen;

inline Floats floats_at(const BodyCall& call, const std::byte* bytes, ValueId value) {
  const Tensor& tensor = call.graph.tensor_of(value);
  Floats numbers(static_cast<std::size_t>(tensor.bytes / size_of(tensor.type)));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = tensor.type == DType::F32 ? reinterpret_cast<const float*>(bytes)[i]
                                           : to_float(reinterpret_cast<const BFloat16*>(bytes)[i]);
  return numbers;
}

inline std::int64_t seeing(BodyCall& call) {
  const bool decodes = call.work.body == "compressed.decode";
  const std::string label(call.graph.label(call.op.label));
  if (!decodes) seen[label].push_back(floats_at(call, call.reads[0], call.op.reads[0]));
  const std::int64_t result = find_body(call.work).body(call);
  if (decodes) seen[label].push_back(floats_at(call, call.writes[0], call.op.writes[0].value));
  return result;
}

inline const BodyEntry& find_seeing_body(const Work& work) {
  static constexpr BodyEntry kSeeing{"seeing", &seeing};
  const bool sees =
      work.body == "compressed.gradient" || work.body == "compressed.momentum" || work.body == "compressed.decode";
  return sees ? kSeeing : find_body(work);
}

// Of a rank: what it saw, and what lasts.
struct RankRun {
  std::map<std::string, std::vector<Floats>> seen;
  std::map<std::string, Floats> states, parameters;
  Floats losses;
};

inline void save(const std::string& path, const std::map<std::string, std::vector<Floats>>& all) {
  std::ofstream out(path, std::ios::binary);
  for (const auto& [name, rows] : all)
    for (const Floats& row : rows) {
      out << name << ' ' << row.size() << '\n';
      out.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * sizeof(float)));
    }
}

inline std::map<std::string, std::vector<Floats>> load(const std::string& path) {
  std::map<std::string, std::vector<Floats>> all;
  std::ifstream in(path, std::ios::binary);
  std::string name;
  for (std::size_t size = 0; in >> name >> size;) {
    in.get();
    Floats row(size);
    in.read(reinterpret_cast<char*>(row.data()), static_cast<std::streamsize>(size * sizeof(float)));
    all[name].push_back(std::move(row));
  }
  return all;
}

inline std::map<std::string, std::vector<Floats>> states_of(Training& training) {
  std::map<std::string, std::vector<Floats>> states;
  const Graph& graph = training.graph();
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.role != Role::OptimizerState || tensor.type != DType::F32) continue;
    const std::vector<std::byte> bytes = training.latest(id);
    Floats numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    states[tensor.name] = {std::move(numbers)};
  }
  return states;
}

inline void train_and_save(const Way& w, TrainOptions options) {
  set_thread_count(1);
  const Scenario scenario = scenario_of(w);
  options.library = torch_library();
  if (w.looks != 0) options.library.find_body = &find_seeing_body;
  seen.clear();
  Training training(scenario, options);
  training.run();
  const std::string path = dump_path(options.meeting_file, options.rank);
  std::map<std::string, std::vector<Floats>> parameters, losses;
  for (auto& [name, numbers] : training.parameters()) parameters[name] = {numbers};
  const RunRecord record = training.record();
  losses["loss"].emplace_back();
  for (const double loss : analyse(record).loss) losses["loss"].front().push_back(static_cast<float>(loss));
  save(path + ".parameters", parameters);
  save(path + ".losses", losses);
  save(path + ".seen", seen);
  save(path + ".states", states_of(training));
}

// By rank.
inline std::vector<RankRun> trained(const Way& w) {
  const Scenario scenario = scenario_of(w);
  TrainOptions options;
  options.rank = leading_rank(scenario);
  std::vector<std::string> arguments = arguments_of(w);
  arguments.insert(arguments.begin(), {"--gtest_filter=*DISABLED_OtherSender*", "--gtest_also_run_disabled_tests"});
  RankProcesses peers(rank_count(scenario), arguments, "", options.rank);
  options.meeting_file = peers.meeting_file();
  train_and_save(w, options);
  peers.finish();
  std::vector<RankRun> ranks;
  for (Rank rank = 0; rank < rank_count(scenario); ++rank) {
    const std::string path = dump_path(options.meeting_file, rank);
    RankRun& run = ranks.emplace_back();
    run.seen = load(path + ".seen");
    for (auto& [name, rows] : load(path + ".parameters")) run.parameters[name] = rows.front();
    for (auto& [name, rows] : load(path + ".losses")) run.losses = rows.front();
    for (auto& [name, rows] : load(path + ".states")) run.states[name] = rows.front();
  }
  return ranks;
}

}  // namespace tandem::compressed_runs
