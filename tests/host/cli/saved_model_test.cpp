// tenon infer and tenon test of a model file without a job: the file says how its data is read.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "host/cli/job/reader_metadata.h"
#include "host/cli/job/toml_tree.h"
#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class SavedModelTest : public CallTest {
 protected:
  // A job of the columns a, b and c, whose largest names the kind. reader: further keys of [reader.train].
  void write_job(const std::string& reader, const std::string& input = "x", const std::string& more = "") {
    write("job.toml", R"(passes = 40
seed = 2
save = "m.safetensors"
layer = [{ name = "score", type = "fc", inputs = [")" +
                          input + R"("], size = 3 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "kind"], from_logits = true },
         { name = "accuracy", type = "accuracy", inputs = ["score", "kind"] },
)" + more + R"(         { name = "pick", type = "argmax", inputs = ["score"] }]
updater = { type = "adam", learning_rate = 0.1 }
[reader.train]
batch = 5
)" + reader);
  }
  void SetUp() override {
    CallTest::SetUp();
    std::filesystem::create_directory("lists");
    write("train.csv", "a;b;c;which\n1;0;0;fox\n0;1;0;dog\n0;0;1;cat\n2;0;1;fox\n0;2;1;dog\n1;0;2;cat\n");
    write_job(kCsv);
  }
  static constexpr const char* kCsv =
      "type = \"csv\"\nfiles = [\"train.csv\"]\ndelimiter = \";\"\nshuffle = true\nhold_out = 0.2\n"
      "save_vocabularies = \"lists\"\ncolumns = [\"x = a..c: f32\", \"kind = which: category\"]\n";
  static std::string stored(const std::string& model = "m.safetensors") {
    return json::parse(Host().describe_model(model)).at("metadata").value(kReaderMetadata, "");
  }
  static std::vector<json> answers(const Arguments& arguments) { return parsed(done(run_infer, arguments).out); }
};

TEST_F(SavedModelTest, IsAllThatNewDataNeeds) {
  done(run_train, {"job.toml"});
  EXPECT_EQ(
      stored(),
      "batch = 5\ncolumns = [\"x = a..c: f32\", \"kind = which: category\"]\ndelimiter = \";\"\ntype = \"csv\"\n");
  std::filesystem::create_directory("elsewhere");
  write("elsewhere/new.csv", "c;id;b;a\n0;p;0;3\n3;q;0;1\n");
  const std::vector<json> expected = answers({"job.toml", "--data", "elsewhere/new.csv", "--with", "id"});
  std::filesystem::rename("m.safetensors", "elsewhere/other");
  for (const char* gone : {"job.toml", "train.csv"}) std::filesystem::remove(gone);
  std::filesystem::current_path("elsewhere");
  const std::vector<json> told = answers({"other", "--data", "new.csv", "--with", "id"});
  EXPECT_EQ(told, expected);
  EXPECT_EQ(told.at(0).at("name"), "fox");
  EXPECT_EQ(told.at(1).at("id"), "q");
  EXPECT_EQ(answers({"other", "--data", "new.csv", "new.csv", "--output", "score"}).size(), 4U);
  EXPECT_THAT(answers({"other", "--data", "new.csv", "--output", "score"}).at(0), Not(testing::Contains("pick")));
}

TEST_F(SavedModelTest, IsTested) {
  done(run_train, {"job.toml"});
  write("new.csv", "c;b;which;a\n0;0;fox;3\n3;0;cat;1\n0;4;fox;1\n");
  const Outcome by_job = done(run_test, {"job.toml", "--data", "new.csv"});
  const Outcome by_model = done(run_test, {"m.safetensors", "--data", "new.csv"});
  const auto result = [](const Outcome& outcome) { return outcome.out.substr(0, outcome.out.find("samples")); };
  EXPECT_EQ(result(by_model), result(by_job));
  EXPECT_THAT(by_model.out, HasSubstr("accuracy 0.6667"));
  const json event = parsed(done(run_test, {"m.safetensors", "--data", "new.csv", "--log-format", "json"}).out).at(0);
  EXPECT_EQ(event.at("samples"), 3);
  write("unlabelled.csv", "c;b;a\n0;0;3\n");
  EXPECT_THAT(failure(kBadConfig, run_test, {"m.safetensors", "--data", "unlabelled.csv"}), HasSubstr("\"which\""));
}

