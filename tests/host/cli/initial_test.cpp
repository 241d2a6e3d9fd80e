// The key "init" of a job: initial values from a model file, renamed and skipped. SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/initial.h"

#include <gmock/gmock.h>

#include <bit>

#include "host/cli/options.h"
#include "tests/host/cli/calls.h"
#include "tests/weights/safetensors.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class InitialTest : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    done(run_train, {"job.toml", "--passes", "1", "--save", "base.safetensors"});
  }
  // Writes the job with `init` before the first table, and `from` replaced.
  void write_job(const std::string& init, const std::string& from = "", const std::string& to = "") const {
    std::string text = init + "\n" + job();
    while (!from.empty() && text.find(from) != std::string::npos) text.replace(text.find(from), from.size(), to);
    write("job.toml", text);
  }
  // Trains with a rate of 0 and returns the parameters in the saved model, by name.
  std::map<std::string, std::vector<float>> untrained(std::string* note = nullptr) const {
    const Outcome outcome = done(
        run_train, {"job.toml", "--passes", "1", "--set", "updater.learning_rate=0", "--save", "kept.safetensors"});
    if (note != nullptr) *note = outcome.error;
    return values("kept.safetensors");
  }
  [[nodiscard]] std::map<std::string, std::vector<float>> values(const std::string& file) const {
    const Host host = PluginOptions().host();
    const Model model = host.load(path(file));
    std::map<std::string, std::vector<float>> result;
    for (const json& each : json::parse(model.parameters.describe())) {
      const Array array = model.parameters.get(each.at("name"));
      const auto* const data = static_cast<const float*>(array.data);
      result[each.at("name")] = {data, data + array.count()};
    }
    return result;
  }
  [[nodiscard]] std::string refused() const { return failure(kBadConfig, run_train, {"job.toml"}); }
};

TEST_F(InitialTest, AModelGivesTheInitialValues) {
  write_job("init = \"base.safetensors\"");
  std::string note;
  EXPECT_EQ(untrained(&note), values("base.safetensors"));
  EXPECT_THAT(note, HasSubstr("4 parameters from base.safetensors"));
}

TEST_F(InitialTest, ThePathIsRelativeToTheJob) {
  std::filesystem::create_directory(path("jobs"));
  write("jobs/job.toml", "init = \"../base.safetensors\"\n" + job());
  EXPECT_THAT(failure(kNotFound, run_train, {"jobs/job.toml"}), HasSubstr("train-images")) << "the next file to read";
}

TEST_F(InitialTest, NamesAreReplacedAndSkipped) {
  const auto base = values("base.safetensors");
  write_job("init = { file = \"base.safetensors\", rename = { hidden = \"first\" }, skip = [\"score.bias\"] }",
            "\"hidden\"", "\"first\"");
  std::string note;
  const auto now = untrained(&note);
  EXPECT_EQ(now.at("first.weight"), base.at("hidden.weight"));
  EXPECT_EQ(now.at("first.bias"), base.at("hidden.bias"));
  EXPECT_EQ(now.at("score.weight"), base.at("score.weight"));
  EXPECT_EQ(now.at("score.bias"), std::vector<float>(3, 0)) << "its own initial value";
  EXPECT_NE(base.at("score.bias"), std::vector<float>(3, 0));
  EXPECT_THAT(note, HasSubstr("3 parameters from base.safetensors; skipped: score.bias"));
}

TEST_F(InitialTest, WhatDoesNotFitIsListed) {
  write_job("init = \"base.safetensors\"", "size = 8", "size = 9");
  EXPECT_THAT(refused(), AllOf(StartsWith("job.toml:1: [init]: \"base.safetensors\" does not fit the job: "),
                               HasSubstr("hidden.weight: float32 [16,8] in the file, float32 [16,9] in the job; "),
                               HasSubstr("hidden.bias: float32 [8] in the file, float32 [9] in the job; "),
                               HasSubstr("score.weight: float32 [8,3] in the file, float32 [9,3] in the job")));
  write_job("init = \"base.safetensors\"", "\"hidden\"", "\"first\"");
  EXPECT_THAT(refused(), AllOf(HasSubstr("first.weight: not in the file; first.bias: not in the file"),
                               HasSubstr("; only in the file: hidden.weight, hidden.bias")));
}

