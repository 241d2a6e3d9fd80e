// Verbs that describe: plan, plugins list, plugins info, model show. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class DescribeTest : public CallTest {
 protected:
  static json plan(Arguments arguments = {}) {
    arguments.insert(arguments.begin(), {"job.toml", "--json"});
    return json::parse(done(run_plan, arguments).out);
  }
  // Makes a folder with two valid plugins, one of them in a subfolder, and two files that are not plugins.
  void make_plugins() const {
    namespace fs = std::filesystem;
    const fs::path from(tenon_tests::plugin_folder());
    fs::create_directories(path("mine/below"));
    fs::copy(from / "layers/fc.so", path("mine"));
    fs::copy(from / "updaters/adam.so", path("mine/below"));
    write("mine/bad.so", "no");
    write("mine/note.txt", "no plugin by its name");
  }
  // Options for the plugins of this folder alone.
  static Arguments only(const std::string& folder, Arguments before = {}) {
    before.insert(before.end(), {"--no-installed-plugins", "--plugins", folder});
    return before;
  }
};

// ---- plan

TEST_F(DescribeTest, PlanAsText) {
  const std::vector<std::string> text = lines_of(done(run_plan, {"job.toml"}).out);
  EXPECT_EQ(text.at(0), "device cpu, compute float32, minibatches of at most 8 samples, training");
  EXPECT_THAT(text.at(1), ContainsRegex("^[1-9][0-9]* compute threads?: (the affinity of the process has |/sys/)"));
  EXPECT_EQ(lines_of(done(run_plan, {"job.toml", "--threads", "3"}).out).at(1), "3 compute threads: stated");
  EXPECT_EQ(text.at(2), "");
  EXPECT_THAT(text.at(3), ContainsRegex("^layer +type +plugin +forward +backward *$"));
  const auto calls =
      std::find_if(text.begin(), text.end(), [](const std::string& line) { return line.rfind("phase ", 0) == 0; });
  ASSERT_GT(text.end() - calls, 2);
  EXPECT_THAT(calls[0], ContainsRegex("^phase +layer +type +call +kernel +group +reads +writes +workspace  outputs$"));
  EXPECT_THAT(calls[2], ContainsRegex("^forward +hidden/fc \\+ hidden/relu +fc \\+ relu +gemm +tenon.cpu +2 +[1-9]"));
  EXPECT_THAT(text.back(), HasSubstr("from \"control\" to \"row_sparse\""));
  const std::string all = done(run_plan, {"job.toml"}).out;
  EXPECT_THAT(all, ContainsRegex("\nmemory +bytes\nparameters +768\nstate +1536  1.5 KiB\ncontrol +[0-9]+\n"));
  uint64_t saved = 0;
  const json described = plan();
  for (const json& value : described.at("saved")) saved += value.at("bytes").get<uint64_t>();
  EXPECT_THAT(all, HasSubstr("The backward calls read " + std::to_string(saved) + " bytes that the forward ones"));
  EXPECT_THAT(all, HasSubstr("saved:\n  hidden/fc: float32 [samples, 4, 4]\n"));
  EXPECT_FALSE(exists("model.safetensors")) << "nothing is trained";
}

TEST_F(DescribeTest, PlanHasARowForEachCall) {
  const json described = plan();
  std::istringstream all(done(run_plan, {"job.toml"}).out);
  size_t rows = 0;
  for (std::string line; std::getline(all, line);) {
    if (line.rfind("forward ", 0) != 0 && line.rfind("backward ", 0) != 0) continue;
    const json& call = described.at("calls").at(rows++);
    EXPECT_THAT(line, StartsWith(call.at("phase").get<std::string>()));
    for (const char* key : {"reads", "writes", "workspace"})
      EXPECT_THAT(line, HasSubstr(" " + call.at(key).dump() + " "));
    EXPECT_THAT(line,
                ContainsRegex(" " + std::to_string(call.at("layers").size()) + " +" + call.at("reads").dump() + " "));
    EXPECT_THAT(line, EndsWith(call.at("outputs").back().get<std::string>()));
  }
  EXPECT_EQ(rows, described.at("calls").size());
}

