// Threads that start together, do a share each, and wait: what an optimizer lane's workers do. Starting a thread for
// each round would cost more than small rounds.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace tandem {

class ThreadTeam {
 public:
  explicit ThreadTeam(int threads) : size_(threads), start_(threads + 1), end_(threads + 1) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam() { run(nullptr); }  // the last round: threads leave

  int size() const { return size_; }

  // Calls share(thread) on every thread of the team; returns when all have.
  void run(std::function<void(int)> share) {
    share_ = std::move(share);
    start_.arrive_and_wait();
    end_.arrive_and_wait();
  }

 private:
  void serve(int thread) {
    for (bool more = true; more;) {
      start_.arrive_and_wait();
      more = share_ != nullptr;
      if (more) share_(thread);
      end_.arrive_and_wait();
    }
  }

  int size_;
  std::function<void(int)> share_;
  std::barrier<> start_, end_;
  std::vector<std::jthread> threads_;
};

}  // namespace tandem
