// Host memory near the cores that use it. The memory of a virtual machine may lie on both sockets of its host while the
// guest sees one node. No system call tells or chooses then, but loads do tell: on the host of an H200, 110 ns from the
// near socket and 203 ns from the other, page by page of 2 MiB. An update streams far pages at 0.7 of the near ones'
// rate. Must not know what the memory is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "runtime/executors/thread_team.hpp"

namespace tandem {

// ns of a load from the huge page at `page` that no cache holds: the mean of a few. 0 on processors where this cannot
// be timed.
double load_ns(const std::byte* page);

// What a range of memory consists of, and consisted of before far pages were exchanged.
struct Nearness {
  std::int64_t bytes = 0;  // whole huge pages
  std::int64_t far_before_bytes = 0, far_bytes = 0;
  double near_ns = 0;  // a load's time
};

// Brings all of an anonymous private mapping in, by all threads at once. 0, or the errno of the refusal.
int populate(ThreadTeam& team, std::byte* begin, std::int64_t bytes);

class NearMemory {
 public:
  static constexpr std::int64_t kPageBytes = std::int64_t{1} << 21;
  static constexpr double kFar = 1.4;  // times the near pages' ns; another socket's are 1.8

  explicit NearMemory(std::function<double(const std::byte*)> clock = load_ns) : clock_(std::move(clock)) {}

  // Gets near pages for far ones, in a mapping that is populated and holds nothing yet. A page is far if its loads take
  // kFar times as long as the nearest page's, from every thread: where threads run on both sockets, no page is. The
  // kernel hands out whatever is free, so far pages are held back while others are asked for, at most `spare_bytes` at
  // a time; then they are free again. What the kernel refuses stays as it is.
  Nearness bring_near(ThreadTeam& team, std::byte* begin, std::int64_t bytes, std::int64_t spare_bytes);

 private:
  using Pages = std::vector<std::byte*>;  // in the order of addresses
  Pages far_of(ThreadTeam& team, const Pages& pages);

  std::function<double(const std::byte*)> clock_;
  double near_ns_ = std::numeric_limits<double>::infinity();  // of the nearest pages so far
};

}  // namespace tandem
