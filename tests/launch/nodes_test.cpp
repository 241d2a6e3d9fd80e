// Processes on several machines: a script in place of ssh starts agents on this one.
// SPDX-License-Identifier: Apache-2.0
#include "launch/nodes.h"

#include "host/cli/cli.h"
#include "launch/node/job_place.h"
#include "tests/launch/launch.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class LaunchNodes : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    std::filesystem::create_directory(path("bin"));
    write("bin/ssh", R"(#!/bin/sh
echo "$*" >>"$TEST_LOG.ssh"
while [ "$1" != -- ]; do shift; done
node=$2
case $node in
unknown) echo "ssh: Could not resolve hostname unknown: Name or service not known" >&2; exit 255 ;;
refused) echo "ann@refused: Permission denied (publickey)." >&2; exit 255 ;;
bare) echo "sh: 1: exec: tenon-launch: not found" >&2; exit 127 ;;
older) echo '{"hello":{"version":"0.0.9","host":"older","cores":1}}'; cat >/dev/null; exit 0 ;;
chatty) echo "Welcome to chatty" ;;
once) [ ! -e "$TEST_LOG.once" ] || { echo "ssh: connect to host once port 22: No route to host" >&2; exit 255; }
  touch "$TEST_LOG.once" ;;
mute) [ ! -e "$TEST_LOG.mute" ] || exec sleep 60
  touch "$TEST_LOG.mute" ;;
esac
export TEST_NODE=$node
exec sh -c "$3"
)");
    std::filesystem::permissions(path("bin/ssh"), std::filesystem::perms::owner_all);
    before_ = std::getenv("PATH");
    setenv("PATH", (path("bin") + ":" + before_).c_str(), 1);
  }
  void TearDown() override { setenv("PATH", before_.c_str(), 1); }

  // Returns the numbers of the processes that have started on a node in an epoch.
  [[nodiscard]] std::set<std::string> ranks(const std::string& node, const std::string& epoch) const {
    std::set<std::string> result;
    for (const json& start : notes("start"))
      if (start.at("node") == node && start.at("epoch") == epoch) result.insert(start.at("rank"));
    return result;
  }
  [[nodiscard]] std::string refused(int exit, const std::string& arguments) const {
    const Outcome outcome = launch(arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << ": " << outcome.error;
    return outcome.error;
  }

 private:
  std::string before_;
};

TEST_F(LaunchNodes, EachNodeHasItsProcesses) {
  const std::string error = launched("--nodes 'node0, chatty:2' --set shards=8 --save out.safetensors");
  EXPECT_THAT(error, HasSubstr("process 0 on node0 trains, tests, reports and saves"));
  EXPECT_THAT(error, HasSubstr("processes 1 and 2 on chatty"));
  EXPECT_EQ(ranks("node0", "1"), (std::set<std::string>{"0"}));
  EXPECT_EQ(ranks("chatty", "1"), (std::set<std::string>{"1", "2"}));
  const json start = notes("start").at(0);
  EXPECT_THAT(start.at("address"), testing::MatchesRegex("tcp://node0:[0-9]+"));
  EXPECT_EQ(start.at("words").at(1), path("job.toml")) << "the file is the same there";
  EXPECT_THAT(start.at("words"),
              testing::Contains("--save=" + std::filesystem::canonical(path(".")).string() + "/out.safetensors"));
  EXPECT_THAT(read("log.ssh"), HasSubstr("-o BatchMode=yes"));
}

