#include "runtime/executors/thread_team.hpp"

#include <memory>

#include "core/scheduler/check.hpp"

namespace tandem {

ThreadTeam::ThreadTeam(int threads) {
  CHECK(threads >= 1, threads);
  for (int i = 1; i < threads; ++i) threads_.emplace_back([this, i] { serve(i); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    begin_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    left_ = static_cast<int>(threads_.size());
    ++round_;
    begin_.notify_all();
  }
  work(0);
  std::unique_lock lock(mutex_);
  end_.wait(lock, [this] { return left_ == 0; });
}

void ThreadTeam::serve(int index) {
  long seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begin_.wait(lock, [&] { return stopping_ || round_ != seen; });
    if (stopping_) return;
    seen = round_;
    const std::function<void(int)>& work = *work_;
    lock.unlock();
    work(index);
    lock.lock();
    if (--left_ == 0) end_.notify_one();
  }
}

ThreadTeam& ThreadTeam::mine(int threads) {
  thread_local std::unique_ptr<ThreadTeam> team;
  if (!team || team->size() != threads) team = std::make_unique<ThreadTeam>(threads);
  return *team;
}

}  // namespace tandem