TEST_F(DescribeTest, PlanOfInference) {
  const json described = plan({"--inference"});
  EXPECT_FALSE(described.at("training").get<bool>());
  EXPECT_TRUE(described.at("saved").empty());
  EXPECT_FALSE(described.at("bytes").contains("state"));
  std::set<std::string> names;
  for (const json& layer : described.at("layers")) names.insert(layer.at("name"));
  EXPECT_TRUE(names.contains("prediction"));
  const std::string text = done(run_plan, {"job.toml", "--inference"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("samples, inference\n"), Not(HasSubstr("backward")), Not(HasSubstr("\nslots "))));
  EXPECT_EQ(plan({"--inference", "--set", "reader.test.batch=5"}).at("max_samples"), 5) << "the batch of [reader.test]";
  EXPECT_EQ(plan({"--set", "reader.test.batch=5"}).at("max_samples"), 8);
  change("[updater]\ntype = \"adam\"\nlearning_rate = 0.05\n", "");
  EXPECT_FALSE(plan({"--inference"}).at("training").get<bool>()) << "inference needs no updater";
  EXPECT_THAT(failure(kBadConfig, run_plan, {"job.toml"}), HasSubstr("training needs an [updater]"));
  change("[reader.test]\ntype = \"idx\"\nfiles = [\"test-images\", \"test-labels\"]\n", "");
  EXPECT_EQ(plan({"--inference"}).at("max_samples"), 8) << "without [reader.test], the batch of [reader.train]";
}

TEST_F(DescribeTest, PlanOfTrainingComputesCostsAndMetricsAlone) {
  const auto calls = [](const json& described) {
    std::set<std::string> names;
    for (const json& call : described.at("calls"))
      for (const json& layer : call.at("layers")) names.insert(layer);
    return names;
  };
  EXPECT_FALSE(calls(plan()).contains("prediction"));
  EXPECT_TRUE(calls(plan({"--inference"})).contains("prediction"));
  const json frozen = plan({"--set", "immutable_parameters=[\"hidden\"]"});
  EXPECT_LT(frozen.at("bytes").at("gradients"), plan().at("bytes").at("gradients"));
  EXPECT_EQ(plan({"--inference", "--set", "immutable_parameters=[\"hidden\"]"}), plan({"--inference"}));
}

TEST_F(DescribeTest, PlanMistakes) {
  EXPECT_THAT(failure(kNotFound, run_plan, {"nowhere.toml"}), HasSubstr("nowhere.toml"));
  EXPECT_THAT(failure(kNotFound, run_plan, {"job.toml", "--set", "updater.type=adm"}),
              HasSubstr("did you mean \"adam\"?"));
  EXPECT_THAT(failure(kNotFound, run_plan, {"job.toml", "--set", "device=abacus"}), HasSubstr("abacus"));
  EXPECT_THAT(failure(kUsage, run_plan, {"job.toml", "--passes", "3"}), HasSubstr("unknown option \"--passes\""));
}

// ---- plugins

