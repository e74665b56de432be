// Which ranks exchange a value. Must not know what they do with it.
#pragma once

#include "core/model/module.hpp"
#include "core/scenario/ranks.hpp"

namespace tandem {

RankGroup exchange_group(const Scenario& scenario, ExchangeAmong among, Rank rank);
// As of members_on_a_host().
std::int64_t exchange_members_on_a_host(const Scenario& scenario, ExchangeAmong among);

}  // namespace tandem
