// tenon test and tenon infer in this process. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <tenon/plugin.hpp>

#include "host/cli/job/reader.h"
#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class InferTest : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    done(run_train, {"job.toml", "--passes", "20"});
  }
  static Arguments with_job(Arguments arguments) {
    arguments.insert(arguments.begin(), "job.toml");
    return arguments;
  }
  static Outcome infer(const Arguments& arguments = {}) { return done(run_infer, with_job(arguments)); }
  static Outcome test(const Arguments& arguments = {}) { return done(run_test, with_job(arguments)); }
  static std::string no_infer(int exit, const Arguments& arguments) {
    return failure(exit, run_infer, with_job(arguments));
  }
};

// ---- infer

TEST_F(InferTest, EachSampleIsAnObject) {
  const Outcome outcome = infer();
  EXPECT_EQ(outcome.error, "");
  const std::vector<json> told = parsed(outcome.out);
  ASSERT_EQ(told.size(), 21u);
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told.at(i).at("sample"), i) << "counted over all minibatches";
    EXPECT_EQ(told.at(i).size(), 2u);
    EXPECT_EQ(told.at(i).at("prediction").size(), 3u);
  }
  EXPECT_THAT(outcome.out, StartsWith("{\"sample\":0,\"prediction\":[")) << "the number comes first";
}

TEST_F(InferTest, ValuesInTheShapeOfASample) {
  const json first = parsed(infer({"--output", "cost", "--output", "score", "--output", "hidden"}).out).at(0);
  EXPECT_TRUE(first.at("cost").is_number()) << "one number is not a list";
  EXPECT_EQ(first.at("score").size(), 3u);
  EXPECT_EQ(first.at("hidden").size(), 8u);
  change("type = \"softmax\"\ninputs = [\"score\"]", "type = \"reshape\"\nshape = [2, 4]\ninputs = [\"hidden\"]");
  const json nested = parsed(infer().out).at(0);
  ASSERT_EQ(nested.at("prediction").size(), 2u) << nested;
  EXPECT_EQ(nested.at("prediction").at(0).size(), 4u);
  json flat = json::array();
  for (const json& row : nested.at("prediction"))
    for (const json& value : row) flat.push_back(value);
  EXPECT_EQ(flat, first.at("hidden")) << "row by row";
  const std::vector<std::string> csv = lines_of(infer({"--format", "csv"}).out);
  EXPECT_THAT(csv.at(0), AllOf(StartsWith("sample,prediction.0,"), EndsWith(",prediction.7")));
}

// A plugin's reader of the seed that it is opened with.
class Seeded {
 public:
  static void describe(tn::ReaderDescription& d) { d.type("test_seeded", "the seed"); }
  explicit Seeded(const tn::ReaderOpen& open) : seed_(open.seed()) {}
  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return 1; }
  void read(int64_t, tn::Samples& to) const { *to.dense<int64_t>(0) = static_cast<int64_t>(seed_); }

 private:
  uint64_t seed_;
  std::vector<tn::ReaderSlot> slots_ = {{"seed", TN_I64}};
};
void describe_seeded(tn::Plugin& plugin) {
  plugin.about("tenon.test.seeded", "1.0.0", "a reader of the tests", "Apache-2.0");
  plugin.reader<Seeded>();
}

TEST(Readers, OfAJobAreOpenedWithItsSeed) {
  const Host host;
  host.add_plugin(tn::entry<describe_seeded>());
  const auto seed = [&](const std::string& top) {
    const Job job = parse_job(top + R"(
[[layer]]
name = "same"
type = "relu"
inputs = ["seed"]
[reader.train]
type = "test_seeded"
batch = 1
[reader.test]
join = "chain"
[[reader.test.part]]
type = "test_seeded"
)",
                              "job.toml", {});
    for (const char* name : {"train", "test"})
      for (const bool in_order : {false, true}) {
        const OpenReader open = open_reader(host, job, reader_of(job, name), in_order);
        const std::vector<Array> values = open.reader.next();
        EXPECT_EQ(*static_cast<const int64_t*>(values.at(0).data), job.seed) << name;
      }
    return job.seed;
  };
  EXPECT_EQ(seed(""), 0);
  EXPECT_EQ(seed("seed = 4294967301"), 4294967301);
}

