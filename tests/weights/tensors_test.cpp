// Files of tensors: element types, shards, and what is refused. SPDX-License-Identifier: Apache-2.0
#include "weights/tensors.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/support/temporary_folder.h"
#include "tests/weights/safetensors.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::weights;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class TensorsTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = folder_.file(name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string write_index(const nlohmann::json& weight_map) const {
    return write("model.safetensors.index.json",
                 nlohmann::json{{"metadata", {{"total_size", 20}}}, {"weight_map", weight_map}}.dump());
  }
  [[nodiscard]] std::string refusal(const std::string& path, tn_status status) const {
    try {
      static_cast<void>(read_tensors(host_, path));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), status) << error.what();
      return error.what();
    }
    ADD_FAILURE() << path << " was read";
    return "";
  }
  [[nodiscard]] std::vector<float> numbers(const std::string& type, const std::string& bytes, int64_t count) const {
    const std::string path = write("one.safetensors", safetensors({{"x", type, {count}, bytes}}));
    return read_values(read_tensors(host_, path).tensors.at(0));
  }

  Host host_;
  TemporaryFolder folder_;
};

TEST_F(TensorsTest, EveryTypeBecomesFloat32) {
  EXPECT_THAT(numbers("F64", bytes_of<double>({1.5, 1e300}), 2), ElementsAre(1.5F, INFINITY));
  EXPECT_THAT(numbers("I8", bytes_of<int8_t>({-3, 4}), 2), ElementsAre(-3, 4));
  EXPECT_THAT(numbers("U16", bytes_of<uint16_t>({65535}), 1), ElementsAre(65535));
  EXPECT_THAT(numbers("I64", bytes_of<int64_t>({-5000000000}), 1), ElementsAre(-5e9F));
  EXPECT_THAT(numbers("BOOL", std::string("\0\1", 2), 2), ElementsAre(0, 1));
  EXPECT_THAT(numbers("BF16", bytes_of<uint16_t>({0x3fc0, 0xc000, 0x7f80}), 3), ElementsAre(1.5F, -2, INFINITY));
  // 1, -2, 65504 (the largest), 2^-24 (the smallest), 2^-14 (the smallest normal one), -0, infinity, NaN
  const std::vector<float> half =
      numbers("F16", bytes_of<uint16_t>({0x3c00, 0xc000, 0x7bff, 0x0001, 0x0400, 0x8000, 0x7c00, 0x7e00}), 8);
  EXPECT_THAT(std::vector<float>(half.begin(), half.end() - 1),
              ElementsAre(1, -2, 65504, std::ldexp(1.0F, -24), std::ldexp(1.0F, -14), 0, INFINITY));
  EXPECT_TRUE(std::signbit(half[5]));
  EXPECT_TRUE(std::isnan(half[7]));
  EXPECT_THROW(numbers("F8_E4M3", "a", 1), Error);
}

TEST_F(TensorsTest, ShardsAreOneFile) {
  write("a.safetensors", safetensors({floats("x", {2}, {1, 2}), floats("y", {1}, {9})}, {{"format", "pt"}}));
  write("b.safetensors", safetensors({floats("y", {1}, {3}), floats("only", {1}, {4})}));
  const std::string index = write_index({{"x", "a.safetensors"}, {"y", "b.safetensors"}});
  for (const std::string& path : {index, std::filesystem::path(index).parent_path().string()}) {
    const TensorFile file = read_tensors(host_, path);
    ASSERT_EQ(file.tensors.size(), 3U);
    EXPECT_EQ(file.tensors[0].name, "x");
    EXPECT_THAT(read_values(file.tensors[0]), ElementsAre(1, 2));
    EXPECT_EQ(file.tensors[1].name, "y");
    EXPECT_THAT(read_values(file.tensors[1]), ElementsAre(3)) << "of the shard that the index names";
    EXPECT_EQ(file.tensors[2].name, "only");
    EXPECT_TRUE(file.of_pytorch());
    EXPECT_FALSE(file.has_topology);
  }
}

TEST_F(TensorsTest, AFolderHasOneFile) {
  const std::string file = write("model.safetensors", safetensors({floats("x", {1}, {5})}));
  EXPECT_THAT(read_values(read_tensors(host_, std::filesystem::path(file).parent_path().string()).tensors.at(0)),
              ElementsAre(5));
  std::filesystem::remove(file);
  EXPECT_THAT(refusal(std::filesystem::path(file).parent_path().string(), TN_NOT_FOUND),
              HasSubstr("model.safetensors"));
}

TEST_F(TensorsTest, DamagedIndexesNameTheTensor) {
  write("a.safetensors", safetensors({floats("x", {1}, {1})}));
  EXPECT_THAT(
      refusal(write_index({{"x", "a.safetensors"}, {"y", "a.safetensors"}, {"z", "a.safetensors"}}), TN_BAD_DATA),
      HasSubstr("weight_map: not in \"a.safetensors\": y, z"));
  EXPECT_THAT(refusal(write_index({{"x", "b.safetensors"}}), TN_NOT_FOUND), HasSubstr("b.safetensors"));
  for (const nlohmann::json& shard : {nlohmann::json("../a.safetensors"), nlohmann::json("/etc/passwd"),
                                      nlohmann::json(".."), nlohmann::json(""), nlohmann::json(3)})
    EXPECT_THAT(
        refusal(write_index({{"x", shard}}), TN_BAD_DATA),
        AllOf(HasSubstr("tensor \"x\": expected the name of a file in the same folder"), HasSubstr(shard.dump())));
  for (const char* text : {"", "[]", "{}", "{\"weight_map\": []}", "{\"weight_map\": {\"x\": \"a.safetensors\"}"})
    EXPECT_THAT(refusal(write("wrong.json", text), TN_BAD_DATA), HasSubstr("an object \"weight_map\"")) << text;
  EXPECT_THAT(refusal(folder_.file("absent.json"), TN_NOT_FOUND), HasSubstr("absent.json"));
  write("a.safetensors", "damaged");
  EXPECT_THAT(refusal(write_index({{"x", "a.safetensors"}}), TN_BAD_DATA), HasSubstr("a.safetensors"));
}

TEST_F(TensorsTest, AFileThatShrinksIsAnError) {
  const std::string path = write("x.safetensors", safetensors({floats("x", {2}, {1, 2})}));
  const StoredTensor tensor = read_tensors(host_, path).tensors.at(0);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THROW(static_cast<void>(read_values(tensor)), Error);
}

}  // namespace

}  // namespace tenon_tests
