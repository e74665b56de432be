// Seconds from nanoseconds, and numbers with units for people: 1.25 s, 310 us, 16.0 GiB, 12.4 GB/s.
// Knows nothing of runs.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

constexpr double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::string format_time(double seconds);                // three significant digits: "1.36 s", "2.22 ms", "12 us"
std::string format_range(double low_s, double high_s);  // one unit where both have the same: "1.19 to 1.27 s"
std::string format_bytes(std::int64_t bytes);           // powers of 1024: "16.0 GiB"
std::string format_count(double value);                 // powers of 1000: "1.20 k", "3.40 M"
std::string format_percent(double share);               // "12.3%"

}  // namespace tandem
