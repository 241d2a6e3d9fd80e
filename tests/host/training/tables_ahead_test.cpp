// Trainings in which owners send rows of tables ahead: all that shows is as if they did not.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>
#include <tenon/tenon_topology.hpp>

#include "tests/host/training/tables.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

constexpr uint32_t kEarly = 1023;  // TableFetch::kEarlyChannel

// Samples whose ids begin `apart` from each other: 0: all read the same rows; 40: no two read the same.
class Spread : public Clicks {
 public:
  explicit Spread(int32_t apart) : apart_(apart) {}
  void read(int64_t index, Sample& sample) const {
    Clicks::read(index, sample);
    const int32_t first = static_cast<int32_t>(index) * apart_;
    sample.set("item", first);
    sample.set("words", std::vector<int32_t>{first, first + 2, first + 2, first + 31});
  }

 private:
  int32_t apart_;
};

// A sample that cannot be read.
class Damaged : public Clicks {
 public:
  explicit Damaged(int64_t damaged) : damaged_(damaged) {}
  void read(int64_t index, Sample& sample) const {
    if (index == damaged_) throw std::runtime_error("sample " + std::to_string(index) + " is damaged");
    Clicks::read(index, sample);
  }

 private:
  int64_t damaged_;
};

// The samples in their order, from a reader that cannot seek.
auto stream() {
  return [next = int64_t{0}](Sample& sample) mutable {
    if (next == Clicks::size()) return next = 0, false;
    Clicks::read(next++, sample);
    return true;
  };
}

struct Mix {
  int32_t ranks, servers;
};
constexpr Mix kMixes[] = {{2, 0}, {3, 0}, {4, 1}, {4, 2}};

// Expects the file, the events and the places of the reader of one process; and errors that have `error` in them.
void expect_all_of_one(const Change& change, const std::string& error = "") {
  const Outcome one = trained(make_host(2), {}, false, change);
  EXPECT_EQ(one.error, error);
  for (const auto& [ranks, servers] : kMixes) {
    const std::vector<Outcome> all = together(ranks, change, servers);
    for (const Outcome& each : all) {
      EXPECT_THAT(each.error, HasSubstr(error)) << ranks << " processes, servers: " << servers;
      if (error.empty()) {
        EXPECT_EQ(each.error, "");
        EXPECT_EQ(each.place, one.place);
      }
    }
    EXPECT_TRUE(all.front().model == one.model) << ranks << " processes, servers: " << servers;
    EXPECT_EQ(all.front().log, one.log) << ranks << " processes, servers: " << servers;
  }
}

TEST(TablesAhead, IdsThatAllRepeatOrDoNotRepeatGiveTheBitsOfWholeTables) {
  for (const int32_t apart : {0, 40})
    expect_all_of_one([=](TrainOptions& options, const Host& host, int64_t) {
      options.reader = host.reader(clicks(), Spread(apart)).shuffle(5).batch(4);
    });
}

// Two minibatches of the last four passes lie on both sides of an end of the data.
TEST(TablesAhead, PassesOfMinibatchesGoOverTheEndOfTheData) {
  expect_all_of_one([](TrainOptions& options, const Host&, int64_t) {
    options.pass_batches = 3;
    options.passes = 5;
  });
}

TEST(TablesAhead, AThreadThatReadsAheadGivesTheSamePlaces) {
  expect_all_of_one([](TrainOptions& options, const Host& host, int64_t) {
    options.reader = host.reader(clicks(), Clicks()).shuffle(5).batch(4).buffered(2);
  });
}

// Stops at an event, counted from 0, and expects the place at which one process stops.
TEST(TablesAhead, AStoppedTrainingLeavesTheReaderBehindItsLastMinibatch) {
  std::set<std::string> places;
  for (const int stop : {2, 4, 5, 7, 8, 9, 10, 12, 16}) {
    const Change stopped = [&, stop](TrainOptions& options, const Host& host, int64_t) {
      options.reader = host.reader(clicks(), Clicks()).batch(4);
      options.handler = [&places, stop, reader = options.reader, count = 0](Event& event) mutable {
        if (count++ != stop) return;
        places.insert(place_of(reader));
        event.stop();
      };
    };
    expect_all_of_one(stopped);
  }
  EXPECT_EQ(places, (std::set<std::string>{"0:4", "0:8", "0:12", "0:14", "1:0", "1:4", "1:12"}));
}

