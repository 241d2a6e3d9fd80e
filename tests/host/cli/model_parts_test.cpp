// Verbs on models whose tables lie in parts. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/host/cli/program.h"

namespace tenon_tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ModelPartsTest : public ProgramTest {
 protected:
  Outcome done(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit, 0) << arguments << "\n" << outcome.error;
    return outcome;
  }
  std::string failure(int exit, const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << "\n" << outcome.error;
    return outcome.error;
  }
};

TEST_F(ModelPartsTest, ModelsAreSplitAndJoined) {
  done("train job.toml --passes 1");
  done("model split model.safetensors parted.safetensors --table hidden.weight --parts 3");
  EXPECT_THAT(done("model show parted.safetensors").out,
              AllOf(HasSubstr("hidden.weight"), HasSubstr("parted.parts/002-of-003.safetensors  171 to 255")));
  EXPECT_EQ(done("test job.toml --model parted.safetensors").out, done("test job.toml --model model.safetensors").out);
  done("model join parted.safetensors joined.safetensors");
  EXPECT_EQ(read("joined.safetensors"), read("model.safetensors"));
  EXPECT_THAT(failure(78, "model split model.safetensors joined.safetensors --table hidden.weight --parts 3"),
              HasSubstr("joined.safetensors: there is a file of this name"));
  EXPECT_THAT(failure(66, "model split model.safetensors other --table hidden.wight --parts 3"),
              AllOf(HasSubstr("no tensor \"hidden.wight\""), HasSubstr("hidden.weight")));
  EXPECT_THAT(failure(64, "model split model.safetensors other --parts 3"), HasSubstr("--table"));
  EXPECT_THAT(failure(64, "model split model.safetensors other --table hidden.weight"), HasSubstr("--parts"));
  EXPECT_THAT(failure(65, "test job.toml --model parted.parts/000-of-003.safetensors"),
              HasSubstr("it is a part of a model"));
  std::filesystem::remove(path("parted.parts/001-of-003.safetensors"));
  EXPECT_THAT(failure(65, "model join parted.safetensors joined.safetensors"),
              HasSubstr("part \"parted.parts/001-of-003.safetensors\", which has rows of its tables, is missing"));
}

TEST_F(ModelPartsTest, FirstValuesAndConversionsReadThem) {
  done("train job.toml --passes 1");
  done("model split model.safetensors parted.safetensors --table hidden.weight --table score.weight --parts 5");
  for (const char* const from : {"model", "parted"}) {
    const std::string init = std::string(" --set init=") + from + ".safetensors";
    done("train job.toml --passes 1 --save of_" + std::string(from) + init);
    done(std::string("model convert ") + from + ".safetensors tensors_of_" + from + ".safetensors");
  }
  EXPECT_EQ(read("of_parted"), read("of_model"));
  EXPECT_EQ(read("tensors_of_parted.safetensors"), read("tensors_of_model.safetensors"));
}

}  // namespace
}  // namespace tenon_tests
