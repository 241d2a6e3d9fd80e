// Model files with an invalid topology: loading fails with TN_BAD_DATA, and the message names the file and the place.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/fashion.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TopologyFile : public testing::Test {
 protected:
  // Writes a model file without tensors.
  void put(const std::string& topology) const {
    put_header(json({{"__metadata__", {{"tenon.topology", topology}}}}).dump());
  }
  void put_header(const std::string& header) const {
    std::ofstream file(path_, std::ios::binary);
    for (size_t i = 0, length = header.size(); i < 8; ++i, length >>= 8) file << static_cast<char>(length & 0xff);
    file << header;
  }
  // Returns the error of loading the topology; TN_OK if loading succeeds.
  tenon::Error load(const std::string& topology) const {
    put(topology);
    return error_of_load();
  }
  tenon::Error error_of_load() const {
    try {
      (void)host_.load(path_);
    } catch (const tenon::Error& error) {
      return error;
    }
    return {TN_OK, ""};
  }
  // Checks that loading fails with bad data; returns the message without the name of the file.
  std::string refusal(const std::string& topology) const {
    const tenon::Error error = load(topology);
    EXPECT_EQ(error.code(), TN_BAD_DATA) << topology;
    EXPECT_THAT(error.what(), AllOf(HasSubstr(path_), Not(HasSubstr("json.exception")))) << topology;
    return std::string(error.what()).substr(std::min(path_.size() + 2, std::strlen(error.what())));
  }
  // Returns a valid topology with `from` replaced.
  static std::string changed(const std::string& from, const std::string& to) {
    std::string topology = R"({"version":1,"layers":[{"name":"x","dtype":"float32","type":"data","shape":[3],)"
                           R"("index_limit":-1,"scale":1.0,"offset":0.0},{"name":"y","type":"relu","inputs":["x"],)"
                           R"("attributes":{"parameter_name":"y"}}],"outputs":["y"]})";
    const size_t at = topology.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return topology.replace(at, from.size(), to);
  }

  const tenon_tests::TemporaryFolder folder_;
  const std::string path_ = folder_.file("model");
  Host host_ = make_host(1);
};

TEST_F(TopologyFile, IsReadWhereItIsSound) {
  EXPECT_EQ(load(changed("y", "y")).code(), TN_OK);
  EXPECT_EQ(load(changed("1.0", "1")).code(), TN_OK);
  EXPECT_EQ(load(changed("[3]", "[]")).code(), TN_OK);
}

// The parser stops at the bound: the rest takes no time.
TEST_F(TopologyFile, DepthAndSizeAreBounded) {
  const auto nested = [](size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  const std::string fault = "the topology is not valid JSON, or nested too deeply (more than 16 levels)";
  EXPECT_THAT(refusal(nested(17)), HasSubstr(fault));
  EXPECT_THAT(refusal(nested(16)), Not(HasSubstr(fault)));
  const auto put_large = [&](const std::string& topology) {
    put_header(R"({"__metadata__":{"tenon.topology":")" + topology + "\"}}");
  };
  const auto seconds = [&](char sign) {
    put_large(std::string(10'000'000, sign));
    const std::clock_t begin = std::clock();
    EXPECT_THAT(error_of_load().what(), HasSubstr(fault));
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const double first = seconds('x');  // wrong from its first byte on
  EXPECT_LT(seconds('['), 2 * first + 0.2);
  std::string many = "[0";
  for (int i = 0; i < 1 << 23; ++i) many += ",0";
  put_large(many + "]");
  EXPECT_THAT(error_of_load().what(), HasSubstr("too large (more than 8388608 values)"));
}

// The time grows with the text, whatever its values are.
TEST_F(TopologyFile, ManyObjectsTakeLittleTime) {
  std::string objects = "{}", arrays = "[]";
  for (int i = 1; i < 300'000; ++i) objects += ",{}", arrays += ",[]";
  for (const std::string& values : {objects, arrays}) {
    put_header(R"({"__metadata__":{"tenon.topology":"[)" + values + "]\"}}");
    const std::clock_t begin = std::clock();
    EXPECT_THAT(error_of_load().what(), HasSubstr("topology: it is a list; expected an object"));
    EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5.0);
  }
}

