// A job with a model of another version of a plugin. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using testing::HasSubstr;

constexpr const char* kJob = R"(passes = 1
save = "model.safetensors"
[[layer]]
name = "blended"
type = "test.blend"
inputs = ["x"]
size = 2
[[layer]]
name = "wrapped"
type = "test.wrapped"
inputs = ["x"]
[[layer]]
name = "sum"
type = "add"
inputs = ["blended", "wrapped"]
[[layer]]
name = "score"
type = "fc"
inputs = ["sum"]
size = 1
[[layer]]
name = "cost"
type = "square_error"
inputs = ["score", "y"]
[reader.train]
type = "csv"
files = ["data.csv"]
header = true
columns = ["x = a, b, c", "y"]
batch = 2
[updater]
type = "sgd"
learning_rate = 0.01
)";

// The same job for the second version of the plugin, which has another name for the attribute `size`.
std::string job_of_second() {
  std::string text = kJob;
  return text.replace(text.find("size = 2"), 8, "outputs = 2");
}

class ChangedDefaults : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    write("job.toml", kJob);
    write("data.csv", "a,b,c,y\n1,2,3,1\n4,-5,6,2\n0.5,0,1,3\n");
  }
  static Outcome with(const std::string& version, Call verb, Arguments arguments) {
    for (const std::string& folder : {plugin_folder(), test_versions() + "/" + version}) {
      arguments.push_back("--plugins");
      arguments.push_back(folder);
    }
    return call(verb, arguments);
  }
  static Outcome infer(const std::string& version, const Arguments& sets = {}) {
    Arguments arguments = {"job.toml", "--reader", "train", "--output", "score"};
    arguments.insert(arguments.end(), sets.begin(), sets.end());
    return with(version, run_infer, arguments);
  }
};

TEST_F(ChangedDefaults, AJobTakesThemFromTheModel) {
  ASSERT_EQ(with("first", run_train, {"job.toml"}).exit, kDone);
  const Outcome before = infer("first");
  ASSERT_EQ(before.exit, kDone) << before.error;
  EXPECT_EQ(before.error, "");
  const Outcome after = infer("first_changed");
  EXPECT_EQ(after.out, before.out) << "in the layer, and in that of an expansion";
  EXPECT_EQ(after.error,
            "warning: model.safetensors: layer \"blended\": attribute \"momentum\" is not given in the job: it is 0.9, "
            "as in the model, and the default is 0.5\n");
  // What the job gives comes first.
  const Outcome given = infer("first_changed", {"--set", "layer.blended.momentum=0.5"});
  EXPECT_NE(given.out, before.out);
  EXPECT_EQ(given.error,
            "warning: model.safetensors was saved with another layer \"blended\": attribute \"momentum\" is 0.9 there, "
            "and 0.5 in the job\n");
}

TEST_F(ChangedDefaults, AJobOfTheNewVersionReadsAMigratedModel) {
  ASSERT_EQ(with("first", run_train, {"job.toml"}).exit, kDone);
  const Outcome before = infer("first");
  write("job.toml", job_of_second());
  const Outcome after = infer("second");
  EXPECT_EQ(after.exit, kDone) << after.error;
  EXPECT_EQ(after.out, before.out);
  EXPECT_THAT(after.error, HasSubstr("attribute \"keep\" is not given in the job: it is 0.9, as in the model"));
}

TEST_F(ChangedDefaults, ANewerStateIsRefused) {
  write("job.toml", job_of_second());
  ASSERT_EQ(with("second", run_train, {"job.toml"}).exit, kDone);
  write("job.toml", kJob);
  const Outcome refused = infer("first");
  EXPECT_EQ(refused.exit, kRefused);
  EXPECT_THAT(refused.error, HasSubstr("layer \"blended\" (test.blend): state version 2, saved by plugin "
                                       "\"tenon.test.versions\" 2.0.0, is newer than that of the installed plugin"));
}

TEST_F(ChangedDefaults, ModelShowNamesPluginAndVersion) {
  ASSERT_EQ(with("first", run_train, {"job.toml"}).exit, kDone);
  const std::string text = done(run_model_show, {"model.safetensors"}).out;
  EXPECT_THAT(text, testing::ContainsRegex("\nlayer +type +plugin +state +inputs +attributes\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nx +data +float32 \\[3\\]; 3 columns: a, b, c\n"));
  EXPECT_THAT(text,
              testing::ContainsRegex("\nblended +test.blend +tenon.test.versions 1.0.0 +1 +x +momentum 0.9, size 2\n"));
}

}  // namespace
}  // namespace tenon_tests
