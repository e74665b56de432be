// The k-th memory that LibTorch asks for in three training steps is refused, in a body's workspace or outside of it
// (R15): the run ends with an error that says what to do, and what is left are checkpoints of whole steps, those of a
// run without it to the bit. TANDEM_EVERY_ALLOCATION=1: for every k; else some of them.
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/base/errors.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/torch_allocator.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/fuzz.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kSome = 40;

// Over the runtime's, which serves workspaces.
class RefusingAllocator final : public c10::Allocator {
 public:
  explicit RefusingAllocator(c10::Allocator* allocator) : allocator_(allocator) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes > 0 && asked++ == refused) throw DeviceError("out of memory: planned; lower limits.host_bytes");
    return allocator_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return allocator_->raw_deleter(); }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }

  std::atomic<std::int64_t> asked = 0, refused = -1;

 private:
  c10::Allocator* allocator_;
};

RefusingAllocator& allocator() {
  static RefusingAllocator& instance = []() -> RefusingAllocator& {
    install_workspace_allocator();
    auto* over = new RefusingAllocator(c10::GetCPUAllocator());  // as long as the process: tensors outlive all else
    c10::SetCPUAllocator(over, /*priority=*/255);
    return *over;
  }();
  return instance;
}

using Files = std::map<std::string, std::string>;

std::map<std::int32_t, Files> checkpoints_in(const std::string& directory) {
  std::map<std::int32_t, Files> out;
  for (const SavedState& saved : complete_checkpoints(directory)) {
    const Manifest manifest = read_manifest(saved.folder);
    EXPECT_NO_THROW(verify_files(saved.folder, manifest));
    for (const Manifest::File& file : manifest.files) {
      std::ifstream in(saved.folder + "/" + file.name, std::ios::binary);
      out[saved.step][file.name] = {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    }
  }
  return out;
}

class MemoryFaultsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    set_thread_count(1);
    std::string name = (fs::is_directory("/dev/shm") ? "/dev/shm" : ::testing::TempDir()) + "/tandem-memory-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  Scenario scenario() const {
    const bool resident = GetParam() == std::string("resident");
    Scenario s = testing::gpt_scenario(GetParam(), resident ? 8 * kMiB : 2 * kMiB, 2);
    s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 64 * kMiB;
    s.workload.keys["hidden"] = 16;
    s.workload.keys["heads"] = 2;
    s.workload.keys["sequence"] = 8;
    s.workload.micro_batches = 2;
    s.workload.precision = DType::BF16;
    s.checkpoint = {directory_ + "/saved", 1, 10};
    return s;
  }
  // What the run ends with.
  static std::string train(const Scenario& scenario, std::int64_t refused) {
    allocator().asked = 0;
    allocator().refused = refused;
    std::string error;
    try {
      Training training(scenario);
      training.run();
    } catch (const DeviceError& failure) {
      error = failure.what();
    }
    allocator().refused = -1;
    return error;
  }

  std::string directory_;
};

TEST_P(MemoryFaultsTest, ARefusalAtTheKthLeavesTheStepWholeOrNotBegun) {
  allocator();
  const Scenario s = scenario();
  ASSERT_EQ(train(s, -1), "");
  const std::int64_t asked = allocator().asked;
  const std::map<std::int32_t, Files> clean = checkpoints_in(s.checkpoint.directory);
  ASSERT_EQ(clean.size(), 3U);
  const std::int64_t stride =
      test::number_from("TANDEM_EVERY_ALLOCATION", 0) != 0 ? 1 : std::max<std::int64_t>(asked / kSome, 1);
  std::int64_t runs = 0;
  for (std::int64_t k = stride / 3; k < asked && !HasFailure(); k += stride, ++runs) {
    SCOPED_TRACE("memory " + std::to_string(k) + " of " + std::to_string(asked));
    fs::remove_all(s.checkpoint.directory);
    const std::string error = train(s, k);
    EXPECT_THAT(error, HasSubstr("out of memory"));
    EXPECT_THAT(error, HasSubstr("lower limits.host_bytes"));
    for (const auto& [step, files] : checkpoints_in(s.checkpoint.directory)) {
      ASSERT_TRUE(clean.contains(step)) << step;
      EXPECT_TRUE(files == clean.at(step)) << "the checkpoint after training step " << step;
    }
  }
  std::cout << runs << " of " << asked << " refused, one a run\n";
  EXPECT_GT(runs, kSome / 2);
}

INSTANTIATE_TEST_SUITE_P(Policies, MemoryFaultsTest, ::testing::Values("zero_offload", "resident"));

// The same error where the system has no more: LibTorch's own says nothing of what to do.
TEST(MemoryRefusal, OfTheSystemSaysWhatToDo) {
  install_workspace_allocator();
  try {
    const auto memory = c10::GetCPUAllocator()->allocate(std::size_t{1} << 60);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("out of memory: LibTorch was refused 1152921504606846976 bytes"));
    EXPECT_THAT(error.what(), HasSubstr("lower limits.host_bytes"));
  }
}

}  // namespace
}  // namespace tandem
