// tn_host_destroy beside calls of other threads, within calls, and twice. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tenon.h>
#include <tenon/tenon_generate.h>
#include <tenon/tenon_machine.h>
#include <tenon/tenon_predictor.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/child.h"
#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

constexpr int64_t kSamples = 64;

// A host with a small model, over the C API: the pointer is the application's to destroy.
class Destroy : public testing::Test {
 protected:
  Destroy() {
    const std::string plugins = plugin_folder();
    const char* const folder = plugins.c_str();
    tn_host_options options = {};
    options.size = sizeof options;
    options.threads = 2;
    options.plugin_paths = &folder;
    options.plugin_paths_count = 1;
    check(tn_host_create(&options, &host_, &error_));
    const int64_t one = 1;
    const auto data = [&](const char* name, tn_layer* layer) {
      tn_data_options of = {};
      of.size = sizeof of;
      of.name = name;
      of.dtype = TN_F32;
      of.rank = 1;
      of.shape = &one;
      of.index_limit = -1;
      check(tn_data_create(host_, &of, layer, &error_));
    };
    tn_layer inputs[2] = {};
    data("x", &inputs[0]);
    data("y", &inputs[1]);
    tn_named_value size = {};
    size.name = "size";
    size.value.kind = TN_ATTR_INT;
    size.value.as.i = 1;
    layer("fc", inputs, 1, &size, &fit_);
    inputs[0] = fit_;
    layer("square_error", inputs, 2, nullptr, &cost_);
    check(tn_parameters_create(host_, &cost_, 1, 1, &parameters_, &error_));
    check(tn_updater_create(host_, "sgd", nullptr, 0, &updater_, &error_));
  }
  ~Destroy() override { tn_host_destroy(host_); }

  void layer(const char* type, const tn_layer* inputs, uint32_t count, const tn_named_value* attribute,
             tn_layer* made) {
    tn_layer_options options = {};
    options.size = sizeof options;
    options.type = type;
    options.inputs = inputs;
    options.inputs_count = count;
    options.attributes = attribute;
    options.attributes_count = attribute == nullptr ? 0 : 1;
    check(tn_layer_create(host_, &options, made, &error_));
  }
  void check(tn_status status) const { ASSERT_EQ(status, TN_OK) << error_.message; }

  // A reader of minibatches. `on_read_` is called at each read; with `ahead` on a thread of the host, when it is slow.
  tn_reader reader(int64_t ahead = 0) {
    static const int64_t kOne = 1;
    const tn_slot x = slot("x", &kOne), y = slot("y", &kOne);
    const tn_slot* const slots[] = {&x, &y};
    tn_source_options options = {};
    options.size = sizeof options;
    options.slots = slots;
    options.slots_count = 2;
    options.samples = kSamples;
    options.user = this;
    options.read_at = [](void* user, const int64_t*, int64_t count, tn_array* values, tn_error*) -> tn_status {
      auto& test = *static_cast<Destroy*>(user);
      if (test.on_read_) test.on_read_();
      static float ones[kSamples] = {};
      if (count > kSamples) return TN_INVALID;
      values[0].data = values[1].data = ones;
      return TN_OK;
    };
    tn_reader made = {}, batches = {};
    check(tn_reader_create_from(host_, &options, &made, &error_));
    check(tn_reader_batch(host_, made, 4, 0, &batches, &error_));
    if (ahead == 0) return batches;
    check(tn_reader_buffered(host_, batches, ahead, &made, &error_));
    return made;
  }
  static tn_slot slot(const char* name, const int64_t* shape) {
    tn_slot slot = {};
    slot.size = sizeof slot;
    slot.name = name;
    slot.dtype = TN_F32;
    slot.rank = 1;
    slot.shape = shape;
    slot.index_limit = -1;
    return slot;
  }
  tn_status train(int64_t passes, tn_reader reader) {
    tn_train_options options = {};
    options.size = sizeof options;
    options.outputs = &cost_;
    options.outputs_count = 1;
    options.parameters = parameters_;
    options.updater = updater_;
    options.reader = reader;
    options.passes = passes;
    options.user = this;
    options.handler = [](void* self, tn_event* event) {
      auto& test = *static_cast<Destroy*>(self);
      if (event->kind == TN_END_ITERATION) ++test.iterations_;
      if (event->kind == TN_END_TRAINING) test.reason_ = static_cast<int>(event->reason);
      if (test.on_event_) test.on_event_(event);
    };
    return tn_train(host_, &options, &error_);
  }
  template <typename Condition>
  static void wait_for(const Condition& condition) {
    while (!condition()) std::this_thread::yield();
  }

  tn_host* host_ = nullptr;
  tn_error error_ = {sizeof error_, 0, {}, {}, {}};
  tn_layer fit_ = {}, cost_ = {};
  tn_parameters parameters_ = {};
  tn_updater updater_ = {};
  std::function<void()> on_read_;
  std::function<void(tn_event*)> on_event_;
  std::atomic<int64_t> iterations_{0};
  std::atomic<int> reason_{0};
};

