// Pooling, against its definition. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/image_case.h"

namespace tenon_tests {
namespace {

namespace reference = tenon::check::reference;

struct Case {
  tn_window window;
  int64_t samples = 1, channels = 1;
  int32_t op = TN_POOL_SUM;
  tn_dtype dtype = TN_F32;
};

class PoolTable : public testing::Test {
 protected:
  tn_status prepare(const Case& c, tn_prepared* prepared) {
    tn_pool pool = {};
    pool.size = sizeof pool;
    pool.dtype = c.dtype;
    pool.op = c.op;
    pool.samples = bounded_symbol(TN_SYMBOL_SAMPLES, c.samples);
    pool.channels = c.channels;
    pool.window = &c.window;
    return device_.table<tn_pool_table>(TN_POOL)->prepare(device_.device(), device_.services(), device_.errors(), &pool,
                                                          prepared);
  }

  struct Made {
    std::vector<double> results, positions;
    tn_status status;
  };
  Made run(const Case& c, const std::vector<double>& value, const std::vector<double>& positions, size_t count,
           uint8_t request, int32_t workers, double initial = 0) {
    PreparedCall call(device_);
    EXPECT_EQ(prepare(c, &call.prepared), TN_OK) << device_.message;
    Guarded in = write_all(c.dtype, value), at = write_all(TN_I32, positions);
    Guarded out = write_all(c.dtype, std::vector<double>(count, initial));
    Guarded where = write_all(TN_I32, std::vector<double>(count, -7));
    std::vector<Guarded*> inputs{&in}, outputs{&out};
    std::vector<uint8_t> requests{request};
    if (c.op == TN_POOL_SCATTER || c.op == TN_POOL_TAKE) inputs.push_back(&at);
    if (c.op == TN_POOL_MAX) outputs.push_back(&where), requests.push_back(TN_REQUEST_WRITE);
    const tn_status status = call.run(inputs, outputs, requests, {0, c.samples}, workers);
    EXPECT_TRUE(in.intact() && at.intact() && out.intact() && where.intact());
    return {read_all(c.dtype, out), read_all(TN_I32, where), status};
  }

  void check(const tn_window& window, int64_t samples, int64_t channels) {
    const reference::ImageSizes sizes = {samples, channels, channels, 1};
    const int64_t images = samples * reference::image_elements(window) * channels;
    const int64_t places = samples * reference::place_elements(window) * channels;
    for (const tn_dtype dtype : {TN_F32, TN_F64}) {
      std::vector<double> positions;
      for (const int32_t op : {TN_POOL_SUM, TN_POOL_SPREAD, TN_POOL_MAX, TN_POOL_SCATTER, TN_POOL_TAKE}) {
        SCOPED_TRACE(text(window) + "op " + std::to_string(op));
        const bool spreads = op == TN_POOL_SPREAD || op == TN_POOL_SCATTER;
        std::vector<double> value = drawn(spreads ? places : images, 7);
        for (double& x : value) x = std::round(x * 4) / 4;  // sums are exact, and maxima equal
        const Case c = {window, samples, channels, op, dtype};
        const auto [want, where] = reference::pool(op, window, sizes, value, positions);
        for (const int32_t workers : device_.workers({1, 3})) {
          const Made made = run(c, value, positions, want.size(), TN_REQUEST_WRITE, workers, 99);
          ASSERT_EQ(made.status, TN_OK) << device_.message;
          ASSERT_EQ(made.results, want);
          if (op == TN_POOL_MAX) {
            ASSERT_EQ(made.positions, where);
          }
          std::vector<double> more = want;
          for (double& x : more) x += 2;
          ASSERT_EQ(run(c, value, positions, want.size(), TN_REQUEST_ADD, workers, 2).results, more);
        }
        if (op == TN_POOL_MAX) positions = where;
      }
    }
  }

