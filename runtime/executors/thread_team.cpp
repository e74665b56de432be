#include "runtime/executors/thread_team.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/check.hpp"
#include "runtime/executors/start_thread.hpp"

namespace tandem {
namespace {

// How long a thread looks for what it waits for before it goes to sleep: about what waking it takes. Between the pieces
// of one update there is less than that.
constexpr std::chrono::microseconds kLook{50};

template <class Condition>
bool look_for(const Condition& holds) {
  const auto end = std::chrono::steady_clock::now() + kLook;
  do {
    for (int i = 0; i < 64; ++i) {
      if (holds()) return true;
#ifdef __x86_64__
      __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return holds();
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) : stretches_(static_cast<std::size_t>(threads)) {
  CHECK(threads >= 1, threads);
  threads_.reserve(static_cast<std::size_t>(threads));
  try {
    for (int i = 1; i < threads; ++i) threads_.push_back(start_thread("a loop over memory", [this, i] { serve(i); }));
  } catch (...) {
    stop();
    throw;
  }
}

ThreadTeam::~ThreadTeam() { stop(); }

void ThreadTeam::stop() {
  begin_round(nullptr);
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  begin_round(&work);
  perform(work, 0);
  const auto all_done = [this] { return left_ == 0; };
  if (!look_for(all_done)) {
    std::unique_lock lock(mutex_);
    end_.wait(lock, all_done);
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadTeam::perform(const std::function<void(int)>& work, int index) noexcept {
  try {
    work(index);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadTeam::share(int items, const std::function<void(int)>& work) {
  const auto begin_of = [&](std::size_t thread) {
    return static_cast<int>(std::int64_t{items} * static_cast<std::int64_t>(thread) / size());
  };
  for (std::size_t t = 0; t < stretches_.size(); ++t) {
    stretches_[t].next = begin_of(t);
    stretches_[t].end = begin_of(t + 1);
  }
  run([&](int thread) {
    for (std::size_t k = 0; k < stretches_.size(); ++k) {
      Stretch& stretch = stretches_[(static_cast<std::size_t>(thread) + k) % stretches_.size()];
      for (int item = stretch.next++; item < stretch.end; item = stretch.next++) work(item);
    }
  });
}

void ThreadTeam::begin_round(const std::function<void(int)>* work) {
  work_ = work;
  left_ = static_cast<int>(threads_.size());
  const std::lock_guard lock(mutex_);  // no thread is between its last look and its sleep
  ++round_;
  begin_.notify_all();
}

void ThreadTeam::serve(int index) {
  for (long seen = 0;;) {
    const auto begun = [&] { return round_ != seen; };
    if (!look_for(begun)) {
      std::unique_lock lock(mutex_);
      begin_.wait(lock, begun);
    }
    ++seen;  // none is missed: a round ends when all have done it
    if (work_ == nullptr) return;
    perform(*work_, index);
    if (--left_ > 0) continue;
    const std::lock_guard lock(mutex_);
    end_.notify_one();
  }
}

ThreadTeam& ThreadTeam::mine(int threads) {
  thread_local std::unique_ptr<ThreadTeam> team;
  if (!team || team->size() != threads) team = std::make_unique<ThreadTeam>(threads);
  return *team;
}

}  // namespace tandem