TEST_F(InitialTest, AnotherFileIsAnError) {
  write_job("init = \"absent.safetensors\"");
  EXPECT_THAT(failure(kNotFound, run_train, {"job.toml"}), HasSubstr("absent.safetensors"));
  write("broken.safetensors", "no model");
  write_job("init = \"broken.safetensors\"");
  EXPECT_THAT(failure(kBadData, run_train, {"job.toml"}), HasSubstr("broken.safetensors"));
}

TEST_F(InitialTest, WrongKeysNameTheLine) {
  const auto wrong = [&](const std::string& init) {
    write_job(init);
    const std::string message = refused();
    EXPECT_THAT(message, StartsWith("job.toml:1: "));
    return message;
  };
  EXPECT_THAT(wrong("init = 3"), HasSubstr("key \"init\""));
  EXPECT_THAT(wrong("init = \"\""), HasSubstr("expected a text that is not empty"));
  EXPECT_THAT(wrong("init = { skip = [\"score\"] }"), HasSubstr("[init]: key \"file\""));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", skips = [] }"), HasSubstr("did you mean \"skip\"?"));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", skip = [\"scores\"] }"),
              AllOf(HasSubstr("[init]: key \"skip\": the job has no parameter \"scores\"")));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", rename = { hiden = \"hidden\" } }"),
              HasSubstr("[init]: key \"rename\": \"base.safetensors\" has no parameter \"hiden\""));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", rename = { hidden = \"first\" } }"),
              HasSubstr("[init]: key \"rename\": the job has no parameter \"first\""));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", rename = { hidden = 1 } }"), HasSubstr("rename.hidden"));
  EXPECT_THAT(wrong("init = { file = \"base.safetensors\", rename = { hidden = \"score\" } }"),
              HasSubstr("the parameters \"hidden.weight\" and \"score.weight\" of \"base.safetensors\" both become "
                        "\"score.weight\""));
}

// A matrix [rows, columns] with the numbers from `first` on.
std::vector<float> counted(int64_t count, float first = 0) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(first + static_cast<float>(i) / 8);
  return result;
}

// Weights of a perceptron as PyTorch writes them, in two shards.
class TensorsOfOthers : public InitialTest {
 protected:
  void SetUp() override {
    InitialTest::SetUp();
    hidden_ = counted(8 * 16), score_ = counted(3 * 8, -2);
    std::vector<uint16_t> bf16;
    for (const float value : hidden_) bf16.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    std::filesystem::create_directory(path("bert"));
    write("bert/1.safetensors", safetensors({{"model.layers.0.dense.weight", "BF16", {8, 16}, bytes_of(bf16)},
                                             floats("model.layers.0.dense.bias", {8}, counted(8, 5))},
                                            {{"format", "pt"}}));
    write("bert/2.safetensors",
          safetensors({floats("model.score.weight", {3, 8}, score_), floats("model.score.bias", {3}, {1, 2, 3}),
                       floats("model.pooler.weight", {2, 2}, counted(4))},
                      {{"format", "pt"}}));
    write("bert/model.safetensors.index.json", json{{"weight_map",
                                                     {{"model.layers.0.dense.weight", "1.safetensors"},
                                                      {"model.layers.0.dense.bias", "1.safetensors"},
                                                      {"model.score.weight", "2.safetensors"},
                                                      {"model.score.bias", "2.safetensors"},
                                                      {"model.pooler.weight", "2.safetensors"}}}}
                                                   .dump());
  }
  static std::vector<float> transposed(const std::vector<float>& values, size_t rows) {
    std::vector<float> result;
    const size_t columns = values.size() / rows;
    for (size_t column = 0; column < columns; ++column)
      for (size_t row = 0; row < rows; ++row) result.push_back(values[row * columns + column]);
    return result;
  }

