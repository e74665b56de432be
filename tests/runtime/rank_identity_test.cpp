// Ranks that are not to do the same find out before the first step, all of them, and say what differs.
#include "runtime/rank_identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "core/base/errors.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class SharedBoard final : public Blackboard {
 public:
  void write(const std::string& key, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    texts_[key] = text;
  }
  std::string read(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    return texts_[key];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

std::vector<std::string> messages_of(const std::vector<RankIdentity>& identities) {
  SharedBoard board;
  std::vector<std::string> messages(identities.size());
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < identities.size(); ++rank)
    ranks.emplace_back([&, rank] {
      try {
        require_same_ranks(board, static_cast<Rank>(rank), static_cast<std::int32_t>(identities.size()),
                           identities[rank], [](const std::string&) {});
      } catch (const DeviceError& error) {
        messages[rank] = error.what();
      }
    });
  for (std::thread& rank : ranks) rank.join();
  return messages;
}

TEST(RankIdentityTest, ADifferenceIsRefusedOnAllRanks) {
  const RankIdentity same{{"scenario", "1"}, {"data", "2"}, {"program", "3"}};
  EXPECT_EQ(messages_of({same, same, same}), std::vector<std::string>(3));
  for (std::size_t part = 0; part < same.size(); ++part)
    for (std::size_t other = 0; other < 3; ++other) {
      std::vector<RankIdentity> ranks(3, same);
      ranks[other][part].second = "other";
      for (const std::string& message : messages_of(ranks)) {
        EXPECT_THAT(message, HasSubstr("have another " + same[part].first));
        EXPECT_THAT(message, HasSubstr("rank " + std::to_string(other)));
      }
    }
}

TEST(RankIdentityTest, ARankThatIsMissingIsNamedWhileItIsWaitedFor) {
  SharedBoard board;
  EXPECT_THROW(require_same_ranks(board, 0, 3, {{"data", "1"}},
                                  [](const std::string& waits_for) {
                                    EXPECT_EQ(waits_for, "rank 1, to begin");
                                    throw DeviceError("enough");
                                  }),
               DeviceError);
}

TEST(RankIdentityTest, HoldsEachByteOfTheDataAndWhatTheScenarioSays) {
  const std::string path = ::testing::TempDir() + "/identity" + std::to_string(::getpid()) + ".txt";
  Scenario scenario;
  scenario.workload.family = "gpt";
  scenario.workload.keys = find_workload("gpt")->keys->small_instance();
  scenario.data_text = path;
  scenario.text = "steps: 3\n";
  const auto identity = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return identity_of(scenario, {});
  };
  std::string text(200'001, 'a');
  const RankIdentity before = identity(text);
  EXPECT_EQ(identity(text), before);
  for (const std::size_t at : {std::size_t{0}, std::size_t{65'536}, text.size() - 1}) {
    std::string changed = text;
    changed[at] = 'b';
    EXPECT_NE(identity(changed)[1], before[1]) << at;
    EXPECT_EQ(identity(changed)[0], before[0]);
  }
  EXPECT_NE(identity(text + "a")[1], before[1]);
  scenario.text = "steps: 4\n";
  EXPECT_NE(identity(text)[0], before[0]);
  EXPECT_EQ(identity(text)[1], before[1]);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tandem
