// The report of the conformance kit, its errors, and its use as a program. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tenon/check.hpp>
#include <tenon/tenon.hpp>

#include "base/temporary.h"
#include "tests/support/child.h"
#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

using tenon::check::Outcome;
using testing::AnyOf;
using testing::HasSubstr;

std::string plugin(const std::string& name) { return test_plugin_folder() + "/nonconforming/" + name + ".so"; }

// Runs the program with both outputs in one text.
ChildEnd check(const std::string& arguments) { return shell(program() + " plugins check " + arguments + " 2>&1"); }

tenon::check::Options options_for(const std::string& file, std::vector<std::string> checks = {"step"}) {
  tenon::check::Options options;
  options.file = file;
  options.checks = std::move(checks);
  options.plugin_paths = {plugin_folder()};
  return options;
}

tn_status code_of(const tenon::check::Options& options) {
  try {
    (void)tenon::check::run(options);
    return TN_OK;
  } catch (const tenon::Error& error) {
    return error.code();
  }
}

// A file that the destructor removes.
class Scratch {
 public:
  Scratch(const std::string& name, const std::string& content) : path_(folder_.file("scratch" + name)) {
    std::ofstream(path_) << content;
  }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  const tenon::base::TemporaryFolder folder_;
  const std::string path_;
};

TEST(Report, SaysHowToRepeatAFailure) {
  const tenon::check::Report report = tenon::check::run(options_for(plugin("fails")));
  ASSERT_EQ(report.results.size(), 2U);  // the layer, and its kernel
  EXPECT_EQ(report.plugin, "bad.fails");
  EXPECT_EQ(report.count(Outcome::kFailed), 2);
  EXPECT_EQ(report.results[0].kind, "layer");
  EXPECT_EQ(report.results[1].kind, "kernel");
  EXPECT_EQ(report.results[1].component, "bad_scale");
  EXPECT_EQ(tenon::check::reproduce(report, report.results[0]),
            "tenon plugins check " + plugin("fails") + " bad.scale --only step --seed 1 --plugins " + plugin_folder());
  const std::string json = tenon::check::to_json(report);
  EXPECT_THAT(json, HasSubstr("\"failed\": 2"));
  EXPECT_THAT(json, HasSubstr("\"reproduce\": \"tenon plugins check"));
}

TEST(Report, TheSameSeedGivesTheSameResults) {
  tenon::check::Options options = options_for(plugin("gradient_scaled"), {"gradient"});
  options.seed = 5;
  const std::string first = tenon::check::to_json(tenon::check::run(options));
  EXPECT_EQ(first, tenon::check::to_json(tenon::check::run(options)));
  options.seed = 6;
  EXPECT_NE(first, tenon::check::to_json(tenon::check::run(options)));
}

TEST(Report, TellsProgress) {
  tenon::check::Options options = options_for(plugin("conforming"), {"step", "repeat"});
  std::string told;
  options.progress = [&](const tenon::check::Result& result) { told += result.kind + "." + result.check + " "; };
  (void)tenon::check::run(options);
  EXPECT_EQ(told, "layer.step layer.repeat kernel.step kernel.repeat ");
}

TEST(Report, RefusesWrongOptions) {
  EXPECT_EQ(code_of(options_for("/nowhere/x.so")), TN_NOT_FOUND);
  EXPECT_EQ(code_of(options_for(source_folder())), TN_IO);
  EXPECT_EQ(code_of(options_for(program())), TN_REFUSED);
  EXPECT_EQ(code_of(options_for(plugin("conforming"), {"grdient"})), TN_NOT_FOUND);
  tenon::check::Options options = options_for(plugin("conforming"));
  options.type = "bad.other";
  EXPECT_EQ(code_of(options), TN_NOT_FOUND);
  options = options_for(plugin("conforming"));
  options.seconds = 0;
  EXPECT_EQ(code_of(options), TN_INVALID);
}

TEST(Cases, AreThoseOfTheAuthor) {
  const Scratch toml(".toml", "[[case]]\ntype = \"bad.scale\"\ninputs = [{ shape = [2, 7] }]\n");
  const Scratch json(".json", R"([{"type": "bad.scale", "inputs": [{"shape": [2, 7]}]}])");
  for (const Scratch* file : {&toml, &json}) {
    tenon::check::Options options = options_for(plugin("input_gradient"), {"gradient"});
    options.cases = file->path();
    EXPECT_THAT(tenon::check::run(options).results.at(0).message, HasSubstr("(inputs [2, 7])"));
  }
}

