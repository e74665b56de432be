#include "calibration/for_scenarios.hpp"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "adapt/profile_ops.hpp"
#include "calibration/scenario_ops.hpp"
#include "calibration/text.hpp"
#include "cli/atomic_file.hpp"
#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/scenario/dirs.hpp"
#include "runtime/executors/keeping_device.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/live_scenario.hpp"
#include "runtime/train.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// By its path, or by name.
std::string profile_file(const std::string& path_or_name) {
  if (fs::exists(path_or_name)) return fs::absolute(path_or_name).string();
  for (const std::string& folder : profile_dirs())
    if (const fs::path path = fs::path(folder) / (path_or_name + ".yaml"); fs::exists(path))
      return fs::absolute(path).string();
  return path_or_name;
}

// What another machine takes says nothing of this one's ops, nor theirs of its other figures.
void require_this_machine(const HardwareProfile& base, Device* device, bool quiet) {
  const std::string other = other_machine(base, device);
  if (other.empty()) return;
  if (base.fingerprint || base.gpu != (device != nullptr))
    throw ConfigError("--base: " + base.name + " " + other + "; allowed: a profile of this machine: tandem calibrate " +
                      "--device " + (device != nullptr ? "cuda" : "cpu") + " --quick --output FILE");
  if (!quiet) print_warning("--base: " + base.name + " " + other);
}

Scenario load(const ForFlags& flags, const std::string& file, const std::string& base) {
  CommonFlags common;
  common.scenario_path = file;
  common.overrides = flags.overrides;
  common.overrides.push_back("machine=" + base);
  return load_live_scenario(common, flags.device);
}

// "gpt.block.forward, gpt.head.loss": each body once.
std::string bodies(const std::vector<OpKey>& ops) {
  std::string text, last;
  for (const OpKey& op : ops)
    if (op.body != last) text += (text.empty() ? "" : ", ") + (last = op.body);
  return text;
}

void say_coverage(const std::string& file, const ScenarioOps& ops) {
  const std::vector<OpKey> missing = ops.missing();
  std::fprintf(stderr, "%s: %zu of %zu ops measured%s%s\n", file.c_str(), ops.ops.size() - missing.size(),
               ops.ops.size(), missing.empty() ? "" : "; modelled: ", bodies(missing).c_str());
}

void add(LearntOps& to, LearntOps more) {
  for (auto& [key, op] : more)
    if (const auto [known, fresh] = to.try_emplace(key, op); !fresh && op.alone) known->second = std::move(op);
}

}  // namespace

int calibrate_for(const ForFlags& flags, const std::shared_ptr<Device>& device) {
  const std::string base_file = profile_file(flags.base);
  const HardwareProfile base = load_profile(base_file);
  require_this_machine(base, device.get(), flags.quiet);
  std::vector<Scenario> scenarios;  // what is wrong with any is said before the first runs
  for (const std::string& file : flags.files) scenarios.push_back(load(flags, file, base_file));
  AtomicFile file(flags.output);
  ScenarioOpsOptions options;
  options.device = device ? std::make_shared<KeepingDevice>(device) : nullptr;
  options.scratch_folder = TrainOptions::default_scratch_directory();
  options.seconds = flags.seconds;
  options.source = "tandem calibrate --for";
  if (!flags.quiet) options.tell = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  LearntOps learnt;
  int code = kDone;
  for (std::size_t i = 0; i < scenarios.size(); ++i) try {
      ScenarioOps ops = time_scenario_ops(scenarios[i], options);
      if (!flags.quiet) say_coverage(flags.files[i], ops);
      add(learnt, std::move(ops.learnt));
    } catch (const DoesNotFit& error) {
      std::fprintf(stderr, "%s: %s\n", flags.files[i].c_str(), error.what());
      code = kDoesNotFit;
    }
  if (learnt.empty()) return code;
  file.write(with_ops(base, with_learnt(base.ops.get(), learnt), fs::path(flags.output).stem().string()));
  file.commit();
  if (!flags.quiet) std::fprintf(stderr, "wrote %s\n", flags.output.c_str());
  return code;
}

}  // namespace tandem
