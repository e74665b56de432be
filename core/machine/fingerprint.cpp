#include "core/machine/fingerprint.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tandem {
namespace {

// A kernel's update or a virtual machine's balloon moves what the system calls its memory by some per cent.
constexpr double kSameMemory = 0.05;
// Two runs of one probe on one machine that does nothing else differ by up to this.
constexpr double kLeastDrift = 0.05;

struct FigureName {
  ProbeFigure Probe::*figure;
  const char* name;
  const char* unit;  // of 10^9 a second
};
constexpr FigureName kFigures[] = {{&Probe::gemm, "gemm", "GFLOPS"},
                                   {&Probe::h2d, "h2d", "GB/s"},
                                   {&Probe::d2h, "d2h", "GB/s"},
                                   {&Probe::cpu_optimizer, "cpu_optimizer", "Gparameters/s"}};

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string rate(const ProbeFigure& figure, const char* unit) { return number("%.4g ", figure.per_s / 1e9) + unit; }

std::string both(const std::string& name, const std::string& profile, const std::string& here) {
  return name + ": " + profile + " in the profile, " + here + " here";
}

}  // namespace

std::vector<std::string> differences(const Fingerprint& profile, const Fingerprint& here) {
  std::vector<std::string> out;
  const auto compare = [&](const char* name, const std::string& a, const std::string& b) {
    if (!a.empty() && !b.empty() && a != b) out.push_back(both(name, a, b));
  };
  const auto count = [](std::int32_t cores) { return cores > 0 ? std::to_string(cores) : ""; };
  compare("device", profile.device, here.device);
  compare("driver", profile.driver, here.driver);
  compare("processor", profile.processor, here.processor);
  compare("cores", count(profile.cores), count(here.cores));
  const auto a = static_cast<double>(profile.memory_bytes), b = static_cast<double>(here.memory_bytes);
  if (a > 0 && b > 0 && std::abs(a - b) > kSameMemory * std::max(a, b))
    out.push_back(both("memory", number("%.4g GB", a / 1e9), number("%.4g GB", b / 1e9)));
  return out;
}

std::vector<std::string> drifts(const Probe& profile, const Probe& here) {
  std::vector<std::string> out;
  for (const auto& [member, name, unit] : kFigures) {
    const ProbeFigure &a = profile.*member, &b = here.*member;
    if (a.per_s <= 0 || b.per_s <= 0) continue;
    const double ratio = b.per_s / a.per_s, most = std::max({kLeastDrift, a.spread, b.spread});
    // A fraction is as far away as its inverse: no spread makes a thousandth look alike.
    if (std::max(ratio, 1 / ratio) - 1 > most)
      out.push_back(both(name, rate(a, unit), rate(b, unit)) + ": " + number("%.2f of it", ratio));
  }
  return out;
}

std::vector<std::string> figures(const Probe& probe) {
  std::vector<std::string> out;
  for (const auto& [member, name, unit] : kFigures)
    if (const ProbeFigure& figure = probe.*member; figure.per_s > 0)
      out.push_back(std::string(name) + " " + rate(figure, unit) + number(", spread %.0f%%", 100 * figure.spread));
  return out;
}

}  // namespace tandem
