// Messages and exit codes of the program for bad input. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/host/cli/program.h"

namespace tenon_tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class MistakesTest : public ProgramTest {
 protected:
  // Runs the program, which must fail with code `exit`, print no result and save no model; returns its message.
  std::string failure(int exit, const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << "\n" << outcome.error;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_THAT(outcome.error, testing::StartsWith("tenon: ")) << arguments;
    EXPECT_FALSE(std::filesystem::exists(path("model.safetensors"))) << arguments;
    return outcome.error;
  }
  std::string outcome_end(const std::string& arguments) const {
    const std::string error = failure(78, arguments);
    return error.substr(error.size() - std::min<size_t>(error.size(), 200));
  }
  std::string changed(int exit, const std::string& from, const std::string& to,
                      const std::string& verb = "train") const {
    change(from, to);
    return failure(exit, verb + " job.toml");
  }
};

TEST_F(MistakesTest, CommandLine) {
  EXPECT_EQ(run("").exit, 64);
  EXPECT_THAT(failure(64, "trian job.toml"), HasSubstr("did you mean \"train\"?"));
  EXPECT_THAT(failure(64, "plugins"), HasSubstr("plugins list"));
  EXPECT_THAT(failure(64, "plugins lst"), HasSubstr("did you mean \"plugins list\"?"));
  EXPECT_THAT(failure(64, "train"), HasSubstr("expected JOB.toml"));
  EXPECT_THAT(failure(64, "train job.toml more"), HasSubstr("unexpected \"more\""));
  EXPECT_THAT(failure(64, "train ''"), HasSubstr("JOB.toml"));
  EXPECT_THAT(failure(64, "train job.toml --pases 3"), HasSubstr("did you mean \"--passes\"?"));
  EXPECT_THAT(failure(64, "train job.toml --pass 3"), HasSubstr("unknown option \"--pass\""));
  EXPECT_THAT(failure(64, "plan job.toml -q"), HasSubstr("unknown option \"-q\""));
  EXPECT_THAT(failure(64, "plan job.toml --q"), HasSubstr("unknown option \"--q\""));
  EXPECT_THAT(failure(64, "train job.toml --passes"), HasSubstr("--passes"));
  EXPECT_THAT(failure(64, "train job.toml --passes many"), HasSubstr("many"));
  EXPECT_THAT(failure(64, "train job.toml --passes 0"), HasSubstr("expected at least 1, got 0"));
  EXPECT_THAT(failure(64, "train job.toml --seed -3"), HasSubstr("expected at least 0"));
  EXPECT_THAT(failure(64, "train job.toml --threads 1000000"), HasSubstr("expected 0 to"));
  EXPECT_THAT(failure(64, "train job.toml --log-format xml"), HasSubstr("expected text or json"));
  EXPECT_THAT(failure(64, "train job.toml --save a --no-save"), HasSubstr("exclude each other"));
  EXPECT_THAT(failure(64, "infer job.toml --format xml"), HasSubstr("expected json, csv or npy"));
  EXPECT_THAT(failure(64, "train job.toml --set layer.hiden.size=3"), HasSubstr("did you mean \"hidden\"?"));
  EXPECT_THAT(failure(64, "train job.toml --set passes"), HasSubstr("expected key=value"));
  EXPECT_THAT(failure(78, "train job.toml --set pases=3"), HasSubstr("--set pases=3: unknown key \"pases\""));
}

