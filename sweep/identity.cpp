#include "sweep/identity.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <limits>

#include "core/base/input_file.hpp"
#include "core/scenario/dirs.hpp"

namespace tandem {
namespace {

std::string digest(const std::string& bytes) { return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size())); }

std::string contents(const std::string& path) {
  return read_input_file(path, std::numeric_limits<std::int32_t>::max());
}

std::string files_of(const std::vector<std::string>& folders) {
  std::string all;
  for (const std::string& folder : folders)
    for (const std::string& stem : yaml_stems(folder)) all += stem + digest(contents(folder + "/" + stem + ".yaml"));
  return digest(all);
}

}  // namespace

SweepIdentity identity_of(const Scenario& base, const SweepPlan& plan, const std::string& simulator) {
  std::string figures;
  for (const PolicyFigure& figure : policy_figures()) figures += std::string(figure.name) + " ";
  return {{"the base scenario", digest(base.text)},
          {"largest", fmt::format("{}={}..{}", plan.largest.key, plan.largest.low, plan.largest.high)},
          {"the simulator", digest(contents(simulator))},
          {"a profile or a model", files_of(profile_dirs()) + files_of(model_dirs())},
          {"the figures", figures}};
}

}  // namespace tandem