TEST_F(DescribeTest, PluginsOfAFolderAndThoseBelow) {
  make_plugins();
  const Outcome outcome = done(run_plugins_list, only("mine"));
  const std::vector<std::string> text = lines_of(outcome.out);
  ASSERT_EQ(text.size(), 6u) << outcome.out;
  EXPECT_THAT(text.at(0), ContainsRegex("^plugin +version +offers +file$"));
  EXPECT_THAT(outcome.out, ContainsRegex("\ntenon.fc +[0-9.]+ +layers fc +[^ ]*/mine/fc.so\n"));
  EXPECT_THAT(outcome.out, ContainsRegex("\ntenon.adam +[0-9.]+ +updaters adam +[^ ]*/mine/below/adam.so\n"));
  EXPECT_EQ(text.at(4), "refused:");
  const std::string bad = "/mine/bad.so: it is not a shared object";
  EXPECT_THAT(text.at(5), ContainsRegex("^  [^ ]*" + bad));
  EXPECT_EQ(text.at(5).find("bad.so"), text.at(5).rfind("bad.so")) << "the file is named once";
  EXPECT_THAT(outcome.error, AllOf(StartsWith("warning: "), HasSubstr(bad)));
  const json described = json::parse(done(run_plugins_list, only("mine", {"--json"})).out);
  EXPECT_EQ(described.size(), 3u);
  EXPECT_EQ(json::parse(done(run_plugins_list, only("mine/below", {"--json"})).out).size(), 1u);
  const Arguments both = {"--plugins", "mine/below", "--plugins", tenon_tests::plugin_folder() + "/layers", "--json"};
  EXPECT_GT(json::parse(done(run_plugins_list, both).out).size(), 10u);
  std::filesystem::create_directory(path("empty"));
  EXPECT_EQ(done(run_plugins_list, only("empty")).out, "plugin  version  offers  file\n");
  EXPECT_EQ(done(run_plugins_list, only("empty", {"--json"})).out, "[]\n");
}

TEST_F(DescribeTest, FoldersAddToTheInstalledOnes) {
  make_plugins();
  const Outcome outcome = call(run_train, only("mine", {"job.toml"}));
  EXPECT_EQ(outcome.exit, kNotFound);
  EXPECT_THAT(outcome.error, HasSubstr("reader type \"idx\" not found"));
  std::filesystem::remove(path("mine/bad.so"));
  const std::string twice = done(run_train, {"job.toml", "--plugins", "mine", "--passes", "1"}).error;
  for (const char* const name : {"fc", "adam"})
    EXPECT_THAT(twice, HasSubstr("its id \"tenon." + std::string(name) + "\" is also that of " + path("mine")));
  const auto files = [](const Arguments& arguments) {
    std::vector<std::string> result;
    for (const json& plugin : json::parse(done(run_plugins_list, arguments).out))
      result.push_back(plugin.at("file").get<std::string>());
    return result;
  };
  const std::string mine = path("mine/fc.so");
  EXPECT_THAT(files({"--json"}), testing::Not(testing::Contains(mine)));
  EXPECT_THAT(files({"--json", "--plugins", "mine"}), testing::Contains(mine));
  setenv("TENON_PLUGIN_PATH", (":" + path("gone") + ":" + path("mine")).c_str(), 1);
  EXPECT_THAT(files({"--json"}), testing::Contains(mine));
  EXPECT_GT(files({"--json"}).size(), 10u);
  unsetenv("TENON_PLUGIN_PATH");
}

// The second copy is not used, which is no reason to fail.
TEST_F(DescribeTest, InfoOfOneOfTwoCopies) {
  make_plugins();
  const Outcome outcome = done(run_plugins_info, {"fc", "--plugins", "mine"});
  EXPECT_EQ(outcome.out, done(run_plugins_info, only("mine", {"fc"})).out);
  EXPECT_THAT(done(run_plugins_list, {"--plugins", "mine"}).out,
              ContainsRegex("\nunused:\n  [^ ]*/layers/fc.so: its id \"tenon.fc\" is also that of [^ ]*/mine/fc.so, "
                            "which has the same version"));
}

