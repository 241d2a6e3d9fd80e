// The key "fit" of a job: buffers that are statistics of the training data. SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/fit.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/cli/options.h"
#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr int kRows = 45;

class FitTest : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    std::string text = "a,b,label\n";
    for (int i = 0; i < kRows; ++i) text += row(i);
    write("train.csv", text);
    write("test.csv", "a,b,label\n1000000,5,1\n-7,5,0\n");
    write("job.toml", job());
  }
  static double a(int i) { return 1000 + i * i; }
  static std::string row(int i) { return std::to_string(a(i)) + ",5," + std::to_string(i % 2) + "\n"; }
  // A model with dropout, whose first layer is fitted. keys: more keys of the top level.
  static std::string job(const std::string& keys = "fit = [\"x\"]\n") {
    return "passes = 2\nseed = 3\nsave = \"model.safetensors\"\noutputs = [\"cost\", \"score\"]\n" + keys + R"(
[[layer]]
name = "x"
type = "standardize"
inputs = "columns"

[[layer]]
name = "hidden"
type = "fc"
inputs = "x"
size = 4
act = "tanh"
drop_rate = 0.3

[[layer]]
name = "score"
type = "fc"
inputs = "hidden"
size = 2

[[layer]]
name = "cost"
type = "cross_entropy"
inputs = ["score", "label"]
from_logits = true

[reader.train]
type = "csv"
files = ["train.csv"]
columns = ["table = a, b: f32", "label: i32 < 2"]
batch = 10
shuffle = true
slots.table = "columns"

[reader.test]
type = "csv"
files = ["test.csv"]
columns = ["table = a, b: f32", "label: i32 < 2"]

[updater]
type = "adam"
learning_rate = 0.1

)";
  }
  [[nodiscard]] std::vector<float> values(const std::string& file, const std::string& name) const {
    const Host host = PluginOptions().host();
    const Model model = host.load(path(file));
    const Array array = model.parameters.get(name);
    const auto* const data = static_cast<const float*>(array.data);
    return {data, data + array.count()};
  }
  [[nodiscard]] std::string refused(const std::string& keys) const {
    write("job.toml", job(keys));
    return failure(kBadConfig, run_train, {"job.toml"});
  }
};

TEST_F(FitTest, BuffersAreThoseOfThePassBeforeTheTraining) {
  double mean = 0, variance = 0;
  for (int i = 0; i < kRows; ++i) mean += a(i) / kRows;
  for (int i = 0; i < kRows; ++i) variance += std::pow(a(i) - mean, 2) / kRows;
  EXPECT_THAT(done(run_train, {"job.toml"}).error, HasSubstr("fitted to 45 samples: x\n"));
  EXPECT_NEAR(values("model.safetensors", "x.mean")[0], mean, 1e-3);
  EXPECT_NEAR(values("model.safetensors", "x.variance")[0], variance, 0.1);
  EXPECT_EQ(values("model.safetensors", "x.mean")[1], 5);
  EXPECT_EQ(values("model.safetensors", "x.variance")[1], 0);
  EXPECT_EQ(values("model.safetensors", "x.count"), std::vector<float>{kRows}) << "training keeps them";
  // Neither the order of the samples in training nor threads matter.
  done(run_train, {"job.toml", "--set", "reader.train.shuffle=false", "--set", "threads=3", "--save", "o.safetensors"});
  for (const char* name : {"x.mean", "x.variance"})
    EXPECT_EQ(values("o.safetensors", name), values("model.safetensors", name));
  // With pass_batches a pass is so many minibatches.
  const Outcome part = done(run_train, {"job.toml", "--set", "pass_batches=2"});
  EXPECT_THAT(part.error, HasSubstr("fitted to 20 samples: x\n"));
}

// The pass changes nothing else: a training from a model with these buffers has the same bits.
TEST_F(FitTest, TheTrainingIsThatOfAModelWithTheseBuffers) {
  done(run_train, {"job.toml"});
  done(run_train, {"job.toml", "--set", "updater.learning_rate=0", "--save", "base.safetensors"});
  write("given.toml", job("init = \"base.safetensors\"\nimmutable_parameters = [\"x\"]\n"));
  done(run_train, {"given.toml", "--save", "given.safetensors"});
  EXPECT_NE(values("base.safetensors", "hidden.weight"), values("model.safetensors", "hidden.weight"));
  for (const char* name : {"hidden.weight", "hidden.bias", "score.weight", "x.mean", "x.variance", "x.count"})
    EXPECT_EQ(values("given.safetensors", name), values("model.safetensors", name)) << name;
}