TEST_F(MistakesTest, Files) {
  EXPECT_THAT(failure(66, "train nowhere.toml"), HasSubstr("nowhere.toml"));
  EXPECT_THAT(failure(66, "train job.toml --plugins nowhere"), HasSubstr("no folder \"nowhere\""));
  EXPECT_THAT(failure(66, "plugins list --plugins nowhere"), HasSubstr("no folder \"nowhere\""));
  EXPECT_THAT(failure(66, "train job.toml --save nowhere/model"), HasSubstr("no folder \"nowhere\""));
  EXPECT_THAT(failure(74, "train job.toml --save ."), HasSubstr("it is a folder"));
  EXPECT_THAT(failure(66, "test job.toml"), HasSubstr("model.safetensors"));
  EXPECT_THAT(failure(66, "model show nowhere"), HasSubstr("nowhere"));
  EXPECT_THAT(changed(66, "train-images", "nowhere-images"),
              AllOf(HasSubstr("nowhere-images"), HasSubstr("job.toml:")));
  EXPECT_THAT(changed(66, "test-labels", "nowhere-labels"), HasSubstr("[reader.test]")) << "found before the training";
}

TEST_F(MistakesTest, DamagedData) {
  write("train-images", read("train-images").substr(0, 500));
  EXPECT_THAT(failure(65, "train job.toml"), HasSubstr("train-images"));
  write("train-images", "no images");
  EXPECT_THAT(failure(65, "train job.toml"), HasSubstr("train-images"));
  write("train-images", "");
  EXPECT_THAT(failure(65, "train job.toml"), HasSubstr("train-images"));
}

TEST_F(MistakesTest, NoSamples) {
  EXPECT_THAT(failure(65, "train job.toml --set reader.train.shards=100 --set reader.train.shard=99"),
              HasSubstr("job.toml:34: [reader.train] gave no samples: "));
  EXPECT_THAT(failure(65, "train job.toml --set reader.train.drop_last=true --set reader.train.batch=64"),
              HasSubstr("[reader.train] gave no samples"));
  EXPECT_THAT(failure(65, "train job.toml --set reader.test.shards=100 --set reader.test.shard=99"),
              HasSubstr("[reader.test] gave no samples"));
  ASSERT_EQ(run("train job.toml --passes 1 --save good").exit, 0);
  EXPECT_THAT(failure(65, "test job.toml --model good --set reader.test.shards=100 --set reader.test.shard=99"),
              HasSubstr("[reader.test] gave no samples: "));
  write("empty.csv", "x,y\n");
  write("job.toml", R"(
layer = [{ name = "score", type = "fc", inputs = ["x"], size = 1 },
         { name = "cost", type = "square_error", inputs = ["score", "y"] }]
updater = { type = "sgd", learning_rate = 0.1 }
reader.train = { type = "csv", files = ["empty.csv"], columns = ["x:f32", "y:f32"], batch = 1 }
)");
  EXPECT_THAT(failure(65, "train job.toml --save empty"), HasSubstr("job.toml:5: [reader.train] gave no samples: "));
  EXPECT_FALSE(std::filesystem::exists(path("empty")));
}

TEST_F(MistakesTest, LabelOutOfRange) {
  write_images("train", 60, 17);
  EXPECT_THAT(failure(65, "train job.toml --no-save"), AllOf(HasSubstr("label"), HasSubstr("17")));
}

TEST_F(MistakesTest, DamagedModel) {
  ASSERT_EQ(run("train job.toml --passes 1 --save good").exit, 0);
  std::string bytes = read("good");
  write("short", bytes.substr(0, bytes.size() / 2));
  bytes[bytes.size() - 3] ^= 1;
  write("flipped", bytes);
  write("text", "no model");
  for (const char* file : {"short", "flipped", "text"}) {
    EXPECT_THAT(failure(65, std::string("model show ") + file), HasSubstr(file));
    EXPECT_THAT(failure(65, std::string("test job.toml --model ") + file), HasSubstr(file));
    EXPECT_THAT(failure(65, std::string("infer job.toml --model ") + file), HasSubstr(file));
  }
}

TEST_F(MistakesTest, ModelOfAnotherShape) {
  ASSERT_EQ(run("train job.toml --passes 1 --save good").exit, 0);
  const Outcome outcome = run("test job.toml --model good --set layer.hidden.size=9");
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("attribute \"size\" is 8 there, and 9 in the job\n"),
                                   HasSubstr("tenon: good does not fit"), HasSubstr("hidden.weight")));
}

