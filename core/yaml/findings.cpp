#include "core/yaml/findings.hpp"

#include <algorithm>
#include <tuple>

namespace tandem {
namespace {

// A person corrects no more at once, and a hostile file has a hundred thousand.
constexpr std::size_t kMostFindings = 100;

bool holds_or_is_in(const std::set<std::string>& paths, const std::string& path) {
  if (paths.contains("") || paths.contains(path)) return true;  // "" is the whole
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    if (paths.contains(path.substr(0, dot))) return true;
  return false;
}

// Files from the nearest on, each from its first line; then flags as they were given; then defaults.
auto order_of(const Position& at) {
  const int group = at.distance == kFlagDistance ? kDefaultDistance - 1 : at.distance;
  return std::make_tuple(group, at.line, at.column);
}

}  // namespace

void Findings::add(const Finding& refusal) {
  spoil(refusal.key());
  paths_.insert(refusal.key());
  add_aside(refusal);
}

void Findings::add_aside(const Finding& refusal) {
  if (!lines_.insert(refusal.what()).second) return;
  refusals_.push_back(refusal);
  if (refusals_.size() <= kMostFindings) return;
  refusals_.back() = Finding(refusal.at(), "file", "has more errors than these " + std::to_string(kMostFindings),
                             "none; correct these first");
  raise();
}

bool Findings::is_spoiled(const std::string& path) const { return holds_or_is_in(spoiled_, path); }

bool Findings::are_known(const std::vector<std::string>& paths) const {
  return std::none_of(paths.begin(), paths.end(), [&](const std::string& path) { return is_spoiled(path); });
}

bool Findings::is_open(const std::string& path) const { return holds_or_is_in(open_, path); }

void Findings::raise() const {
  if (refusals_.empty()) return;
  std::vector<const Finding*> sorted;
  for (const Finding& refusal : refusals_) sorted.push_back(&refusal);
  const bool is_cut_short = sorted.size() > kMostFindings;  // the last one says so, and stays the last
  std::stable_sort(sorted.begin(), sorted.end() - (is_cut_short ? 1 : 0),
                   [](const Finding* a, const Finding* b) { return order_of(a->at()) < order_of(b->at()); });
  std::vector<std::string> lines;
  for (const Finding* refusal : sorted) lines.emplace_back(refusal->what());
  throw ConfigError(join(lines, "\n"));
}

}  // namespace tandem
