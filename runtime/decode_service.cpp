// The worker's end of decode_worker.hpp.
#include <bit>
#include <chrono>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "core/base/errors.hpp"
#include "runtime/checkpoint/checksum.hpp"
#include "runtime/decode_link.hpp"
#include "runtime/decode_worker.hpp"
#include "runtime/torch_error.hpp"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kLookEvery{20};
// Between two requests: a training may do other things for long, and one that has ended closes its connection.
constexpr std::chrono::hours kIdle{24 * 365};
constexpr std::int64_t kMostItems = std::int64_t{1} << 20, kMostBytes = std::int64_t{1} << 34;

Cropping cropping_of(std::span<const std::int64_t> words) {
  const Cropping cropping{words[kRandomCrop] == 1, std::bit_cast<double>(words[kLeastArea]),
                          std::bit_cast<double>(words[kFlip])};
  const bool can_be = words[kRandomCrop] >= 0 && words[kRandomCrop] <= 1 && cropping.least_area > 0 &&
                      cropping.least_area <= 1 && cropping.flip >= 0 && cropping.flip <= 1;
  if (!can_be) throw std::out_of_range("a cropping that no training asks for");
  return cropping;
}

// Numbers of a peer that is no friend's must not be what memory is sized by.
DecodeRequest request_of(std::span<const std::int64_t> words) {
  const auto within = [&](RequestWord word, std::int64_t least, std::int64_t most) {
    if (words[word] < least || words[word] > most) throw std::out_of_range("a request that no training makes");
    return words[word];
  };
  DecodeRequest request;
  request.modality = static_cast<Modality>(within(kModality, 0, std::ssize(kModalities) - 1));
  request.side = within(kSide, 1, std::int64_t{1} << 16);
  request.item_bytes = within(kItemBytes, 1, kMostBytes);
  const auto items = static_cast<std::size_t>(within(kItems, 1, kMostItems));
  if (static_cast<std::int64_t>(items) > kMostBytes / request.item_bytes)
    throw std::out_of_range("a request for more bytes than a training asks for at once");
  request.cropping = cropping_of(words);
  request.samples.resize(items);
  request.file_bytes.resize(items);
  request.seeds.resize(items);
  return request;
}

void answer(DecodeGroup& group, std::int64_t number, const DecodeRequest& request, const DecodeService& service) {
  std::vector<std::byte> made(static_cast<std::size_t>(request.bytes()));
  std::int64_t is_decoded = 1;
  try {
    service.decode(request, made.data());
  } catch (const std::exception& error) {
    constexpr std::size_t kMostTextBytes = 4096;
    const std::string why = message_of(error).substr(0, kMostTextBytes);
    const auto text = std::as_bytes(std::span(why));
    made.assign(text.begin(), text.end());
    is_decoded = 0;
  }
  Hasher hasher;
  hasher.update(made.data(), made.size());
  const Checksum sum = hasher.checksum();
  const std::int64_t words[kAnswerWords] = {number, is_decoded, static_cast<std::int64_t>(made.size()),
                                            static_cast<std::int64_t>(sum.high), static_cast<std::int64_t>(sum.low)};
  group.send(words);
  group.send(made);
}

// Until the training goes.
void serve(const HostPort& at, std::int64_t training, std::chrono::milliseconds timeout, const DecodeService& service) {
  try {
    // A way to the store of its own: whoever waits there holds up all that share it.
    DecodeGroup group(c10::make_intrusive<c10d::TCPStore>(at.host, options_of(at.port, timeout)), training, 1, at.host,
                      timeout);
    for (;;) {
      std::int64_t words[kRequestWords] = {};
      group.receive(words, kIdle);
      DecodeRequest request = request_of(words);
      group.receive(request.samples, timeout);
      group.receive(request.file_bytes, timeout);
      group.receive(request.seeds, timeout);
      answer(group, words[kNumber], request, service);
    }
  } catch (const std::exception&) {
    // It has ended, or is none: whoever needs bytes makes them.
  }
}

}  // namespace

void serve_decoding(const HostPort& at, std::chrono::milliseconds timeout, const DecodeService& service,
                    const std::function<void(const HostPort&)>& ready) {
  c10d::TCPStoreOptions options = options_of(at.port, timeout);
  options.isServer = true;
  c10::intrusive_ptr<c10d::TCPStore> store;
  try {
    store = c10::make_intrusive<c10d::TCPStore>(at.host, options);
  } catch (const std::exception& error) {
    throw DeviceError("--serve-decoding: " + at.text() + " cannot be served at: " + message_of(error));
  }
  const HostPort here{at.host, store->getPort()};
  ready(here);
  for (std::int64_t training = 1;; ++training) {
    while (!store->check({manifest_key(training)})) std::this_thread::sleep_for(kLookEvery);
    const std::vector<std::uint8_t> theirs = store->get(manifest_key(training));
    const bool same = std::string(theirs.begin(), theirs.end()) == service.manifest;
    const std::string answer = same ? kOk : "it serves another manifest, or other limits of what is decoded";
    store->set(answer_key(training), std::vector<std::uint8_t>(answer.begin(), answer.end()));
    if (same) std::thread([here, training, timeout, &service] { serve(here, training, timeout, service); }).detach();
  }
}

}  // namespace tandem