TEST_F(DescribeTest, InfoByAnyName) {
  make_plugins();
  const auto info = [](const std::string& name) { return done(run_plugins_info, only("mine", {name})).out; };
  const std::string fc = info("fc");
  EXPECT_EQ(info("fc.so"), fc);
  EXPECT_EQ(info("tenon.fc"), fc);
  EXPECT_EQ(info(path("mine/fc.so")), fc);
  EXPECT_THAT(info("adam"), StartsWith("tenon.adam "));
  const std::vector<std::string> text = lines_of(fc);
  EXPECT_THAT(text.at(0), ContainsRegex("^tenon.fc [0-9.]+: "));
  EXPECT_THAT(text.at(1), ContainsRegex("^  file [^ ]*/mine/fc.so$"));
  EXPECT_THAT(text.at(2), ContainsRegex("^  license Apache-2.0; interface 0.[0-9]+, needs at least 0.[0-9]+$"));
  EXPECT_EQ(text.at(4), "layer fc");
  for (const std::string& line : text) {
    const bool is_prose =
        line.find("  input") != 0 && line.find("  parameters") != 0 && line.find("every layer") == std::string::npos;
    if (is_prose) {
      EXPECT_LE(line.size(), 102u) << line;
    }
  }
  EXPECT_THAT(fc, HasSubstr("\n  input inputs (one or more, dense or sparse): [samples, ...]"));
  EXPECT_THAT(fc, HasSubstr("\n  parameters (of these, as many as it needs): weight weight_1 "));
  EXPECT_THAT(fc, ContainsRegex("\n  attribute  type      default   meaning\n  size       int >= 1  required  "));
  EXPECT_THAT(fc, ContainsRegex("\n  bias       bool      true      "));
  EXPECT_THAT(fc, ContainsRegex("\n  and, as every layer: act, .*param.<suffix>.sparse\n$"));
  EXPECT_THAT(info("adam"), ContainsRegex("\n  beta1 +float >= 0.0 <= 1.0  0.9 .*as every updater: schedule, "));
}

TEST_F(DescribeTest, Communicators) {
  namespace fs = std::filesystem;
  fs::create_directory(path("mine"));
  fs::copy(fs::path(tenon_tests::test_plugin_folder()) / "../test_comms/comms/my_plugin.so", path("mine"));
  EXPECT_THAT(done(run_plugins_list, only("mine")).out,
              ContainsRegex("\nexample.my_plugin +0.1.0 +comms example.my_plugin +[^ ]*/mine/my_plugin.so"));
  EXPECT_THAT(done(run_plugins_info, only("mine", {"example.my_plugin"})).out,
              AllOf(HasSubstr("\n  built with the draft "), HasSubstr(" of the table tenon.comm/1\n"),
                    HasSubstr("\ncomm example.my_plugin\n  messages between "),
                    EndsWith("\n  traits: survives a lost rank\n")));
}

TEST_F(DescribeTest, InfoOfOneTypeAmongMany) {
  const auto info = [](const std::string& name) { return done(run_plugins_info, {name}).out; };
  const auto headings = [](const std::string& text, const std::string& kind) {
    std::vector<std::string> result;
    for (const std::string& line : lines_of(text))
      if (line.rfind(kind + " ", 0) == 0) result.push_back(line);
    return result;
  };
  EXPECT_THAT(headings(info("relu"), "layer"), testing::ElementsAre("layer relu"))
      << "not the other layers of the plugin";
  EXPECT_GT(headings(info("tenon.activations"), "layer").size(), 5u);
  EXPECT_THAT(headings(info("accuracy"), "layer"), testing::ElementsAre("layer accuracy (metric)"));
  EXPECT_THAT(headings(info("cross_entropy"), "layer"), testing::ElementsAre("layer cross_entropy (cost)"));
  EXPECT_THAT(info("accuracy"), HasSubstr("\n  input label (integers): "));
  EXPECT_THAT(info("pnpair"), HasSubstr("\n  input weight (optional): "));
  EXPECT_THAT(headings(info("cpu"), "device"), testing::ElementsAre("device cpu"));
  EXPECT_THAT(headings(info("idx"), "reader"), testing::ElementsAre("reader idx"));
  EXPECT_THAT(info("csv"), ContainsRegex("\n  missing +text: error \\| value \\| skip  \"error\" "));
  EXPECT_THAT(info("idx"), ContainsRegex("\n  names +texts +-  "));
  EXPECT_THAT(info("pnpair"), HasSubstr("\nkernel pnpair_pairs for layer pnpair on cpu, score "));
}

TEST_F(DescribeTest, InfoOfSeveralNames) {
  const auto info = [](const Arguments& names) { return done(run_plugins_info, names).out; };
  EXPECT_EQ(info({"relu", "adam", "idx"}), info({"relu"}) + "\n" + info({"adam"}) + "\n" + info({"idx"}));
  const Outcome outcome = call(run_plugins_info, {"relu", "rellu"});
  EXPECT_EQ(outcome.exit, kNotFound);
  EXPECT_THAT(outcome.error, EndsWith("did you mean \"relu\"?"));
}

