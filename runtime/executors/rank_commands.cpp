// Commands that ranks do together: collectives, and what one rank sends to another.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/scenario/schedule.hpp"
#include "runtime/executors/live_executor.hpp"
#include "runtime/executors/transfer_tag.hpp"

namespace tandem {

LiveExecutor::Work LiveExecutor::together_work(const Command& command) {
  CHECK(options_.collective != nullptr, "command", command.id, "is of several ranks in a run of one");
  const tandem::Work& work = graph_.work_of(graph_.op(command.op));
  if (is_transfer(work)) return transfer_work(command);
  const bool gathers = work.body == "gather_sums" || work.body == "checkpoint.gather";
  return gathers ? gather_work(command) : collective_work(command);
}

namespace {

// Work::sizes: elements, ranks, how many are of one host; of values whose parts do not lie one after another, what is
// before the ranks' places in what it reads, and in what it writes. The workspace has room for each such value.
void all_to_all(Collective& collective, std::int32_t group, const std::vector<std::int64_t>& sizes, std::byte* read,
                std::byte* write, std::int64_t bytes, std::byte* workspace) {
  const std::int64_t ranks = sizes[1], before = sizes.size() > 3 ? sizes[3] : 1,
                     there = sizes.size() > 3 ? sizes[4] : 1;
  const std::int64_t part = bytes / ranks, row = part / before, row_there = part / there;
  std::byte* const sent = before > 1 ? workspace : read;
  std::byte* const received = there > 1 ? workspace + (before > 1 ? bytes : 0) : write;
  for (std::int64_t m = 0; before > 1 && m < ranks; ++m)
    collective.copy_rows({sent + m * part, row}, {read + m * row, ranks * row}, row, before);
  collective.exchange_parts(group, sent, received, part);
  for (std::int64_t m = 0; there > 1 && m < ranks; ++m)
    collective.copy_rows({write + m * row_there, ranks * row_there}, {received + m * part, row_there}, row_there,
                         there);
}

// Of a shift, as an all-to-all's, and then 1 where each sends to the one before it.
bool shifts_back(const std::vector<std::int64_t>& sizes) { return sizes.size() > 3 && sizes[3] != 0; }

}  // namespace

// By the body's name, as core/transforms has them; each read goes with the write at its place.
LiveExecutor::Work LiveExecutor::collective_work(const Command& command) {
  const Op& op = graph_.op(command.op);
  const std::string_view body = graph_.work_of(op).body;
  if (op.reads.size() == 2 && op.writes.size() == 1 && body == "shift") return adding_shift_work(command);
  // The ranks' sum of a gradient goes to what later readers of the value have made of it, which each of them has whole.
  if (op.reads.size() == 2 && op.writes.size() == 1) {
    CHECK(body == "all_reduce_sum" && op.writes.front().reuses == op.reads.back(), graph_.op_name(command.op));
    const std::int64_t bytes = operand_bytes(op, command, op.reads.front());
    const bool first = graph_.group(op.match_group).front() == options_.rank;  // which adds what all have
    return [collective = options_.collective, summand = operands(command, 0, 1).front(),
            sum = operands(command, 2, 1).front(), bytes, type = graph_.tensor_of(op.reads.front()).type,
            group = op.match_group, first] {
      if (first)
        collective->add(sum, summand, bytes / size_of(type), type);
      else
        collective->copy(sum, summand, bytes);
      collective->all_reduce_sum(group, sum, bytes / size_of(type), type);
      return bytes;
    };
  }
  CHECK(op.reads.size() == op.writes.size(), "a collective writes what it reads:", graph_.op_name(command.op));
  struct Operand {
    std::byte *read, *write;
    std::int64_t read_bytes, bytes;
    DType type;
  };
  const auto reads = operands(command, 0, op.reads.size());
  const auto writes = operands(command, op.reads.size(), op.writes.size());
  std::vector<Operand> all;
  for (std::size_t i = 0; i < writes.size(); ++i)
    all.push_back({reads[i], writes[i], operand_bytes(op, command, op.reads[i]),
                   operand_bytes(op, command, op.writes[i].value), graph_.tensor_of(op.writes[i].value).type});
  return [this, all = std::move(all), body, group = op.match_group, sizes = graph_.work_of(op).sizes,
          workspace = workspace_of(command)] {
    Collective& collective = *options_.collective;
    std::int64_t moved = 0;
    std::vector<Collective::Numbers> bucket;
    for (const Operand& o : all) {
      const std::int64_t elements = o.bytes / size_of(o.type);
      moved += std::max(o.read_bytes, o.bytes);
      if (body == "all_gather") {
        collective.all_gather(group, o.read, o.write, o.read_bytes);
      } else if (body == "all_to_all") {
        all_to_all(collective, group, sizes, o.read, o.write, o.bytes, workspace);
      } else if (body == "shift") {
        collective.shift(group, o.read, o.write, o.bytes, shifts_back(sizes));
      } else if (body == "reduce_scatter_sum") {
        collective.reduce_scatter_sum(group, o.read, o.write, elements, o.type);
      } else if (body == "reduce_scatter") {
        collective.reduce_scatter_mean(group, o.read, o.write, elements, o.type);
      } else {
        if (o.read != o.write) collective.copy(o.write, o.read, o.bytes);
        if (body == "all_reduce_sum")
          collective.all_reduce_sum(group, o.write, elements, o.type);
        else
          bucket.push_back({o.write, elements});
      }
    }
    if (!bucket.empty()) collective.all_reduce_means(group, bucket, all.front().type);
    return moved;
  };
}

// A gradient that comes round a ring goes to what later readers of the value have made of it. The workspace has room
// for it.
LiveExecutor::Work LiveExecutor::adding_shift_work(const Command& command) {
  const Op& op = graph_.op(command.op);
  CHECK(op.writes.front().reuses == op.reads.back(), graph_.op_name(command.op));
  const std::int64_t bytes = operand_bytes(op, command, op.reads.front());
  CHECK(op.workspace_bytes >= bytes, graph_.op_name(command.op), op.workspace_bytes, bytes);
  return
      [collective = options_.collective, from = operands(command, 0, 1).front(), sum = operands(command, 2, 1).front(),
       workspace = workspace_of(command), bytes, type = graph_.tensor_of(op.reads.front()).type, group = op.match_group,
       back = shifts_back(graph_.work_of(op).sizes)] {
        collective->shift(group, from, workspace, bytes, back);
        collective->add(sum, workspace, bytes / size_of(type), type);
        return bytes;
      };
}

// What ranks have one by one, all of one size: all of it, in the order of Work::sizes, which says of each whose it is.
LiveExecutor::Work LiveExecutor::gather_work(const Command& command) {
  const Op& op = graph_.op(command.op);
  auto reads = operands(command, 0, op.reads.size());
  const auto writes = operands(command, op.reads.size(), op.writes.size());
  const std::vector<std::int64_t>& sizes = graph_.work_of(op).sizes;
  const std::vector<std::int64_t> owners(sizes.end() - static_cast<std::ptrdiff_t>(writes.size()), sizes.end());
  const std::int64_t bytes = operand_bytes(op, command, op.writes.front().value);
  const std::vector<Rank>& ranks = graph_.group(op.match_group);
  const auto own = std::find(ranks.begin(), ranks.end(), options_.rank) - ranks.begin();
  reads.resize(static_cast<std::size_t>(std::count(owners.begin(), owners.end(), own)));  // the rest is waited for
  return [collective = options_.collective, reads, writes, owners, bytes, group = op.match_group, members = sizes[1]] {
    collective->gather_each(group, members, owners, bytes, reads, writes);
    return bytes * static_cast<std::int64_t>(writes.size());
  };
}

// What it reads goes to the other rank of its group, or what it writes comes from there.
LiveExecutor::Work LiveExecutor::transfer_work(const Command& command) {
  const Op& op = graph_.op(command.op);
  const std::vector<Rank>& pair = graph_.group(op.match_group);
  CHECK(pair.size() == 2, graph_.op_name(command.op), pair.size());
  const bool sends = pair.front() == options_.rank;
  CHECK(op.reads.size() == (sends ? 1U : 0U) && op.writes.size() == (sends ? 0U : 1U), graph_.op_name(command.op));
  std::byte* const address = operands(command, 0, 1).front();
  const std::int64_t bytes = operand_bytes(op, command, sends ? op.reads.front() : op.writes.front().value);
  const std::int32_t tag = transfer_tag(op.match_group, op.match_sequence);
  const Rank peer = sends ? pair.back() : pair.front();
  const auto transfer = [collective = options_.collective, address, bytes, peer, tag, sends] {
    if (sends)
      collective->send(address, bytes, peer, tag);
    else
      collective->receive(address, bytes, peer, tag);
  };
  if (!options_.lost_peers)
    return [bytes, transfer] {
      transfer();
      return bytes;
    };
  return [lost = options_.lost_peers, peer, bytes, transfer, step = training_step(scenario_, op.step),
          received = sends ? kNone : op.writes.front().value]() -> std::int64_t {
    if (lost->transfer(peer, step, transfer)) return bytes;
    if (received != kNone) lost->note_absent(received);
    return 0;
  };
}

// Of a gradient that another rank sends: where it has not come, what would be updated stays as it is.
LiveExecutor::Work LiveExecutor::update_work(const Command& command) {
  const Op& op = graph_.op(command.op);
  const std::int64_t lead_bytes = graph_.value(op.writes.front().value).bytes;
  CHECK(command.part.bytes == 0 || command.part.bytes == lead_bytes,
        "an update that may have no gradient is made at once:", graph_.op_name(command.op));
  const auto reads = operands(command, 0, op.reads.size());
  const auto writes = operands(command, op.reads.size(), op.writes.size());
  struct Unchanged {
    const std::byte* from;
    std::byte* to;
    std::size_t bytes;
  };
  std::vector<Unchanged> kept;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const auto before = std::find(op.reads.begin(), op.reads.end(), op.writes[i].reuses);
    CHECK(before != op.reads.end(),
          "an update that may have no gradient is made in place:", graph_.op_name(command.op));
    kept.push_back({reads[static_cast<std::size_t>(before - op.reads.begin())], writes[i],
                    static_cast<std::size_t>(graph_.value(op.writes[i].value).bytes)});
  }
  return [lost = options_.lost_peers, gradient = op.reads.front(), kept, update = run_work(command)]() -> std::int64_t {
    if (!lost->take_absent(gradient)) return update();
    for (const Unchanged& value : kept)
      if (value.from != value.to) std::memcpy(value.to, value.from, value.bytes);
    return 0;
  };
}

}  // namespace tandem