  std::vector<float> hidden_, score_;
};

TEST_F(TensorsOfOthers, OfPyTorchAreTransposedAndRenamed) {
  write_job(
      R"(init = { file = "bert", layout = "pytorch", rename = { model = "", "model.layers.*.dense" = "hidden*" } })",
      "\"hidden\"", "\"hidden0\"");
  std::string note;
  const auto now = untrained(&note);
  EXPECT_EQ(now.at("hidden0.weight"), transposed(hidden_, 8)) << "eighths are exact in bfloat16";
  EXPECT_EQ(now.at("hidden0.bias"), counted(8, 5));
  EXPECT_EQ(now.at("score.weight"), transposed(score_, 3));
  EXPECT_EQ(now.at("score.bias"), (std::vector<float>{1, 2, 3}));
  EXPECT_THAT(note, HasSubstr("4 parameters from bert; only in the file: model.pooler.weight"));
}

TEST_F(TensorsOfOthers, WhatDoesNotFitIsListed) {
  write_job(R"(init = { file = "bert/model.safetensors.index.json", layout = "pytorch", rename = { model = "" } })",
            "size = 3", "size = 4");
  EXPECT_THAT(refused(),
              AllOf(StartsWith("job.toml:1: [init]: \"bert/model.safetensors.index.json\" does not fit the job: "),
                    HasSubstr("hidden.weight: not in the file; hidden.bias: not in the file; "),
                    HasSubstr("score.weight: F32 [3,8] in the file, which becomes float32 [8,3], float32 [8,4] in "
                              "the job; score.bias: F32 [3] in the file, float32 [4] in the job"),
                    HasSubstr("; only in the file: model.layers.0.dense.weight, model.layers.0.dense.bias, "
                              "model.pooler.weight")));
  write("flat.safetensors", safetensors({floats("score.weight", {24}, counted(24))}));
  write_job(R"(init = { file = "flat.safetensors", layout = "pytorch", skip = ["hidden", "score.bias"] })");
  EXPECT_THAT(refused(),
              HasSubstr("score.weight: F32 [24] in the file has 1 dimensions; 2 are needed for float32 [8,3]"));
}

TEST_F(TensorsOfOthers, TheLayoutOfPyTorchIsStated) {
  write_job(R"(init = "bert")");
  EXPECT_THAT(refused(),
              HasSubstr("\"bert\" was written by PyTorch: set key \"layout\" to \"pytorch\", or to \"tenon\""));
  write_job(R"(init = { file = "base.safetensors", layout = "pytorch" })");
  EXPECT_THAT(refused(), HasSubstr("key \"layout\": \"base.safetensors\" is a model of Tenon"));
  write_job(R"(init = { file = "bert", layout = "torch" })");
  EXPECT_THAT(refused(), AllOf(HasSubstr("layout"), HasSubstr("\"tenon\", \"pytorch\" or \"keras\"")));
  write_job(R"(init = { file = "bert", layout = "pytorch", rename = { "model.*.dense" = "hidden" } })");
  EXPECT_THAT(refused(), HasSubstr("as many * as the name of the file has"));
  write_job(R"(init = { file = "bert", layout = "pytorch", rename = { "model.layer.*" = "*" } })");
  EXPECT_THAT(refused(), HasSubstr("key \"rename\": \"bert\" has no parameter \"model.layer.*\""));
}

