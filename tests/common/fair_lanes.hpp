// What a command list takes on lanes that share links, by arithmetic alone: a second opinion on the simulator, written
// down from its documentation. Lanes run one command at a time in order; a command first waits its latency, then moves
// bytes at its own rate at most, and all that share a link have equal parts of it, but for those that want less
// (max-min fairness). Must not know SimGrid, profiles or engines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace tandem::testing {

struct FairCommand {
  std::size_t lane = 0;
  std::vector<std::size_t> waits;  // earlier commands
  double latency_ns = 0;           // loads nothing
  double flow_ns = 0;              // and then so long, alone
  double bytes = 0;                // on each of `links`; 0: shares nothing
  std::vector<std::size_t> links;
};

struct FairTimes {
  double started_ns = 0, finished_ns = 0;
};

class FairLanes {
 public:
  // `rates`: bytes/ns of each link. `slow_down[a][b]`: by which factor lane a is slower while lane b is busy; may be
  // empty.
  FairLanes(std::vector<FairCommand> commands, std::vector<double> rates,
            std::vector<std::vector<double>> slow_down = {})
      : commands_(std::move(commands)), rates_(std::move(rates)), slow_down_(std::move(slow_down)) {}

  std::vector<FairTimes> run() {
    times_.assign(commands_.size(), {});
    stage_.assign(commands_.size(), Stage::Waits);
    left_.assign(commands_.size(), 0);
    while (start_all() || running()) advance();
    return times_;
  }

 private:
  enum class Stage { Waits, Latency, Flow, Done };
  static constexpr double kEqual = 1e-6;  // ns, and share of a flow: what ends so close together ends at once

  bool running() const {
    return std::any_of(stage_.begin(), stage_.end(), [](Stage s) { return s == Stage::Latency || s == Stage::Flow; });
  }
  bool may_start(std::size_t c) const {
    for (std::size_t i = 0; i < c; ++i)
      if (commands_[i].lane == commands_[c].lane && stage_[i] != Stage::Done) return false;
    return std::all_of(commands_[c].waits.begin(), commands_[c].waits.end(),
                       [&](std::size_t w) { return stage_[w] == Stage::Done; });
  }
  // What takes no time ends at once, and lets others start.
  bool start_all() {
    bool any = false;
    for (std::size_t c = 0; c < commands_.size(); ++c) {
      if (stage_[c] != Stage::Waits || !may_start(c)) continue;
      times_[c].started_ns = now_;
      stage_[c] = commands_[c].latency_ns > 0 ? Stage::Latency : Stage::Flow;
      left_[c] = commands_[c].latency_ns > 0 ? commands_[c].latency_ns : 1;
      if (commands_[c].latency_ns == 0 && commands_[c].flow_ns == 0) end(c);
      any = true;
    }
    return any;
  }
  void end(std::size_t c) {
    stage_[c] = Stage::Done;
    times_[c].finished_ns = now_;
  }

  // The share of a command's flow that passes in a ns when nothing else is there.
  double alone(std::size_t c) const {
    double factor = 1;
    for (std::size_t o = 0; o < commands_.size() && !slow_down_.empty(); ++o)
      if (o != c && (stage_[o] == Stage::Latency || stage_[o] == Stage::Flow))
        factor *= slow_down_[commands_[c].lane][commands_[o].lane];
    return 1 / (commands_[c].flow_ns * factor);
  }
  bool loads(std::size_t c, std::size_t link) const {
    const auto& links = commands_[c].links;
    return std::find(links.begin(), links.end(), link) != links.end();
  }
  // Shares of their flows that pass in a ns: the tightest limit is found and given out, again and again.
  std::vector<double> speeds() const {
    std::vector<double> speed(commands_.size(), 0), free = rates_;
    std::vector<std::size_t> open;
    for (std::size_t c = 0; c < commands_.size(); ++c) {
      if (stage_[c] == Stage::Flow && commands_[c].bytes > 0) open.push_back(c);
      if (stage_[c] == Stage::Flow) speed[c] = alone(c);
    }
    while (!open.empty()) {
      double tightest = std::numeric_limits<double>::infinity();  // bytes/ns
      std::vector<std::size_t> set;
      const auto limit = [&](double rate, const std::vector<std::size_t>& those) {
        if (rate < tightest) tightest = rate, set = those;
      };
      for (std::size_t c : open) limit(alone(c) * commands_[c].bytes, {c});
      for (std::size_t link = 0; link < free.size(); ++link) {
        std::vector<std::size_t> those;
        for (std::size_t c : open)
          if (loads(c, link)) those.push_back(c);
        if (!those.empty()) limit(free[link] / static_cast<double>(those.size()), those);
      }
      for (std::size_t c : set) {
        speed[c] = tightest / commands_[c].bytes;
        for (std::size_t link = 0; link < free.size(); ++link)
          if (loads(c, link)) free[link] = std::max(free[link] - tightest, 0.0);
        std::erase(open, c);
      }
    }
    return speed;
  }

  // To the next end of a latency or a flow.
  void advance() {
    const std::vector<double> speed = speeds();
    const auto ns_left = [&](std::size_t c) { return stage_[c] == Stage::Latency ? left_[c] : left_[c] / speed[c]; };
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < commands_.size(); ++c)
      if (stage_[c] == Stage::Latency || stage_[c] == Stage::Flow) step = std::min(step, ns_left(c));
    now_ += step;
    for (std::size_t c = 0; c < commands_.size(); ++c) {
      if (stage_[c] != Stage::Latency && stage_[c] != Stage::Flow) continue;
      const bool ends = ns_left(c) <= step + kEqual;
      left_[c] -= stage_[c] == Stage::Latency ? step : step * speed[c];
      if (!ends) continue;
      if (stage_[c] == Stage::Latency && commands_[c].flow_ns > 0)
        stage_[c] = Stage::Flow, left_[c] = 1;
      else
        end(c);
    }
  }

  std::vector<FairCommand> commands_;
  std::vector<double> rates_;
  std::vector<std::vector<double>> slow_down_;
  std::vector<FairTimes> times_;
  std::vector<Stage> stage_;
  std::vector<double> left_;  // ns of a latency, share of a flow
  double now_ = 0;
};

}  // namespace tandem::testing
