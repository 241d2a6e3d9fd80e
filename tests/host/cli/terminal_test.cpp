// The output of the program to a terminal and to a pipe, and its end by signals. SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>

#include <csignal>
#include <thread>

#include "host/cli/console.h"
#include "host/cli/interrupt.h"
#include "host/cli/report.h"
#include "tests/host/cli/calls.h"
#include "tests/support/child.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::chrono::milliseconds kSoon(5);

// A pseudoterminal: read() reads the output that is written to descriptor().
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = columns;
    if (openpty(&here_, &there_, nullptr, nullptr, &size) != 0) throw std::runtime_error("no terminal");
  }
  ~Terminal() {
    close(here_);
    if (there_ >= 0) close(there_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] int descriptor() const { return there_; }
  void leave_to_child() {
    close(there_);
    there_ = -1;
  }
  // Appends the output of the next `wait` milliseconds; returns false at the end.
  bool read(std::string& to, int wait) const {
    pollfd ready = {here_, POLLIN, 0};
    if (poll(&ready, 1, wait) <= 0) return true;
    char bytes[4096];
    const ssize_t length = ::read(here_, bytes, sizeof bytes);
    if (length <= 0) return false;
    to.append(bytes, static_cast<size_t>(length));
    return true;
  }

 private:
  int here_ = -1, there_ = -1;
};

// The program as a child process. out, error: its standard streams; -1: /dev/null.
class Program {
 public:
  Program(const std::vector<std::string>& words, int out, int error)
      : process_([&] {
          std::vector<std::string> all = words;
          all.insert(all.begin(), tenon_tests::program());
          const int null = open("/dev/null", O_RDWR);
          dup2(null, STDIN_FILENO);
          dup2(out < 0 ? null : out, STDOUT_FILENO);
          dup2(error < 0 ? null : error, STDERR_FILENO);
          become(all);
        }) {}

  void send(int signal) const { process_.send(signal); }
  // Waits until the child handles the signal, or if not `there`, until it no longer does.
  void wait_for_handler(int signal, bool there) const {
    for (int i = 0; i < 4000; ++i) {
      std::ifstream file("/proc/" + std::to_string(process_.id()) + "/status");
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      const size_t at = text.find("SigCgt:");
      ASSERT_NE(at, std::string::npos) << "the child has ended";
      if ((std::stoull(text.substr(at + 7), nullptr, 16) >> (signal - 1) & 1) == (there ? 1 : 0)) return;
      std::this_thread::sleep_for(kSoon);
    }
    FAIL() << "waited too long for a change of the handler of signal " << signal;
  }
  // Waits for the end of the child; returns its exit code, 128 + n after signal n.
  int exit() { return ChildEnd{"", process_.wait(), false}.code(); }

 private:
  Child process_;
};

// ---- the console by itself

class ConsoleTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
  }
  void TearDown() override { setenv("TERM", "dumb", 1); }

  // Returns the output of `act` to standard output and to standard error, which is a terminal of `columns` columns.
  std::pair<std::string, std::string> written(unsigned short columns, bool quiet,
                                              const std::function<void(Console&)>& act,
                                              LogFormat format = LogFormat::kText) const {
    const Terminal terminal(columns);
    const int before = dup(STDERR_FILENO);
    std::ostringstream out, error;
    {
      const Redirected to_out(std::cout, *out.rdbuf()), to_error(std::cerr, *error.rdbuf());
      dup2(terminal.descriptor(), STDERR_FILENO);
      {
        Console console(format, quiet);
        act(console);
      }
      dup2(before, STDERR_FILENO);
    }
    close(before);
    return {out.str(), error.str()};
  }
};

