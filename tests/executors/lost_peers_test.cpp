// A rank that goes on without another: what was to come from that one is left out, and so are updates by it.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "tests/executors/executor_fixture.hpp"

namespace tandem {
namespace {

// Rank 1's gradients are full of sevens, then of nines, until it is lost: all calls after that fail.
class OnePeer final : public Collective {
 public:
  void all_reduce_mean(std::int32_t, std::byte*, std::int64_t, DType) override {}
  void all_reduce_sum(std::int32_t, std::byte*, std::int64_t, DType) override {}
  void reduce_scatter_mean(std::int32_t, const std::byte*, std::byte*, std::int64_t, DType) override {}
  void reduce_scatter_sum(std::int32_t, const std::byte*, std::byte*, std::int64_t, DType) override {}
  void exchange_parts(std::int32_t, const std::byte*, std::byte*, std::int64_t) override {}
  void shift(std::int32_t, const std::byte*, std::byte*, std::int64_t, bool) override {}
  void all_gather(std::int32_t, const std::byte*, std::byte*, std::int64_t) override {}
  void send(const std::byte*, std::int64_t, Rank, std::int32_t) override { call(); }
  void receive(std::byte* data, std::int64_t bytes, Rank, std::int32_t) override {
    std::memset(data, 7 + calls, static_cast<std::size_t>(bytes));
    call();
  }
  int calls = 0, good = 0;

 private:
  void call() {
    if (++calls > good) throw DeviceError("connection closed by peer");
  }
};

class LostPeersTest : public ExecutorTest {
 protected:
  static constexpr std::int64_t kGradient = 0, kParameter = kValueBytes;
  using Lost = std::vector<std::pair<Rank, std::int32_t>>;

  LostPeersTest() {
    graph_.add_group(0, {1, 0});
    graph_.add_group(1, {0, 1});
    const auto tensor = [&](const char* name) {
      Tensor made;
      made.name = name;
      made.bytes = kValueBytes;
      return graph_.add_tensor(made);
    };
    gradient_ = tensor("gradient"), parameter_ = tensor("parameter");
  }
  // As a server has them: a gradient comes from rank 1; the parameter, full of fives, becomes one more than that, and
  // goes back. Twice. Returns whether all ended well.
  bool serve_twice(const std::vector<Rank>& spared, int good) {
    peer_->good = good;
    options_.collective = peer_;
    options_.lost_peers =
        std::make_shared<LostPeers>(spared, [this](Rank rank, std::int32_t step) { lost_.emplace_back(rank, step); });
    start(options_);
    std::vector<Command> commands{step_of("test.fill", {}, parameter_, kNone, Engine::Compute, kNone, {kParameter, 0})};
    for (std::int32_t step = 0; step < 2; ++step) {
      const ValueId before = graph_.tensor(parameter_).latest;
      commands.push_back(step_of("receive", {}, gradient_, kNone, Engine::P2P, step, {kGradient, 0}));
      commands.push_back(step_of("test.increment", {graph_.tensor(gradient_).latest, before}, parameter_, before,
                                 Engine::Compute, step, {kGradient, kParameter, kParameter, 0}));
      commands.push_back(
          step_of("send", {graph_.tensor(parameter_).latest}, kNone, kNone, Engine::P2P, step, {kParameter, 0}));
    }
    executor_->submit(commands);
    bool well = true;
    for (const auto& [id, event] : drain()) well = well && event.outcome == Outcome::Finished;
    return well;
  }

  std::shared_ptr<OnePeer> peer_ = std::make_shared<OnePeer>();
  TensorId gradient_ = kNone, parameter_ = kNone;
  Lost lost_;

 private:
  // Each waits for the one before.
  Command step_of(const std::string& body, std::vector<ValueId> reads, TensorId writes, ValueId reuses, Engine engine,
                  std::int32_t step, const std::vector<std::int64_t>& offsets) {
    Op op;
    op.label = graph_.intern(body);
    Work work;
    work.body = body;
    work.sizes = {5};
    op.work = graph_.add_work(work);
    op.engine = engine;
    op.engines = engine_bit(engine);
    op.step = step;
    op.phase = body == "test.increment" ? Phase::OptimizerStep : Phase::Load;
    if (engine == Engine::P2P) op.match_group = body == "send" ? 1 : 0, op.match_sequence = step;
    op.reads.assign(reads.begin(), reads.end());
    if (writes != kNone) op.writes.push_back({graph_.new_version(writes), reuses});
    const OpId id = graph_.append(op);
    Command command;
    command.id = next_id_++;
    command.kind = CommandKind::Run;
    command.lane.index = engine;
    command.op = id;
    command.operands.assign(offsets.begin(), offsets.end());
    if (command.id > 0) command.wait_for.push_back(command.id - 1);
    return command;
  }
};

TEST_F(LostPeersTest, IsMissedByNobodyWhereItIsThere) {
  EXPECT_TRUE(serve_twice({1}, 4));
  EXPECT_EQ(lost_, Lost());
  EXPECT_EQ(bytes_at({0, Tier::Device, kParameter}), std::vector<std::uint8_t>(kValueBytes, 10));
}

// Bytes were there, but nobody says that all of them were: they are no gradient.
TEST_F(LostPeersTest, LeavesTheParameterAsItWas) {
  EXPECT_TRUE(serve_twice({1}, 0));
  EXPECT_EQ(lost_, (Lost{{1, 0}}));
  EXPECT_EQ(peer_->calls, 1) << "nobody asks it again";
  EXPECT_EQ(bytes_at({0, Tier::Device, kParameter}), std::vector<std::uint8_t>(kValueBytes, 5));
}

TEST_F(LostPeersTest, IsLostFromTheStepOnInWhichItWasMissed) {
  EXPECT_TRUE(serve_twice({1}, 2));
  EXPECT_EQ(lost_, (Lost{{1, 1}}));
  EXPECT_EQ(bytes_at({0, Tier::Device, kParameter}), std::vector<std::uint8_t>(kValueBytes, 8));
}

TEST_F(LostPeersTest, OthersFailTheCommandThatNeedsThem) {
  EXPECT_FALSE(serve_twice({2}, 2));
  EXPECT_EQ(lost_, Lost());
}

}  // namespace
}  // namespace tandem