// Replaces each member by a value of each wrong kind, and renames it.
TEST_F(TopologyFile, KindsAreChecked) {
  const std::map<std::string, std::string> kinds = {{"null", "null"},          {"{}", "an object"},
                                                    {"[]", "a list"},          {"\"z\"", "a text"},
                                                    {"true", "true or false"}, {"2.5", "a number"}};
  const auto expect = [&](const std::string& key, const std::string& value, const std::string& who,
                          const std::string& expected, const std::vector<std::string>& sound) {
    const std::string from = "\"" + key + "\":" + value;
    for (const auto& [given, kind] : kinds)
      if (std::find(sound.begin(), sound.end(), given) == sound.end()) {
        EXPECT_EQ(refusal(changed(from, "\"" + key + "\":" + given)),
                  "topology: " + who + " is " + kind + "; expected " + expected);
      }
    EXPECT_EQ(refusal(changed(from, "\"other\":" + value)), "topology: " + who + " is missing");
  };
  const std::string x = R"("layers"[0]: )", y = R"("layers"[1]: )";
  expect("version", "1", "\"version\"", "an integer", {});
  expect("name", "\"x\"", x + "\"name\"", "a text", {"\"z\""});
  expect("type", "\"data\"", x + "\"type\"", "a text", {"\"z\""});
  expect("shape", "[3]", x + "\"shape\"", "a list", {"[]"});
  expect("index_limit", "-1", x + "\"index_limit\"", "an integer", {});
  expect("scale", "1.0", x + "\"scale\"", "a number", {"2.5"});
  expect("offset", "0.0", x + "\"offset\"", "a number", {"2.5"});
  expect("inputs", "[\"x\"]", y + "\"inputs\"", "a list", {"[]"});
  expect("attributes", "{\"parameter_name\":\"y\"}", y + "\"attributes\"", "an object", {"{}"});
  expect("outputs", "[\"y\"]", "\"outputs\"", "a list", {"[]"});
  EXPECT_EQ(refusal(changed("\"float32\"", "5")), "topology: " + x + "\"dtype\" is a number; expected a text");
  EXPECT_EQ(refusal(changed("[3]", "[\"3\"]")), "topology: " + x + "\"shape\"[0] is a text; expected an integer");
  EXPECT_THAT(refusal(changed("[3]", "[18446744073709551615]")), StartsWith("topology: " + x + "\"shape\"[0]: "));
  EXPECT_EQ(refusal(changed("[\"x\"]", "[{}]")), "topology: " + y + "\"inputs\"[0] is an object; expected a text");
  EXPECT_THAT(refusal(changed("\"y\"}", "{}}")),
              StartsWith("topology: " + y + "\"attributes\": \"parameter_name\": expected true, false, a number"));
  EXPECT_EQ(refusal(changed("},{", "},7,{")), "topology: \"layers\"[1] is a number; expected an object");
  EXPECT_EQ(refusal("[]"), "topology: it is a list; expected an object");
  EXPECT_THAT(refusal("{"), HasSubstr("not valid JSON"));
}

TEST_F(TopologyFile, SequencesAreChecked) {
  const auto with = [](const std::string& more) { return changed("\"offset\":0.0", "\"offset\":0.0," + more); };
  EXPECT_EQ(load(with(R"("storage":"ragged","levels":1,"sequence":"s")")).code(), TN_OK);
  EXPECT_EQ(refusal(with(R"("storage":7)")), R"(topology: "layers"[0]: "storage" is a number; expected a text)");
  EXPECT_EQ(refusal(with(R"("storage":"heap")")), R"(topology: storage "heap")");
  EXPECT_EQ(refusal(with(R"("storage":"ragged","levels":3,"sequence":"s")")), "topology: 3 levels; expected 1 or 2");
  EXPECT_EQ(refusal(with(R"("storage":"ragged","levels":"1")")),
            R"(topology: "layers"[0]: "levels" is a text; expected an integer)");
  EXPECT_EQ(refusal(with(R"("storage":"ragged","levels":1,"sequence":[])")),
            R"(topology: "layers"[0]: "sequence" is a list; expected a text)");
}