TEST_F(FitTest, InferenceNeedsNoTrainingData) {
  done(run_train, {"job.toml"});
  std::filesystem::remove(path("train.csv"));
  const Outcome told = done(run_infer, {"job.toml", "--output", "x"});
  const std::vector<json> lines = parsed(told.out);
  const double deviation = std::sqrt(values("model.safetensors", "x.variance")[0]);
  EXPECT_NEAR(lines.at(1).at("x").at(0), (-7 - values("model.safetensors", "x.mean")[0]) / deviation, 1e-4);
  EXPECT_EQ(lines.at(1).at("x").at(1), 0);
}

TEST_F(FitTest, AResumedTrainingHasTheSameBits) {
  done(run_train, {"job.toml"});
  const std::string expected = read("model.safetensors");
  write("job.toml", job() + "[checkpoint]\nfolder = \"saves\"\nevery_batches = 2\n");
  const Outcome stopped = interrupted(run_train, {"job.toml", "--log-format", "json"}, SIGTERM, "{\"batch\":3,");
  EXPECT_EQ(stopped.exit, kSignalled + SIGTERM);
  const Outcome resumed = done(run_train, {"job.toml", "--resume"});
  EXPECT_THAT(resumed.error, Not(HasSubstr("fitted")));
  EXPECT_EQ(read("model.safetensors"), expected);
  std::filesystem::remove_all(path("saves"));
  EXPECT_THAT(done(run_train, {"job.toml", "--resume", "--passes", "1"}).error, HasSubstr("fitted to 45 samples: x\n"))
      << "a first start";
}

// Several layers in one pass, over the rows of sequences, of floats and of whole numbers.
TEST_F(FitTest, RowsOfSequencesAreFitted) {
  write("rows.csv", "visitor,page,seconds,bought\nann,7,30,1\nann,3,10,1\nbob,4,20,0\n");
  std::string text = "save = \"rows.safetensors\"\nfit = [\"time\", \"number\"]\n";
  const auto layer = [&](const std::string& name, const std::string& type, const std::string& inputs,
                         const std::string& more = "") {
    text += "[[layer]]\nname = \"" + name + "\"\ntype = \"" + type + "\"\ninputs = " + inputs + "\n" + more + "\n";
  };
  layer("time", "standardize", "\"seconds\"");
  layer("number", "standardize", "\"page\"", "kind = \"range\"");
  layer("row", "add", "[\"time\", \"number\"]");
  layer("column", "reshape", "\"row\"", "shape = [1]");
  layer("visit", "sequence_pool", "\"column\"", "kind = \"mean\"");
  layer("score", "fc", "\"visit\"", "size = 2");
  layer("cost", "cross_entropy", "[\"score\", \"bought\"]", "from_logits = true");
  write("rows.toml", text + R"([reader.train]
type = "csv"
files = ["rows.csv"]
columns = ["page: i32", "seconds: f32", "bought: i32 < 2"]
sequence_by = "visitor"
per_sequence = ["bought"]
batch = 2
slots.page = { sequence = "visit" }
slots.seconds = { sequence = "visit" }

[updater]
type = "sgd"
)");
  EXPECT_THAT(done(run_train, {"rows.toml"}).error, HasSubstr("fitted to 2 samples: time, number\n"));
  EXPECT_EQ(values("rows.safetensors", "time.mean"), std::vector<float>{20});
  EXPECT_NEAR(values("rows.safetensors", "time.variance")[0], 200.0 / 3, 1e-4);
  EXPECT_EQ(values("rows.safetensors", "time.count"), std::vector<float>{3}) << "rows";
  EXPECT_EQ(values("rows.safetensors", "number.high"), std::vector<float>{7});
  EXPECT_EQ(values("rows.safetensors", "number.negative_low"), std::vector<float>{-3});
}

TEST_F(FitTest, RefusesLayersThatCannotBeFitted) {
  EXPECT_THAT(refused("fit = [\"y\"]\n"), HasSubstr("job.toml:5: key \"fit\": the job has no layer \"y\""));
  EXPECT_THAT(refused("fit = [\"hidden\"]\n"), HasSubstr("key \"fit\": layer \"hidden\" has no buffers"));
  EXPECT_THAT(failure(kBadConfig, run_plan, {"job.toml"}), HasSubstr("key \"fit\": layer \"hidden\" has no buffers"));
  EXPECT_THAT(refused("fit = [\"hidden\", \"x\"]\n"),
              HasSubstr("key \"fit\": layer \"hidden\" is computed from layer \"x\", which is in the list too"));
  write("job.toml", job());
  done(run_plan, {"job.toml"});
}

}  // namespace

}  // namespace tenon_tests