TEST_F(TensorsOfOthers, OfKerasAndOfTenonAreTakenAsTheyAre) {
  const std::vector<float> hidden = counted(16 * 8), score = counted(8 * 3, 1);
  write("keras.safetensors",
        safetensors({floats("dense/kernel:0", {16, 8}, hidden), floats("dense/bias:0", {8}, counted(8)),
                     floats("dense_1/kernel:0", {8, 3}, score), floats("dense_1/bias:0", {3}, counted(3))}));
  write_job(
      R"(init = { file = "keras.safetensors", layout = "keras", rename = { "dense" = "hidden", "dense_1" = "score" } })");
  EXPECT_EQ(untrained().at("hidden.weight"), hidden);
  write("plain.safetensors",
        safetensors({floats("hidden.weight", {16, 8}, hidden), floats("hidden.bias", {8}, counted(8)),
                     floats("score.weight", {8, 3}, score), floats("score.bias", {3}, counted(3))}));
  write_job(R"(init = "plain.safetensors")");
  const auto now = untrained();
  EXPECT_EQ(now.at("hidden.weight"), hidden);
  EXPECT_EQ(now.at("score.weight"), score);
}

// A classifier of lines of words.
class WordVectors : public CallTest {
 protected:
  void SetUp() override {
    CallTest::SetUp();
    write("train.txt", "1\tgood dog\n0\tbad cat\n1\tgood cat\n0\tbad dog\n");
    write("glove.txt", "the 9 9 9\ndog 1 2 3\ncat 4 5 6\n");
  }
  void write_job(const std::string& init, const std::string& reader = "") const {
    write("words.toml", init + R"(
layer = [{ name = "words_of", type = "embedding", inputs = ["words"], vocabulary = 20, size = 3 },
         { name = "mean", type = "sequence_pool", inputs = ["words_of"], kind = "mean" },
         { name = "score", type = "fc", inputs = ["mean"], size = 2 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "label"], from_logits = true }]
updater = { type = "sgd", learning_rate = 0 }
reader.train = { type = "text", files = ["train.txt"], labelled = true, batch = 2)" +
                            reader + " }\n");
  }
  [[nodiscard]] std::string refused() const { return failure(kBadConfig, run_train, {"words.toml", "--no-save"}); }
};

TEST_F(WordVectors, GiveTheRowsOfWords) {
  for (const std::string name : {"words_of", "words_of.weight"}) {
    write_job("init.vectors = { \"" + name + "\" = \"glove.txt\" }");
    const Outcome outcome = done(run_train, {"words.toml", "--save", "model.safetensors"});
    EXPECT_THAT(outcome.error,
                HasSubstr("words_of.weight: vectors of 2 of 5 words from glove.txt; the others keep their "
                          "initial values"));
  }
  const Model model = PluginOptions().host().load(path("model.safetensors"));
  const auto* const table = static_cast<const float*>(model.parameters.get("words_of.weight").data);
  const std::vector<std::string> words = model.parameters.names().at(0).texts.size() == 5
                                             ? model.parameters.names().at(0).texts
                                             : model.parameters.names().at(1).texts;
  const auto row = [&](const std::string& word) {
    const auto at = std::find(words.begin(), words.end(), word) - words.begin();
    return std::vector<float>(table + 3 * at, table + 3 * at + 3);
  };
  EXPECT_THAT(row("dog"), ElementsAre(1, 2, 3));
  EXPECT_THAT(row("cat"), ElementsAre(4, 5, 6));
  write_job("");
  done(run_train, {"words.toml", "--save", "plain.safetensors"});
  const Model plain = PluginOptions().host().load(path("plain.safetensors"));
  const auto* const before = static_cast<const float*>(plain.parameters.get("words_of.weight").data);
  const auto good = std::find(words.begin(), words.end(), "good") - words.begin();
  EXPECT_EQ(row("good"), std::vector<float>(before + 3 * good, before + 3 * good + 3)) << "its own initial values";
}

TEST_F(WordVectors, AFileOfWordsTakesThePlaceOfTheReaders) {
  write("words.txt", "<unk>\nbad\ncat\ndog\ngood\n");
  write_job("[init.vectors.words_of]\nfile = \"glove.txt\"\nwords = \"words.txt\"\n[other]\n");
  EXPECT_THAT(refused(), HasSubstr("other")) << "an unknown table, after the keys of vectors were read";
  write_job("init.vectors.words_of = { file = \"glove.txt\", words = \"words.txt\" }");
  EXPECT_THAT(done(run_train, {"words.toml", "--no-save"}).error, HasSubstr("vectors of 2 of 5 words"));
  write("words.txt", "bad\n");
  EXPECT_THAT(refused(), HasSubstr("\"words.txt\" has 1 words, the reader 5 of \"words\""));
}

