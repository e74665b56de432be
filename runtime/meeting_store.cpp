#include "runtime/meeting_store.hpp"

#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/base/errors.hpp"
#include "runtime/host_port.hpp"
#include "runtime/rendezvous.hpp"
#include "runtime/torch_error.hpp"

namespace tandem {
namespace {

constexpr std::string_view kScheme = "tcp://";
constexpr const char* kLoopback = "127.0.0.1";

struct Address {
  HostPort at;
  std::string prefix;  // "": rank 0 serves
};

Address address_of(const std::string& meeting) {
  const std::string rest = meeting.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  return {parse_host_port("MASTER_ADDR and MASTER_PORT", rest.substr(0, slash)),
          slash == std::string::npos ? "" : rest.substr(slash + 1)};
}

c10::intrusive_ptr<c10d::Store> join(const Address& address, std::chrono::milliseconds timeout, int listens) {
  c10d::TCPStoreOptions options;
  options.port = address.at.port;
  options.waitWorkers = false;  // who is missing is said by require_same_ranks
  options.timeout = timeout;
  options.isServer = listens >= 0;
  if (listens >= 0) options.masterListenFd = listens;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(address.at.host, options);
    if (address.prefix.empty()) return store;
    return c10::make_intrusive<c10d::PrefixStore>(address.prefix, store);
  } catch (const std::exception& error) {
    throw DeviceError("the ranks' meeting at " + address.at.text() +
                      " (MASTER_ADDR, MASTER_PORT) cannot be reached: " + message_of(error));
  }
}

c10::intrusive_ptr<c10d::Store> open_file(const std::string& path, std::int32_t ranks,
                                          std::chrono::milliseconds timeout) {
  try {
    auto store = c10::make_intrusive<c10d::FileStore>(path, ranks);
    store->setTimeout(timeout);
    return store;
  } catch (const std::exception& error) {
    throw DeviceError("the ranks' meeting at " + path + " cannot be opened: " + message_of(error));
  }
}

int listening(const HostPort& at) {
  try {
    return listen_at(at);
  } catch (const DeviceError& error) {
    throw DeviceError("rank 0 cannot open the ranks' meeting (MASTER_ADDR, MASTER_PORT): " + std::string(error.what()) +
                      "; give all ranks another MASTER_PORT, or rank 0's own address");
  }
}

}  // namespace

bool is_address(const std::string& meeting) { return meeting.starts_with(kScheme); }

c10::intrusive_ptr<c10d::Store> open_meeting(const std::string& meeting, Rank rank, std::int32_t ranks,
                                             std::chrono::milliseconds timeout) {
  if (!is_address(meeting)) return open_file(meeting, ranks, timeout);
  const Address address = address_of(meeting);
  const bool serves = rank == 0 && address.prefix.empty();
  return join(address, timeout, serves ? listening(address.at) : -1);
}

std::string own_address(const std::string& meeting) {
  return is_address(meeting) ? own_address_towards(address_of(meeting).at) : kLoopback;
}

// Whoever serves the store leaves it last.
void end_together(const std::string& meeting, Rank rank, std::int32_t ranks,
                  const std::function<void(const std::string& waits_for)>& look) {
  constexpr std::chrono::milliseconds kLookEvery{10};
  constexpr std::chrono::hours kLong{24};
  const Address address = address_of(meeting);
  const auto store = join(address, kLong, -1);
  StoreBoard board(*store);
  const auto all = [&](const std::string& have) {
    board.write(have + std::to_string(rank), "yes");
    for (Rank other = 0; other < ranks; ++other)
      while (board.read(have + std::to_string(other)).empty()) {
        look("rank " + std::to_string(other) + ", to end");
        std::this_thread::sleep_for(kLookEvery);
      }
  };
  try {
    all("ended");
    if (rank == 0 && address.prefix.empty())
      all("left");
    else
      board.write("left" + std::to_string(rank), "yes");
  } catch (const c10::Error& error) {
    throw DeviceError("the ranks' meeting at " + address.at.text() +
                      " has closed before all ranks ended: " + message_of(error));
  }
}

}  // namespace tandem
