#include "core/run/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/run/load.hpp"
#include "core/run/remedies.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostAdvice = 3;
// A step that fits says that those after it do, nearly always: policies have settled by the third.
constexpr std::int32_t kTriedSteps = 4;

// "79.1 GB"
std::string about(std::int64_t bytes) {
  double value = static_cast<double>(bytes);
  const char* unit = "bytes";
  for (const char* larger : {"kB", "MB", "GB", "TB", "PB"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = larger;
  }
  return fmt::format("{:.{}f} {}", value, bytes < 1000 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, unit);
}

class Tried {
 public:
  Tried(const Scenario& scenario, const Trial& trial) : scenario_(scenario), trial_(trial) {}

  // The mildest of its kind that helps.
  std::optional<Remedy> best(const Remedies& kind) const {
    std::vector<Remedy> choices;
    for (const Remedy& remedy : kind.choices)
      if (changed({remedy})) choices.push_back(remedy);
    if (choices.empty() || (kind.graded && !helps({choices.back()}))) return std::nullopt;
    for (std::size_t i = 0; i < choices.size(); ++i)
      if ((kind.graded && i + 1 == choices.size()) || helps({choices[i]})) return choices[i];
    return std::nullopt;
  }

  // What is needed of several that help together; nothing if they do not.
  std::vector<Remedy> needed(const std::vector<Remedy>& together) const {
    std::vector<Remedy> left;
    for (const Remedy& remedy : together)
      if (changed({remedy})) left.push_back(remedy);
    if (left.empty() || !helps(left)) return {};
    for (std::size_t i = left.size(); i-- > 0 && left.size() > 1;) {
      std::vector<Remedy> fewer = left;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (helps(fewer)) left = std::move(fewer);
    }
    return left;
  }

 private:
  // None where the family has no such key, or the policy does not allow it.
  std::optional<Scenario> changed(const std::vector<Remedy>& by) const {
    if (scenario_.text.empty()) return std::nullopt;
    std::vector<std::string> settings;
    for (const Remedy& remedy : by) settings.insert(settings.end(), remedy.settings.begin(), remedy.settings.end());
    try {
      return parse_scenario(scenario_.text, scenario_.path, settings);
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }

  bool helps(const std::vector<Remedy>& remedies) const {
    std::optional<Scenario> scenario = changed(remedies);
    if (!scenario) return false;
    scenario->steps = std::min(scenario->steps, kTriedSteps);
    return trial_(*scenario).kind == TrialResult::Kind::Done;
  }

  const Scenario& scenario_;
  const Trial& trial_;
};

std::vector<std::string> what_helps(const Scenario& scenario, const Trial& trial) {
  const Tried tried(scenario, trial);
  std::vector<std::string> found;
  for (const Remedies& kind : remedies(scenario)) {
    if (found.size() == kMostAdvice) return found;
    if (const auto remedy = tried.best(kind)) found.push_back(remedy->words);
  }
  if (!found.empty()) return found;
  for (const auto& together : joint_remedies(scenario)) {
    const std::vector<Remedy> needed = tried.needed(together);
    if (needed.empty()) continue;
    std::string words;
    for (const Remedy& remedy : needed) words += (words.empty() ? "" : " and ") + remedy.words;
    return {words};
  }
  return found;
}

std::string for_people(const OutOfRoom::Figures& refused, const Enough& enough, const std::vector<std::string>& help) {
  const std::int64_t needed = enough.bytes[static_cast<std::size_t>(refused.tier)];
  std::string text = fmt::format("does not fit: needs {} {} of {}, you have {}: {} short",
                                 enough.found ? "about" : "at least", about(needed), memory_words(refused.tier),
                                 about(refused.capacity_bytes), about(needed - refused.capacity_bytes));
  for (std::size_t tier = 0; tier < kTierCount; ++tier)
    if (enough.bytes[tier] > 0 && static_cast<Tier>(tier) != refused.tier)
      text += fmt::format(", and {} of {}", about(enough.bytes[tier]), memory_words(static_cast<Tier>(tier)));
  if (refused.holes) text += "; bytes enough are free, but in pieces that lie apart (holes)";
  for (std::size_t i = 0; i < help.size(); ++i) text += (i == 0 ? "; fits with " : ", or with ") + help[i];
  if (help.empty()) text += "; no key of the scenario was found that makes it fit";
  return text;
}

std::string in_full(const OutOfRoom& refusal, const Enough& enough) {
  const Tier tier = refusal.figures().tier;
  std::string text = refusal.facts() + "; would fit in ";
  const auto others = std::count_if(enough.bytes.begin(), enough.bytes.end(), [](std::int64_t b) { return b > 0; }) - 1;
  if (!enough.found || others > 0) text += "at least ";
  text += with_bytes(enough.bytes[static_cast<std::size_t>(tier)]);
  for (std::size_t other = 0; other < kTierCount; ++other)
    if (enough.bytes[other] > 0 && static_cast<Tier>(other) != tier)
      text += " with " + with_bytes(enough.bytes[other]) + " of " + std::string(name_of(static_cast<Tier>(other)));
  return text + (enough.found ? ", as a run with it did" : "");
}

}  // namespace

const char* memory_words(Tier tier) {
  switch (tier) {
    case Tier::Device:
      return "device memory";
    case Tier::HostPinned:
      return "host memory";
    case Tier::HostPageable:
      return "pageable host memory";
    case Tier::Disk:
      return "disk";
  }
  return "";
}

std::string advise(const Scenario& scenario, const OutOfRoom& refusal, const Trial& trial) {
  const Enough enough = find_enough(scenario, refusal.figures(), trial);
  return for_people(refusal.figures(), enough, what_helps(scenario, trial)) +
         "\n  in full: " + in_full(refusal, enough);
}

}  // namespace tandem
