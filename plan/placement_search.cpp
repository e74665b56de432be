#include "plan/placement_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "core/scenario/capacity.hpp"
#include "core/transforms/generation/generation_keys.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kBatches[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512};
constexpr std::int64_t kBlocks[] = {1, 2, 3, 4, 6, 8, 12, 16};
// A text is looked at half done, a few tokens long: what later ones take grows with its length.
constexpr std::int64_t kLookedAt = 3;
// Larger blocks take long to simulate, and gain little.
constexpr double kMostAttentions = 800;       // of a step
constexpr int kStepsOfShares[] = {10, 4, 1};  // percent
constexpr std::size_t kMostOfAKind = 2, kMostFirst = 8, kMostRepairs = 3;
constexpr double kBetter = 1.003;  // by less nothing is gained
constexpr std::size_t kMostComplete = 4;
constexpr double kNearly = 0.94;
constexpr const char* kOurs = "flexgen";

// What is computed, beside plain numbers.
struct Variant {
  bool weights = false, cache = false;  // in 4 bits
  friend auto operator<=>(const Variant&, const Variant&) = default;
};

struct Block {
  std::int64_t batch = 1, batches = 1;
  Variant variant;
  double texts() const { return static_cast<double>(batch * batches); }
  friend auto operator<=>(const Block&, const Block&) = default;
};

struct Candidate {
  Block block;
  std::string policy;               // "": the question's own
  std::string option;               // of the policy: "weights: host"
  std::optional<Placement> shares;  // flexgen's
  double promised = 0;              // tokens a second, by the program
};

struct Seen {
  Candidate candidate;
  CandidateRun run;
  double rate = 0;  // tokens a second; 0: it did not run
};

class PlacementSearch {
 public:
  PlacementSearch(const Question& question, const RunAll& run, const Effort& effort)
      : question_(question),
        run_(run),
        effort_(effort),
        sizes_(question.base().workload),
        lengths_differ_(!sizes_.prompts.empty() || !sizes_.outputs.empty()) {}
  FoundPlacements search();

 private:
  using Learnt = std::map<std::pair<Block, bool>, std::array<double, kTierCount>>;

  bool open(const std::string& key) const { return !question_.fixed(key); }
  std::vector<Variant> variants() const;
  std::vector<std::int64_t> batches() const;
  std::vector<std::int64_t> blocks_of(std::int64_t batch) const;
  Settings settings_of(const Block& block) const;
  Settings settings_of(const Candidate& candidate) const;
  const GenerationSizes& sizes(const Block& block);
  const BlockFigures* figures(const Block& block);
  std::optional<Candidate> placed(const Block& block, bool cpu_attention);
  std::vector<Candidate> promising();
  std::vector<std::size_t> look_at(const std::vector<Candidate>& candidates);
  std::size_t look_at_one_that_fits(Candidate candidate);
  std::vector<Candidate> beside(const Candidate& candidate, int step);
  void climb(std::size_t from);
  void look_at_others();
  std::vector<Candidate> others(const Variant& variant) const;
  double others_need(const BlockFigures& figures, const Candidate& candidate) const;
  std::vector<Candidate> finish(FoundPlacements& result);
  void add(FoundPlacements& result, const Candidate& candidate, CandidateRun run) const;
  std::vector<Hold> holds_of(const Candidate& pick);
  bool spent() const;
  double own_tokens(const Block& block);
  double whole_rate(const CandidateRun& run, const Block& block);

  const Question& question_;
  const RunAll& run_;
  const Effort& effort_;
  const GenerationSizes sizes_;
  const bool lengths_differ_;                            // of texts, so that those of a block go by how many it has
  std::map<std::int64_t, GenerationSizes> block_sizes_;  // by that
  using Longest = std::pair<std::int64_t, std::int64_t>;
  std::map<std::tuple<std::int64_t, Variant, Longest>, std::optional<BlockFigures>> figures_;
  Learnt kept_;  // what the simulator wanted free of each tier, by block and whether the CPU attends
  std::vector<Seen> seen_;
  std::map<Settings, std::size_t> places_;  // in seen_
  std::vector<std::string> refusals_;
  std::int64_t work_ = 0, finished_work_ = 0, commands_ = 0;
  std::size_t considered_ = 0, left_ = 0;  // left: not looked at, as the effort was spent
};

