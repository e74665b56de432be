#include "runtime/decode_process.hpp"

#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "cli/child_process.hpp"
#include "core/base/errors.hpp"
#include "runtime/sample_data.hpp"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kLookEvery{10};
constexpr const char* kServing = "serving at ";
constexpr const char* kOwnAddress = "127.0.0.1:0";

// The address in the line that says it; "" as long as it is not there, or not whole.
std::string address_in(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || in.eof() || !line.starts_with(kServing)) return "";
  return line.substr(std::string_view(kServing).size());
}

}  // namespace

void add_decode_flags(CLI::App& app, DecodeFlags& flags) {
  app.add_option(
         "--decode-workers", flags.workers,
         "Who decodes data.pipeline.remote_share: a process that serves there. Else one is started on this host")
      ->type_name("HOST:PORT");
  app.add_option("--serve-decoding", flags.serves,
                 "Train nothing: decode files of the scenario's manifest for trainings that name this address")
      ->type_name("HOST:PORT");
  app.add_option("--decode-timeout", flags.timeout_s, "Seconds after which such a worker is given up")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{86400}))
      ->default_str("30");
  app.add_flag("--for-parent", flags.for_parent)->group("");
}

void serve_decoding(Scenario scenario, const DecodeFlags& flags) {
  const HostPort at = parse_host_port("--serve-decoding", flags.serves);
  if (scenario.data_manifest.empty())
    throw ConfigError("--serve-decoding: the scenario has no data.manifest; allowed: a scenario with one");
  scenario.pipeline.workers = std::max<std::int64_t>(1, scenario.pipeline.remote_workers);
  scenario.pipeline.decoded_cache_bytes = 0;  // the training's
  const SampleData data(scenario);
  if (flags.for_parent) std::signal(SIGINT, SIG_IGN);  // a terminal's: the training answers it
  serve_decoding(at, flags.timeout(),
                 {data.manifest_sum(), [&](const DecodeRequest& request, std::byte* out) { data.serve(request, out); }},
                 [](const HostPort& here) {
                   std::printf("%s%s\n", kServing, here.text().c_str());
                   std::fflush(stdout);
                 });
}

DecodeProcess::DecodeProcess(const std::vector<std::string>& arguments, const DecodeFlags& flags) {
  std::vector<std::string> all = arguments;
  all.push_back(std::string("--serve-decoding=") + kOwnAddress);
  all.emplace_back("--for-parent");
  const std::string said = folder_.file("address");
  process_ = start_child(std::filesystem::read_symlink("/proc/self/exe").string(), std::move(all), {-1, said});
  const auto end = std::chrono::steady_clock::now() + flags.timeout();
  while ((address_ = address_in(said)).empty() && std::chrono::steady_clock::now() < end) {
    if (waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = 0;
      break;
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  if (address_.empty())
    std::fprintf(stderr, "warning: no worker for data.pipeline.remote_workers began; going on without\n");
}

DecodeProcess::~DecodeProcess() {
  if (process_ == 0) return;
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool wants_decode_process(const Scenario& scenario, const DecodeFlags& flags) {
  return scenario.pipeline.remote_workers > 0 && !scenario.data_manifest.empty() && flags.workers.empty();
}

std::shared_ptr<DecodeWorker> connect_decoding(DataSource& data, const DecodeFlags& flags) {
  auto* const samples = dynamic_cast<SampleData*>(&data);
  if (samples == nullptr || flags.workers.empty()) return nullptr;
  auto worker = std::make_shared<DecodeWorker>(parse_host_port("--decode-workers", flags.workers),
                                               samples->manifest_sum(), flags.timeout());
  samples->decode_at(worker);
  return worker;
}

}  // namespace tandem