// Sample 9 is in the third minibatch.
TEST(TablesAhead, AFailureOfTheReaderComesOutBehindTheMinibatchBefore) {
  const Change damaged = [](TrainOptions& options, const Host& host, int64_t) {
    options.reader = host.reader(clicks(), Damaged(9)).batch(4);
  };
  expect_all_of_one(damaged, "sample 9 is damaged");
  expect_all_of_one([&](TrainOptions& options, const Host& host, int64_t rank) {
    damaged(options, host, rank);
    options.handler = [](Event& event) {
      if (event.kind() == TN_END_ITERATION && event.batch() == 1) event.stop();
    };
  });
}

TEST(TablesAhead, TheCheckpointBeforeAFailureOfTheReaderIsResumed) {
  const TemporaryFolder folder;
  const auto checkpointed = [&](uint32_t start, int64_t bad) {
    return [&folder, start, bad](TrainOptions& options, const Host& host, int64_t) {
      options.reader = host.reader(clicks(), Damaged(bad)).batch(4);
      options.checkpoint.emplace();
      options.checkpoint->folder = folder.file("kept");
      options.checkpoint->start = start;
    };
  };
  const Outcome whole = trained(make_host(2), {}, false, [](TrainOptions& options, const Host& host, int64_t) {
    options.reader = host.reader(clicks(), Clicks()).batch(4);
  });
  for (const Outcome& each : together(4, checkpointed(TN_START_FRESH, 9), 1))
    EXPECT_THAT(each.error, HasSubstr("sample 9 is damaged"));
  EXPECT_TRUE(std::filesystem::exists(folder.file("kept/checkpoint-0-2.safetensors")));
  const std::vector<Outcome> resumed = together(3, checkpointed(TN_START_RESUME, -1));
  EXPECT_THAT(resumed.front().error, "");
  EXPECT_TRUE(resumed.front().model == whole.model);
}

// ---- what travels when

// The messages of early rows so far when process 0 gets an event.
struct Count {
  int kind;
  int64_t batch;
  uint64_t messages;
};

// model: gets that of process 0.
std::vector<Count> early_messages(const Change& change, std::string* model) {
  const LoopWorld world(3, delayed(3));
  std::vector<Count> counts;
  in_world(world, 3, 1, [&](const Host& host, const Team& team, int32_t rank) {
    const auto counted = [&](TrainOptions& options, const Host& own, int64_t number) {
      if (change) change(options, own, number);
      options.handler = [&, before = options.handler](Event& event) {
        counts.push_back({event.kind(), event.batch(), world.sent(kEarly)});
        if (before) before(event);
      };
    };
    const Outcome outcome = trained(host, team, true, counted);
    EXPECT_EQ(outcome.error, "");
    if (rank == 0) *model = outcome.model;
  });
  return counts;
}

// In each minibatch but the last one of a pass, rows of the next one are sent.
TEST(TablesAhead, RowsTravelBeforeTheMinibatchBeforeThemEnds) {
  for (const int64_t pass_batches : {0, 2}) {
    std::string model;
    const std::vector<Count> counts = early_messages(
        [=](TrainOptions& options, const Host&, int64_t) { options.pass_batches = pass_batches; }, &model);
    const int64_t last = pass_batches == 0 ? 3 : 1;
    int iterations = 0;
    for (size_t i = 1; i < counts.size(); ++i) {
      const uint64_t sent = counts[i].messages - counts[i - 1].messages;
      const bool is_due = counts[i].kind == TN_END_ITERATION && counts[i].batch < last;
      EXPECT_EQ(sent > 0, is_due) << "event " << i << " of kind " << counts[i].kind;
      iterations += is_due ? 1 : 0;
    }
    EXPECT_EQ(iterations, 2 * last);
  }
}

