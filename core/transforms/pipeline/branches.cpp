#include "core/transforms/pipeline/branches.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "core/transforms/pipeline/refuse.hpp"

namespace tandem {
namespace {

using Row = std::vector<std::size_t>;
using Flags = std::vector<bool>;

// All ways to divide more are too many to look at.
constexpr std::size_t kMostBranches = 12;

// Modules, with what each value goes through: who makes it, and its readers in forward order.
struct Modules {
  Modules(const TrainingPlan& of_plan, const PassTimes& times) : plan(of_plan), all(modules_of(of_plan, times)) {
    Row module_of(plan.stages.size());
    for (std::size_t m = 0; m < all.size(); ++m)
      for (const std::size_t stage : all[m].stages) module_of[stage] = m;
    for (std::size_t i = 0; i < plan.stages.size(); ++i)
      if (const std::int32_t owner = plan.stages[i].held_for; owner != kNone)
        module_of[i] = module_of[static_cast<std::size_t>(owner)];
    std::map<std::tuple<bool, std::int32_t, std::int32_t>, Row> ways;
    for (const PlanModule& module : all)
      for (const std::size_t stage : module.stages)
        for (const PortSpec& port : plan.stages[stage].inputs) {
          if (port.from == PortSpec::From::Batch) continue;
          const bool bucket = port.from == PortSpec::From::Bucket;
          Row& way = ways[{bucket, port.index, bucket ? 0 : port.output}];
          if (way.empty()) way.push_back(module_of[static_cast<std::size_t>(port.index)]);
          way.push_back(module_of[stage]);
        }
    for (auto& [value, way] : ways) values.push_back(std::move(way));
  }
  // Of each, those that need it, directly or not.
  std::vector<Flags> needed_by() const {
    std::vector<Flags> needed(all.size(), Flags(all.size()));
    for (std::size_t m = all.size(); m-- > 0;)
      for (const Row& way : values) {
        if (way.front() != m) continue;
        for (const std::size_t reader : way) {
          if (reader == m) continue;
          needed[m][reader] = true;
          for (std::size_t x = 0; x < all.size(); ++x)
            if (needed[reader][x]) needed[m][x] = true;
        }
      }
    return needed;
  }
  const TrainingPlan& plan;
  std::vector<PlanModule> all;
  std::vector<Row> values;
};

struct Branch {
  Row modules;
  std::int64_t ns = 0;
  Flags independent;  // of which modules
};

// Modules that are independent of the same others depend on each other in a row. Another between two of them ends one.
std::vector<Branch> find_branches(const Modules& modules) {
  const std::vector<Flags> needed = modules.needed_by();
  const std::size_t count = modules.all.size();
  std::vector<Branch> branches;
  std::map<Flags, std::size_t> latest;
  for (std::size_t m = 0; m < count; ++m) {
    Flags independent(count);
    for (std::size_t x = 0; x < count; ++x) independent[x] = x != m && !needed[m][x] && !needed[x][m];
    const auto [found, fresh] = latest.try_emplace(independent, branches.size());
    bool begins = fresh;
    for (std::size_t x = 0; x < count && !begins; ++x)
      begins = needed[branches[found->second].modules.back()][x] && needed[x][m];
    if (begins) {
      found->second = branches.size();
      branches.push_back({{}, 0, std::move(independent)});
    }
    branches[found->second].modules.push_back(m);
    branches[found->second].ns += modules.all[m].ns;
  }
  return branches;
}

class Search {
 public:
  Search(const Modules& modules, std::size_t pieces)
      : branches_(find_branches(modules)), pieces_(pieces), piece_of_(branches_.size()), loads_(pieces, 0) {
    Row branch_of(modules.all.size());
    for (std::size_t b = 0; b < branches_.size(); ++b)
      for (const std::size_t m : branches_[b].modules) branch_of[m] = b;
    std::set<Row> ways;
    for (Row way : modules.values) {
      for (std::size_t& m : way) m = branch_of[m];
      way.erase(std::unique(way.begin(), way.end()), way.end());
      if (way.size() > 1) ways.insert(std::move(way));
    }
    ways_.assign(ways.begin(), ways.end());
    last_ = branch_of.back();
  }

  void require_branches() const {
    const auto stands_alone = [](const Branch& branch) {
      return std::count(branch.independent.begin(), branch.independent.end(), true) == 0;
    };
    constexpr const char* kKey = "parallel.cut";
    require_pipeline(!std::all_of(branches_.begin(), branches_.end(), stands_alone), kKey,
                     "the network has no branches that are independent", "balanced, layers");
    const std::string count = std::to_string(branches_.size());
    require_pipeline(pieces_ <= branches_.size(), "parallel.pipeline",
                     "the network has " + count + " branches to divide among " + std::to_string(pieces_) + " devices",
                     "at most so many");
    require_pipeline(branches_.size() <= kMostBranches, kKey,
                     "the network has " + count + " branches, more than all ways to divide them can be looked at",
                     "balanced, layers, or at most " + std::to_string(kMostBranches) + " branches");
  }

