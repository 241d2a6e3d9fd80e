// Headers of model files that are accepted or refused. SPDX-License-Identifier: Apache-2.0
#include "core/files/model_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string with_length(uint64_t length, const std::string& rest) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> (8 * i) & 0xff);
  return file + rest;
}

std::string file_of(const std::string& header, size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\1'));
}

ModelFile read(const std::string& bytes) {
  MemoryFiles files;
  files.files["m.safetensors"] = bytes;
  return read_model_header(files, "m.safetensors");
}

struct Bad {
  std::string header;
  size_t data_bytes;
  const char* says;
};

void expect_refused(const std::vector<Bad>& cases) {
  for (const Bad& bad : cases) {
    const Error error = error_of([&] { (void)read(file_of(bad.header, bad.data_bytes)); });
    EXPECT_EQ(error.code(), TN_BAD_DATA) << bad.header;
    EXPECT_THAT(error.message(), AllOf(HasSubstr("m.safetensors"), HasSubstr(bad.says))) << bad.header;
  }
}

// Returns a header with one tensor "w" with the given members.
std::string w(const std::string& members) { return "{\"w\":{" + members + "}}"; }

TEST(ModelHeader, AcceptsWhatTheFormatAllows) {
  EXPECT_TRUE(read(file_of("{}", 0)).tensors.empty());
  EXPECT_TRUE(read(file_of("{\"__metadata__\":{}}   ", 0)).metadata.empty());
  const ModelFile file = read(
      file_of("{ \"w\" : {\"shape\":[2,3], \"data_offsets\":[4,28],\n\"dtype\":\"F32\"}, \"\\u00e9\":"
              "{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[0,4]},"
              "\"none\":{\"dtype\":\"F64\",\"shape\":[0,7],\"data_offsets\":[4,4]},"
              "\"nibbles\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[28,30]},"
              "\"one\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[30,31]}, \"__metadata__\":{\"a\":\"b\"}}",
              31));
  EXPECT_FALSE(file.verified);
  EXPECT_EQ(file.metadata.at("a"), "b");
  EXPECT_EQ(file.tensors, (std::vector<ModelTensor>{{"\u00e9", "I16", TN_I16, {2}, 0, 4},
                                                    {"none", "F64", TN_F64, {0, 7}, 4, 0},
                                                    {"w", "F32", TN_F32, {2, 3}, 4, 24},
                                                    {"nibbles", "F4", TN_COMPUTE, {4}, 28, 2},
                                                    {"one", "BOOL", TN_BOOL, {}, 30, 1}}));
}

TEST(ModelHeader, RefusesWhatIsNotJson) {
  expect_refused({
      {"", 0, "begin with {"},
      {"[]", 0, "begin with {"},
      {" {}", 0, "begin with {"},
      {"\xef\xbb\xbf{}", 0, "begin with {"},
      {"{}\n", 0, "end with }"},
      {"{} x", 0, "end with }"},
      {"{", 0, "end with }"},
      {"{}}", 0, "not valid JSON at its byte 3"},
      {"{}{}", 0, "not valid JSON"},
      {std::string("{}\0}", 4), 0, "NUL"},
      {std::string("{\"a\0\":{}}", 9), 0, "NUL"},
      {"{\"w\":}", 0, "not valid JSON"},
      {"{\"w\":{},}", 0, "\"w\" has no dtype"},
      {"{/*c*/}", 0, "not valid JSON"},
      {"{\"a\xff\":{}}", 0, "not valid JSON"},
      {"{\"\\ud800\":{}}", 0, "not valid JSON"},
      {"{'w':{}}", 0, "not valid JSON"},
  });
}

// A tensor more than the limit stops the parser: what follows is not even JSON.
TEST(ModelHeader, RefusesTooManyTensors) {
  const auto header = [](size_t tensors, const std::string& behind) {
    std::string json = "{";
    for (size_t i = 0; i < tensors; ++i)
      json +=
          (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}";
    return json + behind + "}";
  };
  EXPECT_EQ(parse_model_header(header(kMaxModelTensors, ""), 0, "f").tensors.size(), kMaxModelTensors);
  expect_refused({{header(kMaxModelTensors, ",\"w\":{") + "[[[}", 0, "more than 262144 tensors"}});
}