bool PlacementSearch::spent() const {
  return effort_.time_spent ? effort_.time_spent() >= 1 : !effort_.exhaustive && work_ >= effort_.work;
}

// Fewer bits are other arithmetic.
std::vector<Variant> PlacementSearch::variants() const {
  std::vector<Variant> all{{}};
  if (question_.flags().exact) return all;
  if (open("workload.compress")) all.push_back({true, false});
  if (open("generate.cache_bits"))
    for (std::size_t i = 0, n = all.size(); i < n; ++i) all.push_back({all[i].weights, true});
  return all;
}

std::vector<std::int64_t> PlacementSearch::batches() const {
  if (!open("workload.batch")) return {question_.base().workload.batch};
  std::vector<std::int64_t> all;
  for (const std::int64_t batch : kBatches)
    if (const std::int64_t texts = question_.flags().samples; texts == 0 || texts % batch == 0) all.push_back(batch);
  if (const std::int64_t texts = question_.flags().samples; texts > 0 && (all.empty() || all.back() < texts))
    all.push_back(texts);
  return all;
}

std::vector<std::int64_t> PlacementSearch::blocks_of(std::int64_t batch) const {
  if (const std::int64_t texts = question_.flags().samples; texts > 0) return {texts / batch};
  if (!open("workload.micro_batches")) return {question_.base().workload.micro_batches};
  return {std::begin(kBlocks), std::end(kBlocks)};
}

Settings PlacementSearch::settings_of(const Block& block) const {
  Settings settings;
  if (open("workload.precision")) {
    const Axis precisions = precision_axis(question_.base());
    settings = precisions.choices.front().settings;
  }
  if (open("workload.batch")) settings.push_back("workload.batch=" + std::to_string(block.batch));
  if (open("workload.micro_batches")) settings.push_back("workload.micro_batches=" + std::to_string(block.batches));
  if (block.variant.weights) settings.emplace_back("workload.compress={weights: 4}");
  if (block.variant.cache) settings.emplace_back("generate.cache_bits=4");
  return settings;
}

Settings PlacementSearch::settings_of(const Candidate& candidate) const {
  Settings settings = settings_of(candidate.block);
  if (candidate.policy.empty()) return settings;
  std::string options = candidate.option.empty() ? "" : ", " + candidate.option;
  if (const auto& p = candidate.shares)
    options = fmt::format(", wg: {}, wc: {}, cg: {}, cc: {}, hg: {}, hc: {}, cpu_attention: {}", p->wg, p->wc, p->cg,
                          p->cc, p->hg, p->hc, p->cpu_attention);
  settings.push_back("policy={name: " + candidate.policy + options + "}");
  return settings;
}

// More texts have a longer one among them. Of a block that is refused, the question's own.
const GenerationSizes& PlacementSearch::sizes(const Block& block) {
  if (!lengths_differ_) return sizes_;
  const std::int64_t texts = block.batch * block.batches;
  auto at = block_sizes_.find(texts);
  if (at == block_sizes_.end()) {
    GenerationSizes own = sizes_;
    try {
      own = GenerationSizes(question_.with(settings_of(Block{block.batch, block.batches, {}})).workload);
    } catch (const ConfigError&) {
    }
    at = block_sizes_.emplace(texts, std::move(own)).first;
  }
  return at->second;
}

// Of one of its batches, whose texts are as long as the block's longest: they are computed so. Null where the network
// or its keys do not allow it.
const BlockFigures* PlacementSearch::figures(const Block& block) {
  const GenerationSizes& sizes = this->sizes(block);
  const auto [at, is_new] = figures_.try_emplace({block.batch, block.variant, {sizes.prompt, sizes.new_tokens}});
  if (is_new) {
    try {
      Settings settings = settings_of(Block{block.batch, 1, block.variant});
      if (lengths_differ_) {
        settings.push_back("generate.prompt=" + std::to_string(sizes.prompt));
        settings.push_back("generate.new_tokens=" + std::to_string(sizes.new_tokens));
      }
      at->second = block_figures(question_.with(settings));
    } catch (const ConfigError& error) {
      const std::string why = error.findings().front();
      if (std::find(refusals_.begin(), refusals_.end(), why) == refusals_.end()) refusals_.push_back(why);
    }
  }
  return at->second ? &*at->second : nullptr;
}

