#include "runtime/rank_identity.hpp"

#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/base/errors.hpp"
#include "runtime/checkpoint/checksum.hpp"
#include "runtime/data_files.hpp"
#include "runtime/data_kind.hpp"
#include "runtime/text_data.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLookEvery{10};

void add_file(Hasher& hasher, const std::string& path) {
  constexpr std::int64_t kWhole = std::int64_t{256} << 20, kPlaces = 4096, kPiece = std::int64_t{64} << 10;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::int64_t bytes = in ? static_cast<std::int64_t>(in.tellg()) : -1;
  hasher.update(&bytes, sizeof bytes);
  std::string piece(static_cast<std::size_t>(kPiece), '\0');
  const std::int64_t step = bytes <= kWhole ? kPiece : std::max(bytes / kPlaces, kPiece);
  for (std::int64_t at = 0; at < bytes; at += step) {
    in.seekg(at);
    in.read(piece.data(), kPiece);
    hasher.update(piece.data(), static_cast<std::size_t>(in.gcount()));
    in.clear();
  }
}

// By name: a folder lists them in any order.
void add_files_of(Hasher& hasher, const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (std::error_code ignored; fs::is_regular_file(entry->path(), ignored)) paths.push_back(entry->path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) add_file(hasher, path);
}

std::vector<std::string> text_files(const Scenario& scenario) {
  if (!scenario.data_tokens.empty()) return {beside_scenario(scenario.data_tokens, scenario)};
  std::vector<std::string> paths{text_path(scenario)};
  if (!scenario.data_tokenizer.empty()) paths.push_back(beside_scenario(scenario.data_tokenizer, scenario));
  return paths;
}

std::string data_of(const Scenario& scenario) {
  Hasher hasher;
  if (!scenario.data_manifest.empty()) {
    add_file(hasher, beside_scenario(scenario.data_manifest, scenario));
    if (!scenario.data_tokenizer.empty()) add_file(hasher, beside_scenario(scenario.data_tokenizer, scenario));
    return hasher.checksum().text();
  }
  if (!scenario.data_graph.empty()) {
    add_file(hasher, beside_scenario(scenario.data_graph, scenario));
    return hasher.checksum().text();
  }
  const DataKind kind = data_kind(scenario);
  if (kind == DataKind::MadeUp) return "made_up";  // a line has a space behind it
  if (kind != DataKind::Images)
    for (const std::string& path : text_files(scenario)) add_file(hasher, path);
  else if (scenario.data_images.empty())
    add_file(hasher, installed_file("digits.csv", scenario, "data.images"));
  else
    add_files_of(hasher, beside_scenario(scenario.data_images, scenario));
  return hasher.checksum().text();
}

std::string program() {
  Hasher hasher;
  add_file(hasher, "/proc/self/exe");
  const std::string torch = TORCH_VERSION;
  hasher.update(torch.data(), torch.size());
  return hasher.checksum().text();
}

// A line a part, checksum first.
std::string text_of(const RankIdentity& identity) {
  std::string text;
  for (const auto& [part, checksum] : identity) text += checksum + " " + part + "\n";
  return text;
}

RankIdentity identity_in(const std::string& text) {
  RankIdentity identity;
  std::istringstream in(text);
  for (std::string checksum, part; std::getline(in, checksum, ' ') && std::getline(in, part);)
    identity.emplace_back(part, checksum);
  return identity;
}

void compare(const RankIdentity& mine, Rank rank, const std::string& theirs, Rank other) {
  const RankIdentity their_identity = identity_in(theirs);
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (i >= their_identity.size() || mine[i] != their_identity[i])
      throw DeviceError("ranks do not run the same: rank " + std::to_string(rank) + " and rank " +
                        std::to_string(other) + " have another " + mine[i].first +
                        "; start all ranks with the same scenario, files and program, and change none meanwhile");
}

}  // namespace

RankIdentity identity_of(const Scenario& scenario, const Facts& facts) {
  std::ostringstream run;
  run << std::hexfloat << scenario.text << '\0' << scenario.machine.text << '\0' << scenario.seed << ' '
      << scenario.steps << ' ' << scenario.first_step << ' ' << scenario.workload.devices << ' '
      << scenario.parallel.pipeline << ' ' << scenario.parallel.chunks << ' ' << scenario.parallel.schedule << ' '
      << scenario.optimizer.learning_rate << ' ' << scenario.optimizer.schedule << ' ' << scenario.policy.name;
  for (const auto& [option, value] : scenario.policy.options) run << ' ' << option << '=' << value;
  run << ' ' << scenario.workload.partition;
  for (const auto& [key, value] : scenario.workload.parallel.all()) run << ' ' << key << '=' << KeyValues::words(value);
  for (const auto& [key, value] : facts) run << ' ' << key << '=' << value;
  RankIdentity identity{
      {"scenario", checksum_of(run.str()).text()}, {"data", data_of(scenario)}, {"program", program()}};
  if (!scenario.resume_folder.empty()) {
    Hasher manifest;
    add_file(manifest, scenario.resume_folder + "/" + kManifestName);
    identity.emplace_back("checkpoint to go on from", manifest.checksum().text());
  }
  return identity;
}

void require_same_ranks(Blackboard& board, Rank rank, std::int32_t ranks, const RankIdentity& identity,
                        const std::function<void(const std::string&)>& look) {
  board.write("identity" + std::to_string(rank), text_of(identity));
  std::vector<Rank> missing;
  for (Rank other = 0; other < ranks; ++other)
    if (other != rank) missing.push_back(other);
  for (;;) {
    // One that is missing keeps no other from being refused.
    std::erase_if(missing, [&](Rank other) {
      const std::string theirs = board.read("identity" + std::to_string(other));
      if (theirs.empty()) return false;
      compare(identity, rank, theirs, other);
      return true;
    });
    if (missing.empty()) return;
    look("rank " + std::to_string(missing.front()) + ", to begin");
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace tandem