TEST_F(DescribeTest, InfoOfWhatIsNotThereOrRefused) {
  make_plugins();
  const auto fails = [](int exit, Arguments arguments) {
    return failure(exit, run_plugins_info, only("mine", std::move(arguments)));
  };
  EXPECT_THAT(fails(kNotFound, {"tenon.fcc"}), EndsWith("is called \"tenon.fcc\"; did you mean \"tenon.fc\"?"));
  EXPECT_THAT(fails(kNotFound, {"adma"}), EndsWith("did you mean \"adam\"?"));
  EXPECT_THAT(fails(kNotFound, {"quite another"}), EndsWith("; see 'tenon plugins list'"));
  EXPECT_THAT(fails(kNotFound, {"quite another", "--json"}), EndsWith("; see 'tenon plugins list'"));
  EXPECT_THAT(fails(kRefused, {"bad.so"}),
              ContainsRegex("the plugin is refused: [^ ]*/bad.so: it is not a shared object"));
  const json described = json::parse(done(run_plugins_info, only("mine", {"bad.so", "--json"})).out);
  EXPECT_EQ(described.at("status"), "refused");
  EXPECT_TRUE(described.at("manifest").is_null());
  EXPECT_EQ(json::parse(done(run_plugins_info, {"fc", "--json"}).out).at("manifest").at("id"), "tenon.fc");
}

// ---- model show

TEST_F(DescribeTest, ModelShow) {
  done(run_train, {"job.toml", "--passes", "1"});
  const std::string text = done(run_model_show, {"model.safetensors"}).out;
  EXPECT_THAT(text, StartsWith("verified: the checksum is right\n\nlayer       type           plugin               "
                               "      state  inputs        attributes\n"));
  EXPECT_THAT(text, HasSubstr("\npixel       data                                                           uint8 [4, "
                              "4]\n"));
  EXPECT_THAT(text, HasSubstr("\nhidden      fc             tenon.fc 0.1.0                 1  pixel         act relu, "
                              "bias true, size 8\n"))
      << "without parameter_name, the name of the layer";
  EXPECT_THAT(text, HasSubstr("\ncost        cross_entropy  tenon.cross_entropy 0.1.0      1  score, label  "
                              "from_logits true\n"));
  EXPECT_THAT(text, HasSubstr("\n\noutputs: cost, accuracy, prediction\n\n"));
  EXPECT_THAT(text, HasSubstr("\nhidden.weight  F32   [16,8]    512\n"));
  EXPECT_THAT(text, HasSubstr("\n\n4 tensors, 652 bytes (652 B)\nformat: tenon\n"));
  const json described = json::parse(done(run_model_show, {"model.safetensors", "--json"}).out);
  EXPECT_TRUE(described.at("verified").get<bool>());
  EXPECT_EQ(described.at("tensors").size(), 4u);
  done(run_train, {"job.toml", "--passes", "1", "--set", "layer.hidden.parameter_name=shared"});
  EXPECT_THAT(done(run_model_show, {"model.safetensors"}).out,
              HasSubstr("act relu, bias true, parameter_name shared, size 8\n"));
}

