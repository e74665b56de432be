// Bodies that are told which rank they are of, where that makes a difference. Must not know what ranks divide.
#pragma once

#include <functional>

#include "core/base/ids.hpp"
#include "core/step/plan.hpp"

namespace tandem {

// Sets the attribute `part` of those calls that have the attribute `ranks`: so many neighbours, or ranks that are as
// many `apart`, divide something among them, and then as many others the next. Of all, or of what ranks divide by
// places of tokens, or of what they divide otherwise. Null of part 0: what the first rank does needs no telling.
enum class Told : std::uint8_t { All, Places, Others };
std::function<TrainingPlan(TrainingPlan)> told_part(Rank part, Told told = Told::All);

}  // namespace tandem