TEST_F(MistakesTest, JobKeys) {
  EXPECT_THAT(changed(78, "passes", "pases"), HasSubstr("job.toml:1: unknown key \"pases\"; did you mean \"passes\"?"));
  EXPECT_THAT(changed(78, "passes = 4", "passes = \"4\""),
              HasSubstr("job.toml:1: key \"passes\": expected an integer"));
  EXPECT_THAT(changed(78, "size = 8", "sise = 8"),
              AllOf(HasSubstr("job.toml:9: layer \"hidden\""), HasSubstr("did you mean \"size\"?")));
  EXPECT_THAT(changed(78, "size = 8", "size = \"eight\""),
              AllOf(HasSubstr("job.toml:9: layer \"hidden\""), HasSubstr("expected an integer")));
  EXPECT_THAT(changed(78, "size = 8", "size = 0"), HasSubstr("at least 1, got 0"));
  EXPECT_THAT(changed(78, "inputs = [\"pixel\"]\nsize", "input = [\"pixel\"]\nsize"),
              HasSubstr("did you mean \"inputs\"?"));
  EXPECT_THAT(changed(78, "learning_rate = 0.05", "learningrate = 0.05"),
              AllOf(HasSubstr("job.toml:47: [updater]"), HasSubstr("did you mean \"learning_rate\"?")));
  EXPECT_THAT(changed(78, "learning_rate", "wrong = 1\nlearning_rate"),
              HasSubstr("unknown attribute \"wrong\"; known: learning_rate"));
  EXPECT_THAT(changed(78, "learning_rate", "schedule = \"cosine\"\nlearning_rate"),
              AllOf(HasSubstr("[updater]"), HasSubstr("attribute \"schedule\": expected a table")));
  EXPECT_THAT(changed(78, "batch = 8", "bacth = 8"), HasSubstr("did you mean \"batch\"?"));
  EXPECT_THAT(changed(78, "files = [\"train", "file = [\"train"), HasSubstr("did you mean \"files\"?"));
  EXPECT_THAT(changed(78, "slots.image", "slots.imgae"), HasSubstr("did you mean \"image\"?"));
  EXPECT_THAT(changed(78, "passes = 4", "passes = = 4"), HasSubstr("job.toml:1: "));
}

// The message about an attribute that a plugin refuses names its line in the job.
TEST_F(MistakesTest, AttributesThatAPluginRefuses) {
  const std::string rest = R"(
[[layer]]
name = "turned"
type = "transpose"
inputs = ["features"]
axes = [1, 0]

[updater]
type = "sgd"
learning_rate = 0.1
)";
  const auto libsvm = [&](const std::string& lines) {
    write("data", "1 1:0.5\n2 2:1\n");
    write("job.toml", "passes = 1\n\n[reader.train]\ntype = \"libsvm\"\nfiles = [\"data\"]\n" + lines + rest);
    return failure(78, "plan job.toml");
  };
  EXPECT_THAT(libsvm("width = 3\nbatch = 2\nlabels = [\"1\", \"1\"]\n"),
              HasSubstr("tenon: job.toml:8: [reader.train]: reader \"libsvm\": labels: duplicate label \"1\""));
  EXPECT_THAT(libsvm("labels = [\"1\", \"x\"]\nwidth = 3\nbatch = 2\n"), HasSubstr("job.toml:6: [reader.train]: "));
  EXPECT_THAT(libsvm("width = 0\nbatch = 2\nlabels = []\n"), HasSubstr("job.toml:6: [reader.train]: "));
  // In a part.
  write("job.toml",
        "passes = 1\n[reader.train]\nbatch = 2\n[[reader.train.part]]\ntype = \"libsvm\"\nfiles = \"data\"\n"
        "width = 3\nlabels = [\"1\", \"1\"]\n" +
            rest);
  EXPECT_THAT(failure(78, "plan job.toml"),
              HasSubstr("job.toml:8: [reader.train]: part 1: reader \"libsvm\": labels: duplicate label \"1\""));
  // Of a layer, and of an updater.
  EXPECT_THAT(changed(78, "type = \"softmax\"\ninputs = [\"score\"]",
                      "type = \"transpose\"\ninputs = [\"score\"]\n\naxes = [1, 0]", "plan"),
              HasSubstr("job.toml:34: layer \"prediction\" (transpose): axes: must be a permutation"));
  EXPECT_THAT(changed(78, "learning_rate = 0.05", "learning_rate = 0.05\nbeta1 = 1.0"),
              HasSubstr("job.toml:48: [updater]: updater \"adam\": beta1: must be below 1"));
  // A misspelled key of the job that is not similar to an attribute.
  EXPECT_THAT(changed(78, "batch = 8", "batch = 8\nprefech = 1"),
              HasSubstr("[reader.train]: unknown key \"prefech\"; did you mean \"prefetch\"?"));
}

