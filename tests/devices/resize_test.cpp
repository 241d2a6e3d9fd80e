// Resizing, against its definition. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/image_case.h"

namespace tenon_tests {
namespace {

namespace reference = tenon::check::reference;

class ResizeTable : public testing::Test {
 protected:
  tn_status prepare(const tn_resize& how, tn_dtype dtype, int64_t samples, int64_t channels, tn_prepared* prepared) {
    const tn_resize_site site = {sizeof site, dtype, bounded_symbol(TN_SYMBOL_SAMPLES, samples), channels, &how};
    return device_.table<tn_resize_table>(TN_RESIZE)->prepare(device_.device(), device_.services(), device_.errors(),
                                                              &site, prepared);
  }

  void check(tn_resize how, int64_t samples, int64_t channels) {
    for (uint32_t flags = 0; flags < 4; ++flags)
      for (const tn_dtype dtype : {TN_F32, TN_F64}) {
        SCOPED_TRACE(flags);
        how.flags = flags;
        const int64_t* const sizes = (flags & TN_RESIZE_TRANSPOSED) != 0 ? how.to : how.from;
        int64_t count = samples * channels;
        for (int32_t i = 0; i < how.rank; ++i) count *= sizes[i];
        const std::vector<double> value = drawn(count, 9);
        const std::vector<double> want = reference::resize(how, samples, channels, value);
        for (const uint8_t request : {TN_REQUEST_WRITE, TN_REQUEST_ADD})
          for (const int32_t workers : device_.workers({1, 3})) {
            PreparedCall call(device_);
            ASSERT_EQ(prepare(how, dtype, samples, channels, &call.prepared), TN_OK) << device_.message;
            Guarded in = write_all(dtype, value), out = write_all(dtype, std::vector<double>(want.size(), 4));
            ASSERT_EQ(call.run({&in}, {&out}, {request}, {0, samples}, workers), TN_OK) << device_.message;
            EXPECT_TRUE(in.intact() && out.intact());
            const std::vector<double> got = read_all(dtype, out);
            for (size_t i = 0; i < want.size(); ++i)
              ASSERT_NEAR(got[i], want[i] + (request == TN_REQUEST_ADD ? 4 : 0), 1e-5) << i;
          }
      }
  }

  DeviceUnderTest device_;
};

TEST_F(ResizeTable, EveryMap) {
  check({sizeof(tn_resize), 1, {5}, {9}, {5.0 / 9}, {0}, 0, 0}, 2, 3);
  check({sizeof(tn_resize), 2, {4, 6}, {8, 3}, {0.5, 2}, {-0.25, 0.5}, 0, 0}, 3, 5);
  check({sizeof(tn_resize), 3, {2, 3, 2}, {3, 2, 4}, {0.5, 2, 1.0 / 3}, {0, 0, 0}, 0, 0}, 2, 2);
  check({sizeof(tn_resize), 2, {1, 1}, {3, 2}, {1, 1}, {0, -3}, 0, 0}, 2, 1);
  check({sizeof(tn_resize), 1, {5}, {2}, {2.5}, {0}, 0, 0}, 0, 3);
}

TEST_F(ResizeTable, Refuses) {
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  EXPECT_EQ(prepare({sizeof(tn_resize), 1, {5}, {2}, {2.5}, {0}, 4, 0}, TN_F32, 1, 1, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(prepare({sizeof(tn_resize), 1, {5}, {2}, {2.5}, {0}, 0, 0}, TN_I64, 1, 1, &prepared), TN_UNSUPPORTED);
  PreparedCall call(device_);
  ASSERT_EQ(prepare({sizeof(tn_resize), 1, {5}, {2}, {2.5}, {0}, 0, 0}, TN_F32, 1, 1, &call.prepared), TN_OK);
  Guarded in(20), out(8);
  EXPECT_EQ(call.run({&in}, {&out}, {TN_REQUEST_WRITE}, {0, -1}, 1), TN_MISUSE);
}

}  // namespace
}  // namespace tenon_tests