TEST_F(DescribeTest, ModelPrint) {
  done(run_train, {"job.toml", "--passes", "1"});
  const std::string text = done(run_model_print, {"model.safetensors", "--topology", "net.json"}).out;
  EXPECT_THAT(text, StartsWith("block 0 {\n  parameter hidden.weight: float32 [16, 8]\n"));
  EXPECT_THAT(text, HasSubstr("\n  hidden: float [samples, 8] = fc(inputs = pixel, weight = hidden.weight, "
                              "bias = hidden.bias, act = \"relu\", bias = true, size = 8)\n"));
  EXPECT_THAT(text, HasSubstr("}\noutputs cost, accuracy, prediction\n"));
  EXPECT_EQ(done(run_model_print, {"net.json"}).out, text) << "the file without values";
  EXPECT_THAT(done(run_plan, {"job.toml", "--program"}).out, HasSubstr("\n  hidden: float [samples, 8] = fc("));
  EXPECT_THAT(failure(kNotFound, run_model_print, {"nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(failure(kBadData, run_model_print, {"job.toml"}), HasSubstr("job.toml"));
}

TEST_F(DescribeTest, ModelShowOfTensorsAlone) {
  const std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  write("tensors", bytes + header + std::string(8, '\0'));
  EXPECT_EQ(done(run_model_show, {"tensors"}).out,
            "not verified: the file carries no checksum of Tenon\n\n"
            "no topology: the file holds tensors only\n\n"
            "tensor  type  shape  bytes\n"
            "w       F32   [2]        8\n"
            "\n1 tensors, 8 bytes (8 B)\n");
  EXPECT_THAT(failure(kNotFound, run_model_show, {"nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(failure(kBadData, run_model_show, {"job.toml"}), HasSubstr("job.toml"));
}

TEST_F(DescribeTest, ModelShowOfShards) {
  const auto shard = [](const std::string& name) {
    const std::string header = "{\"" + name + R"(":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}})";
    return static_cast<char>(header.size()) + std::string(7, '\0') + header + std::string(12, '\0');
  };
  ASSERT_EQ(shell("mkdir m").exit, 0);
  write("m/one.safetensors", shard("w"));
  write("m/two.safetensors", shard("v"));
  const std::string index = "m/model.safetensors.index.json";
  write(index, R"({"metadata":{"total_size":24},"weight_map":{"w":"one.safetensors","v":"two.safetensors"}})");
  for (const std::string& path : {index, std::string("m")}) {
    EXPECT_EQ(done(run_model_show, {path}).out,
              "not verified: the file carries no checksum of Tenon\n\n"
              "no topology: the file holds tensors only\n\n"
              "tensor  type  shape  bytes  file\n"
              "w       BF16  [2,3]     12  one.safetensors\n"
              "v       BF16  [2,3]     12  two.safetensors\n"
              "\n2 tensors, 24 bytes (24 B) in 2 files\n");
    const json described = json::parse(done(run_model_show, {path, "--json"}).out);
    EXPECT_EQ(described.at("tensors").at(1).at("file"), "two.safetensors");
    EXPECT_TRUE(described.at("topology").is_null());
  }
  write("net.json", R"({"layers":[],"outputs":[]})");
  EXPECT_THAT(failure(kBadData, run_model_show, {"net.json"}),
              HasSubstr("net.json\": is not an index of shards: expected JSON with an object \"weight_map\""));
}

// Models of other programs are named, not taken for damaged ones.
TEST_F(DescribeTest, ModelShowOfOtherFormats) {
  const std::pair<std::string, std::string> formats[] = {
      {std::string("PK\3\4....", 8), "it is a ZIP archive, as torch.save and numpy.savez write"},
      {"\x80\x04\x95.....", "it is a pickle of Python"},
      {"\x89HDF\r\n\x1a\n", "it is HDF5, as Keras writes"},
      {"\x1f\x8b\x08.....", "it is compressed by gzip"},
      {"\x08\x08\x12\x07pytorch", "it is a protocol buffer, as ONNX is"},
      {"{\"weight_map\": {}}", "it is JSON"},
      {"a,b,label\n1,2,3\n", "it is text"}};
  for (const auto& [bytes, kind] : formats) {
    write("other", bytes);
    EXPECT_THAT(failure(kBadData, run_model_show, {"other"}), HasSubstr("other\": not a model file: " + kind));
  }
  write("other", "\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8");
  EXPECT_THAT(failure(kBadData, run_model_show, {"other"}),
              HasSubstr("not a model file, or damaged: its header would"));
}

TEST_F(DescribeTest, Version) { EXPECT_EQ(done(run_version, {}).out, std::string("tenon ") + tn_version() + "\n"); }

}  // namespace
}  // namespace tenon_tests
