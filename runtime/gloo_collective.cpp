#include "runtime/gloo_collective.hpp"

#include <ATen/ops/from_blob.h>

#include <exception>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "core/scenario/errors.hpp"
#include "runtime/torch_error.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

// Ranks are processes of one machine.
constexpr const char* kLoopback = "127.0.0.1";

std::string lost(const GlooOptions& options, const std::exception& error) {
  return "rank " + std::to_string(options.rank) + " of " + std::to_string(options.ranks) +
         ": a collective failed, so a peer has stopped or cannot be reached: " + message_of(error);
}

}  // namespace

struct GlooCollective::Group {
  c10::intrusive_ptr<c10d::FileStore> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
};

GlooCollective::GlooCollective(const GlooOptions& options) : options_(options), group_(std::make_unique<Group>()) {
  try {
    auto gloo_options = c10d::ProcessGroupGloo::Options::create(options.timeout);
    gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(kLoopback));
    group_->store = c10::make_intrusive<c10d::FileStore>(options.meeting_file, options.ranks);
    group_->store->setTimeout(options.timeout);
    group_->gloo =
        c10::make_intrusive<c10d::ProcessGroupGloo>(group_->store, options.rank, options.ranks, gloo_options);
  } catch (const std::exception& error) {
    throw DeviceError(lost(options, error));
  }
}

GlooCollective::~GlooCollective() = default;

void GlooCollective::all_reduce_mean(std::byte* data, std::int64_t elements, DType type) {
  std::vector<at::Tensor> tensors = {at::from_blob(data, {elements}, torch_type(type))};
  try {
    group_->gloo->allreduce(tensors)->wait();
  } catch (const std::exception& error) {
    throw DeviceError(lost(options_, error));
  }
  tensors.front().div_(options_.ranks);
}

}  // namespace tandem