std::optional<Candidate> PlacementSearch::placed(const Block& block, bool cpu_attention) {
  const BlockFigures* of = figures(block);
  if (of == nullptr || (cpu_attention && !of->cpu_attends)) return std::nullopt;
  const bool chosen = open("workload.micro_batches") && question_.flags().samples == 0;
  if (chosen && block.batches > 1 && static_cast<double>(block.batches) * of->layers > kMostAttentions)
    return std::nullopt;
  PlacementProgram program{*of, question_.base(), block.batches, cpu_attention};
  if (const auto kept = kept_.find({block, cpu_attention}); kept != kept_.end()) program.kept_bytes = kept->second;
  const auto solution = program.solve();
  if (!solution) return std::nullopt;
  return Candidate{block, kOurs, "", solution->placement, own_tokens(block) / solution->block_s};
}

// Of each kind those that promise most.
std::vector<Candidate> PlacementSearch::promising() {
  std::vector<Candidate> all;
  for (const Variant& variant : variants())
    for (const std::int64_t batch : batches()) {
      bool fits = false;
      for (const std::int64_t batches : blocks_of(batch))
        for (const bool cpu_attention : {false, true})
          if (const auto candidate = placed({batch, batches, variant}, cpu_attention)) {
            fits = true;
            all.push_back(*candidate);
          }
      if (!fits) break;  // nor do larger ones
    }
  considered_ = all.size();
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.promised > b.promised; });
  std::map<std::pair<Variant, bool>, std::size_t> of_kind;
  std::erase_if(all, [&](const Candidate& c) {
    return ++of_kind[{c.block.variant, c.shares->cpu_attention}] > kMostOfAKind;
  });
  if (all.size() > kMostFirst) all.resize(kMostFirst);
  return all;
}

// Tokens a second of whole texts, by a few of their tokens; 0: it did not run.
double PlacementSearch::whole_rate(const CandidateRun& run, const Block& block) {
  if (run.kind != CandidateRun::Kind::Ran || run.first_token_s <= 0) return 0;
  const GenerationSizes& sizes = this->sizes(block);
  const auto n = static_cast<double>(sizes.new_tokens);
  return own_tokens(block) / (run.first_token_s + (n - 1) * run.step_s);
}

// Those behind a text's end are nobody's.
double PlacementSearch::own_tokens(const Block& block) {
  const GenerationSizes& sizes = this->sizes(block);
  if (sizes.outputs.empty()) return block.texts() * static_cast<double>(sizes.new_tokens);
  return static_cast<double>(std::accumulate(sizes.outputs.begin(), sizes.outputs.end(), std::int64_t{0}));
}

// Places in seen_, in the order of the candidates.
std::vector<std::size_t> PlacementSearch::look_at(const std::vector<Candidate>& candidates) {
  std::vector<Settings> settings;
  std::vector<std::size_t> places;
  std::vector<std::size_t> fresh;
  for (const Candidate& candidate : candidates) {
    Settings of = settings_of(candidate);
    const auto [at, is_new] = places_.emplace(of, seen_.size());
    places.push_back(at->second);
    if (!is_new) continue;
    fresh.push_back(seen_.size());
    seen_.push_back({candidate, {}, 0});
    if (const GenerationSizes& sizes = this->sizes(candidate.block); sizes.new_tokens > 2 * kLookedAt) {
      of.push_back("generate.prompt=" + std::to_string(sizes.prompt + sizes.new_tokens / 2 - kLookedAt / 2));
      of.push_back("generate.new_tokens=" + std::to_string(kLookedAt));
    }
    settings.push_back(std::move(of));
  }
  const std::vector<CandidateRun> runs = run_(settings);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    Seen& seen = seen_[fresh[i]];
    seen.run = runs[i];
    seen.rate = whole_rate(seen.run, seen.candidate.block);
    work_ += runs[i].commands + Effort::kWorkOfEach;
    commands_ += runs[i].commands;
  }
  return places;
}