TEST_F(MistakesTest, UnknownTypes) {
  EXPECT_THAT(failure(66, "train job.toml --set layer.score.act=relo"),
              HasSubstr("--set layer.score.act=relo: layer \"score\" (fc): attribute \"act\": "));
  EXPECT_THAT(changed(66, "type = \"fc\"", "type = \"cf\""),
              AllOf(HasSubstr("job.toml:5: "), HasSubstr("\"cf\""), HasSubstr("did you mean \"fc\"?")));
  EXPECT_THAT(changed(66, "type = \"adam\"", "type = \"adm\""), HasSubstr("did you mean \"adam\"?"));
  EXPECT_THAT(changed(66, "type = \"idx\"", "type = \"idxx\""), HasSubstr("did you mean \"idx\"?"));
  EXPECT_THAT(changed(66, "act = \"relu\"", "act = \"reluu\""),
              AllOf(HasSubstr("job.toml:10: layer \"hidden\" (fc): attribute \"act\": layer type \"reluu\" not found"),
                    HasSubstr("did you mean \"relu\"?")));
  EXPECT_THAT(changed(66, "passes = 4", "passes = 4\ndevice = \"cpuu\""), HasSubstr("cpuu"));
  EXPECT_THAT(failure(66, "plugins info acuracy"), HasSubstr("did you mean \"accuracy\"?"));
}

TEST_F(MistakesTest, Topology) {
  EXPECT_THAT(changed(78, "inputs = [\"pixel\"]", "inputs = [\"pixle\"]"),
              AllOf(HasSubstr("job.toml:8: layer \"hidden\": input \"pixle\""), HasSubstr("did you mean \"pixel\"?")));
  EXPECT_THAT(changed(78, "inputs = [\"pixel\"]", "inputs = [\"quitedifferent\"]"),
              HasSubstr("feeds it; layers: hidden, score, cost, accuracy, prediction; slots feed: pixel, label"));
  EXPECT_THAT(changed(78, "inputs = [\"pixel\"]", "inputs = [\"score\"]"), HasSubstr("the layers form a cycle: "));
  EXPECT_THAT(changed(78, "inputs = [\"pixel\"]", "inputs = [\"hidden\"]"), HasSubstr("\"hidden\" needs \"hidden\""));
  EXPECT_THAT(changed(78, "name = \"score\"", "name = \"hidden\""), HasSubstr("the name is taken"));
  EXPECT_THAT(changed(78, "inputs = [\"score\", \"label\"]", "inputs = [\"score\"]"),
              AllOf(HasSubstr("layer \"cost\""), HasSubstr("label")));
  EXPECT_THAT(changed(78, "seed = 3", "outputs = [\"cots\"]"), HasSubstr("job.toml:2: key \"outputs\""));
  EXPECT_THAT(changed(78, "seed = 3", "outputs = [\"prediction\"]"), HasSubstr("needs a cost"));
}

