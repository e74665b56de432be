// How a training and a worker that decodes for it send each other numbers and bytes: two ranks of a Gloo group, which
// meet at a store that the worker has. Must not know what is sent for.
//
//   the training  adds 1 to "trainings", which gives it a number n; writes "n/manifest", a checksum
//   the worker    writes "n/answer": "ok", or why not. Both make a group of two at "n/group": the training is rank 0
//   a request     kRequestWords numbers: RequestWord; then of each item its sample, its file's bytes and its seed
//   an answer     kAnswerWords numbers: AnswerWord; then that many bytes: the items, or a text that says why not
#pragma once

#include <ATen/ops/from_blob.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

namespace tandem {

// The last two are the bits of doubles.
enum RequestWord { kNumber, kModality, kSide, kItemBytes, kItems, kRandomCrop, kLeastArea, kFlip, kRequestWords };
enum AnswerWord { kAnswered, kIsDecoded, kAnswerBytes, kSumHigh, kSumLow, kAnswerWords };
inline constexpr const char *kTrainings = "trainings", *kOk = "ok";
inline std::string manifest_key(std::int64_t training) { return std::to_string(training) + "/manifest"; }
inline std::string answer_key(std::int64_t training) { return std::to_string(training) + "/answer"; }

inline c10d::TCPStoreOptions options_of(std::uint16_t port, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.waitWorkers = false;
  options.timeout = timeout;
  return options;
}

class DecodeGroup {
 public:
  // Blocks until the peer is there. `here`: the address of this host that the peer reaches. Throws std::exception.
  DecodeGroup(const c10::intrusive_ptr<c10d::Store>& store, std::int64_t training, int rank, const std::string& here,
              std::chrono::milliseconds timeout)
      : peer_(1 - rank) {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(here));
    const auto of_training = c10::make_intrusive<c10d::PrefixStore>(std::to_string(training) + "/group", store);
    gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(of_training, rank, 2, options);
  }
  void send(std::span<const std::int64_t> numbers) {
    send(const_cast<std::int64_t*>(numbers.data()), numbers.size(), at::kLong);
  }
  void send(std::span<const std::byte> bytes) { send(const_cast<std::byte*>(bytes.data()), bytes.size(), at::kByte); }
  void receive(std::span<std::int64_t> numbers, std::chrono::milliseconds most) {
    receive(numbers.data(), numbers.size(), at::kLong, most);
  }
  void receive(std::span<std::byte> bytes, std::chrono::milliseconds most) {
    receive(bytes.data(), bytes.size(), at::kByte, most);
  }

 private:
  void send(void* data, std::size_t count, at::ScalarType type) {
    std::vector<at::Tensor> tensors = {at::from_blob(data, {static_cast<std::int64_t>(count)}, type)};
    gloo_->send(tensors, peer_, 0)->wait();
  }
  void receive(void* data, std::size_t count, at::ScalarType type, std::chrono::milliseconds most) {
    std::vector<at::Tensor> tensors = {at::from_blob(data, {static_cast<std::int64_t>(count)}, type)};
    gloo_->recv(tensors, peer_, 0)->wait(most);
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  int peer_;
};

}  // namespace tandem
