#include "runtime/decode_worker.hpp"

#include <bit>
#include <cstring>
#include <exception>
#include <future>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/errors.hpp"
#include "runtime/checkpoint/checksum.hpp"
#include "runtime/decode_link.hpp"
#include "runtime/torch_error.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostTextBytes = 4096;

std::string seconds(std::chrono::milliseconds time) {
  const auto ms = time.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

// c10d's store waits for a peer that accepts and then says nothing for as long as it takes. So the waiting is left to a
// thread, which is left behind where it takes too long: `action` holds all that it needs.
template <class T>
T within(std::chrono::milliseconds timeout, std::function<T()> action) {
  std::packaged_task<T()> task(std::move(action));
  std::future<T> result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(timeout) != std::future_status::ready) throw DeviceError("said nothing for " + seconds(timeout));
  return result.get();
}

}  // namespace

struct DecodeWorker::Link {
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::unique_ptr<DecodeGroup> group;
};

DecodeWorker::DecodeWorker(const HostPort& at, const std::string& manifest, std::chrono::milliseconds timeout)
    : at_(at), timeout_(timeout) {
  try {
    connect(manifest);
  } catch (const std::exception& error) {
    lose(message_of(error));
  }
}

DecodeWorker::~DecodeWorker() = default;

void DecodeWorker::connect(const std::string& manifest) {
  link_ = within<std::shared_ptr<Link>>(timeout_, [at = at_, timeout = timeout_, manifest] {
    auto link = std::make_shared<Link>();
    link->store = c10::make_intrusive<c10d::TCPStore>(at.host, options_of(at.port, timeout));
    const std::int64_t own = link->store->add(kTrainings, 1);
    link->store->set(manifest_key(own), std::vector<std::uint8_t>(manifest.begin(), manifest.end()));
    const std::vector<std::uint8_t> answer = link->store->get(answer_key(own));
    if (const std::string text(answer.begin(), answer.end()); text != kOk) throw DeviceError(text);
    link->group = std::make_unique<DecodeGroup>(link->store, own, 0, own_address_towards(at), timeout);
    return link;
  });
}

bool DecodeWorker::decode(const DecodeRequest& request, std::span<std::byte> out) {
  const std::lock_guard lock(mutex_);
  if (link_ == nullptr) return false;
  try {
    return ask(request, out);
  } catch (const std::exception& error) {
    lost_ = message_of(error);
    link_ = nullptr;
    return false;
  }
}

// Under mutex_. Throws what loses the worker.
bool DecodeWorker::ask(const DecodeRequest& request, std::span<std::byte> out) {
  const auto items = static_cast<std::int64_t>(request.samples.size());
  const std::int64_t words[kRequestWords] = {++number_,
                                             static_cast<std::int64_t>(request.modality),
                                             request.side,
                                             request.item_bytes,
                                             items,
                                             request.cropping.random ? 1 : 0,
                                             std::bit_cast<std::int64_t>(request.cropping.least_area),
                                             std::bit_cast<std::int64_t>(request.cropping.flip)};
  link_->group->send(words);
  link_->group->send(request.samples);
  link_->group->send(request.file_bytes);
  link_->group->send(request.seeds);
  std::int64_t answer[kAnswerWords] = {};
  link_->group->receive(answer, timeout_);
  if (answer[kAnswered] != number_) throw DeviceError("answered another request");
  const std::int64_t bytes = answer[kAnswerBytes];
  if (answer[kIsDecoded] == 0) {
    if (bytes < 1 || bytes > kMostTextBytes)
      throw DeviceError("refused with a text of " + std::to_string(bytes) + " bytes");
    std::string why(static_cast<std::size_t>(bytes), ' ');
    link_->group->receive(std::as_writable_bytes(std::span(why)), timeout_);
    ++refusals_;
    refused_ = why;
    return false;
  }
  if (bytes != request.bytes() || out.size() != static_cast<std::size_t>(bytes))
    throw DeviceError("sent " + std::to_string(bytes) + " bytes, not " + std::to_string(request.bytes()));
  link_->group->receive(out, timeout_);
  Hasher hasher;
  hasher.update(out.data(), out.size());
  const Checksum sum{static_cast<std::uint64_t>(answer[kSumHigh]), static_cast<std::uint64_t>(answer[kSumLow])};
  if (hasher.checksum() != sum) throw DeviceError("what came has another checksum than what was sent");
  ++parts_;
  items_ += items;
  bytes_ += bytes;
  return true;
}

void DecodeWorker::lose(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) lost_ = why;
  link_ = nullptr;
}

void DecodeWorker::note_here(std::int64_t items) {
  const std::lock_guard lock(mutex_);
  ++parts_here_;
  items_here_ += items;
}

std::string DecodeWorker::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

std::string DecodeWorker::account() const {
  const std::lock_guard lock(mutex_);
  std::string text = "the worker at " + at_.text() + " decoded " + std::to_string(items_) + " items in " +
                     std::to_string(parts_) + " parts, " + std::to_string(bytes_) + " bytes";
  if (parts_here_ > 0)
    text += "; " + std::to_string(items_here_) + " items in " + std::to_string(parts_here_) +
            " parts of its share were decoded here";
  if (refusals_ > 0) text += "; it refused " + std::to_string(refusals_) + " parts, the last: " + refused_;
  if (!lost_.empty()) text += "; it was given up: " + lost_;
  return text;
}

}  // namespace tandem