TEST_F(ConsoleTest, ABarIsColouredAndCleared) {
  const auto half = [](Console& console) { console.bar("pass 1/2", 0.5, "cost 1.0000"); };
  EXPECT_EQ(written(80, false, half).second,
            "\r\033[Kpass 1/2  \033[32m[============............]  50 %\033[0m  cost 1.0000\r\033[K");
  setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(written(80, false, half).second, "\r\033[Kpass 1/2  [============............]  50 %  cost 1.0000\r\033[K");
  setenv("NO_COLOR", "", 1);
  EXPECT_THAT(written(80, false, half).second, HasSubstr("\033[32m")) << "an empty NO_COLOR counts as unset";
}

TEST_F(ConsoleTest, ABarFitsIntoTheTerminal) {
  setenv("NO_COLOR", "1", 1);
  const auto bar = [](double share) {
    return [share](Console& console) { console.bar("pass 1/2", share, "cost 1.0000"); };
  };
  const auto shown_in = [&](unsigned short columns, double share) {
    const std::string text = written(columns, false, bar(share)).second;
    EXPECT_THAT(text, AllOf(StartsWith("\r\033[K"), EndsWith("\r\033[K")));
    return text.substr(4, text.size() - 8);
  };
  EXPECT_EQ(shown_in(20, 0.5), "pass 1/2  [========") << "19 characters: a wrapped line could not be cleared";
  EXPECT_EQ(shown_in(1, 0.5), "");
  EXPECT_EQ(shown_in(2, 0.5), "p");
  EXPECT_EQ(shown_in(0, 1).size(), 55u) << "a terminal of unknown width counts as 80 columns";
  EXPECT_EQ(shown_in(200, 0), "pass 1/2  [........................]   0 %  cost 1.0000");
  EXPECT_EQ(shown_in(200, 1), "pass 1/2  [========================] 100 %  cost 1.0000");
  EXPECT_EQ(shown_in(200, 7), "pass 1/2  [========================] 100 %  cost 1.0000");
  EXPECT_EQ(shown_in(200, -1), "pass 1/2    cost 1.0000") << "the end is unknown";
}

TEST_F(ConsoleTest, ColourIsLeftOutWhereItsEndWouldBeCutOff) {
  const auto half = [](Console& console) { console.bar("pass 1/2", 0.5, "cost"); };
  EXPECT_THAT(written(42, false, half).second, Not(HasSubstr("\033[32m")));
  EXPECT_THAT(written(43, false, half).second, EndsWith("50 %\033[0m\r\033[K"));
  EXPECT_THAT(written(80, false, [](Console& console) { console.bar("a", -1, "b"); }).second,
              Not(HasSubstr("\033[32m")));
}

TEST_F(ConsoleTest, LinesReplaceTheBar) {
  const auto [out, error] = written(80, false, [](Console& console) {
    console.bar("a", -1, "b");
    console.line("result");
    console.line("more");
    console.bar("a", -1, "b");
    console.note("remark");
    console.bar("a", -1, "b");
    console.warn("beware");
    console.event({{"event", "none"}});
  });
  EXPECT_EQ(out, "result\nmore\n");
  const std::string bar = "\r\033[Ka    b", clear = "\r\033[K";
  EXPECT_EQ(error, bar + clear + bar + clear + "remark\n" + bar + clear + "\033[33mwarning:\033[0m beware\n");
}

TEST_F(ConsoleTest, JsonHasEventsInsteadOfLines) {
  const auto both = [](Console& console) {
    console.line("result");
    console.bar("a", -1, "b");
    console.event({{"event", "saved"}, {"path", "\xff"}});
  };
  const auto [out, error] = written(80, false, both, LogFormat::kJson);
  EXPECT_EQ(out, "{\"event\":\"saved\",\"path\":\"\xEF\xBF\xBD\"}\n");
  EXPECT_EQ(error, "\r\033[Ka    b\r\033[K");
}

