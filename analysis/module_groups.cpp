#include "analysis/module_groups.hpp"

#include <charconv>
#include <optional>

namespace tandem {
namespace {

struct Run {
  std::string stem;  // the name without its number
  std::optional<std::int64_t> first, last;
  bool takes(const Run& next) const { return first && next.first && stem == next.stem && *last + 1 == *next.first; }
  std::string words() const {
    if (!first) return stem;
    const std::string begin = stem + std::to_string(*first);
    return *first == *last ? begin : begin + ".." + std::to_string(*last);
  }
};

// A number with zeros before it is a name's own.
Run run_of(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), number);
  const bool plain = error == std::errc() && std::to_string(number) == name.substr(digits);
  return plain ? Run{name.substr(0, digits), number, number} : Run{name, std::nullopt, std::nullopt};
}

bool equal(const NetworkModule& a, const NetworkModule& b) { return a.module == b.module || *a.module == *b.module; }

}  // namespace

std::vector<ModuleGroup> groups_of(const Network& network) {
  const std::vector<Modalities> modalities = modalities_of(network);
  std::vector<ModuleGroup> groups;
  for (std::size_t i = 0; i < network.modules.size(); ++i) {
    const NetworkModule& module = network.modules[i];
    ModuleGroup* found = nullptr;
    for (ModuleGroup& group : groups)
      if (group.modalities == modalities[i] &&
          equal(module, network.modules[static_cast<std::size_t>(group.modules.front())]))
        found = &group;
    if (found == nullptr) found = &groups.emplace_back(ModuleGroup{module.module->name, {}, modalities[i]});
    found->modules.push_back(static_cast<std::int32_t>(i));
  }
  return groups;
}

std::string words_for(const Network& network, const std::vector<std::int32_t>& modules) {
  std::vector<Run> runs;
  for (const std::int32_t module : modules) {
    const Run next = run_of(network.modules[static_cast<std::size_t>(module)].name);
    bool taken = false;
    for (Run& run : runs)
      if (!taken && run.takes(next)) run.last = next.last, taken = true;
    if (!taken) runs.push_back(next);
  }
  std::string words;
  for (const Run& run : runs) words += (words.empty() ? "" : ", ") + run.words();
  return words;
}

ModuleNames::ModuleNames(const Network& network) {
  for (std::size_t i = 0; i < network.modules.size(); ++i)
    modules_.emplace(network.modules[i].name, static_cast<std::int32_t>(i));
}

std::int32_t ModuleNames::module_of(std::string_view name) const {
  for (std::size_t dot = name.rfind('.'); dot != std::string_view::npos; dot = name.rfind('.')) {
    name = name.substr(0, dot);
    if (const auto found = modules_.find(name); found != modules_.end()) return found->second;
  }
  return kNone;
}

}  // namespace tandem
