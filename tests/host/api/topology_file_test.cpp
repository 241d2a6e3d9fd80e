// Model files with an invalid topology: loading fails with TN_BAD_DATA, and the message names the file and the place.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/fashion.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TopologyFile : public testing::Test {
 protected:
  // Writes a model file without tensors.
  void put(const std::string& topology) const {
    const std::string header = json({{"__metadata__", {{"tenon.topology", topology}}}}).dump();
    std::ofstream file(path_, std::ios::binary);
    for (size_t i = 0, length = header.size(); i < 8; ++i, length >>= 8) file << static_cast<char>(length & 0xff);
    file << header;
  }
  // Returns the error of loading the topology; TN_OK if loading succeeds.
  tenon::Error load(const std::string& topology) const {
    put(topology);
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
    EXPECT_THAT(error.what(), AllOf(StartsWith(path_ + ": "), Not(HasSubstr("json.exception")))) << topology;
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
