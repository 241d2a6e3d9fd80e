// Parts of the command line: the options of every verb, suggestions, tables, exit codes.
// SPDX-License-Identifier: Apache-2.0
#include "host/cli/options.h"

#include <gmock/gmock.h>

#include "host/cli/table.h"
#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Described {
  const char* name;
  Call run;
  std::vector<std::string> operands, options;  // an option with the name of its value
};

std::vector<Described> verbs() {
  const std::vector<std::string> job = {
      "--set KEY=VALUE",        "--threads N", "--plugins DIR",  "--plugin-set SET.toml",
      "--no-installed-plugins", "--check",     "--check-finite", "--require-portable"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), job.begin(), job.end());
    return more;
  };
  return {{"train",
           run_train,
           {"JOB.toml"},
           with({"--passes N",
                 "--seed N",
                 "--save FILE",
                 "--no-save",
                 "--test-every N",
                 "--resume",
                 "--resume-from FILE",
                 "--resume-inexact",
                 "--resume-with KEY[=VALUE]",
                 "--processes N",
                 "--nodes LIST",
                 "--servers N",
                 "--comm TYPE",
                 "--address HOST[:PORT]",
                 "--stall SECONDS",
                 "--silence SECONDS",
                 "--restarts N",
                 "--cluster CONTEXT",
                 "--image IMAGE",
                 "--namespace NAME",
                 "--claim NAME[:PATH]",
                 "--host-path DIR[:PATH]",
                 "--memory SIZE",
                 "--label KEY=VALUE",
                 "--pull-secret NAME",
                 "--node-selector KEY=VALUE",
                 "--toleration KEY[=VALUE][:EFFECT]",
                 "--detach",
                 "--run FOLDER",
                 "--run-every N",
                 "--dry-run [=KIND(=jobs)]",
                 "-o [ --output ] FORMAT",
                 "-q [ --quiet ]",
                 "--log-format FORMAT"})},
          {"test",
           run_test,
           {"JOB.toml|MODEL", "[FILE]..."},
           with({"--model FILE", "--data FILE...", "--reader NAME", "--confusion", "-q [ --quiet ]",
                 "--log-format FORMAT"})},
          {"infer",
           run_infer,
           {"JOB.toml|MODEL", "[FILE]..."},
           with({"--model FILE", "--output NAME", "--data FILE...", "--with COLUMN", "--reader NAME", "--format FORMAT",
                 "--output-file FILE", "--classes", "-i [ --interactive ]", "-q [ --quiet ]"})},
          {"plan",
           run_plan,
           {"JOB.toml"},
           with({"--json", "--inference", "--layers", "--program", "--why LAYER", "--processes N", "--servers N",
                 "--network GBITS", "--deadline SECONDS"})},
          {"plugins list",
           run_plugins_list,
           {},
           {"--json", "--plugins DIR", "--plugin-set SET.toml", "--no-installed-plugins"}},
          {"plugins info",
           run_plugins_info,
           {"NAME..."},
           {"--json", "--plugins DIR", "--plugin-set SET.toml", "--no-installed-plugins"}},
          {"plugins lock", run_plugins_lock, {"JOB.toml"}, with({"-o [ --output ] SET.toml", "--deadline SECONDS"})},
          {"plugins key", run_plugins_key, {"NAME"}, {}},
          {"plugins sign", run_plugins_sign, {"FILE..."}, {"--key NAME.key"}},
          {"plugins verify", run_plugins_verify, {"FILE..."}, {"--public NAME.pub", "--json"}},
          {"model show", run_model_show, {"FILE"}, {"--json"}},
          {"model join", run_model_join, {"FILE", "TO"}, {}},
          {"model split", run_model_split, {"FILE", "TO"}, {"--table NAME", "--parts N"}},
          {"model print",
           run_model_print,
           {"FILE"},
           {"--topology FILE.json", "--plugins DIR", "--plugin-set SET.toml", "--no-installed-plugins"}},
          {"version", run_version, {}, {}}};
}

class OptionsTest : public CallTest {};

