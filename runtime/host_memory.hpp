// How much host memory this process may use. A virtual machine may show its memory only as it is used, so that the
// kernel's total is no limit; a control group's is. Must not know scenarios or arenas.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

// The tightest memory limit of the process's control groups (version 1 or 2), in bytes; 0 where none limits it.
// `groups`: the kernel's list of them; `mount`: where their folders are.
std::int64_t cgroup_limit_bytes(const std::string& groups = "/proc/self/cgroup",
                                const std::string& mount = "/sys/fs/cgroup");

// What the process may still take now, in bytes: what is available on the machine (`meminfo`), or less where a control
// group is nearer to its limit.
std::int64_t free_host_bytes(const std::string& groups = "/proc/self/cgroup",
                             const std::string& mount = "/sys/fs/cgroup", const std::string& meminfo = "/proc/meminfo");

// What of a limit arenas may take: the rest is for the program itself, LibTorch's libraries among it.
std::int64_t for_arenas(std::int64_t limit_bytes);

}  // namespace tandem