TEST_F(ConsoleTest, BarsAreDueNowAndThenOnATerminalAlone) {
  const auto waits = [](Console& console) {
    EXPECT_FALSE(console.bar_is_due()) << "not at once";
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    const bool due = console.bar_is_due();
    if (due) console.bar("a", -1, "b");
    std::cout << due << (due && console.bar_is_due());
  };
  EXPECT_EQ(written(80, false, waits).first, "10");
  EXPECT_EQ(written(80, true, waits).first, "00") << "quiet";
  setenv("TERM", "dumb", 1);
  EXPECT_EQ(written(80, false, waits).first, "00");
  unsetenv("TERM");
  EXPECT_EQ(written(80, false, waits).first, "00");
}

TEST_F(ConsoleTest, TheBarHasTheMeanCostOfItsPass) {
  const auto two_passes = [](Console& console) {
    Report report(console, 2, 8);
    tn_event told = {};
    told.size = sizeof told;
    const auto tell = [&](int32_t kind) {
      told.kind = kind;
      report.tell(Event(&told));
    };
    for (told.pass = 0; told.pass < 2; ++told.pass) {
      told.samples = 0;
      tell(TN_BEGIN_PASS);
      told.samples = 4;
      told.cost = 0.25 + static_cast<double>(told.pass);
      std::this_thread::sleep_for(std::chrono::milliseconds(110));  // until a bar is due
      tell(TN_END_ITERATION);
    }
  };
  EXPECT_THAT(written(80, false, two_passes).second, AllOf(HasSubstr("cost 0.2500"), HasSubstr("cost 1.2500")));
}

TEST_F(ConsoleTest, QuietKeepsResultsAndWarnings) {
  const auto [out, error] = written(80, true, [](Console& console) {
    console.line("result");
    console.note("remark");
    console.warn("beware");
  });
  EXPECT_EQ(out, "result\n");
  EXPECT_EQ(error, "\033[33mwarning:\033[0m beware\n");
  setenv("TERM", "dumb", 1);
  EXPECT_EQ(written(80, true, [](Console& console) { console.warn("beware"); }).second, "warning: beware\n");
}

TEST(ShownTest, NumbersTimesAndSizes) {
  EXPECT_EQ(shown(0.0), "0.0000");
  EXPECT_EQ(shown(0.53125), "0.5312");
  EXPECT_EQ(shown(0.01), "0.0100");
  EXPECT_EQ(shown(0.009999), "0.009999");
  EXPECT_EQ(shown(-0.00123456), "-0.001235");
  EXPECT_EQ(shown(999999.0), "999999.0000");
  EXPECT_EQ(shown(1e6), "1e+06");
  EXPECT_EQ(shown(std::nan("")), "nan");
  EXPECT_EQ(shown_seconds(0.04), "0.0 s");
  EXPECT_EQ(shown_seconds(9.94), "9.9 s");
  EXPECT_EQ(shown_seconds(10), "0:10");
  EXPECT_EQ(shown_seconds(65.4), "1:05");
  EXPECT_EQ(shown_seconds(3599.4), "59:59");
  EXPECT_EQ(shown_seconds(3599.6), "1:00:00");
  EXPECT_EQ(shown_seconds(7384), "2:03:04");
  EXPECT_EQ(shown_seconds(1e9), "-");
  EXPECT_EQ(shown_seconds(std::nan("")), "-");
  EXPECT_EQ(shown_bytes(0), "0 B");
  EXPECT_EQ(shown_bytes(1023), "1023 B");
  EXPECT_EQ(shown_bytes(1024), "1.0 KiB");
  EXPECT_EQ(shown_bytes(1536), "1.5 KiB");
  EXPECT_EQ(shown_bytes(1 << 20), "1.0 MiB");
  EXPECT_EQ(shown_bytes(uint64_t{1} << 40), "1.0 TiB");
  EXPECT_EQ(shown_bytes(uint64_t{5} << 50), "5120.0 TiB");
  EXPECT_TRUE(number(std::nan("")).is_null());
  EXPECT_EQ(number(0.5), 0.5);
}

// ---- the program