// What lacks room is placed again with less, as the simulator says.
std::size_t PlacementSearch::look_at_one_that_fits(Candidate candidate) {
  std::size_t place = look_at({candidate}).front();
  for (std::size_t i = 0; i < kMostRepairs && seen_[place].run.kind == CandidateRun::Kind::DoesNotFit; ++i) {
    const OutOfRoom::Figures& refusal = seen_[place].run.refusal;
    const bool cpu_attention = candidate.shares->cpu_attention;
    constexpr double kMore = 1.1, kLeast = 64e6;
    kept_[{candidate.block, cpu_attention}][static_cast<std::size_t>(refusal.tier)] +=
        std::max(kMore * static_cast<double>(refusal.least_bytes - refusal.capacity_bytes), kLeast);
    const auto again = placed(candidate.block, cpu_attention);
    if (!again) break;
    candidate = *again;
    place = look_at({candidate}).front();
  }
  return place;
}

std::vector<Candidate> PlacementSearch::beside(const Candidate& candidate, int step) {
  std::vector<Candidate> all;
  if (candidate.shares) {
    // As much of `by` as there is, from one place to another; null: the disk.
    const auto moved = [&](int Placement::*from, int Placement::*to, int Placement::*third, int by) {
      Placement p = *candidate.shares;
      const auto share = [&](int Placement::*place) { return place != nullptr ? p.*place : 100 - p.*from - p.*third; };
      by = by > 0 ? std::min(by, share(from)) : -std::min(-by, share(to));
      if (by == 0) return;
      p.*from -= by;
      if (to != nullptr) p.*to += by;
      all.push_back(candidate);
      all.back().shares = p;
    };
    const bool disk = tier_capacity_bytes(question_.base(), Tier::Disk) > 0;
    for (const int by : {step, -step}) {
      moved(&Placement::wg, &Placement::wc, nullptr, by);
      moved(&Placement::cg, &Placement::cc, nullptr, by);
      moved(&Placement::hg, &Placement::hc, nullptr, by);
      if (!disk) continue;
      moved(&Placement::wc, nullptr, &Placement::wg, by);
      moved(&Placement::cc, nullptr, &Placement::cg, by);
    }
  }
  if (step != kStepsOfShares[0]) return all;
  const auto at = [&](Block block, bool cpu_attention) {
    if (const auto other = candidate.shares ? placed(block, cpu_attention)
                                            : Candidate{block, candidate.policy, candidate.option, {}, 0})
      all.push_back(*other);
  };
  const bool cpu_attention = candidate.shares && candidate.shares->cpu_attention;
  const auto near = [&](const std::vector<std::int64_t>& values, std::int64_t value, auto&& use) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if ((i + 1 < values.size() && values[i + 1] == value) || (i > 0 && values[i - 1] == value)) use(values[i]);
  };
  near(batches(), candidate.block.batch, [&](std::int64_t batch) {
    const std::int64_t texts = question_.flags().samples;
    at({batch, texts > 0 ? texts / batch : candidate.block.batches, candidate.block.variant}, cpu_attention);
  });
  near(blocks_of(candidate.block.batch), candidate.block.batches, [&](std::int64_t batches) {
    at({candidate.block.batch, batches, candidate.block.variant}, cpu_attention);
  });
  if (candidate.shares) at(candidate.block, !cpu_attention);
  return all;
}

void PlacementSearch::climb(std::size_t from) {
  for (std::size_t s = 0; s < std::size(kStepsOfShares);) {
    if (spent()) {
      const std::vector<Candidate> beside_it = beside(seen_[from].candidate, kStepsOfShares[s]);
      left_ += static_cast<std::size_t>(std::count_if(
          beside_it.begin(), beside_it.end(), [&](const Candidate& of) { return !places_.contains(settings_of(of)); }));
      return;
    }
    std::size_t best = from;
    for (const std::size_t place : look_at(beside(seen_[from].candidate, kStepsOfShares[s])))
      if (seen_[place].rate > seen_[best].rate) best = place;
    const bool better = seen_[best].rate > kBetter * seen_[from].rate;
    from = best;
    if (!better) ++s;
  }
}