// More than the kit reads of a pass: it compares those that it read.
TEST(Cases, MayHaveManySamples) {
  std::string numbers;
  for (int i = 0; i < 2500; ++i) numbers += std::to_string(i) + "\n";
  const Scratch data(".csv", numbers);
  const Scratch file(".toml", "[[case]]\ntype = \"csv\"\nattributes = { files = [\"" + data.path() +
                                  "\"], header = false, columns = [\"x = c0\"] }\n");
  tenon::check::Options options =
      options_for(plugin_folder() + "/readers/csv.so", {"pass", "resume", "shards", "batch"});
  options.type = "csv";
  options.cases = file.path();
  for (const tenon::check::Result& result : tenon::check::run(options).results)
    EXPECT_THAT(result.outcome, AnyOf(Outcome::kPassed, Outcome::kSkipped)) << result.check << ": " << result.message;
}

TEST(Cases, MayBeChainsOfLayers) {
  const auto messages = [](const char* name, const std::string& second) {
    const Scratch file(".toml",
                       "[[case]]\ntype = \"bad.scale\"\ninputs = [{ shape = [7] }]\n"
                       "chain = [{ type = \"bad.scale\", inputs = [0] }, " +
                           second + "]\n");
    tenon::check::Options options = options_for(plugin(name), {"body"});
    options.type = "bad_fused";
    options.cases = file.path();
    std::string result;
    for (const tenon::check::Result& each : tenon::check::run(options).results) result += each.message;
    return result;
  };
  const std::string good = "{ type = \"bad.scale\", inputs = [-1] }";
  EXPECT_EQ(messages("fused_conforming", good), "");
  EXPECT_THAT(messages("fused_value", good), HasSubstr("(bad.scale, bad.scale; inputs [7]) element 0"));
  EXPECT_THAT(messages("fused_conforming", "{ type = \"bad.scale\", inputs = [3] }"), HasSubstr("-1 for the output"));
  EXPECT_THAT(messages("fused_conforming", "{ type = \"bad.scale\", inputs = [-1, 3] }"),
              HasSubstr("reads input 3; the case has 1"));
  EXPECT_THAT(messages("fused_conforming", "{ kind = \"bad.scale\" }"), HasSubstr("unknown key \"kind\""));
}

