// What stands where an input file should be is named before anything waits for it.
#include "core/base/input_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/run/load.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class InputFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/tandem-input-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ::alarm(60);  // what waits for a writer ends here
  }
  void TearDown() override {
    ::alarm(0);
    fs::remove_all(folder_);
  }
  std::string named_pipe() const {
    const std::string path = folder_ + "/pipe.yaml";
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  std::string socket() const {
    const std::string path = folder_ + "/socket";
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(descriptor);
    return path;
  }
  static std::string refusal(const std::string& path) {
    try {
      read_text_file(path);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "read";
  }

  std::string folder_;
};

TEST_F(InputFileTest, WhatIsNoFileIsNamed) {
  EXPECT_EQ(other_than_a_file(folder_), "a folder");
  EXPECT_EQ(other_than_a_file(named_pipe()), "a named pipe");
  EXPECT_EQ(other_than_a_file(socket()), "a socket");
  EXPECT_EQ(other_than_a_file("/dev/zero"), "a device");
  EXPECT_EQ(other_than_a_file("/dev/null"), "a device");
  EXPECT_EQ(other_than_a_file(folder_ + "/none"), "") << "opening it says why";
  const std::string file = folder_ + "/file", link = folder_ + "/link";
  std::ofstream(file) << "a: 1\n";
  fs::create_symlink(file, link);
  EXPECT_EQ(other_than_a_file(file), "");
  EXPECT_EQ(other_than_a_file(link), "");
  fs::remove(link);
  fs::create_symlink(folder_ + "/pipe.yaml", link);
  EXPECT_EQ(other_than_a_file(link), "a named pipe") << "under another name";
}

TEST_F(InputFileTest, ScenariosAndProfilesAreRefusedAtOnce) {
  for (const auto& [path, what] : {std::pair{folder_, "a folder"}, std::pair{named_pipe(), "a named pipe"},
                                   std::pair{socket(), "a socket"}, std::pair{std::string("/dev/zero"), "a device"}}) {
    EXPECT_EQ(refusal(path), path + ":1:1: file: is " + what + "; allowed: a readable YAML file");
    EXPECT_THROW(load_scenario(path), ConfigError);
    EXPECT_THROW(load_profile(path), ConfigError);
    EXPECT_THROW(check_file(path), ConfigError);
  }
}

TEST_F(InputFileTest, APipeThatAShellHandsOverIsRead) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "a: 1\n", 5), 5);
  ::close(ends[1]);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(other_than_a_file(path), "a pipe");
  EXPECT_EQ(why_not_read(path), "");
  EXPECT_EQ(read_text_file(path), "a: 1\n");
  ::close(ends[0]);
}

// A checked scenario is read once: the second time, a pipe is empty.
TEST_F(InputFileTest, CheckReadsAPipeOnce) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text =
      "machine: round_numbers\nworkload: {family: mlp, layers: 2, hidden: 8, inputs: 4, classes: 2}\nsteps: 1\n";
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  EXPECT_EQ(check_file("/dev/fd/" + std::to_string(ends[0])).kind, CheckedFile::Kind::Scenario);
  ::close(ends[0]);
}

TEST_F(InputFileTest, BytesAreBoundedWhateverAFileSaysOfItsSize) {
  const std::string file = folder_ + "/file";
  std::ofstream(file) << std::string(100, 'x');
  EXPECT_EQ(read_input_file(file, 100).size(), 100u);
  const auto why = [](const std::string& path, std::int64_t most) -> std::string {
    try {
      read_input_file(path, most);
    } catch (const UnreadableFile& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(why(file, 99), "is larger than 99 bytes");
  fs::resize_file(file, std::uintmax_t{1} << 40);  // a terabyte of nothing
  EXPECT_EQ(why(file, 1 << 20), "is larger than 1048576 bytes");
  EXPECT_EQ(why("/proc/self/status", 10), "is larger than 10 bytes") << "its size is 0";
  EXPECT_EQ(why(folder_ + "/none", 10), "cannot be opened: No such file or directory");
}

TEST_F(InputFileTest, APipeIsAFileOnlyWhereItMayBeOne) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[1]);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_THROW(InputFile{path}, UnreadableFile);
  EXPECT_EQ(read_input_file(path, 10, Pipes::Read), "");
  ::close(ends[0]);
}

}  // namespace
}  // namespace tandem
