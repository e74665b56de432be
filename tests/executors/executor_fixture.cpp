#include "tests/executors/executor_fixture.hpp"

#include <cstring>
#include <stdexcept>

#include "runtime/executors/workspace.hpp"

namespace tandem {
namespace {

// Fills the write with the byte sizes[0].
std::int64_t fill(BodyCall& call) {
  std::memset(call.writes[0], static_cast<int>(call.work.sizes[0]), static_cast<std::size_t>(call.bytes));
  return call.work.sizes[0];
}

// Adds one to each byte, from the read to the write.
std::int64_t increment(BodyCall& call) {
  for (std::int64_t i = 0; i < call.bytes; ++i)
    call.writes[0][i] = static_cast<std::byte>(static_cast<int>(call.reads[0][i]) + 1);
  return call.first_byte;
}

// Sums the bytes of the read.
std::int64_t sum(BodyCall& call) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < call.graph.value(call.op.reads[0]).bytes; ++i)
    total += static_cast<std::int64_t>(call.reads[0][i]);
  return total;
}

// Takes the sizes from the workspace, one after the other, all freed at the end.
std::int64_t allocate(BodyCall& call) {
  WorkspaceScope& scope = *WorkspaceScope::current();
  std::vector<void*> held;
  for (std::int64_t bytes : call.work.sizes) held.push_back(scope.allocate(static_cast<std::size_t>(bytes)));
  for (void* address : held) scope.free(address);
  return static_cast<std::int64_t>(held.size());
}

void* leaked = nullptr;

std::int64_t leak(BodyCall& call) {
  leaked = WorkspaceScope::current()->allocate(static_cast<std::size_t>(call.work.sizes[0]));
  return 0;
}

std::int64_t nothing(BodyCall&) { return 0; }

std::int64_t fail(BodyCall&) { throw std::runtime_error("the device is on fire"); }

}  // namespace

bool take_leaked_back() { return WorkspaceScope::take_back(leaked); }

const BodyEntry& find_test_body(const Work& work) {
  static constexpr BodyEntry kBodies[] = {{"test.fill", &fill},      {"test.increment", &increment, kRepeatable},
                                          {"test.sum", &sum},        {"test.allocate", &allocate},
                                          {"test.leak", &leak},      {"test.fail", &fail, kRepeatable},
                                          {"test.nothing", &nothing}};
  return *std::find_if(std::begin(kBodies), std::end(kBodies), [&](const BodyEntry& b) { return b.name == work.body; });
}

ExecutorTest::ExecutorTest() {
  constexpr std::int64_t kArenaBytes = 1 << 20;
  options_.arena_bytes.fill(kArenaBytes);
  options_.scratch_directory = ::testing::TempDir();
  options_.library.find_body = &find_test_body;
}

void ExecutorTest::start(LiveExecutorOptions options) {
  executor_ = std::make_unique<LiveExecutor>(graph_, scenario_, data_, std::move(options));
}

ValueId ExecutorTest::append(const std::string& body, std::vector<ValueId> reads, std::vector<std::int64_t> sizes,
                             std::int64_t workspace_bytes, bool divisible, std::int64_t bytes) {
  Tensor tensor;
  tensor.name = body;
  tensor.bytes = bytes;
  Work work;
  work.body = body;
  work.sizes = std::move(sizes);
  Op op;
  op.label = graph_.intern(body);
  op.work = graph_.add_work(work);
  for (int engine = 0; engine < kEngineCount; ++engine) op.engines |= engine_bit(static_cast<Engine>(engine));
  op.workspace_bytes = workspace_bytes;
  op.divisible = divisible;
  op.reads.assign(reads.begin(), reads.end());
  const ValueId value = graph_.new_version(graph_.add_tensor(tensor));
  op.writes.push_back({value, kNone});
  graph_.append(op);
  return value;
}

Command ExecutorTest::command(CommandKind kind, Engine engine, const std::vector<CommandId>& waits) {
  Command made;
  made.id = next_id_++;
  made.kind = kind;
  made.lane.index = engine;
  for (CommandId id : waits) made.wait_for.push_back(id);
  return made;
}

Command ExecutorTest::run(ValueId produces, Engine engine, const std::vector<std::int64_t>& offsets,
                          const std::vector<CommandId>& waits) {
  Command made = command(CommandKind::Run, engine, waits);
  made.op = graph_.value(produces).producer;
  made.part = {produces, 0, graph_.value(produces).bytes};
  for (std::int64_t offset : offsets) made.operands.push_back(offset);
  return made;
}

Command ExecutorTest::copy(Engine engine, Place source, Place target, std::int64_t bytes,
                           const std::vector<CommandId>& waits) {
  Command made = command(CommandKind::Copy, engine, waits);
  made.source = source;
  made.target = target;
  made.part = {0, 0, bytes};
  return made;
}

Command ExecutorTest::release(Place source, std::int64_t bytes, const std::vector<CommandId>& waits) {
  Command made = command(CommandKind::Release, Engine::Compute, waits);
  made.source = source;
  made.part = {0, 0, bytes};
  return made;
}

std::map<CommandId, Event> ExecutorTest::drain() {
  std::map<CommandId, Event> events;
  while (executor_->in_flight())
    for (Event& event : executor_->wait(kNever).events) {
      const CommandId id = event.command;
      EXPECT_TRUE(events.emplace(id, std::move(event)).second) << "two events of command " << id;
    }
  return events;
}

std::vector<std::uint8_t> ExecutorTest::bytes_at(Place place, std::int64_t bytes) {
  std::vector<std::byte> raw(static_cast<std::size_t>(bytes));
  executor_->read(place, raw.data(), bytes);
  std::vector<std::uint8_t> out;
  for (std::byte b : raw) out.push_back(static_cast<std::uint8_t>(b));
  return out;
}

}  // namespace tandem
