// A program that answers many questions: what is written comes back, and one that crashes takes nothing with it.
#include "cli/serve.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/line_socket.hpp"

namespace tandem {
namespace {

// Says its arguments, or ends as the first tells.
int body(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "crash") std::abort();
  for (int i = 1; i < argc; ++i) std::printf("%s\n", argv[i]);
  std::fputs("words\n", stderr);
  return first == "3" ? 3 : 0;
}

class Served : public ::testing::Test {
 protected:
  Served() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    server_ = ::fork();
    if (server_ == 0) {
      ::close(ends[0]);
      ::_exit(serve(ends[1], false, body));
    }
    ::close(ends[1]);
    socket_ = std::make_unique<LineSocket>(ends[0]);
  }
  ~Served() override {
    socket_.reset();
    int status = 0;
    ::waitpid(server_, &status, 0);
    EXPECT_EQ(status, 0);  // it ends with the socket
  }
  std::string answer(const nlohmann::json& request) {
    socket_->send(request.dump() + "\n");
    return socket_->take(true).value_or("gone");
  }
  nlohmann::json whole(const std::vector<std::string>& arguments) {
    return nlohmann::json::parse(answer({{"arguments", arguments}}));
  }

  pid_t server_ = -1;
  std::unique_ptr<LineSocket> socket_;
};

TEST_F(Served, AListIsAnsweredWithAnExitCode) {
  EXPECT_EQ(answer({"3", "x"}), "3");
  EXPECT_EQ(answer({"0"}), "0");
}

TEST_F(Served, AnObjectIsAnsweredWithAllThatWasWritten) {
  const nlohmann::json reply = whole({"3", "a line\nand a \"second\""});
  EXPECT_EQ(reply,
            (nlohmann::json{{"exit_code", 3}, {"output", "3\na line\nand a \"second\"\n"}, {"errors", "words\n"}}));
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(whole({large}).at("output"), large + "\n");
}

TEST_F(Served, ACrashIsAnAnswer) {
  EXPECT_EQ(whole({"crash"}).at("exit_code"), 128 + SIGABRT);
  EXPECT_EQ(whole({"0"}).at("exit_code"), 0);
  EXPECT_EQ(answer("no request"), "2");
}

}  // namespace
}  // namespace tandem
