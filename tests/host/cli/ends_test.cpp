// Code of plugins that crashes, hangs or ends the process in `tenon plan` and `tenon plugins check`: a message names
// layer, plugin and call. And layers without the backward that a training needs. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "host/cli/cli.h"
#include "tests/host/cli/program.h"

namespace tenon_tests {

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class EndsTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    ASSERT_EQ(shell("mkdir plugins && cp '" + test_plugin_folder() + "/layers/ends.so' plugins/").exit, 0);
  }

  // Plans a job with a layer "odd" of a type of the plugin.
  [[nodiscard]] Outcome plan(const std::string& layer, const std::string& arguments = "") const {
    change("[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"hidden\"]",
           "[[layer]]\nname = \"odd\"\ninputs = [\"hidden\"]\n" + layer +
               "\n[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"odd\"]");
    return run("plan job.toml --deadline 1 --plugins plugins " + arguments);
  }
  // Checks the plugin with a case.
  [[nodiscard]] Outcome check(const std::string& attributes) const {
    write("cases.toml",
          "[[case]]\ntype = \"test_ends\"\nattributes = { " + attributes + " }\ninputs = [{ shape = [2] }]\n");
    return run("plugins check plugins/ends.so test_ends --cases cases.toml --seconds 1");
  }
};

TEST_F(EndsTest, PlanNamesLayerPluginAndCall) {
  struct Case {
    const char *in, *way, *what, *where;
  };
  for (const Case& each : {Case{"plan", "crash", "segmentation fault", "plan \\[setup\\]"},
                           Case{"plan", "hang", "the deadline has passed", "plan \\[setup\\]"},
                           Case{"lower", "exit", "the process was ended", "lower \\[setup\\]"},
                           Case{"supports", "crash", "segmentation fault", "supports \\[setup\\]"},
                           Case{"prepare", "crash", "segmentation fault", "prepare \\[setup\\]"}}) {
    SCOPED_TRACE(std::string(each.in) + " " + each.way);
    const Outcome outcome =
        plan("type = \"test_ends\"\nin = \"" + std::string(each.in) + "\"\nway = \"" + each.way + "\"\n");
    EXPECT_EQ(outcome.exit, tenon::cli::kInternal);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.error, ContainsRegex("tenon: " + std::string(each.what) +
                                             " in layer \"odd\".* of plugin \"tenon.test.ends\": " + each.where));
    EXPECT_THAT(outcome.error, HasSubstr("tenon: the process that ran the code of plugins ended early, by "));
  }
}

TEST_F(EndsTest, ExitHandlersAreThoseOfAPlugin) {
  struct Case {
    const char *in, *way, *what;
  };
  for (const Case& each :
       {Case{"atexit", "crash", "aborted"}, Case{"atexit", "hang", "the deadline has passed"},
        Case{"atexit", "exit", "the process was ended"}, Case{"destructor", "crash", "segmentation fault"}}) {
    SCOPED_TRACE(std::string(each.in) + " " + each.way);
    const Outcome outcome =
        plan("type = \"test_ends\"\nin = \"" + std::string(each.in) + "\"\nway = \"" + each.way + "\"\n");
    EXPECT_EQ(outcome.exit, tenon::cli::kInternal);
    EXPECT_THAT(outcome.error,
                HasSubstr("tenon: " + std::string(each.what) + " in the exit handlers of plugin tenon.test.ends\n"));
    EXPECT_EQ(run("plugins lock job.toml -o set.toml --deadline 1 --plugins plugins").exit, tenon::cli::kInternal);
    if (std::string(each.way) != "hang") {
      const Outcome trained = run("train job.toml --passes 1 --plugins plugins");
      EXPECT_NE(trained.exit, 0);
      EXPECT_THAT(trained.error,
                  HasSubstr(std::string(each.what) + " in the exit handlers of plugin tenon.test.ends\n"));
    }
    const Outcome checked = check("in = \"" + std::string(each.in) + "\", way = \"" + each.way + "\"");
    EXPECT_EQ(checked.exit, tenon::cli::kInternal);
    EXPECT_THAT(checked.out, ContainsRegex("FAILED .*exit handlers.*, in the exit handlers of plugin tenon.test.ends"));
  }
}

TEST_F(EndsTest, PlanNamesAReaderThatEnds) {
  change("type = \"idx\"\nfiles = [\"train-images\", \"train-labels\"]",
         "type = \"test_ends\"\nin = \"open\"\nway = \"crash\"");
  const Outcome outcome = run("plan job.toml --plugins plugins");
  EXPECT_EQ(outcome.exit, tenon::cli::kInternal) << outcome.error;
  EXPECT_THAT(outcome.error, ContainsRegex("reader.*test_ends.* of plugin \"tenon.test.ends\": open \\[io\\]"));
}