// A topology with the versions of a type and with an inner layer, in which one text was replaced.
std::string versioned(const std::string& from, const std::string& to) {
  std::string topology = R"({"version":1,"layers":[{"name":"x","dtype":"float32","type":"data","shape":[3],)"
                         R"("index_limit":-1,"scale":1.0,"offset":0.0},{"name":"y","type":"softmax","inputs":["x"],)"
                         R"("attributes":{"size":2},"buffers":{"y.mean":"mean"},)"
                         R"("plugin":{"id":"tenon.softmax","version":"0.1.0","state_version":1},)"
                         R"("inner":[{"name":"y/fc","type":"fc","attributes":{"bias":true,"size":2},)"
                         R"("plugin":{"id":"tenon.fc","version":"0.1.0","state_version":1}}]}],"outputs":["y"]})";
  const size_t at = topology.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return topology.replace(at, from.size(), to);
}

TEST_F(TopologyFile, VersionsAreChecked) {
  const std::string y = R"(topology: "layers"[1]: )";
  EXPECT_EQ(load(versioned("y", "y")).code(), TN_INVALID) << "sound, but for the parameters";
  EXPECT_EQ(refusal(versioned(R"({"id":"tenon.softmax","version":"0.1.0","state_version":1})", "1")),
            y + R"("plugin" is a number; expected an object)");
  const std::string id = R"("id":"tenon.softmax",)", version = R"("version":"0.1.0",)", state = R"(,"state_version":1)";
  EXPECT_EQ(refusal(versioned(id, "")), y + R"("plugin": "id" is missing)");
  EXPECT_EQ(refusal(versioned(version, "")), y + R"("plugin": "version" is missing)");
  EXPECT_EQ(refusal(versioned(state, "")), y + R"("plugin": "state_version" is missing)");
  EXPECT_EQ(refusal(versioned(id, R"("id":5,)")), y + R"("plugin": "id" is a number; expected a text)");
  EXPECT_EQ(refusal(versioned(version, R"("version":[],)")), y + R"("plugin": "version" is a list; expected a text)");
  EXPECT_THAT(refusal(versioned(id, R"("id":"a\u0000b",)")), HasSubstr("a text has a NUL in it"));
  EXPECT_EQ(refusal(versioned(state, R"(,"state_version":"1")")),
            y + R"("plugin": "state_version" is a text; expected an integer)");
  EXPECT_EQ(refusal(versioned(state, R"(,"state_version":1.5)")),
            y + R"("plugin": "state_version" is a number; expected an integer)");
  for (const char* number : {"-1", "4294967296", "9223372036854775807"})
    EXPECT_EQ(refusal(versioned(state, std::string(R"(,"state_version":)") + number)),
              y + R"("plugin": "state_version" is )" + number + "; expected 0 to 4294967295");
  EXPECT_THAT(refusal(versioned(state, R"(,"state_version":18446744073709551615)")),
              StartsWith(y + R"("plugin": "state_version": )"));
  EXPECT_EQ(load(versioned(state, R"(,"state_version":4294967295)")).code(), TN_REFUSED) << "a newer one";
}