TEST_F(OptionsTest, HelpListsEveryOptionAndNoOther) {
  for (const Described& verb : verbs()) {
    std::string usage = std::string("usage: tenon ") + verb.name + " [options]";
    for (const std::string& operand : verb.operands) usage += " " + operand;
    const std::string help = done(verb.run, {"--help"}).out;
    EXPECT_THAT(help, StartsWith(usage + "\n\n")) << "then the description";
    EXPECT_THAT(help, HasSubstr("\n\noptions:\n  -h [ --help ]  "));
    size_t listed = 0;
    for (const std::string& line : lines_of(help)) listed += line.rfind("  -", 0) == 0;
    EXPECT_EQ(listed, verb.options.size() + 1) << help;
    for (const std::string& option : verb.options) EXPECT_THAT(help, HasSubstr("\n  " + option + " ")) << verb.name;
    EXPECT_EQ(done(verb.run, {"-h"}).out, help);
    EXPECT_EQ(done(verb.run, {"too", "many", "words", "--help"}).out, help) << "--help takes precedence";
  }
}

TEST_F(OptionsTest, EveryVerbRefusesWhatItDoesNotKnow) {
  for (const Verb& verb : kVerbs) {
    if (verb.run == nullptr) continue;  // a program of its own
    const std::string see = std::string("; see 'tenon ") + verb.name + " --help'";
    EXPECT_EQ(failure(kUsage, verb.run, {"--hepl"}), "unknown option \"--hepl\"; did you mean \"--help\"?" + see);
    EXPECT_EQ(failure(kUsage, verb.run, {"--nothing-like-it=3"}), "unknown option \"--nothing-like-it\"" + see);
    EXPECT_EQ(failure(kUsage, verb.run, {"--hepl=a/long/value"}),
              "unknown option \"--hepl\"; did you mean \"--help\"?" + see)
        << "the value is not part of the name";
    EXPECT_EQ(failure(kUsage, verb.run, {"-z"}), "unknown option \"-z\"" + see);
    EXPECT_EQ(failure(kUsage, verb.run, {"--hel"}), "unknown option \"--hel\"; did you mean \"--help\"?" + see)
        << "the beginning of an option is not completed";
  }
}

TEST_F(OptionsTest, EveryVerbCountsItsOperands) {
  for (const Described& verb : verbs()) {
    const std::string see = std::string("; see 'tenon ") + verb.name + " --help'";
    Arguments words(verb.operands.size(), "word");
    words.emplace_back("more");
    const bool repeats = !verb.operands.empty() && verb.operands.back().ends_with("...");
    if (!repeats) {
      EXPECT_EQ(failure(kUsage, verb.run, words), "unexpected \"more\"" + see);
    }
    if (verb.operands.empty()) continue;
    EXPECT_EQ(failure(kUsage, verb.run, {}), "expected " + verb.operands[0] + see);
    EXPECT_EQ(failure(kUsage, verb.run, {""}), "expected " + verb.operands[0] + ", got an empty text" + see);
  }
}

TEST_F(OptionsTest, OptionsWithAValueNeedOne) {
  for (const Described& verb : verbs()) {
    for (const std::string& option : verb.options) {
      const std::string name = option.substr(0, option.find(' '));
      const bool flag = name.size() == option.size();
      if (name == "-q" || name == "-o" || name == "-i") continue;
      if (name == "--cluster" || name == "--dry-run") continue;  // which stand for a value of their own
      const std::string said = failure(kUsage, verb.run, {flag ? name + "=yes" : name});
      EXPECT_THAT(said, AllOf(HasSubstr("'" + name + "'"), EndsWith(std::string(verb.name) + " --help'"))) << said;
    }
  }
}

TEST_F(OptionsTest, OptionsStandBeforeAndAfterOperands) {
  const auto parsed = [](const Arguments& arguments) {
    Options options("verb", {"FIRST", "SECOND"}, "About.");
    int64_t number = -1;
    bool flag = false;
    std::vector<std::string> list;
    namespace po = boost::program_options;
    options.list.add_options()("number,n", po::value(&number))("flag,f", po::bool_switch(&flag))("list",
                                                                                                 po::value(&list));
    EXPECT_TRUE(options.parse(arguments));
    std::string result =
        options.operand(0) + " " + options.operand(1) + " " + std::to_string(number) + (flag ? " f" : "");
    for (const std::string& entry : list) result += " " + entry;
    return result;
  };
  EXPECT_EQ(parsed({"a", "b"}), "a b -1");
  EXPECT_EQ(parsed({"--number", "3", "a", "--flag", "b"}), "a b 3 f");
  EXPECT_EQ(parsed({"a", "b", "-n3", "-f"}), "a b 3 f");
  EXPECT_EQ(parsed({"a", "--list", "x", "b", "--list=y"}), "a b -1 x y") << "each takes one word, in order";
  EXPECT_EQ(parsed({"--", "-a", "--flag"}), "-a --flag -1");
}