// Each with what lets it choose where weights are.
std::vector<Candidate> PlacementSearch::others(const Variant& variant) const {
  std::vector<Candidate> all;
  const Block block{1, open("workload.micro_batches") ? 1 : question_.base().workload.micro_batches, variant};
  if (question_.fixed("policy")) return {{block, "", "", {}, 0}};
  all.push_back({block, "resident", "", {}, 0});
  for (const PolicyEntry* entry : generating_policies()) {
    const std::string name(entry->name);
    if (name == kOurs) continue;
    if (std::find(entry->options.begin(), entry->options.end(), "weights") == entry->options.end()) {
      all.push_back({block, name, "", {}, 0});
      continue;
    }
    for (const Tier tier : {Tier::HostPinned, Tier::Disk})
      if (tier_capacity_bytes(question_.base(), tier) > 0)
        all.push_back({block, name, tier == Tier::Disk ? "weights: disk" : "weights: host", {}, 0});
  }
  return all;
}

// Bytes of the device, about: keys and values stay there.
double PlacementSearch::others_need(const BlockFigures& figures, const Candidate& candidate) const {
  const double weights = candidate.policy == "resident" ? figures.weight_bytes - figures.largest_weight_bytes : 0;
  return static_cast<double>(candidate.block.batches) * figures.cache_bytes + figures.at_work_bytes + weights;
}

// As many texts as fit: the largest batch by what is known of its sizes, or a smaller one.
void PlacementSearch::look_at_others() {
  const double device = static_cast<double>(tier_capacity_bytes(question_.base(), Tier::Device));
  for (const Variant& variant : variants())
    for (Candidate candidate : others(variant)) {
      std::vector<std::int64_t> sizes = batches();
      std::reverse(sizes.begin(), sizes.end());
      std::size_t tried = 0;
      for (const std::int64_t batch : sizes) {
        candidate.block.batch = batch;
        if (question_.flags().samples > 0) candidate.block.batches = question_.flags().samples / batch;
        const BlockFigures* of = figures(candidate.block);
        if (of == nullptr) break;
        if (!candidate.policy.empty() && others_need(*of, candidate) > device && batch != sizes.back()) continue;
        const std::size_t place = look_at({candidate}).front();
        if (seen_[place].rate > 0) {
          if (candidate.policy.empty()) climb(place);
          break;
        }
        if (seen_[place].run.kind != CandidateRun::Kind::DoesNotFit) break;
        if (++tried > kMostRepairs && !candidate.policy.empty()) break;
      }
    }
}

std::string percents(int device, int host) { return fmt::format("{}/{}/{}", device, host, 100 - device - host); }

std::string words_of(const Candidate& candidate) {
  const Block& block = candidate.block;
  std::string words = block.batches == 1 ? fmt::format("batch {}", block.batch)
                                         : fmt::format("{} batches of {}", block.batches, block.batch);
  if (block.variant.weights) words += ", weights in 4 bits";
  if (block.variant.cache) words += ", cache in 4 bits";
  if (!candidate.option.empty()) words += ", " + candidate.option;
  if (const auto& p = candidate.shares)
    words +=
        fmt::format("; on device/host/disk: weights {}, cache {}, hidden states {} percent{}", percents(p->wg, p->wc),
                    percents(p->cg, p->cc), percents(p->hg, p->hc), p->cpu_attention ? "; attention on the CPU" : "");
  return words;
}

std::string costs_of(const Variant& variant) {
  if (!variant.weights && !variant.cache) return "";
  return variant.cache ? "logits drift, as 64 numbers share a scale; a cache of codes is simulated so far"
                       : "logits drift, as 64 numbers share a scale";
}