TEST_F(LaunchNodes, ALostNodeIsLeftOut) {
  actions("1@1 kill 3");
  const std::string error = launched("--nodes node0,once,node2");
  EXPECT_THAT(error, HasSubstr("process 1 on once was ended by signal 9 (Killed)"));
  EXPECT_EQ(notes("start").size(), 6U);
  write("log", "");
  std::filesystem::remove_all(path("ck"));
  std::filesystem::remove(path("log.once"));
  // The agent of the node ends with the connection.
  steps(100'000);
  setenv("TEST_CHECKPOINTS", "", 1);
  actions("");
  Child child = begin("--nodes node0,once,node2");
  ASSERT_TRUE(comes([&] { return notes("start").size() == 3; })) << read("output");
  pid_t agent = 0;
  for (const json& start : notes("start"))
    if (start.at("node") == "once") agent = parent_of(start.at("pid"));
  ASSERT_GT(agent, 1);
  kill(agent, SIGKILL);
  ASSERT_TRUE(comes([&] { return notes("start").size() == 5; })) << read("output");
  EXPECT_THAT(read("output"), AllOf(HasSubstr("process 1 on once is lost"), HasSubstr("No route to host"),
                                    HasSubstr("the training goes on without it")));
  EXPECT_EQ(ranks("node2", "2"), (std::set<std::string>{"1"}));
  EXPECT_THAT(words(4), testing::Contains("--set=shards=3")) << "the bits stay those of three processes";
  child.send(SIGTERM);
  EXPECT_EQ(exit_of(child), 128 + SIGTERM) << read("output");
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchNodes, WhoIsLeftAloneTrainsWithoutServers) {
  steps(100'000);
  setenv("TEST_CHECKPOINTS", "", 1);
  Child child = begin("--nodes node0,once:2 --servers 1");
  ASSERT_TRUE(comes([&] { return notes("start").size() == 3; })) << read("output");
  EXPECT_THAT(words(0), testing::Contains("--servers=1"));
  for (const json& start : notes("start"))
    if (start.at("rank") == "1") kill(parent_of(start.at("pid")), SIGKILL);
  ASSERT_TRUE(comes([&] { return notes("start").size() == 4; })) << read("output");
  EXPECT_THAT(words(3), testing::Not(testing::Contains(HasSubstr("--servers"))));
  EXPECT_THAT(read("output"), AllOf(HasSubstr("process 0 on node0 trains"), HasSubstr("epoch 2")));
  child.send(SIGTERM);
  EXPECT_EQ(exit_of(child), 128 + SIGTERM) << read("output");
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchNodes, ANodeThatDoesNotAnswerAgainIsNotWaitedForLong) {
  steps(100'000);
  setenv("TEST_CHECKPOINTS", "", 1);
  Child child = begin("--nodes node0,mute");
  ASSERT_TRUE(comes([&] { return notes("start").size() == 2; })) << read("output");
  for (const json& start : notes("start"))
    if (start.at("node") == "mute") kill(parent_of(start.at("pid")), SIGKILL);
  ASSERT_TRUE(comes([&] { return notes("start").size() == 3; })) << read("output");
  EXPECT_THAT(read("output"), HasSubstr("mute: no answer for 5 s; the training goes on without it"));
  EXPECT_EQ(ranks("node0", "2"), (std::set<std::string>{"0"}));
  child.send(SIGTERM);
  EXPECT_EQ(exit_of(child), 128 + SIGTERM) << read("output");
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchNodes, AKilledLauncherLeavesNothingBehind) {
  steps(100'000);
  setenv("TEST_CHECKPOINTS", "", 1);
  Child child = begin("--nodes node0:2,node1");
  ASSERT_TRUE(comes([&] { return notes("start").size() == 3; })) << read("output");
  child.send(SIGKILL);
  child.wait();
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchNodes, MistakesNameTheNode) {
  EXPECT_THAT(refused(74, "--nodes node0,unknown"),
              HasSubstr("unknown: ssh has ended with exit code 255: ssh: Could not resolve hostname unknown"));
  EXPECT_THAT(refused(74, "--nodes refused"), HasSubstr("refused: ssh has ended with exit code 255: ann@refused: "
                                                        "Permission denied (publickey)."));
  EXPECT_THAT(refused(66, "--nodes bare"), HasSubstr("bare: tenon-launch is neither where it is here nor in the PATH"));
  EXPECT_THAT(refused(78, "--nodes node0,older"), HasSubstr("older: has tenon 0.0.9, this machine "));
  EXPECT_EQ(notes("start").size(), 0U);
  EXPECT_THAT(refused(64, "--nodes node0,node1 --address node0:99999"), HasSubstr("expected HOST or HOST:PORT"));
}

TEST_F(LaunchNodes, APortThatIsTaken) {
  const TakenPort taken;
  EXPECT_THAT(refused(74, "--nodes node0,node1 --address other:" + taken.text()),
              HasSubstr("node0: port " + taken.text() + " is taken: Address already in use"));
}

TEST_F(LaunchNodes, AJobIsCopiedOnlyIfItNeedsNothingOfItsFolder) {
  const json files = json::array({{{"path", path("job.toml")}, {"text", read("job.toml")}},
                                  {{"path", path("parts/more.toml")}, {"text", "seed = 1\n"}}});
  json plan = {{"path", path("job.toml")}, {"files", files}, {"relative", "key \"save\""}};
  std::filesystem::create_directory(path("parts"));
  write("parts/more.toml", "seed = 1\n");
  using tenon::launch::place_job;
  EXPECT_EQ(place_job(plan, path("copy")), path("job.toml")) << "it is there";
  write("parts/more.toml", "seed = 2\n");
  const auto refusal = [&] {
    try {
      (void)place_job(plan, path("copy"));
    } catch (const tenon::cli::Failure& failure) {
      EXPECT_EQ(failure.exit(), 78);
      return std::string(failure.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal(), path("parts/more.toml") + " differs from that of the launcher");
  std::filesystem::remove(path("job.toml"));
  EXPECT_THAT(refusal(), HasSubstr("and a copy elsewhere would not do: key \"save\" is relative to its folder"));
  plan.erase("relative");
  EXPECT_EQ(place_job(plan, path("copy")), path("copy/job.toml"));
  EXPECT_EQ(read("copy/job.toml"), files[0].at("text"));
  EXPECT_EQ(read("copy/parts/more.toml"), "seed = 1\n");
}

TEST(Nodes, AreParsedAndNumbered) {
  const auto nodes = tenon::launch::parse_nodes("ann@a:2,b, [fe80::1%eth0]:3");
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].name, "ann@a");
  EXPECT_EQ(nodes[0].host(), "a");
  EXPECT_EQ(nodes[1].first, 2);
  EXPECT_EQ(nodes[2].host(), "fe80::1%eth0");
  EXPECT_EQ(tenon::launch::processes_of(nodes), 6);
  for (const char* text : {"", "a b", "a:x", "a:-1", "a:1000000", "::1", "@a", "a@", "a@-b", "a;b"})
    EXPECT_THROW((void)tenon::launch::parse_nodes(text), std::invalid_argument) << text;
}

}  // namespace

}  // namespace tenon_tests