TEST_F(TopologyFile, InnerLayersAndBuffersAreChecked) {
  const std::string y = R"(topology: "layers"[1]: )", inner = y + R"("inner"[0])";
  EXPECT_EQ(refusal(versioned(R"("inner":[)", R"("inner":7,"other":[)")),
            y + R"("inner" is a number; expected a list)");
  EXPECT_EQ(refusal(versioned(R"("inner":[)", R"("inner":[null,)")), inner + " is null; expected an object");
  EXPECT_EQ(refusal(versioned(R"("name":"y/fc",)", "")), inner + R"(: "name" is missing)");
  EXPECT_EQ(refusal(versioned(R"("type":"fc",)", "")), inner + R"(: "type" is missing)");
  EXPECT_EQ(refusal(versioned(R"(,"plugin":{"id":"tenon.fc","version":"0.1.0","state_version":1})", "")),
            inner + R"(: "plugin" is missing)");
  EXPECT_EQ(refusal(versioned(R"({"bias":true,"size":2})", "true")),
            inner + R"(: "attributes" is true or false; expected an object)");
  EXPECT_EQ(refusal(versioned(R"("bias":true)", R"("act":"relu")")),
            inner + R"(: "attributes": "act" is an attribute of the host)");
  EXPECT_THAT(refusal(versioned(R"("bias":true)", R"("depth":{})")),
              StartsWith(inner + R"(: "attributes": "depth": )"));
  EXPECT_THAT(refusal(versioned(R"("bias":true)", R"("depth":1)")), HasSubstr("unknown attribute \"depth\""));
  EXPECT_THAT(refusal(versioned(R"("inner":[)",
                                R"("inner":[{"name":"y/fc","type":"fc","attributes":{},"plugin":{"id":"","version":"",)"
                                R"("state_version":1}},)")),
              HasSubstr("two inner layers named \"y/fc\""));
  EXPECT_EQ(refusal(versioned(R"({"y.mean":"mean"})", "[]")), y + R"("buffers" is a list; expected an object)");
  EXPECT_EQ(refusal(versioned(R"("y.mean":"mean")", R"("y.mean":0)")),
            y + R"("buffers": "y.mean" is a number; expected a text)");
  EXPECT_EQ(load(versioned(R"("type":"fc")", R"("type":"elsewhere")")).code(), TN_INVALID)
      << "an inner layer that the expansion does not make";
}

// Null stands for an absent attribute of a type, where the file states the type's version.
TEST_F(TopologyFile, AnAbsentAttributeIsNull) {
  EXPECT_THAT(refusal(versioned(R"({"size":2})", R"({"size":2,"parameter_name":null})")),
              HasSubstr(R"("parameter_name": expected true, false, a number)"));
  EXPECT_EQ(load(versioned(R"({"size":2})", R"({"size":null})")).code(), TN_OK)
      << "without a size there is neither an expansion nor a parameter";
  EXPECT_EQ(load(versioned(R"("bias":true)", R"("bias":null)")).code(), TN_REFUSED) << "it has a default";
}

// A model of before: the type is written in its present form, and its outputs are found by number.
TEST_F(TopologyFile, FormerLayerTypesAreReplaced) {
  const std::string split =
      changed(R"("relu","inputs":["x"],"attributes":{)", R"("split3","inputs":["x"],"attributes":{"axis":1,)");
  const std::string topology = std::string(split).replace(split.find("[\"y\"]"), 5, "[\"y:2\"]");
  EXPECT_EQ(load(topology).code(), TN_OK);
  const json described = json::parse(host_.describe_model(path_)).at("topology").at("layers").at(1);
  EXPECT_EQ(described.at("type"), "split");
  EXPECT_EQ(described.at("attributes"), json({{"axis", 1}, {"parts", 3}, {"parameter_name", "y"}}));
  EXPECT_EQ(json::parse(host_.load(path_).outputs.at(0).describe()).at("shape"), "[samples, 1]");
  for (const char* broken : {"[]", R"({"layers":7})", R"({"layers":[7,{},{"type":7},{"type":"split2"}]})"}) {
    put(broken);
    EXPECT_EQ(json::parse(host_.describe_model(path_)).at("topology"), json::parse(broken));
  }
  EXPECT_EQ(refusal(changed("[\"x\"]", "[\"x:1\"]")), R"(topology: no output "x:1")");
}

