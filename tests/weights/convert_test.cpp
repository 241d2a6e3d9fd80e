// The program tenon-model-convert: tensors and models of Tenon, bit for bit. ONNX: tests/bindings/python/
// test_onnx_convert.py. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/host/cli/program.h"
#include "tests/weights/safetensors.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ConvertTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    const Outcome trained = run("train job.toml --passes 1");
    ASSERT_EQ(trained.exit, 0) << trained.error;
  }
  [[nodiscard]] Outcome convert(const std::string& arguments, int exit = 0) const {
    Outcome outcome = run("model convert " + arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << "\n" << outcome.error;
    return outcome;
  }
  [[nodiscard]] nlohmann::json described(const std::string& file) const {
    return nlohmann::json::parse(run("model show --json " + file).out);
  }
};

TEST_F(ConvertTest, AModelBecomesItsTensorsAndBack) {
  const Outcome outcome = convert("model.safetensors plain.safetensors");
  EXPECT_EQ(outcome.out, "saved plain.safetensors\n");
  EXPECT_THAT(outcome.error, HasSubstr("not in plain.safetensors: the topology, "));
  const nlohmann::json plain = described("plain.safetensors");
  EXPECT_TRUE(plain.at("topology").is_null());
  EXPECT_EQ(plain.at("tensors"), described("model.safetensors").at("tensors"));
  static_cast<void>(convert("plain.safetensors back.safetensors --topology model.safetensors"));
  EXPECT_EQ(read("back.safetensors"), read("model.safetensors"));
}

TEST_F(ConvertTest, OfPyTorchWithAnotherTopology) {
  const auto weights = [](const std::string& type, const auto& numbers) {
    using Numbers = std::decay_t<decltype(numbers)>;
    Numbers bias(3, numbers[1]);
    return safetensors({{"0.weight", type, {8, 16}, bytes_of(numbers)},
                        {"0.bias", type, {8}, bytes_of(Numbers(8, numbers[2]))},
                        {"2.weight", type, {3, 8}, bytes_of(Numbers(24, numbers[3]))},
                        {"2.bias", type, {3}, bytes_of(bias)}},
                       {{"format", "pt"}});
  };
  std::vector<double> numbers;
  for (int i = 0; i < 128; ++i) numbers.push_back(i / 16.0);
  write("double.safetensors", weights("F64", numbers));
  write("single.safetensors", weights("F32", std::vector<float>(numbers.begin(), numbers.end())));
  const std::string how = " --topology model.safetensors --layout pytorch --rename 0=hidden --rename 2=score";
  const Outcome rounded = convert("double.safetensors a.safetensors" + how);
  EXPECT_THAT(rounded.error,
              AllOf(HasSubstr("4 parameters from double.safetensors"),
                    HasSubstr("not in a.safetensors: bits of numbers that became float32: 0.weight F64")));
  EXPECT_THAT(convert("single.safetensors b.safetensors" + how).error, Not(HasSubstr("not in")));
  EXPECT_EQ(read("a.safetensors"), read("b.safetensors"));
  EXPECT_NE(read("a.safetensors"), read("model.safetensors"));
  EXPECT_EQ(run("test job.toml --model a.safetensors").exit, 0);
  EXPECT_THAT(convert("single.safetensors c.safetensors --topology model.safetensors", 78).error,
              HasSubstr("\"single.safetensors\" was written by PyTorch"));
  EXPECT_THAT(convert("single.safetensors c.safetensors --topology model.safetensors --layout pytorch", 78).error,
              HasSubstr("\"single.safetensors\" does not fit \"model.safetensors\": hidden.weight: not in the file"));
}

TEST_F(ConvertTest, ShardsBecomeOneFile) {
  write("1.safetensors", safetensors({{"x", "F8_E4M3", {2}, "ab"}}, {{"format", "pt"}}));
  write("2.safetensors", safetensors({floats("y", {1}, {1.5F})}));
  write("w.json", R"({"weight_map": {"x": "1.safetensors", "y": "2.safetensors"}})");
  EXPECT_EQ(convert("w.json one.safetensors").error, "");
  const std::string bytes = read("one.safetensors");
  EXPECT_EQ(bytes.substr(bytes.size() - 6), "ab" + bytes_of<float>({1.5F})) << "bytes of any type are copied";
  EXPECT_EQ(described("one.safetensors").at("metadata"), nlohmann::json({{"format", "pt"}}));
}

TEST_F(ConvertTest, WhatIsWrongIsSaidAndNothingIsWritten) {
  const auto wrong = [&](const std::string& arguments, int exit) {
    const std::string error = convert(arguments, exit).error;
    EXPECT_FALSE(std::filesystem::exists(path("out.safetensors"))) << arguments;
    return error;
  };
  write("plain.safetensors", safetensors({floats("x", {1}, {1})}));
  EXPECT_THAT(wrong("absent.safetensors out.safetensors", 66), HasSubstr("absent.safetensors"));
  EXPECT_THAT(wrong("job.toml out.safetensors", 65), HasSubstr("job.toml"));
  EXPECT_THAT(wrong("model.safetensors model.safetensors", 64), HasSubstr("IN and OUT are one file"));
  EXPECT_THAT(wrong("model.safetensors out.safetensors --to tenon", 64), HasSubstr("has the format of OUT already"));
  EXPECT_THAT(wrong("plain.safetensors out.safetensors --to tenon", 64), HasSubstr("--topology FILE"));
  EXPECT_THAT(wrong("plain.safetensors out.safetensors --layout pytorch", 64),
              HasSubstr("are for tensors that become a model"));
  EXPECT_THAT(wrong("plain.safetensors out.safetensors --to onx", 64),
              HasSubstr("--to: expected onnx, safetensors, tenon"));
  EXPECT_THAT(wrong("plain.safetensors out.safetensors --rename x", 64), HasSubstr("expected FROM=TO"));
  EXPECT_THAT(wrong("plain.safetensors out.safetensors --topology plain.safetensors", 65),
              HasSubstr("plain.safetensors"));
  EXPECT_THAT(wrong("plain.safetensors absent/out.safetensors", 66), HasSubstr("absent"));
  EXPECT_THAT(wrong("plain.safetensors", 64), HasSubstr("OUT"));
  const Outcome python = shell("TENON_PYTHON=/bin/false exec \"$TENON\" model convert model.safetensors out.onnx");
  EXPECT_EQ(python.exit, 66);
  EXPECT_THAT(python.error, HasSubstr("tenon[onnx]), which /bin/false lacks"));
}

}  // namespace

}  // namespace tenon_tests
