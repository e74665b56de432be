#include "report/held_words.hpp"

#include <fmt/format.h>

#include "core/base/units.hpp"

namespace tandem {
namespace {

std::string waits_for(const std::string& cause, const std::string& optimizer) {
  if (cause == "h2d") return "for copies to it";
  if (cause == "d2h") return "for copies from it";
  if (cause == "cpu_optimizer") return "for the CPU's " + optimizer;
  if (cause == "cpu_compute") return "for layers on the CPU";
  if (cause == "disk") return "for the disk";
  if (cause == "collective") return "for the other devices, in collectives";
  if (cause == "p2p") return "for what other devices send";
  if (cause == "loader") return "for batches to be loaded";
  if (cause == "dispatch") return "for commands to be launched and handed over";
  return "without work";
}

}  // namespace

std::string held_words(const Holder& holder, bool gpu, const std::string& optimizer) {
  const std::string device = gpu ? "GPU" : "device", share = format_percent(holder.share);
  if (holder.cause == "compute") return fmt::format("the {} computes {} of the step", device, share);
  return fmt::format("the {} waits {} of the step {}", device, share, waits_for(holder.cause, optimizer));
}

}  // namespace tandem
