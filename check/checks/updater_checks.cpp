// SPDX-License-Identifier: Apache-2.0
#include "check/checks/updater_checks.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <tenon/tenon_updater.hpp>

#include "base/temporary.h"
#include "check/bench/layer_bench.h"
#include "check/bench/table_bench.h"
#include "check/cases/drawn_attributes.h"
#include "check/checks/each.h"
#include "check/checks/other_hosts.h"
#include "check/checks/refusing.h"

namespace tenon::check {

namespace {

using Table = TableBench;
constexpr int64_t kHeight = Table::kHeight, kWidth = Table::kWidth;

// The ids and gradients of one step.
struct StepFeed {
  std::vector<int32_t> ids;
  std::vector<float> gradients;
};
StepFeed drawn_step(std::mt19937_64& random, bool all_rows, double scale = 1) {
  StepFeed feed;
  for (int32_t id = 0; id < kHeight; ++id)
    if (all_rows || id % 2 == 0) feed.ids.push_back(id);
  std::shuffle(feed.ids.begin(), feed.ids.end(), random);
  for (size_t i = 0; i < feed.ids.size() * kWidth; ++i)
    feed.gradients.push_back(static_cast<float>(scale * (static_cast<double>(random() % 2048) / 1024 - 1)));
  return feed;
}

// The values of the table after each of some steps.
Numbers trajectory(const Context& context, const Table& table, const Updater& updater, int steps, double scale = 1,
                   bool all_rows = true) {
  std::mt19937_64 random(context.subject().seed);
  Numbers result;
  for (int t = 0; t < steps; ++t) {
    const StepFeed feed = drawn_step(random, all_rows, scale);
    table.add(feed.ids, feed.gradients);
    table.update(updater);
    const Numbers values = table.values();
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

// The author's attributes, or those that are drawn and that the host accepts; at most 6.
std::vector<json> sets_of(Context& context) {
  std::vector<json> sets;
  for (const json& each : context.subject().cases) sets.push_back(each.value("attributes", json::object()));
  if (!sets.empty()) return sets;
  const json& schema = context.subject().described.at("attributes");
  std::mt19937_64 random(context.subject().seed);
  std::vector<json> drawn = drawn_attributes(schema, random);
  if (drawn.size() > 1) std::shuffle(drawn.begin() + 1, drawn.end(), random);
  std::vector<json> accepted;
  std::string reason;
  for (const json& each : drawn) try {
      if (accepted.size() == 6) break;
      const Table table(context.host(1, false), false);
      const Updater updater = context.host(1, false).updater(context.subject().type, attributes_of(each, schema));
      (void)trajectory(context, table, updater, 1);
      accepted.push_back(each);
    } catch (const Error& error) {
      if (error.code() == TN_PLUGIN_FAULT) throw;
      reason = error.what();
    }
  if (accepted.empty())
    throw Fault("no attributes are accepted; give some by --cases" +
                (reason.empty() ? "" : "; the last try: " + reason));
  return accepted;
}

void each_set(Context& context, const std::function<void(const Attributes&)>& one) {
  const json& schema = context.subject().described.at("attributes");
  each(sets_of(context), text_of, [&](const json& set) { one(attributes_of(set, schema)); });
}

void expect_finite(Context& context, const Numbers& values, const std::string& what) {
  for (const double value : values) context.expect(std::isfinite(value), "the parameter is not finite after " + what);
}

Updater updater_of(const Context& context, const Host& host, const Attributes& attributes) {
  return host.updater(context.subject().type, attributes);
}

void check_updater_step(Context& context) {
  each_set(context, [&](const Attributes& attributes) {
    const Host& host = context.host(2, true);
    const Table table(host, false);
    const Numbers before = table.values();
    expect_finite(context, trajectory(context, table, updater_of(context, host, attributes), 5), "5 updates");
    context.expect(!identical(before, table.values()), "5 updates with gradients leave the parameter as it was");
  });
}

void check_updater_process(Context& context) {
  each_set(context, [&](const Attributes& attributes) {
    const Host& host = context.host(2, true);
    context.expect_unchanged(
        [&] { (void)trajectory(context, Table(host, false), updater_of(context, host, attributes), 1); });
  });
}

void check_updater_repeat(Context& context) {
  const Host other = context.subject().host();
  each_set(context, [&](const Attributes& attributes) {
    const auto run = [&](const Host& host) {
      return trajectory(context, Table(host, false), updater_of(context, host, attributes), 4);
    };
    const Numbers first = run(context.host(1, false));
    context.expect(identical(first, run(context.host(1, false))), "a second updater gives other parameters");
    context.expect(identical(first, run(other)), "a second host gives other parameters");
  });
}

void check_updater_threads(Context& context) {
  each_set(context, [&](const Attributes& attributes) {
    const auto run = [&](int threads) {
      const Host& host = context.host(threads, false);
      return trajectory(context, Table(host, false), updater_of(context, host, attributes), 4);
    };
    const Numbers one = run(1);
    for (const int threads : {2, 3, 8})
      context.expect(identical(one, run(threads)), std::to_string(threads) + " threads give other parameters than one");
  });
}

void check_updater_rows(Context& context) {
  each_set(context, [&](const Attributes& attributes) {
    const Host& host = context.host(1, false);
    const Table dense(host, false), rows(host, true);
    const Numbers expected = trajectory(context, dense, updater_of(context, host, attributes), 4);
    Numbers got;
    try {
      got = trajectory(context, rows, updater_of(context, host, attributes), 4);
    } catch (const Error& error) {
      if (error.code() != TN_UNSUPPORTED && error.code() != TN_INVALID) throw;
      throw Skip(std::string("row-sparse gradients are refused: ") + error.what());
    }
    for (size_t i = 0; i < got.size(); ++i)
      context.expect(std::abs(got[i] - expected[i]) <= 1e-5 * std::max(1.0, std::abs(expected[i])),
                     "element " + std::to_string(i % (kHeight * kWidth)) + " after update " +
                         std::to_string(i / (kHeight * kWidth) + 1) + " is " + shown(got[i]) + " by rows and " +
                         shown(expected[i]) + " by the dense gradient, with every row read");
    const Numbers before = rows.values();
    (void)trajectory(context, rows, updater_of(context, host, attributes), 2, 1, false);
    const Numbers after = rows.values();
    for (size_t i = 0; i < after.size(); ++i)
      context.expect(i / kWidth % 2 == 0 || identical({before[i]}, {after[i]}),
                     "row " + std::to_string(i / kWidth) + ", which was not read, has changed");
  });
}

void check_updater_numbers(Context& context) {
  each_set(context, [&](const Attributes& attributes) {
    const Host& host = context.host(1, false);
    for (const auto& [scale, what] :
         {std::pair{0.0, "gradients of 0"}, std::pair{1e-20, "tiny gradients"}, std::pair{1e8, "gradients of 1e8"}})
      expect_finite(context, trajectory(context, Table(host, false), updater_of(context, host, attributes), 3, scale),
                    what);
  });
}

void check_state(Context& context) {
  const Host second = context.subject().host();
  each_set(context, [&](const Attributes& attributes) {
    const base::TemporaryFolder folder;
    const Host& host = context.host(1, false);
    const Table table(host, false), again(second, false);
    const Updater updater = updater_of(context, host, attributes), resumed = updater_of(context, second, attributes);
    (void)trajectory(context, table, updater, 3);
    UpdaterState(updater, table.parameters()).save(folder.file("state"));
    again.set(table.values());
    UpdaterState(resumed, again.parameters()).load(folder.file("state"));
    context.expect(identical(trajectory(context, table, updater, 3), trajectory(context, again, resumed, 3)),
                   "updates after loading the state differ from those without the interruption");
  });
}

void check_updater_memory(Context& context) {
  each_set(context, [&](const Attributes& attributes) {
    Refusing refusing;
    const Host host = context.subject().host({1, false, refusing.table()});
    refusing.refuse_each(context, 24, [&] {
      const Table table(host, false);
      (void)trajectory(context, table, updater_of(context, host, attributes), 1);
    });
  });
}

void check_updater_own_allocations(Context& context) {
  each_set(context, [&](const Attributes& attributes) {
    refuse_own_allocations(context, [&] {
      (void)updater_of(context, context.host(1, false), attributes);
      return std::string();
    });
  });
}

void check_updater_in(Context& context, const OtherHosts& hosts) {
  each_set(context, [&](const Attributes& attributes) {
    hosts.expect_work([&](const Host& host) {
      return bytes_of(trajectory(context, Table(host, false), updater_of(context, host, attributes), 2));
    });
  });
}

}  // namespace

const std::vector<Check>& updater_checks() {
  static const std::vector<Check> checks = {
      {"step", "updates succeed, give finite numbers and change the parameter", check_updater_step},
      {"process", kProcessMeaning, check_updater_process},
      {"repeat", "the same updates give the same bits, by any updater and host", check_updater_repeat},
      {"threads", "1, 2, 3 and 8 threads give the same bits", check_updater_threads},
      {"rows", "row-sparse gradients of all rows update as a dense one; rows not read keep their bits",
       check_updater_rows},
      {"numbers", "gradients of 0, tiny and large ones give finite numbers", check_updater_numbers},
      {"save", "updates after saving and loading the state have the same bits", check_state},
      {"memory", "the host refuses each allocation in turn: a status, and no crash", check_updater_memory},
      {"own memory", "each allocation of the plugin itself is refused in turn: a status, and no crash",
       check_updater_own_allocations},
      newer_host_check<check_updater_in>(),
      older_host_check<check_updater_in>(),
  };
  return checks;
}

}  // namespace tenon::check
