#include "runtime/gloo_collective.hpp"

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "runtime/executors/transfer_tag.hpp"
#include "runtime/meeting_store.hpp"
#include "runtime/torch_error.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

std::string lost(const GlooOptions& options, const std::exception& error) {
  return "rank " + std::to_string(options.rank) + " of " + std::to_string(options.ranks) +
         ": a collective failed, so a peer has stopped or cannot be reached: " + message_of(error);
}

// The first rank may be who keeps what all read (open_meeting): whoever is there finds the difference, too.
void leave_last(Blackboard& board, const GlooOptions& options) {
  constexpr std::chrono::milliseconds kBetween{10};
  constexpr int kLooks = 500;
  const auto said = [&](const char* what, Rank rank) { return !board.read(what + std::to_string(rank)).empty(); };
  board.write("refused" + std::to_string(options.rank), "1");
  for (int look = 0; options.rank == 0 && look < kLooks; ++look) {
    bool all = true;
    for (Rank other = 1; other < options.ranks; ++other)
      all = all && (!said("identity", other) || said("refused", other));
    if (all) return;
    std::this_thread::sleep_for(kBetween);
  }
}

}  // namespace

struct GlooCollective::Group {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
  std::int32_t members = 1, own = 0;  // and this rank's place among them
};

struct GlooCollective::Groups {
  c10::intrusive_ptr<c10d::Store> store;
  Group all;
  std::map<std::int32_t, Group> of;  // by number
};

GlooCollective::GlooCollective(const GlooOptions& options) : options_(options), groups_(std::make_unique<Groups>()) {
  const auto look = [&](const std::string& waits_for) {
    if (options.look) options.look(waits_for);
  };
  look("the ranks' meeting, to open");
  groups_->store = open_meeting(options.meeting_file, options.rank, options.ranks, options.timeout);
  if (!options.identity.empty()) {
    StoreBoard board(*groups_->store);
    try {
      require_same_ranks(board, options.rank, options.ranks, options.identity, look);
    } catch (const c10::Error& error) {
      throw DeviceError(lost(options_, error));
    } catch (const DeviceError&) {
      leave_last(board, options);
      throw;
    }
  }
  look("the other ranks, to connect");
  const std::string here = own_address(options.meeting_file);
  const auto joined = [&](const c10::intrusive_ptr<c10d::Store>& store, std::int32_t member, std::int32_t members) {
    auto gloo_options = c10d::ProcessGroupGloo::Options::create(options.timeout);
    gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(here));
    return c10::make_intrusive<c10d::ProcessGroupGloo>(store, member, members, gloo_options);
  };
  reporting_loss([&] {
    bool shared = false;  // by one group: each has an order of its own
    groups_->all = {joined(groups_->store, options.rank, options.ranks), options.ranks, options.rank};
    for (const RankGroup& group : options.groups) {
      const auto own = std::find(group.members.begin(), group.members.end(), options.rank);
      if (own == group.members.end()) throw std::logic_error("a rank is not of its own group");
      Group& made = groups_->of[group.number];
      made = {nullptr, static_cast<std::int32_t>(group.members.size()),
              static_cast<std::int32_t>(own - group.members.begin())};
      const auto store = c10::make_intrusive<c10d::PrefixStore>("group" + std::to_string(group.number), groups_->store);
      const bool shares = made.members == options.ranks && !std::exchange(shared, true);
      made.gloo = shares ? groups_->all.gloo : joined(store, made.own, made.members);
    }
  });
}

const GlooCollective::Group& GlooCollective::group(std::int32_t number) const {
  const auto found = groups_->of.find(number);
  if (found == groups_->of.end()) throw std::logic_error("a collective of a group that the rank is not of");
  return found->second;
}

void GlooCollective::reporting_loss(const std::function<void()>& action) const {
  try {
    action();
  } catch (const std::exception& error) {
    throw DeviceError(lost(options_, error));
  }
}

GlooCollective::~GlooCollective() = default;

void GlooCollective::all_reduce_sum(std::int32_t number, std::byte* data, std::int64_t elements, DType type) {
  std::vector<at::Tensor> tensors = {at::from_blob(data, {elements}, torch_type(type))};
  reporting_loss([&] { group(number).gloo->allreduce(tensors)->wait(); });
}