TEST_F(SavedModelTest, TheSameJobGivesTheSameBytes) {
  done(run_train, {"job.toml"});
  const std::string first = read("m.safetensors");
  done(run_train, {"job.toml", "--threads", "2"});
  EXPECT_EQ(read("m.safetensors"), first);
  std::filesystem::create_directories("moved/lists");
  for (const char* name : {"job.toml", "train.csv"}) std::filesystem::copy(name, std::string("moved/") + name);
  done(run_train, {"moved/job.toml"});
  EXPECT_EQ(read("moved/m.safetensors"), first) << "it has no path";
}

TEST_F(SavedModelTest, CheckpointsAndAveragesSayItToo) {
  write("job.toml", read("job.toml") +
                        "[checkpoint]\nfolder = \"saves\"\nbest = \"cost\"\n[average]\ndecay = 0.9\n"
                        "save = \"average.safetensors\"\n");
  done(run_train, {"job.toml", "--passes", "2"});
  write("new.csv", "a;b;c\n1;0;0\n");
  for (const char* model : {"average.safetensors", "saves/best.safetensors", "saves/checkpoint-2-0.safetensors"})
    EXPECT_EQ(answers({model, "--data", "new.csv"}).size(), 1U) << model;
}

// Names that the file has are not read from a vocabulary again, which may be gone.
TEST_F(SavedModelTest, NeedsNoVocabulary) {
  write("words.txt", "dog\ncat\nfox\n");
  std::string reader = kCsv;
  reader.replace(reader.find("which: category"), 15, "which: category(words.txt)");
  write_job(reader);
  done(run_train, {"job.toml"});
  write("new.csv", "a;b;c;which\n3;0;0;fox\n");
  std::filesystem::remove("words.txt");
  EXPECT_EQ(answers({"m.safetensors", "--data", "new.csv"}).at(0).at("name"), "fox");
  EXPECT_THAT(done(run_test, {"m.safetensors", "--data", "new.csv"}).out, HasSubstr("accuracy 1.0000"));
  write("words.txt", "dog\nwolf\n");
  EXPECT_THAT(failure(kBadConfig, run_test, {"m.safetensors", "--data", "new.csv"}), HasSubstr("\"wolf\""));
}

TEST_F(SavedModelTest, OverridesAndMistakes) {
  done(run_train, {"job.toml"});
  write("comma.csv", "a,b,c\n3,0,0\n");
  EXPECT_EQ(answers({"m.safetensors", "--data", "comma.csv", "--set", "reader.test.delimiter=\",\""}).at(0).at("pick"),
            2);
  const auto refused = [](int exit, const Arguments& arguments) { return failure(exit, run_infer, arguments); };
  EXPECT_THAT(refused(kUsage, {"m.safetensors"}), HasSubstr("name it with --data FILE"));
  EXPECT_THAT(refused(kUsage, {"m.safetensors", "comma.csv"}), HasSubstr("unexpected \"comma.csv\""));
  EXPECT_THAT(refused(kUsage, {"m.safetensors", "--model", "m.safetensors", "--data", "comma.csv"}),
              HasSubstr("the operand is a model file already"));
  EXPECT_THAT(refused(kUsage, {"m.safetensors", "--reader", "train", "--data", "comma.csv"}), HasSubstr("--reader"));
  EXPECT_THAT(refused(kUsage, {"m.safetensors", "--data", "comma.csv", "--output", "scor"}),
              HasSubstr("the model has no layer \"scor\"; did you mean \"score\"?"));
  EXPECT_THAT(refused(kBadConfig, {"m.safetensors", "--data", "comma.csv", "--set", "passes=2"}),
              HasSubstr("unknown key \"passes\""));
  EXPECT_THAT(refused(kNotFound, {"m.safetensors", "--data", "none.csv"}), HasSubstr("none.csv"));
  EXPECT_THAT(refused(kNotFound, {"none.safetensors", "--data", "comma.csv"}), HasSubstr("none.safetensors"));
  std::ofstream("m.safetensors", std::ios::binary | std::ios::app) << "x";
  EXPECT_THAT(refused(kBadData, {"m.safetensors", "--data", "comma.csv"}), HasSubstr("m.safetensors"));
}