TEST(TablesAhead, ReadersThatCannotSeekAreNotReadAhead) {
  std::string streamed, seeking;
  const Change in_order = [](TrainOptions& options, const Host& host, int64_t) {
    options.reader = host.reader(clicks(), Clicks()).batch(4);
  };
  const Change once = [](TrainOptions& options, const Host& host, int64_t) {
    options.reader = host.reader(clicks(), stream()).batch(4);
  };
  EXPECT_EQ(early_messages(once, &streamed).back().messages, 0U);
  EXPECT_GT(early_messages(in_order, &seeking).back().messages, 0U);
  EXPECT_TRUE(streamed == seeking);
}

// The handler, of process 0, changes the rows that this process owns.
TEST(TablesAhead, ValuesThatAHandlerSetsAreThoseOfTheNextMinibatch) {
  std::string models[3];
  const auto setting = [](bool streams, int kind) {
    return [=](TrainOptions& options, const Host& host, int64_t) {
      options.reader = (streams ? host.reader(clicks(), stream()) : host.reader(clicks(), Clicks())).batch(4);
      options.handler = [parameters = options.parameters, outputs = options.outputs, &host, kind](Event& event) {
        if (event.kind() == kind && event.batch() == 2) tenon::copy(parameters, host.parameters(outputs, 9));
      };
    };
  };
  for (const int kind : {TN_END_ITERATION, TN_BEGIN_ITERATION}) {
    EXPECT_EQ(early_messages(setting(true, kind), &models[0]).back().messages, 0U);
    EXPECT_GT(early_messages(setting(false, kind), &models[1]).back().messages, 0U);
    EXPECT_TRUE(models[0] == models[1]);
    static_cast<void>(early_messages(setting(false, -1), &models[2]));
    EXPECT_FALSE(models[0] == models[2]) << "the values matter";
  }
}

// An updater of the application that writes the tables in the middle of its second step.
class Writing final : public UpdateRule {
 public:
  explicit Writing(std::function<void()> write) : write_(std::move(write)) {}
  void update(const RuleStep& step) override {
    if (step.number == 2) write_();
  }

 private:
  std::function<void()> write_;
};

TEST(TablesAhead, ValuesThatAnUpdaterOfTheApplicationSetsAreThoseOfTheNextMinibatch) {
  std::string models[3];
  const auto writing = [](bool streams, bool writes) {
    return [=](TrainOptions& options, const Host& host, int64_t) {
      options.reader = (streams ? host.reader(clicks(), stream()) : host.reader(clicks(), Clicks())).batch(4);
      const auto write = [parameters = options.parameters, outputs = options.outputs, &host, writes] {
        if (writes) tenon::copy(parameters, host.parameters(outputs, 9));
      };
      options.updater = updater_of(options.parameters, "writing", std::make_shared<Writing>(write));
      options.groups = {{host.updater("adam", {{"learning_rate", 0.2}}), {"items", "tagged.weight"}}};
    };
  };
  static_cast<void>(early_messages(writing(true, true), &models[0]));
  static_cast<void>(early_messages(writing(false, true), &models[1]));
  static_cast<void>(early_messages(writing(true, false), &models[2]));
  EXPECT_TRUE(models[0] == models[1]);
  EXPECT_FALSE(models[0] == models[2]) << "the values matter";
}

// ---- lost processes

TEST(TablesAhead, ALostProcessEndsTheTrainingOfAll) {
  for (const int64_t sends : {40, 80, 90, 95, 100, 105, 110, 120}) {
    LoopScript script = delayed(3);
    script.faults = {{LoopFault::Kind::kLose, 2, sends, {}}};
    const LoopWorld world(3, script);
    std::string errors[3];
    in_world(world, 3, 1, [&](const Host& host, const Team& team, int32_t rank) {
      const Change longer = [](TrainOptions& options, const Host&, int64_t) { options.passes = 100; };
      try {
        static_cast<void>(trained(host, team, true, longer));
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
    EXPECT_THAT(errors[0], HasSubstr("process 2 is lost")) << sends;
    EXPECT_THAT(errors[1], HasSubstr("process 2 is lost")) << sends;
    EXPECT_NE(errors[2], "");
  }
}

}  // namespace

}  // namespace tenon_tests