// Calls from several threads until each is refused, with what a call returns.
TEST_F(Destroy, CallsOfOtherThreadsEndOrAreMisuse) {
  tn_machine_options wanted = {};
  wanted.size = sizeof wanted;
  wanted.max_samples = 1;
  tn_predictor predictor = {};
  tn_predictor_options predicting = {};
  predicting.size = sizeof predicting;
  check(tn_predictor_create(host_, parameters_, &fit_, 1, &predicting, &predictor, &error_));
  tn_machine machines[3] = {};
  for (tn_machine& machine : machines)
    check(tn_machine_create(host_, parameters_, &fit_, 1, &wanted, &machine, &error_));
  const float x = 2;
  tn_feed feed = {};
  feed.name = "x";
  feed.values.dtype = TN_F32;
  feed.values.rank = 2;
  feed.values.shape[0] = feed.values.shape[1] = 1;
  feed.values.data = const_cast<float*>(&x);
  std::atomic<int> running{0}, wrong{0};
  const auto repeat = [&](const std::function<tn_status(tn_error*)>& call) {
    tn_error error = {};
    error.size = sizeof error;
    bool counted = false;
    while (true) {
      const tn_status status = call(&error);
      if (status == TN_MISUSE && std::string(error.message) == "the host was destroyed") return;
      if (status != TN_OK && ++wrong == 1) ADD_FAILURE() << status << " " << error.message;
      if (!counted) ++running;
      counted = true;
      if (status != TN_OK) return;
    }
  };
  std::vector<std::thread> threads;
  for (const tn_machine machine : machines)
    threads.emplace_back(repeat,
                         [&, machine](tn_error* error) { return tn_machine_forward(host_, machine, &feed, 1, error); });
  for (int i = 0; i < 20; ++i)  // more threads than counters
    threads.emplace_back(repeat, [&](tn_error* error) {
      return tn_predict(
          host_, predictor, &feed, 1, [](void*, const tn_array*, uint32_t) {}, nullptr, error);
    });
  threads.emplace_back(repeat, [&](tn_error* error) {
    tn_layer made = {};
    tn_layer_options options = {};
    options.size = sizeof options;
    options.type = "relu";
    options.inputs = &fit_;
    options.inputs_count = 1;
    const tn_status status = tn_layer_create(host_, &options, &made, error);
    return status == TN_OK ? tn_layer_release(host_, made, error) : status;
  });
  wait_for([&] { return running + wrong >= static_cast<int>(threads.size()); });
  tn_host_destroy(host_);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  tn_host_counters counters = {};
  counters.size = sizeof counters;
  EXPECT_EQ(tn_host_count(host_, &counters, &error_), TN_MISUSE) << "later, too";
}

TEST_F(Destroy, ATrainingIsCancelled) {
  const tn_reader from = reader(2);
  tn_status status = TN_INTERNAL;
  std::thread training([&] { status = train(INT64_MAX, from); });
  wait_for([&] { return iterations_ > 3; });
  tn_host_destroy(host_);
  const int64_t done = iterations_;
  training.join();
  EXPECT_EQ(status, TN_OK);
  EXPECT_EQ(reason_, TN_REASON_CANCEL);
  EXPECT_EQ(iterations_, done) << "tn_host_destroy waits for the call";
}

TEST_F(Destroy, SeveralAtOnceAllWait) {
  const tn_reader from = reader();
  std::thread training([&] { (void)train(INT64_MAX, from); });
  wait_for([&] { return iterations_ > 0; });
  std::vector<std::thread> enders;
  for (int i = 0; i < 4; ++i)
    enders.emplace_back([&] {
      tn_host_destroy(host_);
      EXPECT_EQ(reason_, TN_REASON_CANCEL);
    });
  for (std::thread& ender : enders) ender.join();
  training.join();
}

TEST_F(Destroy, WithinAHandlerEndsTheHostAfterTheCall) {
  tn_status within = TN_OK;
  on_event_ = [&](const tn_event* event) {
    if (event->kind != TN_END_ITERATION || iterations_ != 2) return;
    tn_host_destroy(host_);
    tn_host_destroy(host_);
    tn_host_counters counters = {};
    counters.size = sizeof counters;
    within = tn_host_count(host_, &counters, nullptr);
  };
  EXPECT_EQ(train(INT64_MAX, reader()), TN_OK);
  EXPECT_EQ(within, TN_MISUSE);
  EXPECT_EQ(iterations_, 2);
  EXPECT_EQ(reason_, TN_REASON_CANCEL);
}

TEST_F(Destroy, WithinAReaderOfAnotherThread) {
  const tn_reader from = reader(2);
  const std::thread::id trainer = std::this_thread::get_id();
  std::atomic<int> reads{0};
  std::atomic<bool> elsewhere{false};
  on_read_ = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++reads;
    if (std::this_thread::get_id() == trainer || elsewhere.exchange(true)) return;
    tn_host_destroy(host_);  // on the thread that reads ahead
  };
  EXPECT_EQ(train(INT64_MAX, from), TN_OK);
  EXPECT_EQ(reason_, TN_REASON_CANCEL);
  tn_host_destroy(host_);  // waits for the end of the host
  EXPECT_TRUE(elsewhere);
  EXPECT_GT(reads, 0);
}

TEST_F(Destroy, InAForkedChildDoesNotWaitForThreadsOfTheParent) {
  const tn_reader from = reader();
  std::thread training([&] { (void)train(INT64_MAX, from); });
  wait_for([&] { return iterations_ > 0; });
  const auto work = [&](int) {
    tn_host_destroy(host_);
    if (tn_host_count(host_, nullptr, nullptr) != TN_MISUSE) _exit(1);
  };
  EXPECT_EQ(run_child(work, 20).code(), 0);
  tn_host_destroy(host_);
  training.join();
}

// Pointers of hosts that have ended stay refused for 64 further ends.
TEST(Ended, HostsAreRemembered) {
  std::vector<tn_host*> hosts;
  for (size_t i = 0; i < 200; ++i) {
    tn_host* host = nullptr;
    tn_host_options options = {};
    options.size = sizeof options;
    options.threads = 1;
    ASSERT_EQ(tn_host_create(&options, &host, nullptr), TN_OK);
    tn_host_destroy(host);
    hosts.push_back(host);
    EXPECT_EQ(tn_host_count(hosts[i < 40 ? 0 : i - 40], nullptr, nullptr), TN_MISUSE);
  }
}

}  // namespace

}  // namespace tenon_tests