TEST_F(SavedModelTest, OfAnApplicationDoesNotSayHowDataIsRead) {
  done(run_train, {"job.toml"});
  const Host host;
  const Model model = host.load("m.safetensors");
  write("new.csv", "a;b;c\n3;0;0\n");
  const auto refused = [&](const char* text) {
    model.parameters.set_metadata(kReaderMetadata, text);
    model.parameters.save(model.outputs, "own.safetensors");
    const Outcome outcome = call(run_infer, {"own.safetensors", "--data", "new.csv"});
    EXPECT_NE(outcome.exit, kDone);
    return outcome.error;
  };
  EXPECT_THAT(refused(nullptr), HasSubstr("own.safetensors: the model file does not say how its data is read"));
  EXPECT_THAT(refused("type = "), HasSubstr("own.safetensors: tenon.reader:1"));
  EXPECT_THAT(refused("type = \"csv\""), HasSubstr("key \"batch\" is missing"));
  EXPECT_THAT(refused("batch = 1\ntype = \"nothing\""), HasSubstr("nothing"));
  // What would read other files than those of --data, or write some, is not taken from a file of somebody else.
  for (const char* key : {"files", "folder", "save_vocabularies", "hold_out", "shuffle"})
    EXPECT_THAT(refused(("batch = 1\ntype = \"csv\"\n" + std::string(key) + " = [\"x\"]\n").c_str()),
                HasSubstr("key \"" + std::string(key) + "\": a model file says how data is read"));
  EXPECT_THAT(refused("batch = 1\npart = [{ type = \"csv\", files = [\"x\"] }]"), HasSubstr("key \"files\""));
}

// Outputs that are costs alone: what they read is printed.
TEST_F(SavedModelTest, WithoutAPredictionAmongTheOutputs) {
  write("job.toml", "outputs = [\"cost\", \"accuracy\"]\n" + read("job.toml"));
  done(run_train, {"job.toml"});
  write("new.csv", "a;b;c\n3;0;0\n");
  for (const char* file : {"job.toml", "m.safetensors"}) {
    const json told = answers({file, "--data", "new.csv"}).at(0);
    EXPECT_EQ(told.at("score").size(), 3U) << file;
    EXPECT_EQ(told.size(), 2U) << file;
  }
}

TEST_F(SavedModelTest, TextLibsvmAndArrays) {
  write("train.txt", "fox\ta a b\ndog\tb b a\ncat\tc\n");
  write_job(
      "type = \"text\"\nfiles = [\"train.txt\"]\nlabelled = true\nlower_case = true\nslots = { label = \"kind\" }\n",
      "t",
      "         { name = \"t\", type = \"embedding\", inputs = [\"words\"], vocabulary = 9, size = 4, reduce = "
      "\"mean\" },\n");
  done(run_train, {"job.toml"});
  write("new.txt", "A A A\n\nC c\n");
  const std::vector<json> told = answers({"m.safetensors", "--data", "new.txt"});
  EXPECT_THAT(told, testing::SizeIs(2));
  EXPECT_EQ(told.at(0).at("name"), "fox");
  EXPECT_EQ(told.at(1).at("name"), "cat") << "with the words of the model, in small letters";
  EXPECT_EQ(told.at(1).at("sample"), 2);
  write("train.svm", "0 1:1\n1 2:1\n2 3:1 9:0.1\n");
  write_job("type = \"libsvm\"\nfiles = [\"train.svm\"]\nclasses = 3\nslots = { label = \"kind\" }\n", "features");
  done(run_train, {"job.toml"});
  write("new.svm", "2:3\n");
  EXPECT_EQ(answers({"m.safetensors", "--data", "new.svm"}).at(0).at("pick"), 1);
}