TEST_F(OptionsTest, JobOptionsReplaceWhatTheJobSays) {
  Options options("verb", {"JOB.toml"}, "About.");
  JobOptions given;
  given.sets = {"threads=7", "seed=8", "passes=9"};
  Job job = given.load(options, "job.toml");
  EXPECT_EQ(job.threads, 7);
  EXPECT_EQ(job.seed, 8);
  EXPECT_EQ(job.training.passes, 9);
  given.threads = given.seed = 0;
  given.passes = 1;
  job = given.load(options, "job.toml");
  EXPECT_EQ(job.threads, 0);
  EXPECT_EQ(job.seed, 0);
  EXPECT_EQ(job.training.passes, 1);
  given.threads = kMostThreads;
  EXPECT_EQ(given.load(options, "job.toml").threads, 1024);
  given.threads = kMostThreads + 1;
  EXPECT_THROW((void)given.load(options, "job.toml"), Failure);
  EXPECT_EQ(given.format(options), LogFormat::kText);
  given.log_format = "json";
  EXPECT_EQ(given.format(options), LogFormat::kJson);
}

TEST_F(OptionsTest, SetsOfEveryKind) {
  const auto value = [this](const std::string& set) {
    Options options("verb", {"JOB.toml"}, "About.");
    JobOptions given;
    given.sets = {"layer.hidden.x=" + set};
    const Job job = given.load(options, "job.toml");
    for (const Attribute& entry : job.layers.at(0).attributes)
      if (entry.name == "x") return entry.value.held();
    throw std::runtime_error("no attribute");
  };
  EXPECT_EQ(std::get<bool>(value("true")), true);
  EXPECT_EQ(std::get<int64_t>(value("-12")), -12);
  EXPECT_EQ(std::get<int64_t>(value("0x1F")), 31);
  EXPECT_EQ(std::get<double>(value("1e-3")), 1e-3);
  EXPECT_EQ(std::get<double>(value("inf")), std::numeric_limits<double>::infinity());
  EXPECT_EQ(std::get<std::string>(value("word")), "word");
  EXPECT_EQ(std::get<std::string>(value("a/b-c_d.e2")), "a/b-c_d.e2");
  EXPECT_EQ(std::get<std::string>(value("../up")), "../up");
  EXPECT_EQ(std::get<std::string>(value("\"two words\"")), "two words");
  EXPECT_EQ(std::get<std::string>(value("'3'")), "3");
  EXPECT_THAT(std::get<std::vector<int64_t>>(value("[1, 2]")), ElementsAre(1, 2));
  EXPECT_THAT(std::get<std::vector<double>>(value("[1, 0.5]")), ElementsAre(1, 0.5));
  EXPECT_THAT(std::get<std::vector<std::string>>(value("[\"a\"]")), ElementsAre("a"));
  for (const char* bad : {"2x", "two words", "\"open", "[1", "1,2", "a=b", "a:b", "", "~"})
    EXPECT_THROW((void)value(bad), Failure) << bad;
  EXPECT_THROW((void)value("1979-05-27"), Failure) << "a date is not a value of an attribute";
}

TEST_F(OptionsTest, PluginFoldersMustExist) {
  EXPECT_EQ(failure(kNotFound, run_plugins_list, {"--plugins", "nowhere"}),
            "--plugins: there is no folder \"nowhere\"");
  EXPECT_EQ(failure(kNotFound, run_train, {"job.toml", "--plugins", ".", "--plugins", "job.toml"}),
            "--plugins: there is no folder \"job.toml\"");
  EXPECT_EQ(failure(kNotFound, run_plan, {"job.toml", "--plugins", ""}), "--plugins: there is no folder \"\"");
}

// ---- tables

