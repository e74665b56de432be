#include "runtime/cuda/nccl_collective.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/cuda/cuda_check.hpp"
#include "runtime/executors/transfer_tag.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

void nccl_check(ncclResult_t code, const std::string& what) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  throw DeviceError("NCCL: " + what +
                    ": a collective failed, so a peer has stopped or cannot be reached: " + ncclGetErrorString(code));
}

ncclDataType_t nccl_type(DType type) {
  switch (type) {
    case DType::F32:
      return ncclFloat32;
    case DType::F16:
      return ncclFloat16;
    case DType::BF16:
      return ncclBfloat16;
    case DType::F64:
      return ncclFloat64;
    case DType::I64:
      return ncclInt64;
    case DType::U8:
      return ncclUint8;
    case DType::I16:
      break;
  }
  throw std::logic_error("NCCL adds no int16");
}

cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream(0).stream(); }

at::TensorOptions on_gpu(DType type) { return at::TensorOptions(torch_type(type)).device(at::Device(at::kCUDA, 0)); }

// The first member says by which name they know each other.
ncclComm_t join(Collective& host, const RankGroup& group, std::int32_t own) {
  ncclUniqueId id{};
  auto* const bytes = reinterpret_cast<std::byte*>(&id);
  if (own == 0) {
    nccl_check(ncclGetUniqueId(&id), "making a group");
    for (std::size_t i = 1; i < group.members.size(); ++i) host.send(bytes, sizeof id, group.members[i], group.number);
  } else {
    host.receive(bytes, sizeof id, group.members.front(), group.number);
  }
  ncclComm_t comm = nullptr;
  nccl_check(ncclCommInitRank(&comm, static_cast<int>(group.members.size()), id, own), "joining a group");
  return comm;
}

}  // namespace

struct NcclCollective::Group {
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  // Whoever leaves while a peer is gone must not wait for it: nothing is under way here.
  ~Group() {
    if (comm != nullptr) ncclCommAbort(comm);
  }
  ncclComm_t comm = nullptr;
  std::int32_t members = 1, own = 0;  // and this rank's place among them
};

// A transfer of so many bytes goes by all channels that NCCL has.
constexpr std::int64_t kWarmUpBytes = std::int64_t{64} << 20;

// All ranks join their groups in the order of their numbers, so that none waits for one that waits for it.
NcclCollective::NcclCollective(Collective& host, Rank rank, const DeviceGroups& groups) {
  cuda_check(cudaSetDevice(0), "taking the GPU");
  setenv("NCCL_RUNTIME_CONNECT", "0", /*overwrite=*/0);    // rings and trees now, not at first use
  std::map<std::int32_t, std::pair<RankGroup, bool>> all;  // and whether it is a transfer's
  for (const RankGroup& group : groups.collectives) all[group.number] = {group, false};
  for (const RankGroup& group : groups.transfers) all[group.number] = {group, true};
  for (const auto& [number, entry] : all) {
    const auto& [group, transfers] = entry;
    auto made = std::make_unique<Group>();
    made->members = static_cast<std::int32_t>(group.members.size());
    made->own =
        static_cast<std::int32_t>(std::find(group.members.begin(), group.members.end(), rank) - group.members.begin());
    if (made->own == made->members) throw std::logic_error("a rank is not of its own group");
    made->comm = join(host, group, made->own);
    warm_up(*made, transfers);
    if (transfers)
      pairs_[{group.members[made->own == 0 ? 1 : 0], made->own == 0, transfer_kind(number)}] = std::move(made);
    else
      groups_[number] = std::move(made);
  }
}

NcclCollective::~NcclCollective() = default;

// Connections are made, and kernels loaded, at first use, which waits for the peer on the thread that hands out all
// work: here, where nothing else is under way.
void NcclCollective::warm_up(Group& group, bool transfers) {
  if (transfers) {
    const at::Tensor bytes = at::empty({kWarmUpBytes}, on_gpu(DType::U8));
    nccl_check(group.own == 0 ? ncclSend(bytes.data_ptr(), kWarmUpBytes, ncclUint8, 1, group.comm, stream())
                              : ncclRecv(bytes.data_ptr(), kWarmUpBytes, ncclUint8, 0, group.comm, stream()),
               "the first transfer");
    cuda_check(cudaStreamSynchronize(stream()), "the first transfer");
    return;
  }
  for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
    const at::Tensor whole = at::zeros({group.members}, on_gpu(type)), part = at::zeros({1}, on_gpu(type));
    nccl_check(ncclAllReduce(part.data_ptr(), part.data_ptr(), 1, nccl_type(type), ncclSum, group.comm, stream()),
               "the first all-reduce");
    nccl_check(ncclReduceScatter(whole.data_ptr(), part.data_ptr(), 1, nccl_type(type), ncclSum, group.comm, stream()),
               "the first reduce-scatter");
    nccl_check(ncclAllGather(part.data_ptr(), whole.data_ptr(), 1, nccl_type(type), group.comm, stream()),
               "the first all-gather");
    at::from_blob(part.data_ptr(), {1}, on_gpu(type)).div_(group.members);
    cuda_check(cudaStreamSynchronize(stream()), "the first collectives");
  }
}

NcclCollective::Group& NcclCollective::group(std::int32_t number) {
  const auto found = groups_.find(number);
  if (found == groups_.end()) throw std::logic_error("a collective of a group that the rank is not of");
  return *found->second;
}