// Scales, offsets and layouts are those of the data layers of the model.
TEST_F(SavedModelTest, ImagesWithAScale) {
  write("job.toml", job());
  done(run_train, {"job.toml"});
  EXPECT_THAT(stored("model.safetensors"), HasSubstr("slots = {image = {layer = \"pixel\", scale = 0.0039"));
  const Outcome by_job = done(run_infer, {"job.toml"});
  EXPECT_EQ(done(run_infer, {"model.safetensors", "--data", "test-images", "test-labels"}).out, by_job.out);
  EXPECT_EQ(done(run_infer, {"model.safetensors", "--data", "test-images"}).out, by_job.out) << "without labels";
}

TEST_F(SavedModelTest, LayersOfTheModelAreNamedAsInAJob) {
  write_job(kCsv, "x", "         { name = \"best\", type = \"top_k\", inputs = [\"score\"], k = 2 },\n");
  done(run_train, {"job.toml"});
  write("new.csv", "a;b;c\n3;0;0\n");
  const Arguments both = {"--data", "new.csv", "--output", "best:1", "--output", "best:indices", "--output", "best"};
  Arguments job = both, model = both;
  job.insert(job.begin(), "job.toml");
  model.insert(model.begin(), "m.safetensors");
  EXPECT_EQ(answers(model), answers(job));
  EXPECT_EQ(answers(model).at(0).at("best:1").at(0), 2);
  for (const char* name : {"best:2", "best:x", "x", "kind"})
    EXPECT_THAT(failure(kUsage, run_infer, {"m.safetensors", "--data", "new.csv", "--output", name}),
                HasSubstr("the model has no layer \"" + std::string(name) + "\""));
  EXPECT_THAT(failure(kUsage, run_infer, {"m.safetensors", "--data", "new.csv", "--output", "accuracy"}),
              HasSubstr("is a metric"));
}

// ---- the text itself

std::string again(const std::string& text) {
  JobReader reader;
  reader.table = parse_toml(text, "text");
  const std::string written = reader_metadata(reader);
  reader.table = reader_table(written, "model");
  EXPECT_EQ(reader_metadata(reader), written) << "reading it again changes nothing";
  return written;
}

TEST(ReaderMetadata, KeepsHowDataIsRead) {
  EXPECT_EQ(again("type = 'csv'\nmissing_value = 1e300\nsmall = 0.1\nwhole = 2.0\nbig = 9223372036854775807\n"
                  "none = nan\nless = -inf\nflag = true\n"),
            "big = 9223372036854775807\nflag = true\nless = -inf\nmissing_value = 1e+300\nnone = nan\nsmall = 0.1\n"
            "type = \"csv\"\nwhole = 2.0\n");
  EXPECT_EQ(again("delimiter = \"\\t\"\ntexts = ['a \"b\"', 'c\\d', \"\\u0007\", 'é']\n"),
            "delimiter = \"\\u0009\"\ntexts = [\"a \\\"b\\\"\", \"c\\\\d\", \"\\u0007\", \"é\"]\n");
  EXPECT_EQ(again("slots.'a.b' = { layer = 'y', scale = 0.5 }\naugment.image = { crop = [8, 8] }\n"),
            "augment = {image = {crop = [8, 8]}}\nslots = {\"a.b\" = {layer = \"y\", scale = 0.5}}\n");
}

TEST(ReaderMetadata, LeavesOutWhereItIs) {
  EXPECT_EQ(again("type = 'x'\nfiles = ['a']\nfile = 'a'\nfolder = 'b'\npath = 'c'\nhold_out = 0.1\nfirst_n = 3\n"
                  "shuffle = true\nshards = 2\nshard = 1\nprefetch = 9\ndrop_last = true\nsave_vocabulary = 'v'\n"
                  "bucket = { slot = 's', window = 2 }\n"),
            "type = \"x\"\n");
  EXPECT_EQ(again("join = 'chain'\npart = [{ type = 'a', files = ['b'] }, { type = 'c', save = 'd' }]\n"),
            "join = \"chain\"\npart = [{type = \"a\"}, {type = \"c\"}]\n");
}

}  // namespace
}  // namespace tenon_tests
