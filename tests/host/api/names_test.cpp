// Names of classes, categories, labels and words in the public API: readers list them, trainings and model files store
// them, other readers number their data by them. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tenon_lease.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Texts = std::vector<std::string>;

class NamesApi : public testing::Test {
 protected:
  NamesApi() {
    DataOptions x, kind;
    x.name = "x", x.shape = {3};
    kind.name = "kind", kind.dtype = TN_I32, kind.index_limit = 3;
    const Layer score = host_.layer("fc", {host_.data(x)}, {{"size", 3}}, "score");
    const Layer label = host_.data(kind);
    options_.outputs = {host_.layer("cross_entropy", {score, label}, {{"from_logits", true}}),
                        host_.layer("accuracy", {score, label}, {})};
    options_.parameters = host_.parameters(options_.outputs, 1);
    options_.updater = host_.updater("adam", {{"learning_rate", 0.3}});
    options_.passes = 20;
  }

  static HostOptions host_options() {
    HostOptions options;
    options.threads = 1;
    options.plugin_paths = {tenon_tests::plugin_folder()};
    return options;
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_.file(name), std::ios::binary) << bytes;
  }
  static std::string table(const Texts& kinds) {
    std::string result = "a,b,c,kind\n";
    for (const std::string& kind : kinds)
      result += std::string(kind == "cat" ? "1,0,0," : kind == "dog" ? "0,1,0," : "0,0,1,") + kind + "\n";
    return result;
  }
  Reader csv(const std::string& content, const std::vector<Names>& names = {}, Attributes more = {}) const {
    write("data.csv", content);
    more.push_back({"files", Texts{"data.csv"}});
    more.push_back({"columns", Texts{"x = a, b, c: f32", "kind: category"}});
    return host_.reader("csv", more, folder_.path().string(), 0, 1, names);
  }
  // Returns a reader of the application that numbers kinds in the order of `names`.
  Reader own(const Texts& names, int64_t limit, const Texts& kinds) const {
    const Schema schema = {{"x", TN_F32, {3}}, {"kind", TN_I32, {}, limit, TN_DENSE, 1, names}};
    return host_
        .reader(schema,
                [=, next = size_t{0}](Sample& sample) mutable {
                  if (next == kinds.size()) return next = 0, false;
                  const std::string& kind = kinds[next++];
                  sample.set("x", {kind == "cat" ? 1 : 0, kind == "dog" ? 1 : 0, kind == "fox" ? 1 : 0});
                  sample.set("kind", std::find(names.begin(), names.end(), kind) - names.begin());
                  return true;
                })
        .batch(2);
  }
  void train_on(Reader reader) {
    options_.reader = std::move(reader);
    train(options_);
  }
  double accuracy_on(Reader reader) {
    TrainOptions options = options_;
    options.reader = std::move(reader);
    return test(options).metrics.at(0).value;
  }
  template <typename Action>
  static std::string message_of(Action action, tn_status code = TN_INVALID) {
    try {
      action();
    } catch (const tenon::Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }
  std::string refusal_of(Reader reader) {
    return message_of([&] { accuracy_on(std::move(reader)); });
  }
  static Texts texts_of(const std::vector<Names>& names, const std::string& slot) {
    for (const Names& list : names)
      if (list.slot == slot) return list.texts;
    return {};
  }
  // Returns the integers of a slot of all samples.
  static std::vector<int32_t> numbers_of(const Reader& reader, size_t slot) {
    std::vector<int32_t> result;
    for (auto arrays = reader.next(); !arrays.empty(); arrays = reader.next())
      result.push_back(*static_cast<const int32_t*>(arrays[slot].data));
    return result;
  }

  tenon_tests::TemporaryFolder folder_;
  Host host_{host_options()};
  TrainOptions options_;
};

TEST_F(NamesApi, AreLearnedSavedAndTakenOver) {
  EXPECT_THAT(options_.parameters.names(), IsEmpty());
  train_on(csv(table({"fox", "cat", "dog"})).batch(3));
  EXPECT_THAT(texts_of(options_.parameters.names(), "kind"), ElementsAre("cat", "dog", "fox"));
  EXPECT_THAT(texts_of(options_.parameters.names(), "x"), IsEmpty());
  EXPECT_EQ(options_.parameters.names().at(0).slot, "kind") << "those with names of integers are first";
  const std::string file = folder_.file("model.safetensors");
  options_.parameters.save(options_.outputs, file);
  EXPECT_THAT(host_.describe_model(file), HasSubstr(R"("names":["cat","dog","fox"])"));
  const Model model = host_.load(file);
  options_.parameters = model.parameters;
  for (const bool rebuilt : {false, true}) {
    if (rebuilt) options_.outputs = model.outputs;
    const std::string unseen = table({"fox", "dog"});
    EXPECT_THAT(refusal_of(csv(unseen).batch(1)),
                AllOf(HasSubstr("data layer \"kind\": slot \"kind\": 0 is \"dog\" and is known as \"cat\""),
                      HasSubstr("give the reader the names of the model")));
    Reader reader = csv(unseen, model.parameters.names());
    EXPECT_THAT(texts_of(reader.names(), "kind"), ElementsAre("cat", "dog", "fox"));
    EXPECT_EQ(accuracy_on(std::move(reader).batch(1)), 1);
  }
  EXPECT_THAT(message_of(
                  [&] {
                    csv(table({"dog", "wolf"}), model.parameters.names());
                  },
                  TN_BAD_DATA),
              HasSubstr("data.csv: line 3: column \"kind\": \"wolf\" is not among the names that the model was trained "
                        "with: \"cat\", \"dog\", \"fox\""));
}

TEST_F(NamesApi, AreGivenToAFunction) {
  const Reader reader = csv(table({"fox", "cat"}));
  std::vector<std::string> slots;
  const tn_names_sink take = [](void* user, const tn_names* const* names, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) static_cast<std::vector<std::string>*>(user)->emplace_back(names[i]->slot);
  };
  ASSERT_EQ(tn_reader_read_names(reader.host(), reader.handle(), take, &slots, nullptr), TN_OK);
  std::vector<std::string> expected;
  for (const Names& each : reader.names()) expected.push_back(each.slot);
  EXPECT_EQ(slots, expected);
  EXPECT_EQ(slots.at(0), "kind") << "those with names of integers are first";
  train_on(csv(table({"fox", "cat", "dog"})).batch(3));
  slots.clear(), expected.clear();
  ASSERT_EQ(tn_parameters_read_names(options_.parameters.host(), options_.parameters.handle(), take, &slots, nullptr),
            TN_OK);
  for (const Names& each : options_.parameters.names()) expected.push_back(each.slot);
  EXPECT_EQ(slots, expected);
}

TEST_F(NamesApi, InferenceAndFurtherTrainingCompareThem) {
  train_on(csv(table({"fox", "cat", "dog"})).batch(3));
  options_.reader = csv(table({"fox", "dog"})).batch(1);
  EXPECT_THAT(message_of([&] { train(options_); }), HasSubstr("known as \"cat\""));
  EXPECT_THAT(message_of([&] { infer(options_, [](const std::vector<Array>&) { return true; }); }),
              HasSubstr("known as \"cat\""));
  // A reader opened without known names has those of its data; one opened with the names of the model is accepted.
  const Reader reader = csv(table({"fox", "dog"}));
  EXPECT_THAT(texts_of(reader.names(), "kind"), ElementsAre("dog", "fox"));
  train_on(csv(table({"fox"}), options_.parameters.names()).batch(1));
  EXPECT_THAT(texts_of(options_.parameters.names(), "kind"), ElementsAre("cat", "dog", "fox"));
}

TEST_F(NamesApi, OfATrainingThatChangedNothingAreNotKept) {
  options_.reader = csv(table({"fox", "dog"})).batch(1);
  options_.passes = 0;
  train(options_);
  EXPECT_THAT(options_.parameters.names(), IsEmpty());
  options_.passes = 1;
  options_.handler = [](Event& event) {
    if (event.kind() == TN_BEGIN_ITERATION) event.stop();
  };
  train(options_);
  EXPECT_THAT(options_.parameters.names(), IsEmpty());
}

TEST_F(NamesApi, SomeOfTheMissingAndTheUnknown) {
  train_on(csv(table({"fox", "cat", "dog"})).batch(3));
  const std::vector<Names> names = options_.parameters.names();
  const std::string content = table({"fox", "wolf"});
  EXPECT_THAT(numbers_of(csv(content, names, {{"unknown_category", true}}), 1), ElementsAre(2, 3));
  EXPECT_THAT(numbers_of(csv(table({"fox", ""}), names, {{"missing", "skip"}}), 1), ElementsAre(2));
  EXPECT_THAT(numbers_of(csv(table({"fox", ""}), names, {{"missing", "value"}}), 1), ElementsAre(2, 3));
  // A skipped record may contain an unknown name.
  EXPECT_THAT(numbers_of(csv("a,b,c,kind\n1,0,,wolf\n1,0,0,dog\n", names, {{"missing", "skip"}}), 1), ElementsAre(1));
}

TEST_F(NamesApi, OfReadersOfTheApplication) {
  train_on(own({"cat", "dog", "fox"}, 3, {"fox", "cat", "dog"}));
  EXPECT_THAT(texts_of(options_.parameters.names(), "kind"), ElementsAre("cat", "dog", "fox"));
  EXPECT_EQ(accuracy_on(own({"cat", "dog", "fox"}, 3, {"dog", "fox"})), 1);
  EXPECT_EQ(accuracy_on(own({"cat", "dog"}, 2, {"dog"})), 1);  // each name has the same number as before
  EXPECT_THAT(refusal_of(own({"cat", "dog"}, 3, {"dog"})), HasSubstr("2 has no name, and is known as \"fox\""));
  EXPECT_THAT(refusal_of(own({"dog", "cat", "fox"}, 3, {"dog"})), HasSubstr("0 is \"dog\" and is known as \"cat\""));
  EXPECT_THAT(refusal_of(own({"cat", "dog", "fix"}, 3, {"dog"})),
              HasSubstr("\"fix\" is not among the names that are known: \"cat\", \"dog\", \"fox\"; did you mean"));
  EXPECT_EQ(accuracy_on(own({}, 3, {"dog"})), 0);  // without names, numbers are not compared
}

// Columns, types and widths go the same way: into the set, the file, and the readers of other data.
TEST_F(NamesApi, ColumnsAreLearnedSavedAndTakenOver) {
  const auto of = [](const std::vector<Names>& names) {
    for (const Names& list : names)
      if (list.slot == "x") return list;
    return Names();
  };
  train_on(csv(table({"fox", "cat", "dog"})).batch(3));
  EXPECT_THAT(of(options_.parameters.names()).columns, ElementsAre("a", "b", "c"));
  const std::string file = folder_.file("model.safetensors");
  options_.parameters.save(options_.outputs, file);
  EXPECT_THAT(host_.describe_model(file), HasSubstr(R"("columns":["a","b","c"])"));
  const Model model = host_.load(file);
  const Names loaded = of(model.parameters.names());
  EXPECT_THAT(loaded.columns, ElementsAre("a", "b", "c"));
  EXPECT_EQ(loaded.dtype, TN_F32);
  EXPECT_THAT(loaded.shape, ElementsAre(3));
  const auto turned = [&](const std::vector<Names>& names, const char* entry) {
    write("turned.csv", "c,kind,b,a\n1,fox,0,0\n0,dog,1,0\n");
    return host_.reader("csv", {{"files", Texts{"turned.csv"}}, {"columns", Texts{entry, "kind: category"}}},
                        folder_.path().string(), 0, 1, names);
  };
  EXPECT_EQ(accuracy_on(turned(model.parameters.names(), "x = c..a: f32").batch(1)), 1);
  options_.parameters.set_names({{"kind", {"cat", "dog", "fox"}}});  // as a program of 0.3 does
  EXPECT_THAT(of(options_.parameters.names()).columns, ElementsAre("a", "b", "c"));
  std::vector<Names> kinds = model.parameters.names();
  for (Names& list : kinds) list.columns.clear(), list.columns_count = 0;
  EXPECT_THAT(refusal_of(turned(kinds, "x = c, b, a: f32").batch(1)),
              HasSubstr("data layer \"x\": slot \"x\": column 0 is \"c\" and is known as \"a\""));
  // A loop of the application that feeds what the reader gives asks itself.
  const auto checked = [&](const Reader& reader) { check_reader(reader, model.parameters); };
  checked(turned(model.parameters.names(), "x = c..a: f32"));
  EXPECT_THAT(message_of([&] { checked(turned(kinds, "x = c, b, a: f32")); }),
              HasSubstr("slot \"x\": column 0 is \"c\" and is known as \"a\""));
  EXPECT_THAT(message_of([&] { checked(turned({}, "x = c, b, a: f32").batch(2)); }), HasSubstr("slot \"x\": column 0"));
  EXPECT_THAT(message_of([&] { checked(own({"dog", "cat", "fox"}, 3, {})); }), HasSubstr("slot \"kind\": "));
  checked(own({"cat", "dog", "fox"}, 3, {}));
}

TEST_F(NamesApi, ThatCannotBe) {
  EXPECT_THAT(message_of([&] { own({"cat", "cat"}, 3, {}); }), HasSubstr("slot \"kind\": duplicate name \"cat\""));
  EXPECT_THAT(message_of([&] { own({"cat", "dog", "fox"}, 2, {}); }), HasSubstr("3 names of int32 below 2"));
  const Schema floats = {{"x", TN_F32, {}, -1, TN_DENSE, 1, {"cat"}}};
  EXPECT_THAT(message_of([&] { (void)host_.reader(floats, [](Sample&) { return false; }); }),
              HasSubstr("1 names of float32"));
  EXPECT_THAT(message_of([&] {
                csv(table({"cat"}), {{"kind", {"cat"}}, {"kind", {"dog"}}});
              }),
              HasSubstr("names of \"kind\" are given twice"));
  EXPECT_THAT(message_of([&] {
                options_.parameters.set_names({{"kind", {"a", "a"}}});
              }),
              HasSubstr("duplicate name \"a\""));
  tn_names none = {};
  none.size = sizeof none, none.slot = "kind", none.count = 2;
  const tn_names* lists[] = {&none};
  tn_error error = {};
  error.size = sizeof error;
  const auto set = [&] { return tn_parameters_set_names(host_.get(), options_.parameters.handle(), lists, 1, &error); };
  EXPECT_EQ(set(), TN_INVALID);
  EXPECT_STREQ(error.message, "names: \"kind\": 2 names without texts");
  none.slot = nullptr;
  EXPECT_EQ(set(), TN_MISUSE);
  lists[0] = nullptr;
  EXPECT_EQ(set(), TN_MISUSE);
}

TEST_F(NamesApi, CanBeSetAndForgotten) {
  options_.parameters.set_names({{"kind", {"cat", "dog", "fox"}}});
  EXPECT_THAT(refusal_of(csv(table({"dog"})).batch(1)), HasSubstr("known as \"cat\""));
  options_.parameters.set_names({{"kind", {}}});
  EXPECT_THAT(options_.parameters.names(), IsEmpty());
  EXPECT_NO_THROW(accuracy_on(csv(table({"dog"})).batch(1)));
  // A model file without names, as from versions that did not store them.
  const std::string file = folder_.file("model.safetensors");
  options_.parameters.save(options_.outputs, file);
  EXPECT_THAT(host_.describe_model(file), testing::Not(HasSubstr("names")));
  options_.parameters = host_.load(file).parameters;
  EXPECT_NO_THROW(accuracy_on(csv(table({"dog"})).batch(1)));
  train_on(csv(table({"dog"})).batch(1));
  EXPECT_THAT(texts_of(options_.parameters.names(), "kind"), ElementsAre("dog"));
}

// What an application writes into model files is there again after they were loaded and saved anew.
TEST_F(NamesApi, ModelsKeepMetadata) {
  const std::string file = folder_.file("model.safetensors");
  const auto metadata = [&] { return nlohmann::json::parse(host_.describe_model(file)).at("metadata"); };
  options_.parameters.set_metadata("tenon.reader", "type = \"csv\"");
  options_.parameters.set_metadata("com.example.licence", "Gr\u00fc\u00dfe");
  options_.parameters.set_metadata("com.example.old", "1");
  options_.parameters.set_metadata("com.example.old", nullptr);
  const nlohmann::json expected = {
      {"format", "tenon"}, {"tenon.reader", "type = \"csv\""}, {"com.example.licence", "Gr\u00fc\u00dfe"}};
  options_.parameters.save(options_.outputs, file);
  EXPECT_EQ(metadata(), expected);
  const Model loaded = host_.load(file);
  loaded.parameters.save(loaded.outputs, file);
  EXPECT_EQ(metadata(), expected);
  for (const char* const key : {"", "format", "tenon.topology", "tenon.checkpoint", "tenon.new", "\xff"})
    EXPECT_THAT(message_of([&] { options_.parameters.set_metadata(key, "text"); }), HasSubstr("metadata \""));
  EXPECT_THAT(message_of([&] { options_.parameters.set_metadata("key", "\xff"); }), HasSubstr("the text is not UTF-8"));
}

TEST_F(NamesApi, OfManyAreKnownByDigest) {
  Texts many;
  for (int i = 0; i < 70000; ++i) many.push_back("w" + std::to_string(i));
  const auto words = [&](const Texts& names) {
    return host_.reader(Schema{{"words", TN_I32, {}, 70000, TN_DENSE, 1, names}}, [](Sample&) { return false; });
  };
  const std::vector<Names> known = words(many).names();
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].count, 70000);
  EXPECT_THAT(known[0].texts, IsEmpty());
  options_.parameters.set_names(known);
  EXPECT_EQ(options_.parameters.names().at(0).sha256, known[0].sha256);
  write("words.txt", "w1\nw0\n");
  write("text", "w0 w1\n");
  const Attributes text = {{"files", Texts{"text"}}, {"unknown", ""}, {"vocabulary", "words.txt"}};
  EXPECT_THAT(message_of([&] { (void)host_.reader("text", text, folder_.path().string(), 0, 1, known); }),
              HasSubstr("reader \"text\": slot \"words\": expected 70000 names with SHA-256 "));
  std::string all;
  for (const std::string& word : many) all += word + "\n";
  write("words.txt", all);
  EXPECT_EQ(host_.reader("text", text, folder_.path().string(), 0, 1, known).names().at(0).sha256, known[0].sha256);
}

TEST_F(NamesApi, ThroughWrappers) {
  const auto parts = [&](const Texts& second, int64_t limit) {
    std::vector<Reader> readers;
    for (const Texts& names : {Texts{"cat", "dog"}, second})
      readers.push_back(host_.reader(Schema{{"kind", TN_I32, {}, names == second ? limit : 2, TN_DENSE, 1, names}},
                                     [](Sample&) { return false; }));
    return readers;
  };
  EXPECT_THAT(texts_of(chain(parts({"cat", "dog", "fox"}, 3)).names(), "kind"), ElementsAre("cat", "dog", "fox"));
  EXPECT_THAT(texts_of(interleave(parts({"cat"}, 1)).names(), "kind"), ElementsAre("cat", "dog"));
  EXPECT_THAT(texts_of(chain(parts({}, 2)).names(), "kind"), ElementsAre("cat", "dog"));
  EXPECT_THAT(message_of([&] {
                (void)chain(parts({"dog", "cat"}, 2));
              }),
              HasSubstr("slot \"kind\" of reader 2 has other names or columns than that of reader 1: 0 is \"dog\""));
  EXPECT_THAT(message_of([&] { (void)interleave(parts({"cat"}, 2)); }), HasSubstr("1 has no name"));
  Reader chosen = chain(parts({"cat", "dog"}, 2)).choose({{"kind", "species"}}).shuffle(1, 4).batch(2).buffered(1);
  EXPECT_THAT(texts_of(chosen.names(), "species"), ElementsAre("cat", "dog"));
  const auto copy = [](const std::vector<Array>&, int64_t, Sample&) {};
  EXPECT_THAT(texts_of(std::move(chosen).map({{"kind", TN_I32, {}, 2}}, copy).names(), "kind"), IsEmpty());
}

TEST_F(NamesApi, ImagesNumberFoldersByName) {
  static const unsigned char kPixel[] = {
      137, 80, 78, 71,  13, 10,  26, 10,  0,   0,   0, 13, 73, 72, 68, 82, 0,  0,   0,   1,  0,   0,   0,   1,
      8,   6,  0,  0,   0,  31,  21, 196, 137, 0,   0, 0,  13, 73, 68, 65, 84, 120, 218, 99, 100, 248, 207, 80,
      15,  0,  3,  134, 1,  128, 90, 52,  125, 107, 0, 0,  0,  0,  73, 69, 78, 68,  174, 66, 96,  130};
  const std::string pixel(reinterpret_cast<const char*>(kPixel), sizeof kPixel);
  const auto put = [&](const std::string& folder) {
    std::filesystem::create_directories(folder_.path() / folder);
    write(folder + "/1.png", pixel);
  };
  const auto open = [&](const std::string& folder, const std::vector<Names>& names, Attributes more = {}) {
    more.push_back({"folder", folder});
    more.push_back({"size", std::vector<int64_t>{1, 1}});
    return host_.reader("images", more, folder_.path().string(), 0, 1, names);
  };
  for (const char* name : {"train/cat", "train/dog", "train/fox", "test/fox", "test/dog"}) put(name);
  const std::vector<Names> names = open("train", {}).names();
  EXPECT_THAT(texts_of(names, "label"), ElementsAre("cat", "dog", "fox"));
  EXPECT_THAT(numbers_of(open("test", {}), 1), ElementsAre(0, 1));     // dog, fox, without known names
  EXPECT_THAT(numbers_of(open("test", names), 1), ElementsAre(1, 2));  // with the names of the training data
  const Attributes reversed = {{"classes", Texts{"fox", "dog"}}};
  EXPECT_THAT(numbers_of(open("test", {}, reversed), 1), ElementsAre(0, 1));
  EXPECT_THAT(numbers_of(open("test", names, reversed), 1), ElementsAre(2, 1));
  EXPECT_THAT(message_of([&] {
                open("test", names, {{"classes", Texts{"fax", "dog"}}});
              }),
              HasSubstr("\"fax\" is not among the names that the model was trained with: \"cat\", \"dog\", \"fox\""));
  put("test/wolf");
  EXPECT_THAT(message_of([&] { open("test", names); }, TN_BAD_DATA), HasSubstr("the class folder \"wolf\""));
}

TEST_F(NamesApi, WindowsOfText) {
  write("train", "a a a b b c\n");
  write("test", "c b b b d\n");
  const auto open = [&](const std::string& file, const std::vector<Names>& names) {
    const Attributes attributes = {{"files", Texts{file}}, {"window", 2}, {"names", Texts{"before", "next"}}};
    return host_.reader("text", attributes, folder_.path().string(), 0, 1, names);
  };
  const std::vector<Names> names = open("train", {}).names();
  ASSERT_EQ(names.size(), 2u);
  EXPECT_THAT(texts_of(names, "next"), ElementsAre("<unk>", "a", "b", "c"));
  EXPECT_THAT(numbers_of(open("test", names), 1), ElementsAre(2, 2, 2, 0));
  EXPECT_THAT(numbers_of(open("test", {names[1]}), 0), ElementsAre(3, 2, 2, 2));  // known names of one slot only
}

}  // namespace
}  // namespace tenon_tests