TEST(TableTest, ColumnsAreAligned) {
  Table table({"name", ">bytes", "note"});
  table.row({"a", "1", "x"});
  table.row({"longer", "12345678", ""});
  table.row({"b\033", "2"});
  table.row({"c", "3", "y", "one too many"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(),
            "name        bytes  note\n"
            "a               1  x\n"
            "longer   12345678\n"
            "b\\u001b         2\n"
            "c               3  y\n");
}

TEST(TableTest, TheWidestColumnIsBrokenForATerminal) {
  Table table({"name", "offers", ">bytes"});
  table.row({"a", "one two three four five six", "1"});
  table.row({"longer", "seven", "23"});
  const auto printed = [&](size_t width) {
    std::ostringstream out;
    table.print(out, width);
    return out.str();
  };
  const std::string whole =
      "name    offers                       bytes\n"
      "a       one two three four five six      1\n"
      "longer  seven                           23\n";
  EXPECT_EQ(printed(0), whole);
  EXPECT_EQ(printed(42), whole);
  const std::string broken =
      "name    offers            bytes\n"
      "a       one two three         1\n"
      "        four five six\n"
      "longer  seven                23\n";
  EXPECT_EQ(printed(31), broken);
  EXPECT_EQ(printed(5),
            "name    offers    bytes\n"
            "a       one two       1\n"
            "        three\n"
            "        four\n"
            "        five six\n"
            "longer  seven        23\n")
      << "not less than 8 columns";
}

TEST(TableTest, SeveralColumnsAreBroken) {
  Table table({"name", "file"});
  table.row({"abcdefghijklmnopqrst", "/opt/tenon/plugins/layers/fc.so"});
  std::ostringstream out;
  table.print(out, 30);
  EXPECT_EQ(out.str(),
            "name            file\n"
            "abcdefghijklmn  /opt/tenon/\n"
            "opqrst          plugins/\n"
            "                layers/fc.so\n");
}

TEST(TableTest, TextIsBrokenAtSpaces) {
  EXPECT_EQ(wrapped("aa bb cc", 5, "  "), "aa bb\n  cc");
  EXPECT_EQ(wrapped("aa bb cc", 4, "  "), "aa\n  bb\n  cc");
  EXPECT_EQ(wrapped("aa bb cc", 8, "  "), "aa bb cc");
  EXPECT_EQ(wrapped("aaaaaa b", 3, ""), "aaa\naaa\nb");
  EXPECT_EQ(wrapped("b aaaaaaa c", 3, "  "), "b\n  aaa\n  aaa\n  a c");
  EXPECT_EQ(wrapped("/aa/bb/cccccc", 7, ""), "/aa/bb/\ncccccc");
  EXPECT_EQ(wrapped("/aaaaaaa", 4, ""), "/aaa\naaaa");
  EXPECT_EQ(wrapped("\u00e4\u00e4\u00e4", 3, ""), "\u00e4\n\u00e4\n\u00e4") << "no part of a character";
  EXPECT_EQ(wrapped("  a \n b ", 80, ""), "a b");
  EXPECT_EQ(wrapped("", 80, "  "), "");
}

// ---- exit codes

TEST(ExitTest, EveryStatusHasTheDocumentedCode) {
  EXPECT_EQ(exit_code(TN_OK), 0);
  EXPECT_EQ(exit_code(TN_BAD_DATA), 65);
  EXPECT_EQ(exit_code(TN_NOT_FOUND), 66);
  EXPECT_EQ(exit_code(TN_INTERNAL), 70);
  EXPECT_EQ(exit_code(TN_OUT_OF_MEMORY), 71);
  EXPECT_EQ(exit_code(TN_IO), 74);
  EXPECT_EQ(exit_code(TN_REFUSED), 77);
  EXPECT_EQ(exit_code(TN_INVALID), 78);
  EXPECT_EQ(exit_code(TN_UNSUPPORTED), 78);
  EXPECT_EQ(exit_code(TN_BAD_CONFIG), 78);
  EXPECT_EQ(exit_code(TN_CANCELLED), 130);
  EXPECT_EQ(exit_code(static_cast<tn_status>(9999)), 70) << "a status of a newer library";
  EXPECT_EQ(kUsage, 64);
}

}  // namespace
}  // namespace tenon_tests
