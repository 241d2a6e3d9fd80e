// Records of trainings of applications: written, continued, compared (docs/rerun.md).
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/fashion.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;
using testing::HasSubstr;

// A curve through a hundred points, in a random order of each pass.
struct Points {
  int64_t changed = -1;  // a point with another value
  static int64_t size() { return 100; }
  void read(int64_t index, Sample& sample) const {
    const double x = static_cast<double>(index) / 50 - 1;
    sample.set("x", {x});
    sample.set("y", {x * x + (index == changed ? 0.25 : 0)});
  }
};

struct Variant {
  int64_t changed = -1, size = 8, passes = 4;
  double rate = 0.01;
  uint64_t seed = 1;
  int threads = 1;
};

class TrainingRecordTest : public testing::Test {
 protected:
  [[nodiscard]] static TrainOptions training(const Variant& variant = {}) {
    const Host host = make_host(variant.threads);
    DataOptions x, y;
    x.name = "x", x.shape = {1};
    y.name = "y", y.shape = {1};
    const Layer hidden = host.layer("fc", {host.data(x)}, {{"size", variant.size}, {"act", "tanh"}}, "hidden");
    const Layer fit = host.layer("fc", {hidden}, {{"size", 1}}, "fit");
    TrainOptions options;
    options.outputs = {host.layer("square_error", {fit, host.data(y)}, {}, "cost")};
    options.parameters = host.parameters(options.outputs, variant.seed);
    options.updater = host.updater("adam", {{"learning_rate", variant.rate}});
    options.reader =
        host.reader({{"x", TN_F32, {1}}, {"y", TN_F32, {1}}}, Points{variant.changed}).shuffle(1).batch(10);
    options.passes = variant.passes;
    return options;
  }
  void run(const std::string& name, TrainOptions options = training(), int64_t every = 0) const {
    options.run = folder_.file(name);
    options.run_every = every;
    train(options);
  }
  // Returns the error of a training that is compared with a record; empty: it is the same.
  [[nodiscard]] std::string difference(const std::string& name, TrainOptions options,
                                       tn_status code = TN_INVALID) const {
    options.rerun = folder_.file(name);
    return refusal(options, code);
  }
  [[nodiscard]] static std::string refusal(const TrainOptions& options, tn_status code) {
    try {
      train(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "";
  }
  [[nodiscard]] json record(const std::string& name) const {
    std::ifstream file(folder_.file(name) + "/record.json");
    return json::parse(file);
  }

  const TemporaryFolder folder_;
};

TEST_F(TrainingRecordTest, SaysWhatTheTrainingIsMadeOf) {
  run("run");
  const json record = this->record("run");
  EXPECT_TRUE(record.at("job").is_null());
  EXPECT_EQ(record.at("training").at("updater").at("attributes").at("learning_rate"), 0.01);
  EXPECT_EQ(record.at("training").at("topology").at("outputs"), json({"cost"}));
  EXPECT_EQ(record.at("digests").size(), 41U);  // before the first update, and after each
  EXPECT_FALSE(record.at("digests")[0].contains("data"));
  EXPECT_NE(record.at("digests")[1].at("data"), record.at("digests")[2].at("data"));
  EXPECT_EQ(record.at("curves").size(), 4U);
  EXPECT_EQ(record.at("end").at("reason"), "passes");
  EXPECT_EQ(record.at("end").at("digest").at("xxh3"), record.at("digests")[40].at("xxh3"));
}

TEST_F(TrainingRecordTest, IsThatOfTheSameTraining) {
  run("run");
  EXPECT_EQ(difference("run", training()), "");
  EXPECT_EQ(difference("run", training({.threads = 3})), "");
}

TEST_F(TrainingRecordTest, NamesTheFirstDifference) {
  run("run");
  run("seventh", training(), 7);
  EXPECT_THAT(difference("run", training({.changed = 57})),
              HasSubstr("differs from its record: the samples of update 4 (pass 1, minibatch 4)"));
  EXPECT_THAT(difference("seventh", training({.changed = 57})),
              HasSubstr("the samples of the updates 1 to 7 (pass 1, minibatch 7)"));
  EXPECT_THAT(difference("run", training({.size = 9})), HasSubstr("size is 9, in the record 8"));
  EXPECT_THAT(difference("run", training({.passes = 5})), HasSubstr("/passes is 5, in the record 4"));
  EXPECT_THAT(difference("run", training({.rate = 0.02})),
              HasSubstr("/updater/attributes/learning_rate is 0.02, in the record 0.01"));
  EXPECT_THAT(difference("run", training({.seed = 2})),
              HasSubstr("before the first update, first those of \"hidden.weight\""));
}

// The values of a parameter that a handler changes after the third update.
TEST_F(TrainingRecordTest, NamesTheUpdateAndTheParameter) {
  run("run");
  TrainOptions options = training();
  options.handler = [](Event& event) {
    if (event.pass() == 0 && event.batch() == 2 && event.kind() == TN_END_ITERATION) event.set_learning_rate(0.5);
  };
  EXPECT_THAT(difference("run", options), HasSubstr("the parameters after update 4 (pass 1, minibatch 4), first \""));
}

TEST_F(TrainingRecordTest, GoesOnWithATrainingThatResumes) {
  TrainOptions first = training();
  first.checkpoint.emplace();
  first.checkpoint->folder = folder_.file("kept");
  first.handler = [](Event& event) {
    if (event.kind() == TN_END_ITERATION && event.pass() == 1 && event.batch() == 4) event.stop();
  };
  run("run", first);
  TrainOptions rest = training();
  rest.checkpoint = first.checkpoint;
  rest.checkpoint->start = TN_START_RESUME;
  run("run", rest);
  run("whole");
  EXPECT_EQ(record("run").at("digests"), record("whole").at("digests"));
  EXPECT_EQ(record("run").at("resumes").size(), 1U);
  EXPECT_EQ(difference("run", training()), "");
  EXPECT_THAT(difference("run", training({.changed = 57})), HasSubstr("the samples of update 4"));
}

TEST_F(TrainingRecordTest, RefusesFoldersAndOptions) {
  run("run");
  TrainOptions options = training();
  options.run = folder_.file("run");
  EXPECT_THAT(refusal(options, TN_IO), HasSubstr("exists already and is not overwritten; options.run names another"));
  std::ofstream(folder_.file("file")) << "a file";
  options.run = folder_.file("file");
  EXPECT_THAT(refusal(options, TN_IO), HasSubstr("cannot create the folder"));
  options.rerun = folder_.file("run");
  EXPECT_THAT(refusal(options, TN_INVALID), HasSubstr("run is set, too"));
  options.run = options.rerun = "";
  options.run_every = 3;
  EXPECT_THAT(refusal(options, TN_INVALID), HasSubstr("run_every is 3 without options.run"));
  options.run = folder_.file("new");
  options.run_every = -1;
  EXPECT_THAT(refusal(options, TN_INVALID), HasSubstr("run_every is -1; expected at least 0"));
}

TEST_F(TrainingRecordTest, RefusesWhatIsNotItsRecord) {
  run("run");
  EXPECT_THAT(difference("nothing", training(), TN_NOT_FOUND), HasSubstr("has no record.json"));
  json record = this->record("run");
  const auto written = [&](const json& changed) {
    std::ofstream(folder_.file("run") + "/record.json") << changed.dump();
    return std::string("run");
  };
  json other = record;
  other["training"] = nullptr;
  EXPECT_THAT(difference(written(other), training()), HasSubstr("is of a job, which 'tenon rerun' repeats"));
  other = record;
  other["end"] = nullptr;
  EXPECT_THAT(difference(written(other), training()), HasSubstr("the training has not ended"));
  other = record;
  other.erase("digests");
  EXPECT_THAT(difference(written(other), training(), TN_BAD_DATA), HasSubstr("is not a whole record"));
  EXPECT_THAT(difference(written(json::array()), training(), TN_BAD_DATA),
              HasSubstr("is not the record of a training"));
  EXPECT_EQ(difference(written(record), training()), "");
}

}  // namespace
}  // namespace tenon_tests
