// Every plugin that breaks one rule is found by the check that is meant for it, and their twins pass all checks.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tenon/check_gtest.hpp>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

using tenon::check::Outcome;

struct Broken {
  const char* name;
  const char* check;    // that must fail
  const char* message;  // a part of its message
};
const Broken kBroken[] = {
    {"aborts", "step", "signal 6"},
    {"adds_for_writes", "operands", "did not write"},
    {"after_empty", "empty", "output 0 differs after an empty minibatch"},
    {"allocates", "run", "allocates memory"},
    {"allocates_much", "step", "signal 11"},
    {"alone_differs", "request", "where it alone is wanted"},
    {"attribute_bound", "gradient", "order = 100"},
    {"attribute_choice", "gradient", "how = \"safe\""},
    {"attribute_flag", "gradient", "strict = true"},
    {"batch_differs", "batch", "other values of output 0 alone"},
    {"block_gradient", "gradient", "differences of its forward"},
    {"block_unset", "operands", "did not write element 4096 of output 0"},
    {"body_changes", "repeat", "of a second machine differs"},
    {"body_differs", "body", "by the recorded body"},
    {"body_gradient", "gradient", "differences of its forward"},
    {"changes_environment", "process", "it changes the environment of the process"},
    {"changes_folder", "process", "it changes the working directory"},
    {"changes_input", "operands", "changed input 0"},
    {"changes_limits", "process", "it changes the limit of resource 7"},
    {"changes_locale", "process", "it changes the locale"},
    {"changes_priority", "process", "it changes the priority"},
    {"changes_umask", "process", "it changes the mask of new files"},
    {"closes", "process", "it closed descriptors that are not its own"},
    {"closes_stdin", "process", "closes a descriptor of the process"},
    {"comm_channels", "order", "of channel 1023 gets message"},
    {"comm_crashes", "messages", "ended its process by signal 11 (Segmentation fault), in receive"},
    {"comm_deaf", "silence", "no event says within 8000 ms that rank 1 is lost"},
    {"comm_epoch", "strangers", "a stranger of another epoch takes part as rank 1"},
    {"comm_lingers", "world", "close took"},
    {"comm_once", "twice", "a second object does not open: one is enough"},
    {"comm_overflows", "events", "2 events in the room for 1"},
    {"comm_overstays", "world", "ms; it may wait for 0 ms"},
    {"comm_room", "room", "ends with \"ok\"; expected"},
    {"comm_secret", "strangers", "another secret takes part as rank 1"},
    {"comm_signals", "process", "changes the handler of signal 12"},
    {"comm_silent", "loss", "no event says within 8000 ms that rank 2 is lost"},
    {"comm_small", "world", "a message has at most 1000 bytes; expected 1 MiB"},
    {"comm_stays", "abort", "no event says within 8000 ms that rank 1 is lost"},
    {"comm_uncancelled", "cancel", "an open that is cancelled ends with"},
    {"comm_unnamed", "missing", "does not name the missing rank 1: somebody missing"},
    {"comm_waits", "begin", "does not end within 14000 ms, in send"},
    {"comm_wakeless", "wake", "a wake before progress does not end progress soon"},
    {"comm_writes", "missing", "open fails, and writes *comm"},
    {"counts_calls", "repeat", "differs"},
    {"counts_calls", "save", "output 0 of a loaded model differs"},
    {"crashes", "step", "signal 11"},
    {"device_alignment", "copies", "not aligned to 64 bytes"},
    {"device_argsort", "primitives", "of argsort in fp64"},
    {"device_bag", "primitives", "of gather and segment sum in fp64"},
    {"device_coalesce", "rows", "of the row-sparse gradient"},
    {"device_coalesce_products", "rows", "of the row-sparse gradient of products"},
    {"device_conv", "primitives", "of conv in fp64"},
    {"device_conv_epilogue", "primitives", "of conv with an epilogue of elements in fp64"},
    {"device_conv_epilogue_batch", "batch", "have other values of output 0 alone"},
    {"device_copy", "copies", "byte 64 of 65 differs"},
    {"device_epilogue", "primitives", "of gemm with an epilogue of elements in fp64"},
    {"device_events", "streams", "waited for the event of another"},
    {"device_fill", "copies", "after a fill"},
    {"device_gather", "primitives", "of gather in fp64"},
    {"device_gather_gemm", "primitives", "of gemm of gathered rows in fp64"},
    {"device_gemm", "primitives", "of gemm in fp64"},
    {"device_hosts_device_equal", "newer host", "in a newer host: byte 0 of 1 differs after a copy"},
    {"device_hosts_device_older", "older host", "it accesses memory behind the end of tn_copy in a host of 0.3"},
    {"device_hosts_device_reads", "newer host", "in a newer host: byte 0 of 1 differs after a copy"},
    {"device_hosts_device_writes", "newer host", "it writes behind the members of tn_copy that it knows"},
    {"device_hosts_table_equal", "newer host", "in a newer host it gives other results"},
    {"device_hosts_table_older", "older host", "it accesses memory behind the end of tn_call in a host of 0.3"},
    {"device_hosts_table_reads", "newer host", "in a newer host it gives other results"},
    {"device_hosts_table_writes", "newer host", "it writes behind the members of tn_call that it knows"},
    {"device_move", "primitives", "of concat and slice in fp64"},
    {"device_nameless", "copies", "properties give no name"},
    {"device_packed", "primitives", "of gemm with packed b in fp64"},
    {"device_pointwise", "primitives", "of pointwise add in fp64"},
    {"device_pool", "primitives", "of pool sum in fp64"},
    {"device_prefix_sum", "primitives", "of prefix_sum with flags 0 in fp64"},
    {"device_reads_behind", "guard pages", "signal 11"},
    {"device_resize", "primitives", "of resize with flags 0 in fp64"},
    {"device_row_update", "rows", "of the table after an update by rows"},
    {"device_segment", "primitives", "of segment sum and broadcast in fp64"},
    {"device_stream_wait", "streams", "after four calls of one stream"},
    {"device_threads", "threads", "of 2 threads differs"},
    {"device_writes_argsort", "guard pages", "signal 11"},
    {"device_writes_conv", "guard pages", "signal 11"},
    {"device_writes_conv_epilogue", "guard pages", "signal 11"},
    {"device_writes_gather", "guard pages", "signal 11"},
    {"device_writes_gather_gemm", "guard pages", "signal 11"},
    {"device_writes_gemm", "guard pages", "signal 11"},
    {"device_writes_gemm_epilogue", "guard pages", "signal 11"},
    {"device_writes_move", "guard pages", "signal 11"},
    {"device_writes_packed_gemm", "guard pages", "signal 11"},
    {"device_writes_pointwise", "guard pages", "signal 11"},
    {"device_writes_pool", "guard pages", "signal 11"},
    {"device_writes_prefix_sum", "guard pages", "signal 11"},
    {"device_writes_resize", "guard pages", "signal 11"},
    {"device_writes_segment", "guard pages", "signal 11"},
    {"draws_calls", "draws", "the same seed and update gives other outputs"},
    {"draws_number", "draws", "a second layer in the same machine gives equal outputs"},
    {"draws_seed", "draws", "another seed gives equal outputs"},
    {"draws_step", "draws", "the next update gives equal outputs"},
    {"empty_fails", "empty", "no rows"},
    {"entry_differs", "entry", "another descriptor"},
    {"exits", "step", "ended the process by exit code"},
    {"fails", "step", "backward does not work"},
    {"first_attributes", "hosts", "differs after a host with"},
    {"float32_differs", "float32", "in fp64"},
    {"float32_gradient", "float32", "of the gradient of in0 is"},
    {"float32_parameter", "float32", "of the gradient of checked.w is"},
    {"forks", "run", "starts a thread or process outside of [run]"},
    {"frozen_differs", "request", "where no parameter's is wanted"},
    {"fused_gradient", "gradient", "differences of its forward"},
    {"fused_inner", "operands", "did not write"},
    {"fused_reads_behind", "guard pages", "memory outside of its operands"},
    {"fused_value", "body", "by the recorded body"},
    {"futex", "run", "makes a system call"},
    {"gradient_reads_behind", "guard pages", "the gradient of in0 depends on memory outside of its operands"},
    {"gradient_rows", "gradient", "parameter checked.w"},
    {"gradient_scaled", "gradient", "input 0"},
    {"gradient_sign", "gradient", "parameter checked.w"},
    {"gradient_unset", "guard pages", "the gradient of in0 depends on memory outside of its operands"},
    {"gradient_unset", "operands", "did not write element 0 of gradient of input 0"},
    {"handles_signals", "process", "changes the handler of signal 12"},
    {"hangs", "step", "did not end within 1 seconds, in layer"},
    {"hosts_call_equal", "newer host", "in a newer host it gives other results"},
    {"hosts_call_older", "older host", "it accesses memory behind the end of tn_tensor in a host of 0.3"},
    {"hosts_call_reads", "newer host", "in a newer host it gives other results"},
    {"hosts_call_writes", "newer host", "it writes behind the members of tn_tensor that it knows"},
    {"hosts_comm_equal", "newer host", "in a newer host: "},
    {"hosts_comm_reads", "newer host", "in a newer host: "},
    {"hosts_comm_writes", "newer host", "it writes behind the members of tn_comm_open that it knows"},
    {"hosts_kernel_equal", "newer host", "in a newer host it gives other results"},
    {"hosts_kernel_older", "older host", "it accesses memory behind the end of tn_prepared in a host of 0.3"},
    {"hosts_kernel_reads", "newer host", "in a newer host it gives other results"},
    {"hosts_kernel_writes", "newer host", "it writes behind the members of tn_prepared that it knows"},
    {"hosts_layer_equal", "newer host", "in a newer host: "},
    {"hosts_layer_older", "older host", "it accesses memory behind the end of tn_planner in a host of 0.3"},
    {"hosts_layer_reads", "newer host", "in a newer host: "},
    {"hosts_layer_writes", "newer host", "it writes behind the members of tn_planner that it knows"},
    {"hosts_migrate_equal", "newer host", "in a newer host it gives other results"},
    {"hosts_migrate_older", "older host", "it accesses memory behind the end of tn_migration in a host of 0.3"},
    {"hosts_migrate_reads", "newer host", "in a newer host it gives other results"},
    {"hosts_migrate_writes", "newer host", "it writes behind the members of tn_migration that it knows"},
    {"hosts_provider_equal", "newer host", "in a newer host it gives other results"},
    {"hosts_provider_older", "older host", "it accesses memory behind the end of tn_gemm in a host of 0.3"},
    {"hosts_provider_reads", "newer host", "in a newer host it gives other results"},
    {"hosts_provider_writes", "newer host", "it writes behind the members of tn_gemm that it knows"},
    {"hosts_reader_equal", "newer host", "in a newer host it gives other results"},
    {"hosts_reader_older", "older host", "it accesses memory behind the end of tn_services in a host of 0.3"},
    {"hosts_reader_reads", "newer host", "in a newer host it gives other results"},
    {"hosts_reader_writes", "newer host", "it writes behind the members of tn_services that it knows"},
    {"hosts_step_equal", "newer host", "in a newer host: layer \"checked\""},
    {"hosts_step_older", "older host", "it accesses memory behind the end of tn_stepper in a host of 0.3"},
    {"hosts_step_reads", "newer host", "in a newer host: layer \"checked\""},
    {"hosts_step_writes", "newer host", "it writes behind the members of tn_stepper that it knows"},
    {"hosts_updater_equal", "newer host", "in a newer host: "},
    {"hosts_updater_older", "older host", "it accesses memory behind the end of tn_update_recorder in a host of 0.3"},
    {"hosts_updater_reads", "newer host", "in a newer host: "},
    {"hosts_updater_writes", "newer host", "it writes behind the members of tn_update_recorder that it knows"},
    {"imports_host", "symbols", "it imports \"tn_host_destroy\" of the host"},
    {"infinite_gradient", "step", "the gradient of in0 is not finite"},
    {"infinite_output", "step", "its outputs are not finite"},
    {"input_gradient", "gradient", "input 0"},
    {"keeps_output", "guard pages", "signal 11"},
    {"keeps_pointer", "guard pages", "signal 11"},
    {"kernel_reads_newer", "older host", "it accesses precision behind the end of tn_kernel_site in a host of 0.2"},
    {"leaves_open", "process", "it leaves a descriptor open: "},
    {"locks", "run", "locks (1 time)"},
    {"malloc_large", "own memory", "prepare [setup]"},
    {"malloc_unchecked", "own memory", "prepare [setup]"},
    {"memory_unchecked", "memory", "prepare [setup]"},
    {"metric_means", "sums", "of two minibatches"},
    {"nan_for_zero", "numbers", "is NaN for zeros"},
    {"nan_gradient", "numbers", "of the gradient of in0 is NaN for zeros"},
    {"needs_alignment", "guard pages", "signal 6"},
    {"never_chosen", "chosen", "no case is computed by it"},
    {"note_differs", "note", "/layers/0/doc"},
    {"output_unset", "guard pages", "output 0 depends on memory outside of its operands"},
    {"output_unset", "operands", "did not write element"},
    {"pauses", "step", "did not end within 1 seconds, in"},
    {"place_differs", "batch", "other values of output 0 alone"},
    {"plan_differs", "plan", "plan gives other shapes or parameters"},
    {"prints", "run", "writes output"},
    {"provider_batch", "batch", "have other values of output 0 alone"},
    {"provider_bytes", "note", "its table \"tenon.gemm/1\" states a size of 8 bytes; expected a multiple of 8 from 16"},
    {"provider_reads_behind", "guard pages", "memory outside of its operands"},
    {"provider_threads", "threads", "of 2 threads differs"},
    {"provider_unasked", "chosen", "no host asks a provider for the table tenon.gem/1"},
    {"provider_value", "primitives", "of gemm in fp64"},
    {"quits", "step", "or called _exit"},
    {"ranks_gradient", "gradient", "differences of its forward"},
    {"ranks_gradient_little", "gradient", "differences of its forward"},
    {"reader_count", "schema", "a pass ended after 7 samples; expected 8"},
    {"reader_damage", "damage", "without an error"},
    {"reader_empty", "schema", "it gives no samples"},
    {"reader_half", "shards", "2 shards have"},
    {"reader_hosts", "repeat", "a second host gets other samples"},
    {"reader_later_pass", "pass", "it depends on more than its number"},
    {"reader_opens", "repeat", "a second instance gives other samples"},
    {"reader_pass", "pass", "other samples than the first"},
    {"reader_reads_newer", "older host", "it accesses needed behind the end of tn_reader_open in a host of 0.3"},
    {"reader_resume", "resume", "expected 7"},
    {"reader_schema", "schema", "the slot's limit is 100"},
    {"reader_shards", "shards", "sample 0 of shard 1 of 2 is not sample 1"},
    {"reader_shorter", "pass", "the second pass has 6 samples, the first 7"},
    {"reads_behind", "guard pages", "memory outside of its operands"},
    {"reads_far", "guard pages", "signal 11"},
    {"reads_gradient", "guard pages", "(inputs [4]) the gradient of in0 depends on memory outside of its operands"},
    {"reads_one_behind", "guard pages", "signal 11"},
    {"reads_output", "guard pages", "output 0 depends on memory outside of its operands"},
    {"reads_unasked", "step", "signal 11"},
    {"reads_workspace", "guard pages", "output 0 depends on memory outside of its operands"},
    {"reads_workspace", "operands", "did not write"},
    {"remembers", "repeat", "differs"},
    {"requires_too_little", "older host", "it accesses prefix_sum behind the end of tn_builder in a host of 0.2"},
    {"requires_too_little_trait", "older host", "prepare sets TN_TRAIT_BATCH_VARIANT, which came with version 0.3"},
    {"rounds", "process", "changes the floating-point mode of the process"},
    {"rounds_in_run", "guard pages", "a call changes the floating-point mode"},
    {"second_backward", "request", "a second backward changes the gradient of in0"},
    {"sets_alarm", "process", "it changes a timer of the process"},
    {"shares_backward_wrongly", "memory sharing", "differs where result 0 has the memory of operand 3"},
    {"shares_wrongly", "memory sharing", "differs when memory is shared"},
    {"sleeps", "run", "waits or sleeps"},
    {"starts_thread", "run", "starts a thread"},
    {"tail_gradient", "gradient", "the gradient of input 0"},
    {"thread_gradient", "threads", "gradient of checked.w of 2 threads"},
    {"thread_in_prepare", "run", "starts a thread or process outside of [run]"},
    {"threads_differ", "threads", "output 0 of 2 threads"},
    {"throws", "step", "run [run] threw an exception: from a callback"},
    {"two_symbols", "symbols", "bad_second_symbol"},
    {"updater_grain", "older host", "record gives the grain of a matrix, which came with version 0.3"},
    {"updater_history", "repeat", "gives other parameters"},
    {"updater_history", "save", "updates after loading the state differ"},
    {"updater_history", "threads", "threads give other parameters than one"},
    {"updater_hosts", "repeat", "a second host gives other parameters"},
    {"updater_place", "step", "indices"},
    {"updater_rows", "rows", "by the dense gradient, with every row read"},
    {"updater_state_name", "save", "differences"},
    {"updater_still", "step", "5 updates with gradients leave the parameter as it was"},
    {"updater_zero", "numbers", "not finite after gradients of 0"},
    {"writes_before", "guard pages", "outside of operand 0"},
    {"writes_before", "operands", "before output 0"},
    {"writes_behind", "guard pages", "outside of operand 0"},
    {"writes_behind_workspace", "guard pages", "signal 11"},
    {"writes_beside_workspace", "guard pages", "outside of its workspace"},
    {"writes_for_adds", "request", "does not add"},
    {"writes_gradient", "guard pages", "signal 11"},
    {"writes_input", "guard pages", "signal 11"},
    {"writes_stdout", "process", "writes to standard output: \"{"},
};

