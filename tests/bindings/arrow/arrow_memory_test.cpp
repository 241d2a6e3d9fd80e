// Tables of Arrow where memory is not enough: each struct is released once, and nothing is left.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <tenon/tenon_arrow.hpp>

#include "tests/bindings/arrow/tables.h"
#include "tests/support/failing_calls.h"
#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

// Calls work(), which returns a status, with the first allocation refused, then the second, until it succeeds.
int refusals_of(const std::function<tn_status()>& work, const std::function<void()>& check) {
  for (int64_t first = 0;; ++first) {
    const int64_t before = blocks_held();
    tn_status status = TN_OK;
    {
      const FailingCalls one(Calls::kMemory, first, false);
      status = work();
    }
    if (status == TN_OK) return static_cast<int>(first);
    EXPECT_EQ(status, TN_OUT_OF_MEMORY) << "allocation " << first;
    EXPECT_EQ(blocks_held(), before) << "allocation " << first;
    check();
    if (testing::Test::HasFailure()) return -1;
  }
}

TEST(ArrowMemory, FeedsThatGetNoneTakeNothing) {
  const tenon::Host host(tenon::HostOptions{1, {plugin_folder()}, nullptr, {}});
  tenon::DataOptions options;
  options.name = "x";
  options.dtype = TN_I64;
  options.storage = TN_RAGGED;
  const tenon::Layer words = host.data(options);
  options.name = "kind";
  options.storage = TN_DENSE;
  const tenon::Layer kind = host.data(options);
  const tn_layer outputs[] = {words.handle(), kind.handle()};
  Count count;
  const Node table = structs({lists({0, 1, 3}, numbers<int32_t>("i", {7, 8, 9})).called("x"),
                              categories({0, 1}, {"a category with a long name", "another one"}).called("kind")});
  ArrowSchema schema = schema_of(table, &count);
  ArrowArray batch = array_of(table, &count);
  const tn_arrow_feeds* feeds = nullptr;
  const int refusals =
      refusals_of([&] { return tn_arrow_feeds_create(host.get(), outputs, 2, {}, &schema, &batch, &feeds, nullptr); },
                  [&] {
                    EXPECT_NE(batch.release, nullptr);
                    EXPECT_EQ(feeds, nullptr);
                  });
  EXPECT_GT(refusals, 20);
  schema.release(&schema);
  EXPECT_EQ(count.arrays, 1);  // all feeds are copies
  tn_arrow_feeds_release(feeds);
  EXPECT_EQ(count.alive, 0);
}

TEST(ArrowMemory, AnExportThatGetsNoneLeavesNothing) {
  static int released = 0;
  const std::vector<float> numbers(12, 2);
  const std::vector<int64_t> offsets = {0, 1, 3}, classes = {1, 0};
  const tn_text names[] = {{"no", 2}, {"a name that is longer than a short string", 41}};
  const tn_arrow_column columns[] = {
      {"x", tenon::detail::c_array({TN_F32, {2, 3, 2}, numbers.data()}), nullptr, 0},
      {"words", tenon::detail::c_array(tenon::Array::sequences(TN_F32, {3}, numbers.data(), 2, offsets.data())),
       nullptr, 0},
      {"class", tenon::detail::c_array({TN_I64, {2}, classes.data()}), names, 2}};
  void (*const release)(void*) = [](void*) { ++released; };
  for (const bool lent : {false, true}) {
    ArrowSchema schema = {};
    ArrowArray batch = {};
    released = 0;
    const int64_t before = blocks_held();
    const int refusals = refusals_of(
        [&] { return tn_arrow_export(columns, 3, lent ? release : nullptr, nullptr, &schema, &batch, nullptr); },
        [&] {
          EXPECT_EQ(schema.release, nullptr);
          EXPECT_EQ(batch.release, nullptr);
          EXPECT_EQ(released, 0);
        });
    EXPECT_GT(refusals, 30);
    batch.release(&batch);
    schema.release(&schema);
    EXPECT_EQ(released, lent ? 1 : 0);
    EXPECT_EQ(blocks_held(), before);
  }
}

}  // namespace

}  // namespace tenon_tests
