// A process, of this or another host, that decodes items of a batch for a training: what it is asked and how, over
// c10d, and how its answers are checked. Must not know batches, ops or lanes, nor how files are decoded.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/cropping.hpp"
#include "core/base/modality.hpp"
#include "runtime/host_port.hpp"

namespace tandem {

// What a request and an answer are made of has this number. Programs with another one serve each other as little as
// those with another manifest.
inline constexpr const char* kDecodeProtocol = "2";

// Samples of a manifest, by number; how many bytes the file of each has where it is asked for; and the seed of what is
// random of its cropping.
struct DecodeRequest {
  Modality modality = Modality::Image;
  std::int64_t side = 0, item_bytes = 0;  // a picture's height and width; what an item is decoded to
  Cropping cropping;                      // of pictures, and of frames
  std::vector<std::int64_t> samples, file_bytes, seeds;
  std::int64_t bytes() const { return static_cast<std::int64_t>(samples.size()) * item_bytes; }
};

// The training's end. All waits end after `timeout`, whatever the worker does; after the first failure it is asked
// nothing more.
class DecodeWorker {
 public:
  // `manifest`: a checksum, which the worker's must equal. A worker that cannot be reached, or has another manifest, is
  // lost from the beginning: lost() says why.
  DecodeWorker(const HostPort& at, const std::string& manifest, std::chrono::milliseconds timeout);
  ~DecodeWorker();
  DecodeWorker(const DecodeWorker&) = delete;
  DecodeWorker& operator=(const DecodeWorker&) = delete;

  // Items one after another. False: they must be made here; then `out` is anything. From any thread.
  bool decode(const DecodeRequest& request, std::span<std::byte> out);
  // What it sent is not what is decoded here.
  void lose(const std::string& why);
  // Items that were for it, and were decoded here.
  void note_here(std::int64_t items);
  // Why it is asked nothing more; "": it is.
  std::string lost() const;
  // What came of it, for people.
  std::string account() const;

 private:
  struct Link;
  bool ask(const DecodeRequest& request, std::span<std::byte> out);
  void connect(const std::string& manifest);

  const HostPort at_;
  const std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;
  std::shared_ptr<Link> link_;  // null once lost
  std::string lost_, refused_;  // why; of the last part that it could not decode
  std::int64_t number_ = 0, parts_ = 0, items_ = 0, bytes_ = 0, refusals_ = 0, parts_here_ = 0, items_here_ = 0;
};

// The worker's end.
struct DecodeService {
  std::string manifest;  // its checksum
  // Writes the items, or throws std::exception that says which one cannot be decoded. From several threads, one a
  // training's rank.
  std::function<void(const DecodeRequest&, std::byte* out)> decode;
};
// Serves whoever comes, until the process ends. `at`: the address that it can be reached at; port 0: one that is free.
// `ready` is told the address once it can. Throws DeviceError where the port cannot be had.
[[noreturn]] void serve_decoding(const HostPort& at, std::chrono::milliseconds timeout, const DecodeService& service,
                                 const std::function<void(const HostPort&)>& ready);

}  // namespace tandem
