#include "cli/workers.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace tandem {
namespace {

class Jobs {
 public:
  Jobs(const std::string& part, const std::vector<WorkerJob>& jobs, Progress& progress)
      : part_(part), jobs_(jobs), progress_(progress), results_(jobs.size()) {}

  // A thread's: a child is killed when the thread that started it ends, so each waits for its own.
  void work() {
    for (std::size_t i = next_++; i < jobs_.size() && !failed(); i = next_++) {
      try {
        results_[i] = run_child(part_, jobs_[i].arguments, /*keep_errors=*/true, jobs_[i].output);
        tell_progress();
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }
  std::vector<ChildResult> take() {
    if (error_) std::rethrow_exception(error_);
    return std::move(results_);
  }

 private:
  bool failed() {
    const std::lock_guard lock(mutex_);
    return error_ != nullptr;
  }
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  void tell_progress() {
    const std::lock_guard lock(mutex_);
    progress_.update(static_cast<double>(++done_) / static_cast<double>(jobs_.size()));
  }

  const std::string& part_;
  const std::vector<WorkerJob>& jobs_;
  Progress& progress_;
  std::vector<ChildResult> results_;
  std::atomic<std::size_t> next_ = 0;
  std::size_t done_ = 0;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

std::vector<ChildResult> run_children(const std::string& part, const std::vector<WorkerJob>& jobs, Progress& progress) {
  Jobs all(part, jobs, progress);
  const std::size_t at_most = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(at_most, jobs.size()); ++i) threads.emplace_back([&] { all.work(); });
  for (std::thread& thread : threads) thread.join();
  return all.take();
}

}  // namespace tandem
