// What tenon infer writes: files, arrays of NumPy, names of classes, records that are left out.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class PredictionsTest : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    write("train.csv", "a,b,kind\n1,0,\"so, so\"\n0,1,bad\n2,1,\"so, so\"\n1,3,bad\n");
    write("job.toml", R"(passes = 30
seed = 1
save = "m"
outputs = ["cost", "score"]
layer = [{ name = "score", type = "fc", inputs = ["x"], size = 2 },
         { name = "wide", type = "fc", inputs = ["x"], size = 6 },
         { name = "grid", type = "reshape", inputs = ["wide"], shape = [2, 3] },
         { name = "pick", type = "argmax", inputs = ["score"] },
         { name = "cost", type = "cross_entropy", inputs = ["score", "kind"], from_logits = true },
         { name = "side", type = "square_error", inputs = ["wide", "wide"] }]
updater = { type = "adam", learning_rate = 0.1 }
[reader.train]
type = "csv"
files = ["train.csv"]
columns = ["x = a, b: f32", "kind: category"]
missing = "skip"
batch = 3
)");
    done(run_train, {"job.toml", "--set", "outputs=[\"cost\", \"score\", \"pick\", \"grid\", \"side\"]"});
    std::string rows = "a,b\n";
    for (int i = 0; i < 10; ++i) rows += std::to_string(i % 3) + "," + std::to_string(i % 2) + "\n";
    write("new.csv", rows);
  }
  static Outcome infer(Arguments more, const std::string& data = "new.csv") {
    more.insert(more.begin(), {"job.toml", "--data", data});
    return done(run_infer, more);
  }
  static std::string refused(int exit, Arguments more) {
    more.insert(more.begin(), {"job.toml", "--data", "new.csv"});
    return failure(exit, run_infer, more);
  }
  // The header of a file of NumPy, and its values.
  [[nodiscard]] std::pair<std::string, std::string> array(const std::string& name) const {
    const std::string file = read(name);
    EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\0", 8));
    const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(file.at(at))); };
    const size_t length = byte(8) + 256 * byte(9);
    EXPECT_EQ((10 + length) % 64, 0U);
    const std::string header = file.substr(10, length);
    EXPECT_EQ(header.back(), '\n');
    return {header.substr(0, header.find('}') + 1), file.substr(10 + length)};
  }
  template <typename Number>
  static std::vector<Number> numbers(const std::string& bytes) {
    std::vector<Number> result(bytes.size() / sizeof(Number));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
};

