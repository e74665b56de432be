// The watchdog of a program that trains: when it expires, the process ends. Must not know how a run is put together.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/scenario/scenario.hpp"
#include "runtime/executors/watchdog.hpp"

namespace tandem {

// Of rank 0: ends the process with exit code 4 where nothing finishes; with 130 where it has been interrupted and soon
// nothing finishes, unless it waits for ranks that save with it (`saves_alone`: it does not). Its temporary files go,
// and with it the ranks that it started. `others`: what is known to be wrong with those, and `lost`: which of them have
// ended, so that nothing is to be waited for; both from the watchdog's thread; "": nothing.
std::unique_ptr<Watchdog> leading_watchdog(const Scenario& scenario, std::function<std::string()> others = nullptr,
                                           std::function<std::string()> lost = nullptr, bool saves_alone = true);
// Of another rank, which the leading one ends: it expires later, for the case that the leading one cannot.
std::unique_ptr<Watchdog> following_watchdog(const Scenario& scenario, Rank rank);

}  // namespace tandem