void PlacementSearch::add(FoundPlacements& result, const Candidate& candidate, CandidateRun run) const {
  std::vector<Axis>& axes = result.space.axes;
  Point point;
  if (!candidate.policy.empty()) {
    const auto known = std::find_if(axes.front().choices.begin(), axes.front().choices.end(),
                                    [&](const Choice& choice) { return choice.words == candidate.policy; });
    point.push_back(static_cast<int>(known - axes.front().choices.begin()));
    if (known == axes.front().choices.end())
      axes.front().choices.push_back({.settings = {}, .words = candidate.policy});
  }
  const Variant& variant = candidate.block.variant;
  const int others = variant.weights + variant.cache;
  point.push_back(static_cast<int>(axes.back().choices.size()));
  axes.back().choices.push_back({.settings = settings_of(candidate),
                                 .words = words_of(candidate),
                                 .costs = costs_of(variant),
                                 .other_mathematics = others > 0});
  result.found.tried.push_back({point, std::move(run), others});
}

// Of each policy, and of what computes nothing else, the fastest are simulated to their last token: of others' one, of
// ours some, as a few tokens tell a rate within some percent. Returns what result.found.tried are runs of.
std::vector<Candidate> PlacementSearch::finish(FoundPlacements& result) {
  std::vector<std::size_t> order(seen_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return seen_[a].rate > seen_[b].rate; });
  struct Done {
    std::size_t ran = 0, refused = 0;
    double best = 0;
  };
  std::map<std::pair<std::string, bool>, Done> of_kind;
  std::vector<Candidate> finished;
  result.space.axes = {{"placement", {}, false}};
  if (!question_.fixed("policy")) result.space.axes.insert(result.space.axes.begin(), Axis{"policy", {}, false});
  for (const std::size_t i : order) {
    const Seen& seen = seen_[i];
    Done& done = of_kind[{seen.candidate.policy, seen.candidate.block.variant == Variant{}}];
    const bool enough = done.ran > 0 && (!seen.candidate.shares || done.ran >= kMostComplete ||
                                         finished_work_ > effort_.work / 2 || seen.rate < kNearly * done.best);
    if (enough || done.refused > kMostRepairs) continue;
    CandidateRun run = seen.run;
    if (seen.rate > 0) {
      run = run_({settings_of(seen.candidate)}).front();
      commands_ += run.commands;
      finished_work_ += run.commands;
    }
    ++(run.kind == CandidateRun::Kind::Ran ? done.ran : done.refused);
    done.best = std::max(done.best, seen.rate);
    add(result, seen.candidate, std::move(run));
    finished.push_back(seen.candidate);
  }
  return finished;
}

std::vector<Hold> PlacementSearch::holds_of(const Candidate& pick) {
  if (!pick.shares) return {};
  const PlacementProgram program{*figures(pick.block), question_.base(), pick.block.batches,
                                 pick.shares->cpu_attention};
  const auto solution = program.solve();
  return solution ? solution->holds : std::vector<Hold>{};
}

FoundPlacements PlacementSearch::search() {
  if (!question_.fixed("policy")) {
    std::vector<std::size_t> starts;
    for (const Candidate& candidate : promising())
      if (!starts.empty() && spent())
        ++left_;
      else if (const std::size_t place = look_at_one_that_fits(candidate); seen_[place].rate > 0)
        starts.push_back(place);
    std::stable_sort(starts.begin(), starts.end(),
                     [&](std::size_t a, std::size_t b) { return seen_[a].rate > seen_[b].rate; });
    for (const std::size_t start : starts) climb(start);
  }
  look_at_others();
  FoundPlacements result;
  const std::vector<Candidate> finished = finish(result);
  Found& found = result.found;
  if (!found.ranked().empty()) result.holds = holds_of(finished[pick(found)]);
  found.refusals = refusals_;
  found.commands = commands_;
  found.counts.simulated = seen_.size();
  found.counts.all = std::max(considered_, seen_.size() + left_);
  found.counts.left = left_;
  found.counts.estimated = found.counts.all - seen_.size() - found.counts.left;
  return result;
}

}  // namespace

FoundPlacements search_placements(const Question& question, const RunAll& run, const Effort& effort) {
  return PlacementSearch(question, run, effort).search();
}

}  // namespace tandem