  // Of each piece, from the first to the last, its modules; and what comes after it.
  std::pair<std::vector<Row>, std::vector<std::int32_t>> best() {
    assign(0, 0);
    require_pipeline(!best_.empty(), "parallel.cut",
                     "no two independent branches of the network are on different ones of " + std::to_string(pieces_) +
                         " devices, however it is divided",
                     "balanced, layers");
    piece_of_ = best_;
    const std::vector<Flags> reads = readers();
    const Row order = in_order(reads);
    std::vector<Row> rows(pieces_);
    std::vector<std::int32_t> until_end(pieces_, 0);
    for (std::size_t at = pieces_; at-- > 0;) {
      for (std::size_t b = 0; b < branches_.size(); ++b)
        if (piece_of_[b] == order[at])
          rows[at].insert(rows[at].end(), branches_[b].modules.begin(), branches_[b].modules.end());
      for (std::size_t after = at + 1; after < pieces_; ++after)
        if (reads[order[at]][order[after]]) until_end[at] = std::max(until_end[at], until_end[after] + 1);
    }
    return {std::move(rows), std::move(until_end)};
  }

 private:
  // Pieces are named in the order in which they are first taken, since their names say nothing yet.
  void assign(std::size_t branch, std::size_t used) {
    if (used + branches_.size() - branch < pieces_) return;
    if (branch == branches_.size()) return judge();
    for (std::size_t piece = 0; piece < std::min(used + 1, pieces_); ++piece) {
      loads_[piece] += branches_[branch].ns;
      piece_of_[branch] = piece;
      if (loads_[piece] <= longest_) assign(branch + 1, std::max(used, piece + 1));
      loads_[piece] -= branches_[branch].ns;
    }
  }
  void judge() {
    if (!divides_branches()) return;
    const std::vector<Flags> reads = readers();
    if (reads.empty() || in_order(reads).empty()) return;
    const std::int64_t longest = *std::max_element(loads_.begin(), loads_.end()), alone = time_alone();
    if (std::pair(longest, alone) >= std::pair(longest_, alone_)) return;
    longest_ = longest, alone_ = alone, best_ = piece_of_;
  }
  bool divides_branches() const {
    for (std::size_t a = 0; a < branches_.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (piece_of_[a] != piece_of_[b] && branches_[a].independent[branches_[b].modules.front()]) return true;
    return false;
  }
  // Of each piece, those that get a value from it; empty: one would come back to a piece that it has left.
  std::vector<Flags> readers() const {
    std::vector<Flags> reads(pieces_, Flags(pieces_));
    for (const Row& way : ways_) {
      Row through;
      for (const std::size_t branch : way) {
        const std::size_t piece = piece_of_[branch];
        if (!through.empty() && through.back() == piece) continue;
        if (std::find(through.begin(), through.end(), piece) != through.end()) return {};
        if (!through.empty()) reads[through.back()][piece] = true;
        through.push_back(piece);
      }
    }
    return reads;
  }
  // Each after those whose values it reads, the loss's last; empty: there is no such order.
  Row in_order(const std::vector<Flags>& reads) const {
    Row order;
    Flags done(pieces_);
    while (order.size() < pieces_) {
      std::size_t next = pieces_;
      for (std::size_t piece = pieces_; piece-- > 0;) {
        bool waits = done[piece] || (piece == piece_of_[last_] && order.size() + 1 < pieces_);
        for (std::size_t other = 0; other < pieces_; ++other) waits = waits || (!done[other] && reads[other][piece]);
        if (!waits) next = piece;
      }
      if (next == pieces_) return {};
      done[next] = true;
      order.push_back(next);
    }
    return order;
  }
  // Of one micro-batch, forward and backward, each device taking its branches in forward order.
  std::int64_t time_alone() const {
    std::vector<std::int64_t> ready(branches_.size(), 0), free(pieces_, 0);
    std::int64_t end = 0;
    for (std::size_t b = 0; b < branches_.size(); ++b) {
      std::int64_t& device = free[piece_of_[b]];
      device = std::max(device, ready[b]) + branches_[b].ns;
      end = std::max(end, device);
      for (const Row& way : ways_)
        if (way.front() == b)
          for (const std::size_t reader : way) ready[reader] = std::max(ready[reader], device);
    }
    return end;
  }

  std::vector<Branch> branches_;
  std::vector<Row> ways_;  // of values, from branch to branch
  std::size_t last_ = 0;   // that has the loss
  std::size_t pieces_;
  Row piece_of_, best_;  // by branch
  std::vector<std::int64_t> loads_;
  std::int64_t longest_ = std::numeric_limits<std::int64_t>::max(), alone_ = longest_;
};

}  // namespace

BranchPieces branches_of(const TrainingPlan& plan, std::int32_t pieces, const PassTimes& times) {
  CHECK(pieces >= 1, pieces);
  const Modules modules(plan, times);
  Search search(modules, static_cast<std::size_t>(pieces));
  search.require_branches();
  auto [rows, until_end] = search.best();
  BranchPieces out{std::vector<std::int32_t>(plan.stages.size(), 0), std::move(until_end)};
  for (std::size_t piece = 0; piece < rows.size(); ++piece)
    for (const std::size_t module : rows[piece])
      for (const std::size_t stage : modules.all[module].stages) out.piece_of[stage] = static_cast<std::int32_t>(piece);
  place_held(plan, out.piece_of);
  return out;
}

}  // namespace tandem
