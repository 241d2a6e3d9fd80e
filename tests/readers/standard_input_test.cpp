// Standard input as a file of readers. SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <thread>

#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Puts another file in the place of standard input.
class Redirected {
 public:
  explicit Redirected(int other) : before_(::dup(STDIN_FILENO)) {
    ::dup2(other, STDIN_FILENO);
    ::close(other);
  }
  ~Redirected() {
    if (before_ >= 0)
      ::dup2(before_, STDIN_FILENO);
    else
      ::close(STDIN_FILENO);
    ::close(before_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  int before_;
};

// A pipe from which standard input reads, and what writes `content` into it.
class Piped {
 public:
  explicit Piped(const Bytes& content) : Piped(content, pipe_of()) {}
  ~Piped() {
    redirected_.reset();  // the writer fails if the reader left something
    writer_.join();
  }

 private:
  struct Ends {
    int read, write;
  };
  static Ends pipe_of() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    return {ends[0], ends[1]};
  }
  Piped(const Bytes& content, Ends ends) : redirected_(std::make_unique<Redirected>(ends.read)) {
    std::signal(SIGPIPE, SIG_IGN);
    writer_ = std::thread([content, to = ends.write] {
      for (size_t done = 0; done < content.size();) {
        const ssize_t put = ::write(to, content.data() + done, content.size() - done);
        if (put < 0) break;
        done += static_cast<size_t>(put);
      }
      ::close(to);
    });
  }

  std::unique_ptr<Redirected> redirected_;
  std::thread writer_;
};

class StandardInput : public ReaderTest {
 protected:
  StandardInput() : ReaderTest("csv") {}

  const Values given_ = {{"files", Strings{"-"}}, {"columns", Strings{"a: i32"}}};
};

TEST_F(StandardInput, APipeIsReadOnceAndForAll) {
  Bytes content = "a,b\n";
  for (int i = 0; i < 200; ++i) content += std::to_string(i) + "," + Bytes(1000, 'x') + "\n";
  const Piped piped(content);
  const std::vector<Sample> samples = check(given_);  // with many readers, which seek and take shards
  ASSERT_EQ(samples.size(), 200u);
  EXPECT_EQ(as<int32_t>(samples[199][0].values).front(), 199);
  Values twice = given_;
  twice["files"] = Strings{"-", "-"};
  EXPECT_EQ(all(twice).size(), 400u);
  twice["most_kept_bytes"] = int64_t{0};
  EXPECT_EQ(all(twice).size(), 400u);
}

TEST_F(StandardInput, MayBeCompressed) {
  const Piped piped(gzip("a\n1\n2\n"));
  EXPECT_THAT(values<int32_t>(given_), ElementsAre(1, 2));
}

TEST_F(StandardInput, AFileIsReadFromWhereItStands) {
  put("f", "title\na\n1\n2\n");
  const int file = ::open((folder_ / "f").c_str(), O_RDONLY);
  ASSERT_EQ(::lseek(file, 6, SEEK_SET), 6);
  const Redirected redirected(file);
  EXPECT_THAT(values<int32_t>(given_), ElementsAre(1, 2));
  EXPECT_THAT(values<int32_t>(given_), ElementsAre(1, 2));
}

TEST_F(StandardInput, BesideOtherFiles) {
  put("f", "a\n7\n");
  put("-", "a\n9\n");
  const Piped piped("a\n1\nx\n");
  Values both = given_;
  both["files"] = Strings{"f", "./-", "-"};
  expect_damage(both, "/dev/stdin: line 3: column \"a\": expected a whole number, got \"x\"");
  both["columns"] = Strings{"a: category"};
  EXPECT_THAT(values<int32_t>(both), ElementsAre(1, 2, 0, 3));
}

TEST_F(StandardInput, IsBounded) {
  const Piped piped("a\n" + Bytes(1'000'000, '\n') + "1\n");
  Values bounded = given_;
  bounded["most_inflated_bytes"] = int64_t{100'000};
  expect_damage(bounded, "/dev/stdin: has more than 100000 bytes, the bound of most_inflated_bytes");
}

TEST_F(StandardInput, ThatIsNotThere) {
  const int null = ::open("/dev/null", O_RDONLY);
  const Redirected redirected(null);
  expect_damage(given_, "/dev/stdin: empty; expected a header");
  ::close(STDIN_FILENO);
  EXPECT_EQ(refusal(given_).code(), TN_IO);
  EXPECT_THAT(refusal(given_).message(), HasSubstr("/dev/stdin: cannot be read: Bad file descriptor"));
  ASSERT_EQ(::open((folder_ / ".").c_str(), O_RDONLY | O_DIRECTORY), STDIN_FILENO);
  EXPECT_THAT(refusal(given_).message(), HasSubstr("/dev/stdin: cannot be read: Is a directory"));
}

TEST_F(StandardInput, WaitingIsCancelled) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Redirected redirected(ends[0]);
  cancel_ = 1;
  EXPECT_EQ(refusal(given_).code(), TN_CANCELLED);
  cancel_ = 0;
  ::close(ends[1]);
}

}  // namespace
}  // namespace tenon_tests