std::string folder() { return test_plugin_folder() + "/nonconforming"; }

tenon::check::Options options_for(const std::string& name) {
  tenon::check::Options options;
  options.file = folder() + "/" + name + ".so";
  options.plugin_paths = {plugin_folder()};
  options.cases = source_folder() + "/tests/check/cases.toml";
  return options;
}

class Nonconforming : public testing::TestWithParam<Broken> {};

TEST_P(Nonconforming, IsFoundByTheCheckThatIsMeantForIt) {
  tenon::check::Options options = options_for(GetParam().name);
  options.checks = {GetParam().check};
  options.seconds = std::string(GetParam().message).find("within 1 seconds") != std::string::npos ? 1 : 20;
  const tenon::check::Report report = tenon::check::run(options);
  std::string messages;
  for (const tenon::check::Result& result : report.results) {
    EXPECT_EQ(result.check, GetParam().check);
    if (result.outcome == Outcome::kFailed) messages += result.message + "\n";
  }
  EXPECT_NE(messages.find(GetParam().message), std::string::npos) << "found instead: " << messages;
}

INSTANTIATE_TEST_SUITE_P(Plugins, Nonconforming, testing::ValuesIn(kBroken), [](const auto& it) {
  std::string name = std::string(it.param.name) + "_by_" + it.param.check;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// The derivatives of sums by rank are right, whichever elements of long rows are compared.
TEST(Nonconforming, ChangesOfRankAreNoFaults) {
  for (const uint64_t seed : {1U, 3U, 4U}) {
    tenon::check::Options options = options_for("ranks_conforming");
    options.checks = {"gradient"};
    options.seed = seed;
    tenon::check::expect_conforming(options);
  }
}

// What never ran did not pass.
TEST(Nonconforming, AProviderThatTakesNoCaseIsNotChecked) {
  for (const tenon::check::Result& result : tenon::check::run(options_for("provider_refusing_conforming")).results) {
    if (result.kind != "provider") continue;
    EXPECT_EQ(result.outcome, Outcome::kSkipped) << result.check;
    if (result.check == "older host") continue;  // it requires this version
    EXPECT_EQ(result.message,
              result.check == "chosen" ? "it computes no case of the kit: no such product here" : "there is no case")
        << result.check;
  }
}

// The template of communicators, which the plugins comm_* have behind them.
TEST(Nonconforming, TheTemplateOfCommunicatorsKeepsAllRules) {
  tenon::check::Options options = options_for("");
  options.file = test_plugin_folder() + "/../test_comms/comms/my_plugin.so";
  options.seconds = 60;
  for (const tenon::check::Result& result : tenon::check::expect_conforming(options).results)
    EXPECT_TRUE(result.outcome == Outcome::kPassed || result.check == "older host")  // it requires this version
        << result.check << ": " << result.message;
}

// The kit starts no launcher.
TEST(Nonconforming, ALaunchersCommunicatorIsCheckedAsAWorldOfOne) {
  std::set<std::string> passed;
  for (const tenon::check::Result& result :
       tenon::check::expect_conforming(options_for("comm_alone_conforming")).results) {
    if (result.kind != "comm") continue;
    if (result.outcome == Outcome::kPassed) passed.insert(result.check);
    if (result.check == "messages") {
      EXPECT_EQ(result.message, "a launcher connects its ranks; the kit, which starts none, opens worlds of one alone");
    }
  }
  EXPECT_EQ(passed, (std::set<std::string>{"abort", "newer host", "process", "twice", "wake", "world"}));
}

// Without a row above, a plugin would be one that nothing must find.
TEST(Nonconforming, EachPluginHasARowOrPasses) {
  std::set<std::string> listed;
  for (const Broken& broken : kBroken) listed.insert(broken.name);
  EXPECT_GE(listed.size(), 40U);
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    const std::string name = entry.path().stem().string();
    if (listed.erase(name) > 0) continue;
    EXPECT_NE(name.find("conforming"), std::string::npos) << name;
    tenon::check::expect_conforming(options_for(name));
  }
  for (const std::string& name : listed) ADD_FAILURE() << "there is no plugin " << name;
}

}  // namespace

}  // namespace tenon_tests