// "parts:1" is an output of the layer "parts", wherever a job or the command line names layers.
TEST_F(InferTest, OutputsOfALayerAreNumbered) {
  const auto split = [this](const std::string& input) {
    change("[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"hidden\"]",
           "[[layer]]\nname = \"parts\"\ntype = \"split\"\ninputs = [\"hidden\"]\nsizes = [2, 6]\n\n"
           "[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"" +
               input + "\"]");
  };
  split("parts:1");
  done(run_train, {"job.toml", "--passes", "1"});
  EXPECT_EQ(json::parse(Host().describe_model("model.safetensors")).at("topology").at("layers").at(3).at("inputs"),
            json({"parts:1"}));
  json first =
      parsed(infer({"--output", "hidden", "--output", "parts", "--output", "parts:0", "--output", "parts:1"}).out)
          .at(0);
  EXPECT_EQ(first.at("parts").size(), 2u);
  EXPECT_EQ(first.at("parts:0"), first.at("parts"));
  json whole = first.at("parts");
  for (const json& value : first.at("parts:1")) whole.push_back(value);
  EXPECT_EQ(whole, first.at("hidden"));
  EXPECT_EQ(parsed(infer().out).at(0).size(), 2u) << "parts is used, so it is not an output of the job";
  const json named = parsed(infer({"--set", R"(outputs=["cost", "parts:1"])"}).out).at(0);
  EXPECT_EQ(named.at("parts:1"), first.at("parts:1"));
  EXPECT_THAT(no_infer(78, {"--output", "parts:2"}), HasSubstr("layer \"parts\" has no output 2; it has 2"));
  EXPECT_THAT(no_infer(64, {"--output", "parts:x"}), HasSubstr("the job has no layer \"parts:x\""));
  EXPECT_THAT(no_infer(64, {"--output", "parts:"}), HasSubstr("the job has no layer \"parts:\""));
  split("parts:9");
  EXPECT_THAT(no_infer(78, {}), ContainsRegex("^job.toml:[0-9]+: layer \"parts\" has no output 9; it has 2"));
}

TEST_F(InferTest, OutputsOfALayerHaveNames) {
  change("[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"hidden\"]",
         "[[layer]]\nname = \"best\"\ntype = \"top_k\"\ninputs = [\"hidden\"]\nk = 6\n\n"
         "[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"best:output\"]");
  done(run_train, {"job.toml", "--passes", "1"});
  const json found = parsed(infer({"--output", "best", "--output", "best:indices", "--output", "best:1"}).out).at(0);
  EXPECT_EQ(found.at("best").size(), 6u);
  EXPECT_EQ(found.at("best:indices"), found.at("best:1"));
  EXPECT_THAT(no_infer(64, {"--output", "best:last"}), HasSubstr("the job has no layer \"best:last\""));
}

TEST_F(InferTest, CsvAndJsonHoldTheSameValues) {
  const Arguments chosen = {"--output", "score", "--output", "cost"};
  const std::vector<json> objects = parsed(infer(chosen).out);
  Arguments as_csv = chosen;
  as_csv.insert(as_csv.end(), {"--format", "csv"});
  const std::vector<std::string> csv = lines_of(infer(as_csv).out);
  ASSERT_EQ(csv.size(), 22u) << "one heading for all minibatches";
  EXPECT_EQ(csv.at(0), "sample,score.0,score.1,score.2,cost");
  for (size_t i = 0; i < objects.size(); ++i) {
    const json& scores = objects.at(i).at("score");
    EXPECT_EQ(csv.at(i + 1), std::to_string(i) + "," + scores.at(0).dump() + "," + scores.at(1).dump() + "," +
                                 scores.at(2).dump() + "," + objects.at(i).at("cost").dump())
        << "with the fewest digits";
    if (i == 3) break;  // not all samples: json may print numbers of 9 digits differently
  }
}

