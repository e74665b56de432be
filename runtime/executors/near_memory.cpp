#include "runtime/executors/near_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

namespace tandem {
namespace {

constexpr auto kPage = static_cast<std::size_t>(NearMemory::kPageBytes);

// 0, or why the kernel refuses. Kernels before 5.14 do not know this: pages come in when first touched, or pinned.
int bring_in(std::byte* begin, std::size_t bytes) {
  return madvise(begin, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL ? 0 : errno;
}

// Far pages, out of the kernel's reach until the end.
class HeldBack {
 public:
  explicit HeldBack(std::int64_t bytes) : bytes_(static_cast<std::size_t>(std::max<std::int64_t>(0, bytes))) {
    if (bytes_ == 0) return;
    begin_ = mmap(nullptr, bytes_ + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin_ == MAP_FAILED)
      bytes_ = 0;
    else
      next_ = static_cast<std::byte*>(begin_) + (kPage - reinterpret_cast<std::uintptr_t>(begin_) % kPage) % kPage;
  }
  ~HeldBack() {
    if (bytes_ > 0) munmap(begin_, bytes_ + kPage);
  }
  HeldBack(const HeldBack&) = delete;
  HeldBack& operator=(const HeldBack&) = delete;

  // Takes the page's memory and leaves its address as if never touched. False: no more is held back.
  bool take(std::byte* page) {
    if (taken_ + kPage > bytes_) return false;
    // The address stays mapped, so that no other thread's mapping can come to lie there.
    if (mremap(page, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, next_) == MAP_FAILED) return false;
    next_ += kPage;
    taken_ += kPage;
    return true;
  }

 private:
  void* begin_ = nullptr;
  std::byte* next_ = nullptr;
  std::size_t bytes_ = 0, taken_ = 0;
};

}  // namespace

double load_ns([[maybe_unused]] const std::byte* page) {
#ifdef __x86_64__
  constexpr std::size_t kLine = 64, kLines = kPage / kLine, kStride = 20'297;  // odd, as no prefetcher goes
  constexpr std::size_t kLoads = 64;
  std::size_t nothing = 0;
  asm volatile("" : "+r"(nothing));  // so that each load's address depends on the load before
  for (std::size_t load = 0; load < kLoads; ++load) _mm_clflush(page + load * kStride % kLines * kLine);
  _mm_mfence();
  const auto start = std::chrono::steady_clock::now();
  std::size_t line = 0;
  for (std::size_t load = 0; load < kLoads; ++load) {
    const auto* word = reinterpret_cast<const volatile std::size_t*>(page + line * kLine);
    line = (line + kStride + (*word & nothing)) % kLines;
  }
  asm volatile("" : : "r"(line));
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kLoads;
#else
  return 0;
#endif
}

int populate(ThreadTeam& team, std::byte* begin, std::int64_t bytes) {
  constexpr std::int64_t kPageBytes = NearMemory::kPageBytes;
  std::atomic<int> error = 0;
  const auto pieces = static_cast<int>((bytes + kPageBytes - 1) / kPageBytes);
  team.share(pieces, [&](int i) {
    const std::int64_t at = i * kPageBytes, piece = std::min(kPageBytes, bytes - at);
    if (error != 0) return;
    if (const int refusal = bring_in(begin + at, static_cast<std::size_t>(piece)); refusal != 0) error = refusal;
  });
  return error;
}

NearMemory::Pages NearMemory::far_of(ThreadTeam& team, const Pages& pages) {
  std::vector<double> ns(pages.size());
  const auto count = static_cast<int>(pages.size());
  team.share(count, [&](int i) { ns[static_cast<std::size_t>(i)] = clock_(pages[static_cast<std::size_t>(i)]); });
  std::vector<double> sorted = ns;
  const auto nearest = sorted.begin() + count / 100;  // no single reading decides
  std::nth_element(sorted.begin(), nearest, sorted.end());
  near_ns_ = std::min(near_ns_, *nearest);
  const auto is_far = [&](double load) { return load > kFar * near_ns_; };
  std::vector<std::size_t> far;
  for (std::size_t i = 0; i < pages.size(); ++i)
    if (is_far(ns[i])) far.push_back(i);
  const auto threads = static_cast<std::size_t>(team.size());
  for (std::size_t round = 0; round < threads; ++round) {  // each page by another thread every time
    team.run([&](int thread) {
      for (std::size_t i = (static_cast<std::size_t>(thread) + round) % threads; i < far.size(); i += threads)
        ns[far[i]] = std::min(ns[far[i]], clock_(pages[far[i]]));
    });
  }
  Pages out;
  for (const std::size_t i : far)
    if (is_far(ns[i])) out.push_back(pages[i]);
  return out;
}

Nearness NearMemory::bring_near(ThreadTeam& team, std::byte* begin, std::int64_t bytes, std::int64_t spare_bytes) {
  Pages pages;
  const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(begin) % kPage);
  for (std::int64_t at = (kPageBytes - offset) % kPageBytes; at + kPageBytes <= bytes; at += kPageBytes)
    pages.push_back(begin + at);
  Nearness out;
  if (pages.empty()) return out;
  const auto bytes_of = [](const Pages& list) { return static_cast<std::int64_t>(list.size()) * kPageBytes; };
  out.bytes = bytes_of(pages);
  Pages far = far_of(team, pages);
  out.far_before_bytes = out.far_bytes = bytes_of(far);
  HeldBack held(spare_bytes);
  while (!far.empty()) {
    Pages fresh;
    for (std::byte* page : far)
      if (held.take(page)) fresh.push_back(page);
    if (fresh.empty()) break;
    // A page that is refused now comes in when it is pinned: what is held back is free by then.
    team.share(static_cast<int>(fresh.size()), [&](int i) { bring_in(fresh[static_cast<std::size_t>(i)], kPage); });
    const Pages still = far_of(team, fresh);
    out.far_bytes -= bytes_of(fresh) - bytes_of(still);
    far = still;
  }
  out.near_ns = near_ns_;
  return out;
}

}  // namespace tandem
