// A team of threads for one worker's loops over memory: the CPU optimizer, initial values. Threads stay between
// loops: they look for the next one for a moment, then sleep. Must not know what a loop does. (LibTorch's
// at::parallel_for is an OpenMP loop inlined where it is called: it would bring a second OpenMP runtime into programs
// that are not compiled with LibTorch's.)
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem {

class ThreadTeam {
 public:
  // Throws DeviceError where threads cannot be had.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  // Calls work(i) for i in [0, size()), each in a thread of its own, the caller's among them; returns when all are
  // done. Then throws the first that `work` threw, if any did.
  void run(const std::function<void(int)>& work);

  // Calls work(i) once for each i in [0, items). Every thread begins with a stretch of its own, in order, and then
  // takes over what others have left of theirs: a thread whose core is also busy with something else holds up no one.
  void share(int items, const std::function<void(int)>& work);

  // The calling thread's own, of as many threads as it last asked for.
  static ThreadTeam& mine(int threads);

 private:
  struct alignas(64) Stretch {  // a cache line each
    std::atomic<int> next = 0;
    int end = 0;
  };
  void begin_round(const std::function<void(int)>* work);
  void perform(const std::function<void(int)>& work, int index) noexcept;
  void stop();
  void serve(int index);

  std::mutex mutex_;  // of those who sleep
  std::condition_variable begin_, end_;
  const std::function<void(int)>* work_ = nullptr;  // of the round; null: the end. Written before round_ is
  std::atomic<long> round_ = 0;
  std::atomic<int> left_ = 0;   // who have not done the round
  std::exception_ptr failure_;  // the round's first
  std::vector<Stretch> stretches_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem
