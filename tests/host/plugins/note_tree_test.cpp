// A note is read, or refused with the same words, as by nlohmann's parser with a handler that knows the limits of
// notes. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/note_tree.h"

#include <gtest/gtest.h>
#include <tenon/plugin.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/utf8.h"
#include "tests/support/memory_system.h"
#include "tests/support/sanitized.h"

namespace tenon_tests {

using namespace tenon::host;
using tenon::core::text;

namespace {

using nlohmann::json;

// Tracks the path of the parser, limits the depth and refuses duplicate keys.
class Handler {
 public:
  bool on(json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (frames_.size() == 16) refuse_note(path(), "nested deeper than 16");
        frames_.push_back({event == json::parse_event_t::array_start, 0, "", {}});
        break;
      case json::parse_event_t::key:
        frames_.back().key = parsed.get<std::string>();
        if (!frames_.back().keys.insert(frames_.back().key).second) refuse_note(path(), "duplicate key");
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        frames_.pop_back();
        [[fallthrough]];
      case json::parse_event_t::value:
        if (!frames_.empty()) ++frames_.back().index;
        break;
    }
    return true;
  }

  [[nodiscard]] std::string path() const {
    std::string result = "$";
    for (const Frame& frame : frames_)
      if (frame.list)
        result += text("[", frame.index, "]");
      else if (!frame.key.empty())
        result += "." + frame.key;
    return result;
  }

 private:
  struct Frame {
    bool list;
    size_t index;
    std::string key;
    std::set<std::string> keys;
  };
  std::vector<Frame> frames_;
};

// What one of the two makes of a note: its JSON, or the message of the refusal.
std::string expected(const std::string& note) try {
  Handler handler;
  try {
    return json::parse(note, [&](int, json::parse_event_t event, const json& at) { return handler.on(event, at); })
        .dump();
  } catch (const json::exception& error) {
    const std::string what = error.what();
    refuse_note(handler.path(), what.substr(what.find("] ") + 2));
  }
} catch (const Error& refusal) {
  EXPECT_EQ(refusal.code(), TN_REFUSED);
  return refusal.message();
}
std::string actual(const std::string& note) try {
  const NoteTree tree(note);
  return tree.json(tree.root()).dump();
} catch (const Error& refusal) {
  EXPECT_EQ(refusal.code(), TN_REFUSED);
  return refusal.message();
}
void compare(const std::string& note) {
  ASSERT_EQ(actual(note), expected(note)) << json(note).dump(-1, ' ', true, json::error_handler_t::replace);
}

constexpr const char* kGolden =
    R"( {"a":[1,-2, 0.5e-1,-0,123456789012345678,[],[[null,true]],false],"b\"\u00e9é":{"":"",
"\ud83d\ude00\n\\\/\b\f\r\t":{}, "c":"😀\u0041 ~"},"d":18446744073709551615,"e":-9223372036854775808,"f":1E+30 } )";

TEST(NoteTree, HoldsWhatTheTextSays) {
  const NoteTree tree(kGolden);
  EXPECT_EQ(tree.json(tree.root()), json::parse(kGolden));
  const NoteTree::Value* const list = tree.find(tree.root(), "a");
  ASSERT_NE(list, nullptr);
  std::vector<std::string> paths;
  tree.each(*list, [&](const NoteTree::Value& value) { paths.push_back(tree.path(value)); });
  ASSERT_EQ(paths.size(), 8u);
  EXPECT_EQ(paths[6], "$.a[6]");
  const NoteTree::Value* const object = tree.find(tree.root(), "b\"éé");
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(tree.path(*tree.find(*object, "c")), "$.b\"éé.c");
  EXPECT_EQ(tree.find(*object, "c")->text, "😀A ~");
  EXPECT_EQ(tree.find(*object, "d"), nullptr) << "a key of another object";
  EXPECT_EQ(tree.find(tree.root(), "e")->integer, INT64_MIN);
  EXPECT_EQ(tree.find(tree.root(), "d")->kind, NoteTree::Kind::kUnsigned);
  EXPECT_EQ(tree.find(tree.root(), "f")->number, 1e30);
}

TEST(NoteTree, RefusesWhatTheParserOfTheLibraryRefuses) {
  for (const char* const note : {"",
                                 " ",
                                 "nul",
                                 "nullx",
                                 "true false",
                                 "tru",
                                 "[",
                                 "{",
                                 "]",
                                 "{]",
                                 "[}",
                                 "[1,]",
                                 "[,1]",
                                 "[1 2]",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":1,}",
                                 "{a:1}",
                                 "{\"a\" 1}",
                                 "{\"a\":1 \"b\":2}",
                                 "{\"a\":1,\"a\":2}",
                                 "{\"a\":1,\"\\u0061\":2}",
                                 "{\"a\":{\"b\":[{},{\"c\":0,\"c\":0}]}}",
                                 "01",
                                 "-",
                                 "-a",
                                 "1.",
                                 "1.e3",
                                 ".5",
                                 "1e",
                                 "1e+",
                                 "+1",
                                 "1e999",
                                 "-1e999",
                                 "1e-999",
                                 "{\"x\":[0,1e999]}",
                                 "99999999999999999999",
                                 "-99999999999999999999",
                                 "9223372036854775808",
                                 "-9223372036854775809",
                                 "0x1",
                                 "NaN",
                                 "Infinity",
                                 "'a'",
                                 "\"",
                                 "\"a",
                                 "\"\\",
                                 "\"\\x\"",
                                 "\"\\u12\"",
                                 "\"\\u12G4\"",
                                 "\"\\ud800\"",
                                 "\"\\ud800x\"",
                                 "\"\\ud800\\n\"",
                                 "\"\\ud800\\u0041\"",
                                 "\"\\udc00\"",
                                 "\"\t\"",
                                 "\"\x7f\"",
                                 "\"\xff\"",
                                 "\"\xc1\xbf\"",
                                 "\"\xe0\x9f\xbf\"",
                                 "\"\xed\xa0\x80\"",
                                 "\"\xef\xbf\xbf\"",
                                 "\"\xf0\x8f\xbf\xbf\"",
                                 "\"\xf4\x8f\xbf\xbf\"",
                                 "\"\xf4\x90\x80\x80\"",
                                 "\"\xf5\"",
                                 "\"\xe2\x82\"",
                                 "\"\xc3",
                                 "\xef\xbb\xbf{}",
                                 "\xef\xbb{}",
                                 "/* */{}",
                                 "// x",
                                 "[1]x",
                                 "\"\\u0000\""})
    compare(note);
  for (const size_t depth : {16u, 17u})
    for (const char* const brackets : {"[]", "{}"}) {
      std::string note;
      for (size_t i = 0; i + 1 < depth; ++i) note += brackets[0] == '[' ? "[0," : "{\"k\":";
      compare(note + brackets);
      compare(note);
    }
  compare(std::string("[1]\0]", 5));  // a NUL ends the text
  compare(std::string("[1\0]", 4));
  compare(std::string("\"a\0b\"", 5));
}

// Messages reach terminals and JSON.
TEST(NoteTree, MessagesAreUtf8) {
  for (const char* const note : {"{\"a\":\"\xff\"}", "{\"a\xc3", "\xe9", "[\"\xed\xa0\x80\"]"}) {
    const Error error = error_of([&] { const NoteTree tree(note); });
    EXPECT_EQ(error.code(), TN_REFUSED) << note;
    EXPECT_TRUE(tenon::base::is_utf8(error.message())) << error.message();
  }
}

TEST(NoteTree, AgreesOnEveryChangeOfOneByteAndEveryCut) {
  const std::string golden = kGolden;
  for (size_t cut = 0; cut <= golden.size(); ++cut) compare(golden.substr(0, cut));
  const int step = sanitized() ? 7 : 1;
  for (size_t at = 0; at < golden.size(); ++at) {
    std::string note = golden;
    for (int value = 0; value < 256; value += step) {
      note[at] = static_cast<char>(value);
      compare(note);
    }
  }
}

TEST(NoteTree, AgreesOnRandomTexts) {
  const std::vector<std::string> parts = {
      "{", "}",    "[",    "]", ",",     ":",  "\"a\"", "\"b\"", "\"\\u0061\"", "1",      "-",       ".5", "e3",
      "0", "null", "true", " ", "\"é\"", "{}", "[]",    "\"\":", "\"b\":",      "\"c\":", "\"\\n\"", "x"};
  std::mt19937 random(1);
  for (int i = 0; i < (sanitized() ? 5000 : 50000); ++i) {
    std::string note = "{\"a\":[";
    for (auto left = random() % 12; left > 0; --left) note += parts[random() % parts.size()];
    compare(note);
    compare(note + "]}");
  }
}

// Reading takes time in proportion to the length, whatever the text is.
TEST(NoteTree, ReadsTheLongestTexts) {
  std::string keys = "{", lists = "[";
  for (int i = 0; keys.size() + 16 < TN_NOTE_LIMIT; ++i) keys += text(i > 0 ? "," : "", "\"", i, "\":0");
  while (lists.size() + 16 < TN_NOTE_LIMIT) lists += "[],";
  const NoteTree tree(keys + "}");
  EXPECT_EQ(tree.root().end, 1 + static_cast<uint32_t>(std::count(keys.begin(), keys.end(), ':')));
  EXPECT_EQ(NoteTree(lists + "0]").root().kind, NoteTree::Kind::kList);
  EXPECT_EQ(error_of([] { (void)NoteTree(std::string(TN_NOTE_LIMIT + 1, ' ')); }).code(), TN_REFUSED);
}

}  // namespace
}  // namespace tenon_tests