TEST_F(PredictionsTest, AFileHasWhatStandardOutputWouldHave) {
  for (const char* format : {"json", "csv"}) {
    const std::string expected = infer({"--format", format}).out;
    const Outcome outcome = infer({"--format", format, "--output-file", "p"});
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(read("p"), expected);
  }
  EXPECT_THAT(refused(kNotFound, {"--output-file", "none/p"}), HasSubstr("none/p"));
  EXPECT_THAT(refused(kIo, {"--output-file", "."}), HasSubstr("cannot write \".\""));
  EXPECT_THAT(refused(kUsage, {"--output-file", ""}), HasSubstr("expected the name of a file"));
  std::filesystem::create_symlink("second", "first");
  std::filesystem::create_symlink("first", "second");
  EXPECT_THAT(refused(kIo, {"--output-file", "first"}), HasSubstr("cannot write \"first\""));
  infer({"--output-file", "/dev/null"});
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

// A file is there when it is complete, and the one before until then.
TEST_F(PredictionsTest, AFailureLeavesTheFile) {
  infer({"--output-file", "p"});
  const std::string before = read("p");
  write("bad.csv", "a,b\n1,2\n1,2\n1,2\n1,2\n1,x\n");
  Outcome outcome = call(run_infer, {"job.toml", "--data", "bad.csv", "--output-file", "p"});
  EXPECT_EQ(outcome.exit, kBadData);
  EXPECT_THAT(outcome.error, HasSubstr("bad.csv: line 6"));
  EXPECT_EQ(read("p"), before);
  outcome = call(run_infer, {"job.toml", "--data", "bad.csv", "--format", "npy", "--output-file", "p.npy"});
  EXPECT_EQ(outcome.exit, kBadData);
  for (const auto& entry : std::filesystem::directory_iterator("."))
    EXPECT_THAT(entry.path().filename().string(), Not(testing::AnyOf(HasSubstr(".part"), HasSubstr(".npy"))));
}

TEST_F(PredictionsTest, ArraysOfNumPy) {
  const std::vector<json> told = parsed(infer({"--output", "score"}).out);
  infer({"--format", "npy", "--output-file", "p.npy", "--output", "score"});
  auto [header, values] = array("p.npy");
  EXPECT_EQ(header, "{'descr': '<f4', 'fortran_order': False, 'shape': (10, 2), }");
  const std::vector<float> scores = numbers<float>(values);
  ASSERT_EQ(scores.size(), 20U);
  for (size_t i = 0; i < told.size(); ++i)
    for (size_t k = 0; k < 2; ++k) EXPECT_EQ(scores[2 * i + k], told[i].at("score").at(k).get<float>());
  EXPECT_FALSE(exists("p.sample.npy"));
  infer({"--format", "npy", "--output-file", "q.npy", "--output", "grid", "--output", "pick", "--output", "side"});
  EXPECT_EQ(array("q.grid.npy").first, "{'descr': '<f4', 'fortran_order': False, 'shape': (10, 2, 3), }");
  EXPECT_THAT(array("q.pick.npy").first, HasSubstr("'shape': (10,), }"));
  EXPECT_EQ(array("q.side.npy").second.size(), 40U);
  EXPECT_FALSE(exists("q.npy"));
  write("gaps.csv", "a,b\n1,2\n,1\n2,3\n");
  infer({"--format", "npy", "--output-file", "p.npy", "--output", "score"}, "gaps.csv");
  EXPECT_THAT(numbers<int64_t>(array("p.sample.npy").second), ElementsAre(0, 2));
  write("none.csv", "a,b\n");
  infer({"--format", "npy", "--output-file", "p.npy", "--output", "score"}, "none.csv");
  EXPECT_THAT(array("p.npy").first, HasSubstr("'shape': (0,), }"));
}

TEST_F(PredictionsTest, FormatsThatDoNotFit) {
  EXPECT_THAT(refused(kUsage, {"--format", "npy"}), HasSubstr("expected --output-file NAME.npy"));
  EXPECT_THAT(refused(kUsage, {"--format", "npy", "--output-file", "p.bin"}), HasSubstr("NAME.npy"));
  EXPECT_THAT(refused(kUsage, {"--format", "npy", "--output-file", "p.npy", "--with", "a"}), HasSubstr("no texts"));
  EXPECT_THAT(refused(kUsage, {"--format", "parquet"}), HasSubstr("pyarrow.parquet"));
  EXPECT_THAT(refused(kUsage, {"--format", "xml"}), HasSubstr("expected json, csv or npy, got \"xml\""));
}

TEST_F(PredictionsTest, TheClassOfTheLargestScore) {
  const std::vector<json> told = parsed(infer({"--classes"}).out), picks = parsed(infer({"--output", "pick"}).out);
  for (size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].at("name"), picks[i].at("name"));
  EXPECT_EQ(told.at(2).at("name"), "so, so");
  const std::vector<std::string> csv = lines_of(infer({"--classes", "--format", "csv"}).out);
  EXPECT_EQ(csv.at(0), "sample,score.bad,\"score.so, so\",name");
  EXPECT_THAT(csv.at(3), testing::EndsWith(",\"so, so\""));
  const json both = parsed(infer({"--classes", "--output", "score", "--output", "pick"}).out).at(0);
  EXPECT_EQ(both.at("score.name"), both.at("pick.name"));
  EXPECT_THAT(refused(kUsage, {"--classes", "--output", "wide"}), HasSubstr("no names of classes"));
}

TEST_F(PredictionsTest, RecordsThatAreLeftOutAreNamed) {
  write("gaps.csv", "a,b\n,1\n1,2\n\n2,3\n,\n");
  EXPECT_THAT(infer({}, "gaps.csv").error,
              HasSubstr("3 records are left out, as the reader says: 0, 2, 4; \"sample\""));
  write("one.csv", "a,b\n1,2\n,1\n");
  EXPECT_THAT(infer({}, "one.csv").error, HasSubstr("1 record is left out, as the reader says: 1; "));
  std::string many = "a,b\n";
  for (int i = 0; i < 30; ++i) many += i % 2 == 0 ? "1,2\n" : ",2\n";
  write("many.csv", many);
  EXPECT_THAT(infer({}, "many.csv").error,
              HasSubstr("15 records are left out, as the reader says: 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and 5 more"));
  EXPECT_EQ(infer({"--quiet"}, "many.csv").error, "");
}

}  // namespace
}  // namespace tenon_tests