TEST_F(WordVectors, WhatDoesNotFitIsRefused) {
  const auto wrong = [&](const std::string& init) {
    write_job(init);
    return refused();
  };
  EXPECT_THAT(
      wrong("init.vectors.word = \"glove.txt\""),
      AllOf(HasSubstr("[init]: key \"vectors.word\": expected the name of one table"), HasSubstr("words_of.weight")));
  EXPECT_THAT(wrong("init.vectors.score = \"glove.txt\""),
              HasSubstr("\"score.weight\" is not read with integers of data layers"));
  EXPECT_THAT(wrong("init.vectors.words_of = 3"), HasSubstr("the path of a file, or a table"));
  EXPECT_THAT(wrong("init.vectors.words_of = { words = \"w\" }"), HasSubstr("key \"file\""));
  EXPECT_THAT(wrong("init.vectors.words_of = \"glove.txt\"\ninit.skip = [\"score\"]"),
              HasSubstr("key \"skip\" is about key \"file\", which is missing"));
  write("glove.txt", "dog 1 2\n");
  EXPECT_THAT(wrong("init.vectors.words_of = \"glove.txt\""), HasSubstr("has vectors of 2 numbers, expected 3"));
  write("glove.txt", "bird 1 2 3\n");
  EXPECT_THAT(wrong("init.vectors.words_of = \"glove.txt\""), HasSubstr("\"glove.txt\" has none of the 5 words"));
  write_job("init.vectors.words_of = \"absent.txt\"");
  EXPECT_THAT(failure(kNotFound, run_train, {"words.toml", "--no-save"}), HasSubstr("absent.txt"));
}

TEST_F(InitialTest, OneCommandInitialisesAndResumes) {
  write_job("init = \"base.safetensors\"");
  write("job.toml", read("job.toml") + "\n[checkpoint]\nfolder = \"saves\"\n");
  done(run_train, {"job.toml", "--save", "whole.safetensors"});
  std::filesystem::remove_all(path("saves"));
  EXPECT_THAT(done(run_train, {"job.toml", "--resume", "--passes", "1"}).error,
              HasSubstr("4 parameters from base.safetensors"));
  EXPECT_THAT(done(run_train, {"job.toml", "--resume"}).error, testing::Not(HasSubstr("base.safetensors")));
  EXPECT_EQ(read("model.safetensors"), read("whole.safetensors"));
  EXPECT_THAT(failure(kBadConfig, run_train, {"job.toml", "--resume-from", "saves/checkpoint-3-0.safetensors"}),
              HasSubstr("job.toml:1: key \"init\": a training that resumes takes all values from its checkpoint"));
  write("job.toml", "init = \"saves/checkpoint-3-0.safetensors\"\n" + job());
  EXPECT_EQ(untrained(), values("saves/checkpoint-3-0.safetensors")) << "a checkpoint is a model";
}

TEST(InitialFit, TheLongestRenamedNameDecides) {
  const auto parameter = [](const char* name) {
    return json{{"name", name}, {"shape", {2}}, {"dtype", "float32"}, {"kind", "parameter"}};
  };
  JobInit init;
  init.rename = {{"a", "x"}, {"a.b", "y"}};
  const InitialFit found = fit(init, json::array({parameter("a.c"), parameter("a.b.c"), parameter("ab.c")}),
                               json::array({parameter("x.c"), parameter("y.c"), parameter("ab.c")}));
  std::vector<std::string> pairs;
  for (const InitialFit::Pair& pair : found.taken) pairs.push_back(pair.from + " " + pair.to);
  EXPECT_THAT(pairs, ElementsAre("a.c x.c", "a.b.c y.c", "ab.c ab.c"));
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_THAT(found.extra, IsEmpty());
}

}  // namespace

}  // namespace tenon_tests