TEST(ModelHeader, RefusesAnotherShapeOfJson) {
  std::string deep = "{\"w\":";
  for (int i = 0; i < 100'000; ++i) deep += '[';
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += "{\"w\":";
  const std::string good = "\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]";
  std::string shape = "\"dtype\":\"U8\",\"data_offsets\":[0,1],\"shape\":[1";
  for (size_t i = 0; i < kMaxModelRank; ++i) shape += ",1";
  std::string metadata = "{\"__metadata__\":{\"k\":\"\"";
  for (size_t i = 0; i < kMaxModelMetadata; ++i) metadata += ",\"" + std::to_string(i) + "\":\"\"";
  expect_refused({
      {deep + "}", 0, "\"w\" is a list"},
      {nested + "}", 0, "unknown key \"w\""},
      {"{\"w\":1}", 0, "\"w\" is a number; expected an object"},
      {"{\"w\":null}", 0, "null"},
      {"{\"w\":true}", 0, "a boolean"},
      {"{\"w\":\"x\"}", 0, "a string"},
      {"{\"__metadata__\":1}", 0, "\"__metadata__\" is a number"},
      {"{\"__metadata__\":{\"a\":1}}", 0, "\"a\" is a number; expected a string"},
      {"{\"__metadata__\":{\"a\":{}}}", 0, "\"a\" is an object; expected a string"},
      {"{\"__metadata__\":{\"a\":null}}", 0, "\"a\" is null"},
      {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", 0, "\"a\" is given twice"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "given twice"},
      {metadata + "}}", 0, "metadata entries"},
      {"{\"w\":{" + good + "},\"w\":{" + good + "}}", 1, "tensor \"w\" is given twice"},
      {w(good + ",\"extra\":1"), 1, "tensor \"w\" has an unknown key \"extra\""},
      {w(good + ",\"dtype\":\"U8\""), 1, "tensor \"w\" has dtype twice"},
      {w(good + ",\"shape\":[1]"), 1, "tensor \"w\" has shape twice"},
      {w(good + ",\"data_offsets\":[0,1]"), 1, "tensor \"w\" has data_offsets twice"},
      {w(""), 0, "tensor \"w\" has no dtype"},
      {w("\"dtype\":\"U8\",\"shape\":[]"), 1, "tensor \"w\" has no data_offsets"},
      {w("\"dtype\":\"U8\",\"data_offsets\":[0,1]"), 1, "tensor \"w\" has no shape"},
      {w("\"dtype\":\"F31\""), 0, "tensor \"w\" has unknown dtype \"F31\""},
      {w("\"dtype\":\"f32\""), 0, "unknown dtype"},
      {w("\"dtype\":\"\""), 0, "unknown dtype"},
      {w("\"dtype\":7"), 0, "tensor \"w\": dtype is a number; expected a string"},
      {w("\"dtype\":[]"), 0, "dtype is a list"},
      {w("\"shape\":1"), 0, "shape is a number; expected a list"},
      {w("\"shape\":{}"), 0, "shape is an object"},
      {w("\"shape\":[[1]]"), 0, "shape holds a list; expected whole numbers"},
      {w("\"shape\":[-1]"), 0, "shape holds a negative number"},
      {w("\"shape\":[1.0]"), 0, "shape holds a number; expected whole numbers"},
      {w("\"shape\":[\"1\"]"), 0, "shape holds a string"},
      {w("\"shape\":[9223372036854775808]"), 0, "shape holds a number"},
      {w("\"shape\":[99999999999999999999]"), 0, "shape holds a number"},
      {w("\"shape\":[1e999]"), 0, "not valid JSON"},
      {w(shape + "]"), 1, "more than 64 dimensions"},
  });
}

TEST(ModelHeader, RefusesWrongSizesAndPlaces) {
  const auto one = [](const std::string& name, const std::string& shape, const std::string& offsets) {
    return "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
  };
  expect_refused({
      {"{" + one("w", "[1]", "[0]") + "}", 4, "tensor \"w\" has 1 data_offsets"},
      {"{" + one("w", "[1]", "[]") + "}", 4, "has 0 data_offsets"},
      {"{" + one("w", "[1]", "[0,4,8]") + "}", 4, "more than two data_offsets"},
      {"{" + one("w", "[1]", "[4,0]") + "}", 4, "ends before it begins"},
      {"{" + one("w", "[2]", "[0,4]") + "}", 4, "tensor \"w\" F32 [2] needs 8 bytes; its data_offsets give 4"},
      {"{" + one("w", "[]", "[0,0]") + "}", 0, "needs 4 bytes"},
      {"{" + one("w", "[4611686018427387904,2]", "[0,0]") + "}", 0, "too large"},
      {"{" + one("w", "[4294967296,4294967296]", "[0,0]") + "}", 0, "too large"},
      {"{" + one("w", "[1]", "[0,4]") + "}", 3, "ends at byte 4 of the data; the file holds 3 bytes"},
      {"{" + one("w", "[1]", "[0,4]") + "}", 5, "holds 5 bytes of data; its tensors take 4"},
      {"{}", 1, "holds 1 bytes of data; its tensors take 0"},
      {"{" + one("w", "[1]", "[1,5]") + "}", 5, "bytes 0 to 1 of the data, before tensor \"w\""},
      {"{" + one("v", "[1]", "[0,4]") + "," + one("w", "[1]", "[8,12]") + "}", 12, "bytes 4 to 8"},
      {"{" + one("v", "[2]", "[0,8]") + "," + one("w", "[1]", "[4,8]") + "}", 8, "tensor \"w\" begins at byte 4"},
      {"{" + one("v", "[1]", "[0,4]") + "," + one("w", "[1]", "[0,4]") + "}", 4, "inside the one before it"},
      {"{" + one("v", "[1]", "[9223372036854775804,9223372036854775807]") + "}", 4, "needs 4 bytes"},
      {w("\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]"), 2, "not a whole number of bytes"},
  });
}

TEST(ModelHeader, RefusesWrongLengths) {
  for (size_t size = 0; size < 8; ++size)
    EXPECT_EQ(error_of([&] { (void)read(std::string(size, '\0')); }).code(), TN_BAD_DATA) << size;
  const struct {
    uint64_t length;
    const char* says;
  } cases[] = {{0, "begin with {"},
               {3, "the header has 3 bytes; the file holds 2"},
               {kMaxModelHeader, "the header has 100000000 bytes"},
               {kMaxModelHeader + 1, "at most 100000000"},
               {~uint64_t{0}, "at most 100000000"}};
  for (const auto& bad : cases) {
    const Error error = error_of([&] { (void)read(with_length(bad.length, "{}")); });
    EXPECT_EQ(error.code(), TN_BAD_DATA) << bad.length;
    EXPECT_THAT(error.message(), HasSubstr(bad.says));
  }
}

TEST(ModelHeader, ChecksWhatClaimsToBeOurs) {
  expect_refused({
      {"{\"__metadata__\":{\"format\":\"tenon\"}}", 0, "no tenon.xxh3_128"},
      {"{\"__metadata__\":{\"tenon.xxh3_128\":\"\"}}", 0, "tenon.xxh3_128 is empty"},
      {"{\"__metadata__\":{\"tenon.xxh3_128\":\"00\"}}", 0, "damaged: tenon.xxh3_128 is"},
      {"{\"__metadata__\":{\"tenon.sha256\":\"\"}}", 0, "tenon.sha256 is empty"},
      {"{\"__metadata__\":{\"tenon.sha256\":\"00\"}}", 0, "damaged: tenon.sha256 is"},
      {"{\"__metadata__\":{\"tenon.sha256\":\"00\",\"tenon.xxh3_128\":\"00\"}}", 0, "damaged: tenon.xxh3_128 is"},
  });
  EXPECT_FALSE(read(file_of("{\"__metadata__\":{\"format\":\"pt\"}}", 0)).verified);
}

TEST(ModelHeader, ShortensAndEscapesHostileNames) {
  const std::string shown = quoted("\x1b[31m" + std::string(100'000, 'x'));
  EXPECT_LT(shown.size(), 300u);
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  EXPECT_EQ(quoted(std::string(200, 'x')), '"' + std::string(200, 'x') + '"');
  EXPECT_EQ(quoted(std::string(201, 'x')), '"' + std::string(200, 'x') + "...\"");
  EXPECT_EQ(quoted("a\"\xff"), "\"a\\\"\xef\xbf\xbd\"");
}

TEST(ModelHeader, CanonicalJsonSortsAndEscapes) {
  ModelHeader header;
  header.metadata = {{"b", "\x01\"\\\n\u00e9"}, {"a", "/"}};
  header.tensors = {{"z", "U8", TN_U8, {}, 0, 1}, {"A", "U8", TN_U8, {2, 1}, 1, 2}};
  EXPECT_EQ(canonical_json(header),
            "{\"A\":{\"data_offsets\":[1,3],\"dtype\":\"U8\",\"shape\":[2,1]},"
            "\"__metadata__\":{\"a\":\"/\",\"b\":\"\\u0001\\\"\\\\\\n\u00e9\"},"
            "\"z\":{\"data_offsets\":[0,1],\"dtype\":\"U8\",\"shape\":[]}}");
  header.metadata["b"] = "\xff";
  EXPECT_EQ(error_of([&] { (void)canonical_json(header); }).code(), TN_INVALID);
}

}  // namespace
}  // namespace tenon_tests