TEST_F(InferTest, ValuesThatAreNotFinite) {
  change("type = \"softmax\"\ninputs = [\"score\"]", "type = \"log\"\ninputs = [\"hidden\"]");  // relu gives zeros
  const std::string json_text = infer().out, csv = infer({"--format", "csv"}).out;
  EXPECT_THAT(json_text, AllOf(HasSubstr("null"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  EXPECT_EQ(parsed(json_text).size(), 21u);
  EXPECT_THAT(csv, AllOf(HasSubstr(",nan"), Not(HasSubstr("inf")), Not(HasSubstr("null"))));
}

TEST_F(InferTest, NamesAreQuotedInHeadings) {
  change("name = \"prediction\"", "name = 'a,\"b\"'");
  EXPECT_EQ(lines_of(infer({"--format", "csv"}).out).at(0),
            "sample,\"a,\"\"b\"\".0\",\"a,\"\"b\"\".1\",\"a,\"\"b\"\".2\"");
  EXPECT_TRUE(parsed(infer().out).at(0).contains("a,\"b\""));
}

TEST_F(InferTest, Sequences) {
  write("words.txt", "a b a\nb\na a\n");
  write("job.toml", R"(
save = "words.safetensors"
layer = [{ name = "vector", type = "embedding", inputs = ["words"], vocabulary = 9, size = 2 },
         { name = "sum", type = "sequence_pool", kind = "sum", inputs = ["vector"] },
         { name = "one", type = "fc", inputs = ["sum"], size = 1 },
         { name = "cost", type = "square_error", inputs = ["one", "label"] }]
updater = { type = "sgd", learning_rate = 0.1 }
[reader.train]
join = "compose"
batch = 2
part = [{ type = "text", files = ["words.txt"] },
        { type = "csv", files = ["label.csv"], columns = ["label:f32"] }]
)");
  write("label.csv", "label\n1\n2\n3\n");
  done(run_train, {"job.toml"});
  const std::vector<json> told = parsed(infer({"--reader", "train", "--output", "vector"}).out);
  ASSERT_EQ(told.size(), 3u);
  for (const auto& [sample, rows] : {std::pair<size_t, size_t>(0, 3), {1, 1}, {2, 2}}) {
    ASSERT_EQ(told.at(sample).at("vector").size(), rows) << "a list of the rows of the sample";
    for (const json& row : told.at(sample).at("vector")) EXPECT_EQ(row.size(), 2u);
  }
  const json& a = told.at(0).at("vector").at(0);
  EXPECT_EQ(told.at(0).at("vector").at(2), a);
  EXPECT_EQ(told.at(2).at("vector"), json::array({a, a}));
  EXPECT_EQ(told.at(1).at("vector").at(0), told.at(0).at("vector").at(1));
  EXPECT_EQ(
      no_infer(kUsage, {"--reader", "train", "--output", "vector", "--format", "csv"}).find("--format csv: layer"), 0u);
}

TEST_F(InferTest, ReaderAndModel) {
  EXPECT_EQ(lines_of(infer({"--reader", "train"}).out).size(), 60u);
  EXPECT_EQ(lines_of(infer({"--reader=test"}).out).size(), 21u);
  EXPECT_THAT(no_infer(kBadConfig, {"--reader", "tset"}), EndsWith("the job has no [reader.tset]"));
  std::filesystem::rename(path("model.safetensors"), path("elsewhere"));
  EXPECT_THAT(no_infer(kNotFound, {}), HasSubstr("model.safetensors"));
  EXPECT_EQ(lines_of(infer({"--model", "elsewhere", "--threads", "2"}).out).size(), 21u);
  change("save = \"model.safetensors\"\n", "");
  EXPECT_EQ(no_infer(kUsage, {}), "job.toml: the job saves no model; name a file with --model FILE");
  EXPECT_EQ(lines_of(infer({"--model", "elsewhere"}).out).size(), 21u);
}

TEST_F(InferTest, BadOutputs) {
  EXPECT_EQ(no_infer(kUsage, {"--output", "hiden"}),
            "--output: the job has no layer \"hiden\"; did you mean \"hidden\"?");
  EXPECT_EQ(no_infer(kUsage, {"--output", "accuracy"}),
            "--output: layer \"accuracy\" is a metric and has no value per sample");
  EXPECT_EQ(no_infer(kUsage, {"--output", "score", "--output", "score"}), "--output: layer \"score\" is named twice");
  EXPECT_EQ(no_infer(kUsage, {"--format", "xml"}),
            "--format: expected json, csv or npy, got \"xml\"; see 'tenon infer --help'");
  EXPECT_EQ(
      no_infer(kUsage, {"--set", "outputs=[\"accuracy\"]"}),
      "job.toml: none of the outputs is a prediction; name a layer with --output NAME: hidden, score, prediction");
  EXPECT_THAT(no_infer(kUsage, {"--log-format", "json"}), HasSubstr("unknown option \"--log-format\""));
}

TEST_F(InferTest, Interrupted) {
  const Outcome outcome = interrupted(run_infer, {"job.toml"}, SIGINT, "\"sample\":0,");
  EXPECT_EQ(outcome.exit, 130);
  EXPECT_EQ(parsed(outcome.out).size(), 8u) << "the lines of the minibatch are whole";
  EXPECT_EQ(interrupted(run_infer, {"job.toml"}, SIGTERM, "\"sample\":8,").exit, 143);
  EXPECT_EQ(lines_of(infer().out).size(), 21u);
}

TEST_F(InferTest, StandardOutputThatIsFull) {
  for (const char* format : {"json", "csv"}) {
    Kept full;
    full.refuses = true;
    const Outcome outcome = call(run_infer, {"job.toml", "--format", format}, std::move(full));
    EXPECT_EQ(outcome.exit, kIo);
    EXPECT_EQ(outcome.error, "cannot write to standard output");
  }
}

// ---- test

TEST_F(InferTest, TestAsTextAndAsJson) {
  const Outcome text = test();
  EXPECT_THAT(text.out, ContainsRegex("^test  cost [0-9.e-]+  accuracy [01]\\.[0-9]+  \\(21 samples, [0-9.]+ s\\)\n$"));
  EXPECT_EQ(text.error, "");
  const Outcome as_json = test({"--log-format", "json", "--quiet"});
  const std::vector<json> told = parsed(as_json.out);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told.at(0).at("event"), "test");
  EXPECT_EQ(told.at(0).at("pass"), 0);
  EXPECT_EQ(told.at(0).at("batch"), 0);
  EXPECT_EQ(told.at(0).at("samples"), 21);
  EXPECT_EQ(told.at(0).at("test").at("cost"), told.at(0).at("cost"));
  EXPECT_TRUE(told.at(0).at("metrics").contains("accuracy"));
  EXPECT_THAT(test({"--reader", "train"}).out, HasSubstr("(60 samples, "));
}

TEST_F(InferTest, MetricsOfOneNameAreToldApart) {
  change("name = \"prediction\"\ntype = \"softmax\"\ninputs = [\"score\"]",
         "name = \"wrong\"\ntype = \"accuracy\"\ninputs = [\"score\", \"label\"]");
  const json metrics = parsed(test({"--log-format", "json"}).out).at(0).at("metrics");
  EXPECT_EQ(metrics.size(), 2u) << metrics;
  EXPECT_TRUE(metrics.contains("wrong.accuracy")) << metrics;
}

TEST_F(InferTest, TestMistakes) {
  const auto no_test = [](int exit, const Arguments& arguments) {
    return failure(exit, run_test, with_job(arguments));
  };
  EXPECT_EQ(no_test(kBadConfig, {"--set", "outputs=[\"prediction\"]"}),
            "job.toml: there is no cost and no metric among the outputs");
  EXPECT_THAT(no_test(kNotFound, {"--model", "nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(no_test(kBadData, {"--model", "train-images"}), HasSubstr("train-images"));
  EXPECT_THAT(no_test(kBadConfig, {"--reader", "val"}), HasSubstr("no [reader.val]"));
  EXPECT_THAT(no_test(kUsage, {"--log-format", "csv"}), HasSubstr("expected text or json"));
  EXPECT_THAT(no_test(kUsage, {"--seed", "3"}), HasSubstr("unknown option \"--seed\""));
}

TEST_F(InferTest, MetricsAreMeasuredWithoutACost) {
  const Arguments job = {"--set", "outputs=[\"accuracy\", \"prediction\"]"};
  EXPECT_THAT(test(job).out, ContainsRegex("^test  accuracy [0-9.]+  \\(21 samples, "));
  Arguments as_json = job;
  as_json.insert(as_json.end(), {"--log-format", "json"});
  const json told = parsed(test(as_json).out).at(0);
  EXPECT_TRUE(told.at("cost").is_null() && told.at("test").at("cost").is_null()) << told;
  EXPECT_TRUE(told.at("metrics").at("accuracy").is_number()) << told;
}

}  // namespace
}  // namespace tenon_tests