// Errors of machines and calls have the place of the layer too, also if its leaf has another name.
TEST_F(MistakesTest, LayersThatFailLater) {
  std::filesystem::create_directory(path("own"));
  std::filesystem::copy_file(test_plugin_folder() + "/layers/raw_throw.so", path("own/raw_throw.so"));
  write("data.csv", "x,y\n1,2\n3,4\n");
  const auto job = [&](const std::string& where, const std::string& scored) {
    write("job.toml", R"(passes = 1
[[layer]]
name = "score"
type = "fc"
inputs = ["x"]
size = 1
[[layer]]
name = "score/thrown"
type = "test_raw_throw"
inputs = ["score"]
act = "abs"
where = ")" + where + R"("
[[layer]]
name = "cost"
type = "square_error"
inputs = [")" + scored + R"(", "y"]
[updater]
type = "sgd"
learning_rate = 0.1
[reader.train]
type = "csv"
files = "data.csv"
columns = ["x: f32", "y: f32"]
batch = 2
[reader.test]
type = "csv"
files = "data.csv"
columns = ["x: f32", "y: f32"]
)");
  };
  const std::string plugins = " --plugins own --plugins " + plugin_folder();
  job("", "score");
  ASSERT_EQ(run("train job.toml --save good" + plugins).exit, 0);
  const auto failed = [&](const std::string& command, const std::string& where) {
    job(where, "score/thrown");
    const Outcome outcome = run(command + plugins);
    EXPECT_EQ(outcome.exit, 70) << command;
    EXPECT_THAT(outcome.error,
                AllOf(HasSubstr("tenon: job.toml:7: "), HasSubstr("layer \"score/thrown/test_raw_throw\""),
                      HasSubstr("thrown by " + where)));
  };
  failed("plan job.toml", "prepare");
  failed("train job.toml", "prepare");
  failed("train job.toml", "run");
  failed("test job.toml --model good", "run");
  failed("infer job.toml --model good --output score/thrown", "run");
}

TEST_F(MistakesTest, MissingSections) {
  EXPECT_THAT(changed(78, "[updater]\ntype = \"adam\"\nlearning_rate = 0.05\n", ""), HasSubstr("needs an [updater]"));
  EXPECT_THAT(changed(78, "[reader.test]\ntype = \"idx\"\nfiles = [\"test-images\", \"test-labels\"]\n", "", "test"),
              HasSubstr("no [reader.test]"));
  write("job.toml", "");
  EXPECT_THAT(failure(78, "train job.toml"), HasSubstr("key \"layer\" is missing"));
}

TEST_F(MistakesTest, ReadersMustAgree) {
  EXPECT_THAT(changed(78, "files = [\"test-images\", \"test-labels\"]", "files = [\"test-images\", \"test-images\"]"),
              AllOf(HasSubstr("[reader.test]"), HasSubstr("label")));
}