void GlooCollective::all_reduce_mean(std::int32_t number, std::byte* data, std::int64_t elements, DType type) {
  all_reduce_sum(number, data, elements, type);
  at::from_blob(data, {elements}, torch_type(type)).div_(group(number).members);
}

void GlooCollective::all_reduce_means(std::int32_t number, std::span<const Numbers> bucket, DType type) {
  if (bucket.size() == 1) return all_reduce_mean(number, bucket.front().data, bucket.front().elements, type);
  std::vector<at::Tensor> tensors;
  for (const Numbers& n : bucket) tensors.push_back(at::from_blob(n.data, {n.elements}, torch_type(type)));
  reporting_loss([&] { group(number).gloo->allreduce_coalesced(tensors)->wait(); });
  for (at::Tensor& tensor : tensors) tensor.div_(group(number).members);
}

// Gloo's own adds in another order from three ranks on; this one's bits are those of a run that divides nothing.
void GlooCollective::reduce_scatter_sum(std::int32_t number, const std::byte* whole, std::byte* part,
                                        std::int64_t elements, DType type) {
  const std::int64_t bytes = elements * size_of(type);
  std::vector<std::byte> sums(whole, whole + bytes * group(number).members);
  all_reduce_sum(number, sums.data(), elements * group(number).members, type);
  std::memcpy(part, sums.data() + bytes * group(number).own, static_cast<std::size_t>(bytes));
}

void GlooCollective::reduce_scatter_mean(std::int32_t number, const std::byte* whole, std::byte* part,
                                         std::int64_t elements, DType type) {
  reduce_scatter_sum(number, whole, part, elements, type);
  at::from_blob(part, {elements}, torch_type(type)).div_(group(number).members);
}

void GlooCollective::all_gather(std::int32_t number, const std::byte* part, std::byte* whole, std::int64_t bytes) {
  at::Tensor in = at::from_blob(const_cast<std::byte*>(part), {bytes}, at::kByte);
  at::Tensor out = at::from_blob(whole, {bytes * group(number).members}, at::kByte);
  reporting_loss([&] { group(number).gloo->_allgather_base(out, in)->wait(); });
}

void GlooCollective::exchange_parts(std::int32_t number, const std::byte* from, std::byte* to, std::int64_t bytes) {
  at::Tensor in = at::from_blob(const_cast<std::byte*>(from), {bytes * group(number).members}, at::kByte);
  at::Tensor out = at::from_blob(to, {bytes * group(number).members}, at::kByte);
  std::vector<std::int64_t> equal;  // none: as much to each
  reporting_loss([&] { group(number).gloo->alltoall_base(out, in, equal, equal)->wait(); });
}

// Both are under way at once, so that no member waits for the next one all around the ring.
void GlooCollective::shift(std::int32_t number, const std::byte* from, std::byte* to, std::int64_t bytes, bool back) {
  const Group& among = group(number);
  const std::int32_t next = (among.own + 1) % among.members, before = (among.own + among.members - 1) % among.members;
  std::vector<at::Tensor> out = {at::from_blob(const_cast<std::byte*>(from), {bytes}, at::kByte)};
  std::vector<at::Tensor> in = {at::from_blob(to, {bytes}, at::kByte)};
  reporting_loss([&] {
    const auto received = among.gloo->recv(in, back ? next : before, kShiftTag);
    const auto sent = among.gloo->send(out, back ? before : next, kShiftTag);
    sent->wait();
    received->wait();
  });
}

void GlooCollective::send(const std::byte* data, std::int64_t bytes, Rank to, std::int32_t tag) {
  std::vector<at::Tensor> tensors = {at::from_blob(const_cast<std::byte*>(data), {bytes}, at::kByte)};
  reporting_loss([&] { groups_->all.gloo->send(tensors, to, tag)->wait(); });
}

void GlooCollective::receive(std::byte* data, std::int64_t bytes, Rank from, std::int32_t tag) {
  std::vector<at::Tensor> tensors = {at::from_blob(data, {bytes}, at::kByte)};
  reporting_loss([&] { groups_->all.gloo->recv(tensors, from, tag)->wait(); });
}

}  // namespace tandem