class TerminalTest : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
  }
  void TearDown() override {
    setenv("TERM", "dumb", 1);
    CallTest::TearDown();
  }
  static Arguments for_ever(const Arguments& more = {}) {
    Arguments result = {"train", "job.toml", "--passes", "1000000000", "--no-save"};
    result.insert(result.end(), more.begin(), more.end());
    return result;
  }
};

TEST_F(TerminalTest, ProgressOnANarrowTerminalEndsWithAWholeLine) {
  Terminal terminal(30);
  Program child(for_ever(), -1, terminal.descriptor());
  terminal.leave_to_child();
  std::string text;
  const auto two_bars = [&] { return text.find("pass ", text.find("pass ") + 1) != std::string::npos; };
  for (int i = 0; i < 100 && (text.empty() || !two_bars()); ++i) ASSERT_TRUE(terminal.read(text, 100));
  child.send(SIGINT);
  while (terminal.read(text, 10000)) {
  }
  EXPECT_EQ(child.exit(), 130);
  ASSERT_THAT(text, StartsWith("\r\033[Kpass "));
  size_t bars = 0;
  std::istringstream parts(text.substr(4));
  for (std::string part; std::getline(parts, part, '\r') && part.find("warning") == std::string::npos; ++bars)
    EXPECT_LT(part.size(), 30u + 3) << part;  // 3: a control sequence
  EXPECT_GE(bars, 2u);
  EXPECT_THAT(text, ContainsRegex("\r\033\\[K\033\\[33mwarning:\033\\[0m interrupted in pass [0-9]+, batch [0-9]+"));
  EXPECT_THAT(text, EndsWith("\n"));
}

TEST_F(TerminalTest, ListsOfPluginsFitIntoTheTerminal) {
  const std::string inner = std::string(150, 'x') + "/" + std::string(40, 'y');
  std::filesystem::create_directories(path(inner));
  write(inner + "/refused.so", "not ELF");
  const Arguments list = {"plugins", "list", "--plugins", path("."), "--plugins", test_plugin_folder()};
  for (const unsigned columns : {40U, 80U, 117U, 400U}) {
    Terminal terminal(static_cast<unsigned short>(columns));
    Program child(list, terminal.descriptor(), -1);
    terminal.leave_to_child();
    std::string text;
    while (terminal.read(text, 10000)) {
    }
    EXPECT_EQ(child.exit(), 0);
    std::string joined;
    for (std::string line : lines_of(text)) {
      line.erase(line.find_last_not_of('\r') + 1);
      EXPECT_LE(line.size(), columns) << line;
      joined += line.substr(std::min(line.size(), line.find_first_not_of(' ')));
    }
    EXPECT_THAT(joined, AllOf(HasSubstr("refused.so"), HasSubstr(std::string(40, 'y')), HasSubstr("tenon.fc")));
  }
  EXPECT_THAT(run("plugins list --plugins .").out, HasSubstr(inner + "/refused.so: it is not")) << "not to a terminal";
}

TEST_F(TerminalTest, TheSecondInterruptEndsTheProgramAtOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    int pipe[2];
    ASSERT_EQ(pipe2(pipe, O_NONBLOCK), 0);
    while (::write(pipe[1], "                ", 16) > 0) {
    }
    fcntl(pipe[1], F_SETFL, 0);  // the pipe is full: the first line that the program prints blocks it
    Program child(for_ever({"--log-format", "json"}), pipe[1], -1);
    child.wait_for_handler(signal, true);
    child.send(signal);
    child.wait_for_handler(signal, false);
    child.send(signal);
    EXPECT_EQ(child.exit(), 128 + signal);
    close(pipe[0]);
    close(pipe[1]);
  }
}

TEST_F(TerminalTest, NobodyReadsStandardOutput) {
  // The default of SIGPIPE, as in `tenon infer job.toml | head`.
  EXPECT_EQ(shell("{ \"$TENON\" train job.toml --no-save --passes 1000000; echo $? >code; } | head -n 1 >first").exit,
            0);
  EXPECT_THAT(read("first"), StartsWith("pass"));
  EXPECT_EQ(read("code"), "141\n");
  const Outcome ignored = shell(
      "trap '' PIPE; { \"$TENON\" train job.toml --no-save --passes 1000000; echo $? >code; } | head -n 1 >first");
  EXPECT_EQ(read("code"), "74\n") << ignored.error;
  EXPECT_EQ(ignored.error, "tenon: cannot write to standard output\n");
}