NcclCollective::Group& NcclCollective::pair(Rank peer, bool sends, std::int32_t tag) {
  const auto found = pairs_.find({peer, sends, transfer_kind(tag)});
  if (found == pairs_.end()) throw std::logic_error("a transfer of a pair that the rank is not of");
  return *found->second;
}

void NcclCollective::all_reduce_sum(std::int32_t number, std::byte* data, std::int64_t elements, DType type) {
  nccl_check(ncclAllReduce(data, data, static_cast<std::size_t>(elements), nccl_type(type), ncclSum, group(number).comm,
                           stream()),
             "all-reduce");
}

void NcclCollective::all_reduce_mean(std::int32_t number, std::byte* data, std::int64_t elements, DType type) {
  all_reduce_sum(number, data, elements, type);
  at::from_blob(data, {elements}, on_gpu(type)).div_(group(number).members);
}

void NcclCollective::reduce_scatter_sum(std::int32_t number, const std::byte* whole, std::byte* part,
                                        std::int64_t elements, DType type) {
  nccl_check(ncclReduceScatter(whole, part, static_cast<std::size_t>(elements), nccl_type(type), ncclSum,
                               group(number).comm, stream()),
             "reduce-scatter");
}

void NcclCollective::reduce_scatter_mean(std::int32_t number, const std::byte* whole, std::byte* part,
                                         std::int64_t elements, DType type) {
  reduce_scatter_sum(number, whole, part, elements, type);
  at::from_blob(part, {elements}, on_gpu(type)).div_(group(number).members);
}

void NcclCollective::all_gather(std::int32_t number, const std::byte* part, std::byte* whole, std::int64_t bytes) {
  nccl_check(ncclAllGather(part, whole, static_cast<std::size_t>(bytes), ncclUint8, group(number).comm, stream()),
             "all-gather");
}

void NcclCollective::exchange_parts(std::int32_t number, const std::byte* from, std::byte* to, std::int64_t bytes) {
  Group& among = group(number);
  nccl_check(ncclGroupStart(), "beginning an all-to-all");
  for (int member = 0; member < among.members; ++member) {
    const auto count = static_cast<std::size_t>(bytes);
    nccl_check(ncclSend(from + member * bytes, count, ncclUint8, member, among.comm, stream()), "sending a part");
    nccl_check(ncclRecv(to + member * bytes, count, ncclUint8, member, among.comm, stream()), "receiving a part");
  }
  nccl_check(ncclGroupEnd(), "an all-to-all");
}

void NcclCollective::shift(std::int32_t number, const std::byte* from, std::byte* to, std::int64_t bytes, bool back) {
  Group& among = group(number);
  const int next = (among.own + 1) % among.members, before = (among.own + among.members - 1) % among.members;
  const auto count = static_cast<std::size_t>(bytes);
  nccl_check(ncclGroupStart(), "beginning to go round a ring");
  nccl_check(ncclSend(from, count, ncclUint8, back ? before : next, among.comm, stream()), "sending round a ring");
  nccl_check(ncclRecv(to, count, ncclUint8, back ? next : before, among.comm, stream()), "receiving round a ring");
  nccl_check(ncclGroupEnd(), "going round a ring");
}

void NcclCollective::gather_each(std::int32_t number, std::int64_t /*members*/, const std::vector<std::int64_t>& owners,
                                 std::int64_t bytes, const std::vector<std::byte*>& reads,
                                 const std::vector<std::byte*>& writes) {
  Group& among = group(number);
  std::size_t own = 0;
  nccl_check(ncclGroupStart(), "beginning to gather values");
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::byte* const from = owners[i] == among.own ? reads.at(own++) : nullptr;
    nccl_check(ncclBroadcast(from, writes[i], static_cast<std::size_t>(bytes), ncclUint8, static_cast<int>(owners[i]),
                             among.comm, stream()),
               "gathering a value");
  }
  nccl_check(ncclGroupEnd(), "gathering values");
}

void NcclCollective::copy(std::byte* target, const std::byte* source, std::int64_t bytes) {
  cuda_check(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream()),
             "copying what is added up");
}

void NcclCollective::copy_rows(Rows<std::byte> target, Rows<const std::byte> source, std::int64_t bytes,
                               std::int64_t rows) {
  cuda_check(cudaMemcpy2DAsync(target.first, static_cast<std::size_t>(target.pitch), source.first,
                               static_cast<std::size_t>(source.pitch), static_cast<std::size_t>(bytes),
                               static_cast<std::size_t>(rows), cudaMemcpyDeviceToDevice, stream()),
             "bringing parts together");
}

void NcclCollective::add(std::byte* to, const std::byte* more, std::int64_t elements, DType type) {
  at::from_blob(to, {elements}, on_gpu(type))
      .add_(at::from_blob(const_cast<std::byte*>(more), {elements}, on_gpu(type)));
}

void NcclCollective::send(const std::byte* data, std::int64_t bytes, Rank to, std::int32_t tag) {
  nccl_check(ncclSend(data, static_cast<std::size_t>(bytes), ncclUint8, 1, pair(to, true, tag).comm, stream()), "send");
}

void NcclCollective::receive(std::byte* data, std::int64_t bytes, Rank from, std::int32_t tag) {
  nccl_check(ncclRecv(data, static_cast<std::size_t>(bytes), ncclUint8, 0, pair(from, false, tag).comm, stream()),
             "receive");
}

}  // namespace tandem
