// Thread tags through the public API: a host with checking reports each rule that a plugin breaks.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "tests/support/fashion.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kTestLayers = tenon_tests::test_plugin_folder() + "/layers";

struct Told {
  tn_status code = TN_OK;
  std::string message;
};

template <typename Action>
Told told(Action action) {
  try {
    action();
  } catch (const tenon::Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

// A host with the plugin tests/support/plugins/bad_threads.
class ThreadTagsTest : public testing::Test {
 protected:
  explicit ThreadTagsTest(uint32_t check = TN_CHECK_ON) : check_(check) {
    DataOptions x;
    x.name = "x";
    x.shape = {2};
    x_ = host_.data(x);
  }

  [[nodiscard]] Layer layer(const std::string& how, const std::string& type = "test_threads") const {
    return host_.layer(type, {x_}, {{"how", how}}, how);
  }
  [[nodiscard]] Machine machine(const std::string& how, const std::string& type = "test_threads") const {
    const Layer made = layer(how, type);
    tenon::MachineOptions options;
    options.max_samples = 4;
    options.keep_all = true;
    return host_.machine(host_.parameters({made}, 1), {made}, options);
  }
  void forward(const Machine& machine) const { machine.forward({{"x", {TN_F32, {4, 2}, samples_}}}); }
  [[nodiscard]] tenon::Reader reader(const std::string& how) const {
    return host_.reader("test_threads_reader", {{"how", how}});
  }

  // Runs `action` and expects a fault whose message contains all parts.
  template <typename Action, typename... Parts>
  void expect_fault(Action action, const Parts&... parts) {
    const Told fault = told(action);
    EXPECT_EQ(fault.code, TN_PLUGIN_FAULT) << fault.message;
    EXPECT_THAT(fault.message, AllOf(HasSubstr("plugin \"tenon.test.bad_threads\""), HasSubstr(parts)...));
    forward(machine("good"));  // the host still works
  }

  uint32_t check_;
  std::function<void(const std::string&)> on_log_;
  Host host_{HostOptions{2,
                         {tenon_tests::plugin_folder(), kTestLayers},
                         nullptr,
                         [this](int, const char* message) {
                           if (on_log_) on_log_(message);
                         },
                         check_}};
  Layer x_;
  const float samples_[8] = {1, 2, 3, 4, 5, 6, 7, 8};
};

TEST_F(ThreadTagsTest, AGoodPluginPasses) {
  const Layer good = layer("good");
  tenon::MachineOptions options;
  options.max_samples = 4;
  const Machine made = host_.machine(host_.parameters({good}, 1), {good}, options);
  for (int i = 0; i < 3; ++i) forward(made);
  const auto* y = static_cast<const float*>(made.output(good).data);
  EXPECT_EQ((std::vector<float>{y, y + 8}), (std::vector<float>{samples_, samples_ + 8}));
  forward(machine("good", "test_threads_body"));
  const Reader good_reader = reader("good");
  EXPECT_EQ(good_reader.next().size(), 1U);
  EXPECT_TRUE(host_.updater("test_threads_updater", {}));
}

TEST_F(ThreadTagsTest, WhatRunMustNotDo) {
  const auto run = [this](const std::string& how) { return [this, made = machine(how)] { forward(made); }; };
  expect_fault(run("run_allocates"), "layer \"run_allocates\" (test_threads, native kernel \"bad_threads\")",
               "run [run]", "called tenon.memory/1 allocate, which is allowed inside [setup], [io] and [comm] only");
  expect_fault(run("task_allocates"), "run [run]", "called tenon.memory/1 allocate");
  expect_fault(run("phase_allocates"), "run [run]", "called tenon.memory/1 allocate");
  expect_fault(
      run("for_each_elsewhere"), "during layer \"for_each_elsewhere\" (test_threads, native kernel \"bad_threads\")",
      "run [run]",
      "a thread that is in no call from the host called parallel->for_each, which is allowed inside [run] only");
  expect_fault(run("use_prepare_errors"), "run [run]",
               "used the error sink that was lent to layer \"use_prepare_errors\" (test_threads, native kernel "
               "\"bad_threads\") and has been taken back");
}

TEST_F(ThreadTagsTest, WhatSetupMustNotDo) {
  forward(machine("good"));  // the plugin keeps the pointer to the thread pool
  const uint64_t bytes = host_.count().bytes_now;
  expect_fault([this] { (void)machine("prepare_for_each"); },
               "layer \"prepare_for_each\" (test_threads, native kernel \"bad_threads\")", "prepare [setup]",
               "called parallel->for_each");
  expect_fault([this] { (void)machine("prepare_phases"); },
               "layer \"prepare_phases\" (test_threads, native kernel \"bad_threads\")", "prepare [setup]",
               "called parallel->phases");
  EXPECT_EQ(host_.count().bytes_now, bytes) << "the binding that was made must be freed";
}

TEST_F(ThreadTagsTest, TablesEndWithTheirCall) {
  const std::string body = "test_threads_body";
  (void)layer("keep_planner");
  expect_fault([this] { (void)layer("use_planner"); }, "layer \"use_planner\" (test_threads)", "plan [setup]",
               "used the planner that was lent to layer \"keep_planner\" (test_threads) and has been taken back");
  (void)layer("keep_expander", body);
  expect_fault([&] { (void)layer("use_expander", body); }, "expand [setup]",
               "used the expander that was lent to layer \"keep_expander\" (test_threads_body) and has been");
  (void)machine("keep_builder", body);
  expect_fault([&] { (void)machine("use_builder", body); }, "lower [setup]",
               "used the builder that was lent to layer \"keep_builder\" (test_threads_body) and has been");
  (void)host_.updater("test_threads_updater", {{"how", "keep_recorder"}});
  expect_fault(
      [this] {
        (void)host_.updater("test_threads_updater", {{"how", "use_recorder"}});
      },
      "record [setup]", "used the recorder that was lent to updater \"test_threads_updater\" and has been taken back");
  (void)layer("keep_errors");
  expect_fault([this] { (void)layer("use_errors"); }, "plan [setup]",
               "used the error sink that was lent to layer \"keep_errors\" (test_threads) and has been taken back");
}

TEST_F(ThreadTagsTest, TablesAreForTheThreadOfTheCall) {
  expect_fault([this] { (void)layer("planner_elsewhere"); }, "during layer \"planner_elsewhere\" (test_threads)",
               "plan [setup]",
               "used the planner that was lent to layer \"planner_elsewhere\" (test_threads) for another");
}

TEST_F(ThreadTagsTest, Readers) {
  forward(machine("good"));
  const uint64_t bytes = host_.count().bytes_now;
  expect_fault([this] { (void)reader("open_for_each"); }, "reader \"test_threads_reader\"", "open [io]",
               "called parallel->for_each");
  EXPECT_EQ(host_.count().bytes_now, bytes) << "the instance that was made must be closed";
  const tenon::Reader bad = reader("next_for_each");
  expect_fault([&] { (void)bad.next(); }, "reader \"test_threads_reader\"", "next [io]", "called parallel->for_each");
}

TEST_F(ThreadTagsTest, AFaultInADestructorEndsTheCallThatFrees) {
  std::string logged;
  on_log_ = [&](const std::string& line) { logged = line; };
  Machine made = machine("destroy_for_each");
  forward(made);
  tn_error error = {};
  error.size = sizeof error;
  EXPECT_EQ(tn_machine_release(host_.get(), made.handle(), &error), TN_PLUGIN_FAULT);
  made.forget();
  EXPECT_THAT(error.message, AllOf(HasSubstr("destroy [setup]"), HasSubstr("called parallel->for_each")));
  EXPECT_EQ(logged, error.message);
  EXPECT_EQ(told([this] { forward(machine("good")); }).message, "");
}

TEST_F(ThreadTagsTest, AnApplicationMustNotCallInFromAPlugin) {
  std::vector<Told> inner;
  std::optional<Machine> running;
  on_log_ = [&](const std::string& line) {
    inner.push_back(told([&] {
      if (line == "preparing") (void)layer("good");
      if (line == "running") forward(*running);
    }));
  };
  EXPECT_EQ(told([&] { running = machine("prepare_logs"); }).message, "");
  running = machine("run_logs");
  EXPECT_EQ(told([&] { forward(*running); }).message, "");
  ASSERT_EQ(inner.size(), 2U);
  EXPECT_EQ(inner[0].code, TN_MISUSE);
  EXPECT_THAT(inner[0].message, AllOf(HasSubstr("plan [setup] was to be called before layer \"prepare_logs\" "
                                                "(test_threads, native kernel \"bad_threads\")"),
                                      HasSubstr("prepare [setup] returned")));
  EXPECT_EQ(inner[1].code, TN_MISUSE);
  EXPECT_THAT(inner[1].message, HasSubstr("the machine is in use by a call that has not ended"));
}

class UncheckedTest : public ThreadTagsTest {
 protected:
  UncheckedTest() : ThreadTagsTest(TN_CHECK_OFF) {}
};

TEST_F(UncheckedTest, NothingIsTold) {
  for (const char* how : {"good", "run_allocates", "task_allocates"}) {
    const Machine made = machine(how);
    EXPECT_EQ(told([&] { forward(made); }).message, "") << how;
  }
}

TEST(CheckThreads, IsOneOfThree) {
  const Told refused = told([] { const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}, 3}); });
  EXPECT_EQ(refused.code, TN_INVALID);
  EXPECT_THAT(refused.message, HasSubstr("check is 3"));
}

// Trains on Fashion-MNIST and returns the bytes of the model file.
std::string trained(uint32_t check) {
  const Host host(HostOptions{2, {tenon_tests::plugin_folder()}, nullptr, {}, check});
  const Perceptron model = perceptron(host, 32);
  TrainOptions options;
  options.outputs = model.outputs();
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("adam", {});
  options.reader = fashion(host, "train", 1000, 128, 1);
  options.passes = 2;
  train(options);
  options.reader = fashion(host, "t10k", 500, 128, 1);
  EXPECT_GT(tenon::test(options).metrics.at(0).value, 0.5);
  const tenon_tests::TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  options.parameters.save({model.prediction}, path);
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return bytes;
}

TEST(CheckThreads, TrainingIsTheSame) {
  const std::string checked = trained(TN_CHECK_ON);
  EXPECT_THAT(checked, Not(IsEmpty()));
  EXPECT_EQ(checked, trained(TN_CHECK_OFF));
}

}  // namespace
}  // namespace tenon_tests
