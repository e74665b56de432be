// Which stage files a run that goes on will load, and what each must hold: known before anything runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/stage_file.hpp"

namespace tandem {

struct StageContents {
  std::string stage;                                   // "block3"
  std::vector<StageBucket> buckets;                    // begin: null
  std::vector<std::shared_ptr<const Layout>> layouts;  // that the buckets point to
};

inline constexpr const char* kInUseSuffix = ".in_use";

// Of the scenario as it goes on from a checkpoint.
std::vector<StageContents> stages_of(const Scenario& scenario);
// Throws DamagedCheckpoint where the manifest lacks one of them or has another, or a file does not hold what it should.
void check_stages(const std::string& folder, const Manifest& manifest, const Scenario& scenario);

}  // namespace tandem