TEST(Cases, AreRefusedWithTheirPlace) {
  const auto message = [](const std::string& text, const char* name = ".toml") {
    const Scratch file(name, text);
    tenon::check::Options options = options_for(plugin("conforming"), {"cases"});
    options.cases = file.path();
    try {
      return tenon::check::run(options).results.at(0).message;
    } catch (const tenon::Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(message("[[case]]\ntype = 1\n"), HasSubstr("a case has no text \"type\""));
  EXPECT_THAT(message("[[case]]\ntype = \n"), HasSubstr("line 2"));
  EXPECT_THAT(message("[[layer]]\n"), HasSubstr("unknown key \"layer\""));
  EXPECT_THAT(message("{}", ".json"), HasSubstr("expected a list of cases"));
  const std::string begin = "[[case]]\ntype = \"bad.scale\"\n";
  EXPECT_THAT(message(begin + "input = []\n"), HasSubstr("unknown key \"input\""));
  EXPECT_THAT(message(begin + "inputs = [{ size = 3 }]\n"), HasSubstr("unknown key \"size\""));
  EXPECT_THAT(message(begin + "inputs = [{ shape = 3 }]\n"), HasSubstr("wrong value of \"inputs\""));
  EXPECT_THAT(message(begin + "attributes = { slope = 1 }\n"), HasSubstr("which is not declared"));
  EXPECT_THAT(message(begin + "inputs = [{ shape = [] }]\n"), HasSubstr("must be [samples, ..., columns]"));
}

TEST(Program, PrintsAndReturnsWhatWasFound) {
  const std::string plugins = " --plugins " + plugin_folder();
  const ChildEnd good = check(plugin("conforming") + " bad.scale --only step" + plugins);
  EXPECT_EQ(good.code(), 0) << good.text;
  EXPECT_THAT(good.text, HasSubstr("layer bad.scale: 1 passed, 0 failed, 0 skipped"));
  const ChildEnd bad = check(plugin("fails") + " --only step --seed 3" + plugins);
  EXPECT_EQ(bad.code(), 70) << bad.text;
  EXPECT_THAT(bad.text, HasSubstr("FAILED step: (inputs [4]) layer \"checked\""));
  EXPECT_THAT(bad.text,
              HasSubstr("to repeat step: tenon plugins check " + plugin("fails") + " bad.scale --only step --seed 3"));
  const ChildEnd json = check(plugin("fails") + " bad_scale --only step --json" + plugins);
  EXPECT_EQ(json.code(), 70);
  EXPECT_EQ(json.text.front(), '{');
  EXPECT_THAT(json.text, HasSubstr("\"component\": \"bad_scale\""));
}

TEST(Program, RefusesWhatIsNotAPlugin) {
  const ChildEnd none = check("/nowhere/x.so");
  EXPECT_EQ(none.code(), 66);
  EXPECT_THAT(none.text, HasSubstr("no file \"/nowhere/x.so\""));
  const Scratch text(".so", "not a plugin");
  const ChildEnd refused = check(text.path());
  EXPECT_EQ(refused.code(), 77);
  EXPECT_THAT(refused.text, HasSubstr("is not a plugin that this host admits: "));
  EXPECT_EQ(check("").code(), 64);
  EXPECT_EQ(check(plugin("conforming") + " --seconds 0").code(), 64);
  EXPECT_EQ(check(plugin("conforming") + " --seed -1").code(), 64);
  EXPECT_EQ(check(plugin("conforming") + " --cases /nowhere.toml").code(), 66);
  EXPECT_EQ(check(plugin("conforming") + " bad.scale more").code(), 64);
  const ChildEnd list = check("--list");
  EXPECT_EQ(list.code(), 0);
  EXPECT_THAT(list.text, HasSubstr("gradient"));
}

// ---- files that lie

std::string content_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The verdict about a file with these bytes: "refused", or the names of the checks of the file that failed.
std::string verdict(const std::string& bytes) {
  const Scratch file("_lies.so", bytes);
  try {
    const tenon::check::Report report =
        tenon::check::run(options_for(file.path(), {"note", "symbols", "entry", "step"}));
    std::string failed;
    for (const tenon::check::Result& result : report.results)
      if (result.outcome == Outcome::kFailed) failed += result.check + " ";
    return failed;
  } catch (const tenon::Error& error) {
    EXPECT_EQ(error.code(), TN_REFUSED) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("is not a plugin that this host admits: "));
    return "refused";
  }
}

TEST(Files, CutOnesAreRefusedOrFail) {
  const std::string whole = content_of(plugin("conforming"));
  ASSERT_EQ(verdict(whole), "");
  for (const size_t hundredths : {0U, 1U, 10U, 30U, 50U, 70U, 85U, 95U, 99U})
    EXPECT_NE(verdict(whole.substr(0, whole.size() * hundredths / 100)), "") << hundredths << " %";
}

TEST(Files, OfOtherMachinesAreRefused) {
  const std::string whole = content_of(plugin("conforming"));
  const auto changed = [&](size_t at, char to) {
    std::string bytes = whole;
    bytes[at] = to;
    return bytes;
  };
  EXPECT_EQ(verdict(changed(18, '\xB7')), "refused");  // e_machine: EM_AARCH64
  EXPECT_EQ(verdict(changed(4, 1)), "refused");        // e_ident: ELFCLASS32
  EXPECT_EQ(verdict(changed(5, 2)), "refused");        // big-endian
  EXPECT_NE(verdict(changed(16, 2)), "");              // e_type: ET_EXEC
}

// A note that says another thing than the code, in each of its numbers and texts.
TEST(Files, AWrongNoteIsFoundInEachField) {
  const std::string whole = content_of(plugin("conforming"));
  const size_t begin = whole.find("{\"note\"");
  ASSERT_NE(begin, std::string::npos);
  const std::string note = whole.substr(begin, whole.find('\0', begin) - begin);
  int fields = 0;
  for (size_t at = 1; at < note.size(); ++at) {
    // The first character of a value: of a number or a text that is not empty. A key is followed by a colon.
    const bool text = note[at - 1] == '"' && std::isalnum(static_cast<unsigned char>(note[at])) != 0;
    const bool number = std::isdigit(static_cast<unsigned char>(note[at])) != 0 && note[at - 1] == ':';
    if (!number && (!text || note[note.find('"', at) + 1] == ':')) continue;
    std::string lie = whole;
    lie[begin + at] = number ? static_cast<char>(note[at] == '9' ? '8' : note[at] + 1) : note[at] == 'a' ? 'b' : 'a';
    EXPECT_NE(verdict(lie), "") << note.substr(at > 30 ? at - 30 : 0, 60);
    ++fields;
  }
  EXPECT_GT(fields, 20);
}

TEST(Program, RefusesFolders) {
  const ChildEnd folder = check(source_folder());
  EXPECT_EQ(folder.code(), 74) << folder.text;
  EXPECT_THAT(folder.text, HasSubstr("is not a regular file"));
}

// What a plugin prints does not get between the lines of the report.
TEST(Program, KeepsItsOutputApart) {
  const std::string command = program() + " plugins check " + plugin("writes_stdout") + " --json --plugins " +
                              plugin_folder() + " 2>/dev/null | tail -c +1";
  const std::string output = shell(command).text;
  EXPECT_EQ(output.front(), '{');
  EXPECT_THAT(output, HasSubstr("\"plugin\": \"bad.writes_stdout\""));
  EXPECT_EQ(output.find("made"), output.find("made\\\": true"));  // in the message of the check alone
}

}  // namespace

}  // namespace tenon_tests
