#include "report/machine_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.hpp"
#include "report/summary.hpp"
#include "report/text_table.hpp"

namespace tandem {
namespace {

constexpr std::size_t kWidth = 80;

// The fastest 16-bit products, or fp32's where there are none.
std::string device_text(const HardwareProfile& machine) {
  double flops = 0;
  for (const auto& [type, rate] : machine.peak_flops) flops = std::max(flops, rate);
  return fmt::format("{}{}FLOPS", machine.gpu ? "" : "CPU ", format_count(flops));
}

std::string rate_text(double bytes_per_s) {
  return bytes_per_s > 0 ? fmt::format("{:.3g} GB/s", bytes_per_s / 1e9) : "-";
}

std::string tier_text(const HardwareProfile& machine, Tier tier) {
  const std::int64_t bytes = machine.tiers[static_cast<std::size_t>(tier)].capacity_bytes;
  return bytes > 0 ? format_bytes(bytes) : "-";
}

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string lines, line;
  const auto end_line = [&] {
    if (!line.empty()) lines += std::string(indent, ' ') + line + "\n";
    line.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (indent + line.size() + 1 + word.size() > kWidth) end_line();
    line += (line.empty() ? "" : " ") + word;
    at = space + 1;
  }
  end_line();
  return lines;
}

}  // namespace

std::string machines_text(const std::vector<ListedMachine>& machines) {
  std::vector<TextRow> rows{{"machine", "device", "memory", "host", "link", "disk", "numbers"}};
  for (const auto& [profile, description, numbers] : machines)
    rows.push_back({profile.name, device_text(profile), tier_text(profile, Tier::Device),
                    tier_text(profile, Tier::HostPinned), rate_text(profile.h2d.bytes_per_s),
                    tier_text(profile, Tier::Disk), numbers});
  const std::string table = aligned(std::move(rows));
  std::string text;
  std::size_t at = 0;
  for (std::size_t i = 0; i <= machines.size(); ++i) {
    const std::size_t end = table.find('\n', at) + 1;
    text += table.substr(at, end - at);
    at = end;
    if (i > 0) text += wrapped(terminal_text(machines[i - 1].description), 4);
  }
  return text;
}

}  // namespace tandem
