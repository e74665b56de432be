#include "runtime/gloo_collective.hpp"

#include <ATen/ops/from_blob.h>

#include <cstring>
#include <exception>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "core/base/errors.hpp"
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

class StoreBoard final : public Blackboard {
 public:
  explicit StoreBoard(c10d::Store& store) : store_(store) {}
  void write(const std::string& key, const std::string& text) override { store_.set(key, text); }
  std::string read(const std::string& key) override {
    if (!store_.check({key})) return "";
    const std::vector<std::uint8_t> bytes = store_.get(key);
    return {bytes.begin(), bytes.end()};
  }

 private:
  c10d::Store& store_;
};

}  // namespace

struct GlooCollective::Group {
  c10::intrusive_ptr<c10d::FileStore> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
};

GlooCollective::GlooCollective(const GlooOptions& options) : options_(options), group_(std::make_unique<Group>()) {
  const auto look = [&](const std::string& waits_for) {
    if (options.look) options.look(waits_for);
  };
  reporting_loss([&] {
    group_->store = c10::make_intrusive<c10d::FileStore>(options.meeting_file, options.ranks);
    group_->store->setTimeout(options.timeout);
  });
  if (!options.identity.empty()) {
    StoreBoard board(*group_->store);
    require_same_ranks(board, options.rank, options.ranks, options.identity, look);
  }
  look("the other ranks, to connect");
  reporting_loss([&] {
    auto gloo_options = c10d::ProcessGroupGloo::Options::create(options.timeout);
    gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(kLoopback));
    group_->gloo =
        c10::make_intrusive<c10d::ProcessGroupGloo>(group_->store, options.rank, options.ranks, gloo_options);
  });
}

void GlooCollective::reporting_loss(const std::function<void()>& action) const {
  try {
    action();
  } catch (const std::exception& error) {
    throw DeviceError(lost(options_, error));
  }
}

GlooCollective::~GlooCollective() = default;

void GlooCollective::all_reduce_sum(std::byte* data, std::int64_t elements, DType type) {
  std::vector<at::Tensor> tensors = {at::from_blob(data, {elements}, torch_type(type))};
  reporting_loss([&] { group_->gloo->allreduce(tensors)->wait(); });
}

void GlooCollective::all_reduce_mean(std::byte* data, std::int64_t elements, DType type) {
  all_reduce_sum(data, elements, type);
  at::from_blob(data, {elements}, torch_type(type)).div_(options_.ranks);
}

// Gloo's own adds in another order from three ranks on; this one's bits are those of a run that divides nothing.
void GlooCollective::reduce_scatter_mean(const std::byte* whole, std::byte* part, std::int64_t elements, DType type) {
  const std::int64_t bytes = elements * size_of(type);
  sums_.assign(whole, whole + bytes * options_.ranks);
  all_reduce_sum(sums_.data(), elements * options_.ranks, type);
  std::memcpy(part, sums_.data() + bytes * options_.rank, static_cast<std::size_t>(bytes));
  at::from_blob(part, {elements}, torch_type(type)).div_(options_.ranks);
}

void GlooCollective::all_gather(const std::byte* part, std::byte* whole, std::int64_t bytes) {
  at::Tensor in = at::from_blob(const_cast<std::byte*>(part), {bytes}, at::kByte);
  at::Tensor out = at::from_blob(whole, {bytes * options_.ranks}, at::kByte);
  reporting_loss([&] { group_->gloo->_allgather_base(out, in)->wait(); });
}

}  // namespace tandem