  DeviceUnderTest device_;
};

TEST_F(PoolTable, EveryOperation) {
  check(window_of({{6, 2, 2}, {6, 2, 2}}), 3, 5);
  check(window_of({{7, 3, 2, 1, 1}, {8, 3, 2, 1, 0}}), 2, 70);
  check(window_of({{5, 5}}), 2, 3);
  check(window_of({{9, 2, 4}}), 2, 1);
  check(window_of({{3, 5, 1, 2, 2}}), 2, 4);
  check(window_of({{4, 2}, {3, 2, 1, 1, 0}, {5, 2, 3, 0, 1, 2}}), 2, 3);
  check(window_of({{40, 3, 1, 1, 1}, {40, 3, 1, 1, 1}}), 2, 33);
  check(window_of({{4, 2}}), 0, 3);
}

// The first NaN of a window is its maximum; infinities are numbers.
TEST_F(PoolTable, NotFinite) {
  const Case c = {window_of({{6, 3, 3}}), 1, 1, TN_POOL_MAX};
  const Made made = run(c, {1, NAN, NAN, -INFINITY, -INFINITY, -INFINITY}, {}, 2, TN_REQUEST_WRITE, 1);
  EXPECT_TRUE(std::isnan(made.results[0]));
  EXPECT_EQ(made.results[1], -INFINITY);
  EXPECT_EQ(made.positions, (std::vector<double>{1, 3}));
}

// Positions without the maxima.
TEST_F(PoolTable, PositionsAlone) {
  const Case c = {window_of({{6, 3, 3}}), 1, 1, TN_POOL_MAX};
  const Made made = run(c, {1, 3, 2, 5, 4, 5}, {}, 2, TN_REQUEST_NONE, 1, 9);
  EXPECT_EQ(made.status, TN_OK);
  EXPECT_EQ(made.results, (std::vector<double>{9, 9}));
  EXPECT_EQ(made.positions, (std::vector<double>{1, 3}));
}

// A position need not lie in the window of its place: here mixed, all before the windows, and all after them.
TEST_F(PoolTable, PositionsAnywhere) {
  const tn_window window = window_of({{5, 2, 2, 1, 0}, {4, 2, 1, 1, 1}});
  const reference::ImageSizes sizes = {2, 3, 3, 1};
  const auto places = static_cast<size_t>(2 * reference::place_elements(window) * 3);
  std::vector<double> mixed;
  for (size_t i = 0; i < places; ++i) mixed.push_back(static_cast<double>(i * i % 20));
  for (const std::vector<double>& positions : {mixed, std::vector<double>(places, 0), std::vector<double>(places, 19)})
    for (const int32_t op : {TN_POOL_TAKE, TN_POOL_SCATTER}) {
      const auto count = op == TN_POOL_TAKE ? 2 * reference::image_elements(window) * 3 : static_cast<int64_t>(places);
      const std::vector<double> value = drawn(count, 7);
      const std::vector<double> want = reference::pool(op, window, sizes, value, positions).first;
      const Made made = run({window, 2, 3, op}, value, positions, want.size(), TN_REQUEST_WRITE, 1);
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(made.results[i], want[i], 1e-5) << "op " << op << " at " << i;
    }
}

TEST_F(PoolTable, RefusesPositionsOutside) {
  for (const int32_t op : {TN_POOL_TAKE, TN_POOL_SCATTER})
    for (const double bad : {-1.0, 4.0}) {
      const Case c = {window_of({{4, 2, 2}}), 1, 1, op};
      const std::vector<double> value(op == TN_POOL_TAKE ? 4 : 2, 1.0);
      EXPECT_EQ(run(c, value, {1, bad}, op == TN_POOL_TAKE ? 2 : 4, TN_REQUEST_WRITE, 1).status, TN_BAD_DATA);
      EXPECT_EQ(device_.message, "position " + std::to_string(static_cast<int>(bad)) +
                                     " of a pooled image is outside of it: it has 4 elements");
    }
}

TEST_F(PoolTable, Refuses) {
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  EXPECT_EQ(prepare({window_of({{4, 2}}), 1, 1, 5}, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(prepare({window_of({{4, 2}}), 1, 1, TN_POOL_SUM, TN_I32}, &prepared), TN_UNSUPPORTED);
  PreparedCall call(device_);
  ASSERT_EQ(prepare({window_of({{4, 2}})}, &call.prepared), TN_OK);
  Guarded in(16), out(12);
  EXPECT_EQ(call.run({&in}, {&out}, {TN_REQUEST_WRITE}, {0, -1}, 1), TN_MISUSE);
  EXPECT_EQ(call.run(std::vector<Guarded*>{nullptr}, {&out}, {TN_REQUEST_WRITE}, {0, 1}, 1), TN_MISUSE);
}

}  // namespace
}  // namespace tenon_tests