TEST_F(TopologyFile, NamesMustLeadSomewhere) {
  EXPECT_EQ(refusal(changed("[\"x\"]", "[\"z\"]")), R"(topology: layer "z" is used before it is described)");
  EXPECT_EQ(refusal(changed("[\"y\"]", "[\"y:1\"]")), R"(topology: no output "y:1")");
  EXPECT_EQ(refusal(changed("[\"y\"]", "[\"\"]")), "topology: an output without a name");
  EXPECT_EQ(refusal(changed("[\"y\"]", "[]")), R"(topology: "outputs" is empty)");
  EXPECT_EQ(refusal(changed("\"name\":\"y\"", "\"name\":\"x\"")), R"(topology: two layers named "x")");
}

// C functions would read such a text up to the NUL only.
TEST_F(TopologyFile, NoTextHasANul) {
  const std::string nul = "\\u0000z\"";
  EXPECT_EQ(refusal(changed("\"name\":\"y\"", "\"name\":\"y" + nul)),
            R"(topology: "layers"[1]: "name": a text has a NUL in it: "y\u0000z")");
  EXPECT_THAT(refusal(changed("\"relu\"", "\"relu" + nul)), EndsWith(R"(a NUL in it: "relu\u0000z")"));
  EXPECT_THAT(refusal(changed("[\"x\"]", "[\"x" + nul + "]")), HasSubstr(R"("inputs"[0]: a text has a NUL in it)"));
  EXPECT_THAT(refusal(changed("[\"y\"]", "[\"y" + nul + "]")), HasSubstr(R"("outputs"[0]: a text has a NUL in it)"));
  EXPECT_THAT(refusal(changed("\"y\"}", "\"y" + nul + "}")), HasSubstr(R"("parameter_name": a text has a NUL in it)"));
  EXPECT_THAT(refusal(changed("\"y\"}", "[\"a\",\"y" + nul + "]}")), HasSubstr("a text has a NUL in it"));
  EXPECT_EQ(refusal(changed("\"parameter_name\"", "\"parameter_name" + nul)),
            R"(topology: layer "y": the name of an attribute has a NUL in it)");
}

// Damaged at random, a topology is refused with the file's name, or makes a model.
TEST_F(TopologyFile, DamageIsNoDefect) {
  const std::string sound = versioned("y", "y");
  const std::string characters = "{}[]\",:0123456789-.eEnulltrufasoxy/ \\\x01\x7f";
  std::mt19937 random(7);
  const auto below = [&](size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random); };
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = sound;
    for (size_t changes = 1 + below(3); changes > 0; --changes) {
      const size_t at = below(damaged.size()), length = std::min(below(12), damaged.size() - at);
      const size_t kind = below(4);
      if (kind == 0) damaged[at] = characters[below(characters.size())];
      if (kind == 1) damaged.erase(at, length);
      if (kind == 2) damaged.insert(at, damaged.substr(below(damaged.size()), length));
      if (kind == 3) damaged.insert(at, "18446744073709551616");
    }
    const tenon::Error error = load(damaged);
    if (error.code() == TN_OK) continue;
    ++refused;
    ASSERT_THAT(error.code(), AnyOf(TN_BAD_DATA, TN_INVALID, TN_REFUSED, TN_NOT_FOUND)) << error.what() << damaged;
    ASSERT_THAT(error.what(), AllOf(HasSubstr(path_), Not(HasSubstr("json.exception")))) << damaged;
  }
  EXPECT_GT(refused, 2000u);
}

TEST_F(TopologyFile, NoMemoryNamesTheFile) {
  const Perceptron model = perceptron(host_, 64);
  const Parameters parameters = host_.parameters(model.outputs(), 1);
  parameters.save(model.outputs(), path_);
  tn_allocator none = {};
  none.size = sizeof none;
  none.allocate = [](void*, uint64_t bytes, uint64_t alignment) -> void* {
    return bytes > 100'000 ? nullptr : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  none.release = [](void*, void* memory, uint64_t) { std::free(memory); };
  const Host small = make_host(1, &none);
  try {
    (void)small.load(path_);
    FAIL();
  } catch (const tenon::Error& error) {
    EXPECT_EQ(error.code(), TN_OUT_OF_MEMORY);
    EXPECT_THAT(error.what(), StartsWith(path_ + ": "));
  }
}

}  // namespace
}  // namespace tenon_tests
