// What tests of several processes have in common: the other ranks are this program again, told by flags what to do, and
// leave what they came to in files.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/scenario/ranks.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/train.hpp"

namespace tandem {

// The value of --name= on this program's command line, "" if it is not there.
inline std::string argument(const std::string& name) {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(in, word, '\0');)
    if (word.starts_with("--" + name + "=")) return word.substr(name.size() + 3);
  return "";
}

// The parameters of a rank by name, as text that shows every bit, and the bits of its losses in order, those on
// held-out data among them.
using RankBits = std::map<std::string, std::string>;

inline RankBits bits_of(Training& training) {
  RankBits bits;
  for (const auto& [name, values] : training.parameters()) {
    std::ostringstream out;
    out << std::hexfloat;
    for (float value : values) out << value << ' ';
    bits[name] = out.str();
  }
  std::map<OpId, std::int64_t> losses;
  std::map<CommandId, OpId> ops;
  for (const MemoryLog::Entry& entry : training.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto op = ops.find(event.command); op != ops.end()) losses[op->second] = event.result;
    for (const Command& command : entry.commands) {
      if (command.op == kNone) continue;
      const Op& op = training.graph().op(command.op);
      if (op.has_result && (op.phase == Phase::Forward || op.phase == Phase::Evaluate)) ops[command.id] = command.op;
    }
  }
  for (const auto& [op, loss] : losses) bits["loss"] += std::to_string(loss) + ' ';
  return bits;
}

inline void write(const RankBits& bits, const std::string& path) {
  std::ofstream out(path);
  for (const auto& [name, values] : bits) out << name << ' ' << values << '\n';
}

inline RankBits read(const std::string& path) {
  RankBits bits;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::size_t end = line.find(' ');
    bits[line.substr(0, end)] = line.substr(end + 1);
  }
  return bits;
}

// Where a rank leaves what it came to.
inline std::string dump_path(const std::string& meeting_file, Rank rank) {
  return meeting_file + ".rank" + std::to_string(rank);
}

// What a process does that is another rank of a test's run: it trains as this program's flags say.
inline void train_as_told(const Scenario& scenario, std::shared_ptr<Device> device = nullptr,
                          std::function<void(Rank, std::int32_t)> lost_worker = nullptr) {
  TrainOptions options;
  options.rank = std::stoi(argument("rank"));
  options.meeting_file = argument("meeting-file");
  options.device = std::move(device);
  options.lost_worker = std::move(lost_worker);
  Training training(scenario, options);
  training.run();
  write(bits_of(training), dump_path(options.meeting_file, options.rank));
}

// Trains on all ranks, of which this process is the leading one, and the others the program's test `peer`: what each
// has, by rank. `look`: at this one's, once all have ended.
inline std::vector<RankBits> train_ranks(const Scenario& scenario, const std::string& peer,
                                         std::vector<std::string> arguments,
                                         const std::function<void(Training&)>& look = nullptr) {
  TrainOptions options;
  options.rank = leading_rank(scenario);
  std::optional<RankProcesses> peers;
  if (rank_count(scenario) > 1) {
    arguments.insert(arguments.begin(), {"--gtest_filter=" + peer, "--gtest_also_run_disabled_tests"});
    peers.emplace(rank_count(scenario), arguments, "", options.rank);
    options.meeting_file = peers->meeting_file();
  }
  Training training(scenario, options);
  training.run();
  if (peers) peers->finish();
  if (look) look(training);
  std::vector<RankBits> ranks;
  for (Rank rank = 0; rank < rank_count(scenario); ++rank)
    ranks.push_back(rank == options.rank ? bits_of(training) : read(dump_path(options.meeting_file, rank)));
  return ranks;
}

// What ranks from `first` on have together, each of them something of its own.
inline RankBits held_together(const std::vector<RankBits>& ranks, std::size_t first) {
  RankBits held;
  for (std::size_t rank = first; rank < ranks.size(); ++rank)
    for (const auto& [name, values] : ranks[rank]) EXPECT_TRUE(held.emplace(name, values).second) << name;
  return held;
}

}  // namespace tandem