TEST_F(TerminalTest, ClosedStreams) {
  for (const char* words : {"version", "--help", "plugins list", "train --help", "plan job.toml"}) {
    const Outcome closed = shell(std::string("exec \"$TENON\" ") + words + " >&-");
    EXPECT_EQ(closed.exit, 74) << words;
    EXPECT_EQ(closed.error, "tenon: cannot write to standard output\n") << words;
  }
  const Outcome trained = shell("exec \"$TENON\" train job.toml >&-");
  EXPECT_EQ(trained.exit, 74);
  EXPECT_FALSE(exists("model.safetensors"));
  EXPECT_EQ(shell("exec \"$TENON\" train nowhere.toml 2>&-").exit, 66);
  EXPECT_EQ(shell("exec \"$TENON\" train job.toml --no-save 2>&- <&-").exit, 0);
}

TEST_F(TerminalTest, TheVerbTable) {
  const Outcome nothing = shell("exec \"$TENON\"");
  EXPECT_EQ(nothing.exit, 64);
  EXPECT_EQ(nothing.out, "");
  EXPECT_THAT(nothing.error,
              StartsWith("usage: tenon <verb> [options] ...\n\nverbs:\n  new job         write a commented job"));
  for (const char* word : {"--help", "-h", "help"}) {
    const Outcome help = run(word);
    EXPECT_EQ(help.exit, 0);
    EXPECT_EQ(help.error, "");
    EXPECT_EQ(help.out, nothing.error);
  }
  const std::string version = run("version").out;
  EXPECT_THAT(version, ContainsRegex("^tenon [0-9]+\\.[0-9]+\\.[0-9]+\n$"));
  EXPECT_EQ(run("--version").out, version);
  EXPECT_EQ(run("version more").exit, 64);
  EXPECT_THAT(run("version more").error, HasSubstr("unexpected \"more\"; see 'tenon version --help'"));
  const Outcome group = run("plugins --help");
  EXPECT_EQ(group.exit, 0);
  EXPECT_THAT(group.out, AllOf(HasSubstr("plugins list"), HasSubstr("plugins info"), Not(HasSubstr("train"))));
  EXPECT_EQ(run("'plugins list'").exit, 0) << "both words may be one argument";
  for (const auto& [words, said] : std::map<std::string, std::string>{
           {"plugins", "unknown verb \"plugins\"; known: plugins list, plugins info"},
           {"plugins lits", "unknown verb \"plugins lits\"; did you mean \"plugins list\"?"},
           {"model", "unknown verb \"model\"; known: model show, model convert, model join"},
           {"model sho", "unknown verb \"model sho\"; did you mean \"model show\"?"},
           {"tset job.toml", "unknown verb \"tset\"; did you mean \"test\"?"},
           {"''", "unknown verb \"\"; known: new job, train, launch, rerun, test, infer"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit, 64) << words;
    EXPECT_THAT(outcome.error, StartsWith("tenon: " + said)) << words;
    EXPECT_EQ(outcome.out, "");
  }
}

// A call of a plugin that does not return keeps the program from ending: it says so.
TEST(Interrupts, AreExplainedIfTheWorkGoesOn) {
  testing::internal::CaptureStderr();
  {
    const Interrupt interrupt;
    std::raise(SIGTERM);
    EXPECT_EQ(Interrupt::signal(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the same signal again ends it at once\n"));
  testing::internal::CaptureStderr();
  {
    const Interrupt interrupt;
    std::raise(SIGTERM);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "work that ends at once needs no explanation";
}

}  // namespace
}  // namespace tenon_tests