TEST_F(MistakesTest, KeysOfSlotsWithoutEffect) {
  write("train.csv", "x,y\n1,2\n");
  write("job.toml", R"(
layer = [{ name = "score", type = "fc", inputs = ["x"], size = 1 },
         { name = "cost", type = "square_error", inputs = ["score", "y"] }]
updater = { type = "sgd", learning_rate = 0.1 }
[reader.train]
type = "csv"
files = ["train.csv"]
columns = ["x:f32", "y:f32"]
batch = 1
slots.x = "x"
)");
  const std::string slot = "train job.toml --set reader.train.slots.x=";
  EXPECT_THAT(
      failure(78, slot + "'{scale=0.5}'"),
      HasSubstr("[reader.train]: slot \"x\": scale and offset are for integers, but the slot holds float32 []"));
  EXPECT_THAT(failure(78, slot + "'{offset=1}'"), HasSubstr("are for integers"));
  EXPECT_THAT(failure(78, slot + "'{sequence=\"s\"}'"),
              HasSubstr("slot \"x\": key \"sequence\" is for sequences, but the slot holds float32 []"));
  write("train.svm", "1 2:1\n");
  const std::string sparse =
      "train job.toml --set reader.train.type=libsvm --set 'reader.train.files=[\"train.svm\"]'"
      " --set reader.train.choose='{features=\"x\", label=\"y\"}'";
  write("job.toml", read("job.toml").replace(read("job.toml").find("columns"), 7, "width = 9 #"));
  EXPECT_EQ(run(sparse + " --no-save").exit, 0);
  EXPECT_THAT(failure(78, sparse + " --set reader.train.slots.x='{sequence=\"s\"}'"),
              HasSubstr("key \"sequence\" is for sequences, but the slot holds sparse float32 [9]"));
}

TEST_F(MistakesTest, ReadersMustHaveAsManyClasses) {
  const auto with = [&](const std::string& train, const std::string& test) {
    return "train job.toml --no-save --set reader.train.classes=" + train + " --set reader.test.classes=" + test;
  };
  EXPECT_THAT(failure(78, with("[0,3]", "[0,4]")),
              HasSubstr("[reader.test]: slot \"label\" has numbers below 4, but data layer \"label\" has numbers below "
                        "3 in [reader.train], job.toml:34: give both readers the same vocabulary, labels or classes"));
  EXPECT_EQ(run(with("[0,3]", "[0,3]")).exit, 0);
}

TEST_F(MistakesTest, NothingToPredict) {
  EXPECT_THAT(changed(64, "seed = 3", "outputs = [\"accuracy\"]", "infer"),
              HasSubstr("name a layer with --output NAME: hidden, score, prediction\n"));
}

// C functions would end a text at its NUL, and open another file.
TEST_F(MistakesTest, NoTextHasANul) {
  const auto text = [&](const std::string& from, const std::string& to) { return changed(78, from, to); };
  EXPECT_EQ(text("\"train-images\"", "\"train-images\\u0000x\""),
            "tenon: job.toml:36: [reader.train]: key \"files\": the text \"train-images\\u0000x\" has a NUL in it\n");
  EXPECT_EQ(text("act = \"relu\"", "act = \"relu\\u0000x\""),
            "tenon: job.toml:10: layer \"hidden\": key \"act\": the text \"relu\\u0000x\" has a NUL in it\n");
  EXPECT_EQ(text("type = \"adam\"", "type = \"adam\\u0000x\""),
            "tenon: job.toml:46: [updater]: key \"type\": the text \"adam\\u0000x\" has a NUL in it\n");
  EXPECT_THAT(text("name = \"score\"", "name = \"score\\u0000x\""),
              HasSubstr("layer \"score\\u0000x\": key \"name\": the text \"score\\u0000x\" has a NUL in it\n"));
  EXPECT_THAT(text("model.safetensors", "model\\u0000x"),
              HasSubstr("job.toml:3: key \"save\": the text \"model\\u0000x\""));
  EXPECT_THAT(text("inputs = [\"hidden\"]", "inputs = [\"hidden\\u0000\"]"),
              HasSubstr("key \"inputs\": the text \"hidden\\u0000\" has a NUL in it\n"));
  EXPECT_THAT(text("size = 8", "\"size\\u0000\" = 8"), HasSubstr("the key \"size\\u0000\" has a NUL in it\n"));
  EXPECT_THAT(text("layer = \"pixel\"", "layer = \"pixel\\u0000\""), HasSubstr("key \"layer\": the text"));
  EXPECT_THAT(text("slots.image", "slots.\"image\\u0000\""), HasSubstr("no slot \"image\\u0000\""));
  EXPECT_THAT(text("batch = 8", "batch = 8\nchoose = { image = \"a\\u0000\" }"), HasSubstr("a NUL in it"));
  write("job.toml", job());
  EXPECT_THAT(failure(78, "train job.toml --set 'updater.type=\"adam\\u0000\"'"),
              HasSubstr("key \"type\": the text \"adam\\u0000\" has a NUL in it\n"));
}

