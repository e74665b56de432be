// tandem-monitor: what the machine does, shown and recorded. A composition root, of neither world.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/cli.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/base/units.hpp"
#include "runtime/monitor/monitor.hpp"

namespace tandem {
namespace {

using Figures = std::map<std::string, std::int64_t>;

std::string figure_text(const std::string& name, std::int64_t value) {
  const auto number = static_cast<double>(value);
  if (name.ends_with("_ppm")) return fmt::format("{:.0f}%", number / 1e4);
  if (name.ends_with("_bytes_per_s")) return fmt::format("{:.2f} GB/s", number / 1e9);
  if (name.ends_with("_bytes")) return format_bytes(value);
  if (name.ends_with("_mw")) return fmt::format("{:.0f} W", number / 1e3);
  return fmt::format("{}", value);
}

std::string label_of(const std::string& name) {
  std::string label = name.substr(name.find('.') + 1);
  for (const char* unit : {"_bytes_per_s", "_bytes", "_ppm", "_mw", "_mhz"})
    if (label.ends_with(unit)) {
      label.resize(label.size() - std::string_view(unit).size());
      break;
    }
  for (char& c : label)
    if (c == '_') c = ' ';
  return label;
}

// A line for each part: "gpu0     busy 92% · memory used 61 GiB ...".
std::string text_of(const Figures& figures) {
  std::string text, part;
  for (const auto& [name, value] : figures) {
    const std::string of = name.substr(0, name.find('.'));
    if (of != part)
      text += (text.empty() ? "" : "\n") + fmt::format("  {:<8} ", of);
    else
      text += " · ";
    part = of;
    text += label_of(name) + " " + figure_text(name, value);
  }
  return text + "\n";
}

struct MonitorFlags {
  double interval_s = 1;
  std::int64_t samples = 0;  // 0: until interrupted
  std::string json;          // a file that grows by a line a sample; "-": standard output; "": none
  bool quiet = false;
};

MonitorFlags parse_flags(int argc, char** argv) {
  CLI::App app{"What GPUs, cores, memory and PCIe do right now, until interrupted", "tandem monitor"};
  MonitorFlags flags;
  app.add_option("--interval", flags.interval_s, "Seconds from one sample to the next")
      ->check(CLI::Range(0.05, 3600.0).description(""))
      ->type_name("SECONDS")
      ->default_str("1");
  app.add_option("--samples", flags.samples, "End after so many")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40).description(""))
      ->type_name("N");
  app.add_option("--json", flags.json, "Append a line of JSON a sample; - for standard output")->type_name("FILE|-");
  app.add_flag("--quiet", flags.quiet, "Record only");
  parse(app, argc, argv);
  return flags;
}

int monitor(int argc, char** argv) {
  const MonitorFlags flags = parse_flags(argc, argv);
  std::ofstream file;
  if (!flags.json.empty() && flags.json != "-") {
    file.open(flags.json, std::ios::app);
    if (!file) throw ConfigError("--json: " + flags.json + ": cannot be written");
  }
  Monitor monitor;
  if (!flags.quiet && !monitor.has_gpu()) print_warning("no NVIDIA driver is here: the host alone is watched");
  std::atomic<bool>& interrupted = claim_interrupts();
  const auto began = std::chrono::steady_clock::now();
  monitor.sample();  // what rates count from
  for (std::int64_t i = 0; flags.samples == 0 || i < flags.samples; ++i) {
    const auto until = began + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::duration<double>(flags.interval_s * static_cast<double>(i + 1)));
    while (!interrupted && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(
          std::min<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now(), std::chrono::milliseconds(50)));
    if (interrupted) break;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const Usage usage = monitor.sample();
    nlohmann::ordered_json line{{"seconds", seconds}};
    line.update(usage.figures);
    if (flags.json == "-") write_to_stdout(line.dump() + "\n");
    if (file.is_open() && !(file << line.dump() << std::endl))
      throw DeviceError(flags.json + ": a sample could not be written");
    if (!flags.quiet && flags.json != "-") write_to_stdout(fmt::format("{:.1f} s\n", seconds) + text_of(usage.figures));
  }
  return kDone;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::run_main(argc, argv, tandem::monitor); }
