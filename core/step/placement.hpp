// Which modules of a network a scenario has computed on the CPU: forward, recompute and backward. An option that every
// policy takes, as where modules run may be switched with the policy. Must not know policies or machines.
#pragma once

#include <string_view>
#include <vector>

#include "core/model/network.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// "policy.cpu_modules": names of modules, separated by commas: "head", "block4..7" for block4 to block7, "block*" for
// all that begin so.
inline constexpr std::string_view kCpuModules = "cpu_modules";

// By module. Throws ConfigError for a name that no module has.
std::vector<bool> modules_on_cpu(const Network& network, const Scenario& scenario);

}  // namespace tandem