TEST_F(MistakesTest, ANameOfAMegabyte) {
  const std::string name(1 << 20, 'n');
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"type = \"adam\"", "type = \"" + name + "\""},
                                 {"size = 8", name + " = 8"},
                                 {"passes = 4", "passes = \"" + name + "\""}}) {
    change(from, to);
    const Outcome outcome = run("train job.toml");
    EXPECT_NE(outcome.exit, 0);
    EXPECT_LT(outcome.error.size(), 5000U);
    EXPECT_THAT(outcome.error, AllOf(testing::StartsWith("tenon: job.toml:"), HasSubstr("nnn")));
  }
  EXPECT_THAT(outcome_end("train job.toml --set passes=" + std::string(100'000, 'x')),
              HasSubstr("expected an integer"));
}

// Names of files, keys, and texts of model files may come from anywhere: they must neither control a terminal nor look
// like output.
TEST_F(MistakesTest, NothingDrivesTheTerminal) {
  EXPECT_THAT(changed(78, "passes = 4", "\"\\u001b[31m\" = 4"),
              AllOf(HasSubstr("unknown key \"\\u001b[31m\""), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(changed(78, "passes = 4", "\"a\\nb\\u009b\\u007f\" = 4"),
              HasSubstr("unknown key \"a\\nb\\u009b\\u007f\""));
  EXPECT_THAT(failure(64, "train job.toml --set '\x9b' --set 'a\xc3\xa9\xc3'"), HasSubstr("--set \\x9b: expected"));
  EXPECT_THAT(failure(66, "train 'a\xc3\xa9\xc3\xff'"), HasSubstr("a\xc3\xa9\\xc3\\xff"));
  std::filesystem::create_directory(path("folder"));
  write("folder/\x1b[31m\nb.so", "no plugin");
  const Outcome listed = run("plugins list --plugins folder");
  EXPECT_EQ(listed.exit, 0);
  EXPECT_THAT(listed.out, HasSubstr("/folder/\\u001b[31m\\nb.so: "));
  EXPECT_THAT(listed.error, HasSubstr("/folder/\\u001b[31m\\nb.so: "));
  EXPECT_THAT(listed.out + listed.error, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\nb.so"))));
  const std::string topology = R"({\"version\":1,\"layers\":[{\"name\":\"a\\nb\\u001b\",\"type\":\"t\\tu\",)"
                               R"(\"inputs\":[],\"attributes\":{\"k\\n\":\"v\\r\"}}],\"outputs\":[\"a\\nb\"]})";
  const std::string header = "{\"__metadata__\":{\"m\\n\":\"w\\u001b\",\"tenon.topology\":\"" + topology + "\"}}";
  write(
      "model",
      std::string{static_cast<char>(header.size()), static_cast<char>(header.size() >> 8), 0, 0, 0, 0, 0, 0} + header);
  const Outcome shown = run("model show model");
  EXPECT_EQ(shown.exit, 0) << shown.error;
  for (const char* text : {"a\\nb\\u001b  t\\tu", "k\\n v\\r\n", "outputs: a\\nb\n", "m\\n: w\\u001b\n"})
    EXPECT_THAT(shown.out, HasSubstr(text));
  EXPECT_THAT(shown.out, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\t")), Not(HasSubstr("\r"))));
}

TEST_F(MistakesTest, FullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const Outcome outcome = shell("\"$TENON\" train job.toml --no-save >/dev/full");
  EXPECT_EQ(outcome.exit, 74) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("standard output"));
}

}  // namespace
}  // namespace tenon_tests