TEST_F(EndsTest, CheckNamesLayerPluginAndCall) {
  const Outcome crashes = check(R"(in = "lower", way = "crash")");
  EXPECT_EQ(crashes.exit, tenon::cli::kInternal);
  EXPECT_THAT(crashes.out,
              ContainsRegex("FAILED .*signal 11 .*, in layer \".*\".* of plugin \"tenon.test.ends\": lower"));
  const Outcome hangs = check(R"(in = "plan", way = "hang")");
  EXPECT_EQ(hangs.exit, tenon::cli::kInternal);
  EXPECT_THAT(hangs.out, ContainsRegex("FAILED .*did not end within 1 seconds, in layer \".*\".* of plugin "
                                       "\"tenon.test.ends\": plan"));
  const Outcome exits = check(R"(in = "prepare", way = "exit")");
  EXPECT_EQ(exits.exit, tenon::cli::kInternal);
  EXPECT_THAT(exits.out, ContainsRegex("FAILED .*, in layer \".*\".* of plugin \"tenon.test.ends\": prepare"));
}

// ---- what serves a layer, and a backward that is missing

TEST_F(EndsTest, PlanShowsWhatServesEachLayer) {
  const Outcome table = run("plan job.toml");
  EXPECT_EQ(table.exit, 0) << table.error;
  EXPECT_THAT(table.out, AllOf(ContainsRegex("layer +type +plugin +forward +backward\n"),
                               ContainsRegex("\nscore +fc +tenon.fc +tenon.cpu +tenon.cpu *\n"),
                               ContainsRegex("\naccuracy +accuracy +tenon.accuracy +tenon.cpu +- *\n"),
                               ContainsRegex("plugin +version +interface +needs +file"), Not(HasSubstr("MISSING"))));
  const json plan = json::parse(run("plan job.toml --json").out);
  EXPECT_EQ(plan.at("missing_backward"), json::array());
  const json cpu = {{"kernel", "tenon.cpu"}, {"plugin", "tenon.cpu"}};
  for (const json& layer : plan.at("layers"))
    if (layer.at("name") == "score") {
      EXPECT_EQ(layer.at("plugin"), "tenon.fc");
      EXPECT_EQ(layer.at("forward"), json::array({cpu}));
      EXPECT_EQ(layer.at("backward"), json::array({cpu}));
    }
  for (const json& plugin : plan.at("plugins")) EXPECT_EQ(plugin.at("requires").get<std::string>().substr(0, 2), "0.");
}

TEST_F(EndsTest, PlanShowsWhyAKernelIsPassedOver) {
  const Outcome why = plan("type = \"test_one_way\"\n", "--why odd");
  EXPECT_EQ(why.exit, tenon::cli::kBadConfig) << why.error;
  EXPECT_THAT(why.out,
              AllOf(HasSubstr("layer \"odd\" (test_one_way of tenon.test.ends)\n"),
                    ContainsRegex("forward_alone of tenon.test.ends +[0-9]+ +layer +it is for inference alone"),
                    ContainsRegex("forward_alone of tenon.test.ends +forward native +computes it"),
                    Not(HasSubstr("layer \"score\""))))
      << "other layers";
  const Outcome all = run("plan job.toml --plugins plugins --why all");
  EXPECT_EQ(all.exit, tenon::cli::kBadConfig) << all.error;
  EXPECT_THAT(all.out, AllOf(HasSubstr("layer \"hidden"), HasSubstr("layer \"score\" (fc of tenon.fc)\n"),
                             ContainsRegex("tenon.cpu +forward gemm +computes it")));
  const Outcome none = run("plan job.toml --plugins plugins --why nothing");
  EXPECT_EQ(none.exit, tenon::cli::kNotFound);
  EXPECT_EQ(none.error, "tenon: --why: the plan has no layer \"nothing\"\n");
  EXPECT_EQ(run("plan job.toml --plugins plugins --why score --json").exit, tenon::cli::kUsage);
}

TEST_F(EndsTest, PlanReportsAMissingBackward) {
  const std::string layer = "type = \"test_one_way\"\n",
                    why =
                        "kernel \"forward_alone\" of plugin \"tenon.test.ends\" has no backward: it is for inference "
                        "alone";
  const Outcome table = plan(layer);
  EXPECT_EQ(table.exit, tenon::cli::kBadConfig);
  EXPECT_EQ(table.error, "tenon: the job cannot be trained: layer \"odd\" (test_one_way): " + why + "\n");
  EXPECT_THAT(table.out, AllOf(ContainsRegex("\nodd +test_one_way +tenon.test.ends +forward_alone of tenon.test.ends "
                                             "+MISSING *\n"),
                               HasSubstr("MISSING layer \"odd\": " + why)));
  const Outcome data = plan(layer, "--json");
  EXPECT_EQ(data.exit, tenon::cli::kBadConfig);
  EXPECT_EQ(json::parse(data.out).at("missing_backward"), json::array({{{"layer", "odd"},
                                                                        {"type", "test_one_way"},
                                                                        {"plugin", "tenon.test.ends"},
                                                                        {"kernel", "forward_alone"},
                                                                        {"reason", why}}}));
  EXPECT_EQ(plan(layer, "--inference").exit, 0) << "which needs none";
  EXPECT_EQ(run("plugins lock job.toml --plugins plugins").exit, tenon::cli::kBadConfig);
  const Outcome trained = run("train job.toml --no-save --plugins plugins");
  EXPECT_EQ(trained.exit, tenon::cli::kBadConfig);
  EXPECT_THAT(trained.error, HasSubstr("layer \"odd\": " + why));
}

}  // namespace
}  // namespace tenon_tests
