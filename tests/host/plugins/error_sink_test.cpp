// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/error_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/shape.h"
#include "host/plugins/callback.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::HasSubstr;

TEST(ErrorSink, ThrowsWhatWasReportedLast) {
  ErrorSink sink("layer \"hidden\" (fc)");
  tn_fail(sink.get(), TN_INVALID, "size", "must be even");
  tn_fail(sink.get(), TN_INVALID, "size", "must be positive");
  const Error error = error_of([&] { sink.check(TN_UNSUPPORTED); });
  EXPECT_EQ(error.code(), TN_UNSUPPORTED);
  EXPECT_EQ(error.message(), "layer \"hidden\" (fc): size: must be positive");
  EXPECT_EQ(error_of([&] { sink.check(TN_IO); }).message(),
            std::string("layer \"hidden\" (fc): ") + status_text(TN_IO) + ", without a reason");
}

TEST(ErrorSink, FillsTheFields) {
  ErrorSink sink("device \"cpu\"");
  tn_fail(sink.get(), TN_INVALID, "size", "must be even");
  Error error = error_of([&] { sink.check(TN_INVALID); });
  EXPECT_EQ(error.component(), "device \"cpu\"");
  EXPECT_EQ(error.subject(), "size");
  EXPECT_EQ(error_of([&] { sink.check(TN_INVALID); }).subject(), "") << "the subject of the previous report";
  for (const char* none : {static_cast<const char*>(nullptr), ""}) {
    tn_fail(sink.get(), TN_INVALID, none, "no port");
    error = error_of([&] { sink.check(TN_INVALID, "layer \"a\" (gemm)"); });
    EXPECT_EQ(error.message(), "layer \"a\" (gemm): no port");
    EXPECT_EQ(error.component(), "layer \"a\" (gemm)");
    EXPECT_EQ(error.subject(), "");
  }
}

TEST(ErrorSink, KeepsWhatACallbackThrew) {
  ErrorSink sink("layer \"a\" (t)");
  const auto failed = [&](auto work, tn_status code) {
    EXPECT_EQ(guarded(sink, work), code);
    return error_of([&] { sink.check(code); });
  };
  Error error = failed([] { fail(TN_NOT_FOUND, ComponentName{"inner"}, SubjectName{"x"}, "no x"); }, TN_NOT_FOUND);
  EXPECT_EQ(error.message(), "layer \"a\" (t): inner: no x");
  EXPECT_EQ(error.component(), "layer \"a\" (t)");
  EXPECT_EQ(error.subject(), "x");
  // An exception of any other type in a callback is a defect of the host.
  error = failed([] { throw std::runtime_error("odd"); }, TN_INTERNAL);
  EXPECT_EQ(error.message(), "layer \"a\" (t): odd");
  EXPECT_EQ(error.subject(), "");
  (void)failed([] { throw 1; }, TN_INTERNAL);
  (void)failed([] { throw std::bad_alloc(); }, TN_OUT_OF_MEMORY);
}

// A plugin that a callback gives no value, such as a number, cannot know the code of the failure.
TEST(ErrorSink, AFaultInACallbackKeepsItsCode) {
  ErrorSink sink("layer");
  for (const tn_status reported : {TN_OUT_OF_MEMORY, TN_PLUGIN_FAULT}) {
    sink.report(reported, "reported");
    EXPECT_EQ(error_of([&] { sink.check(TN_INVALID); }).code(), reported);
  }
  sink.report(TN_BAD_DATA, "reported");
  EXPECT_EQ(error_of([&] { sink.check(TN_INVALID); }).code(), TN_INVALID);
}

TEST(ErrorSink, SuccessForgetsTheReport) {
  ErrorSink sink("device \"cpu\"");
  tn_fail(sink.get(), TN_INVALID, nullptr, "tried and recovered");
  sink.check(TN_OK);
  EXPECT_THAT(error_of([&] { sink.check(TN_IO); }).message(), HasSubstr("without a reason"));
}

TEST(ErrorSink, ShowsBothShapes) {
  ErrorSink sink("layer");
  const Spec expected{TN_F32, {tn_dim_symbol(TN_SYMBOL_SAMPLES), tn_dim_constant(10)}, TN_DENSE, 0, {}};
  const Spec actual{TN_U8, {tn_dim_constant(3)}, TN_DENSE, 0, {}};
  const tn_spec expected_view = expected.view(), actual_view = actual.view();
  tn_error_report report = {sizeof report, TN_INVALID, "shapes differ", "x", &expected_view, &actual_view};
  const auto message_of = [&] {
    sink.get()->report(sink.get()->self, &report);
    return error_of([&] { sink.check(TN_INVALID); }).message();
  };
  EXPECT_EQ(message_of(), "layer: x: shapes differ (expected float32 [samples, 10], got uint8 [3])");
  report.expected = nullptr;
  EXPECT_EQ(message_of(), "layer: x: shapes differ (got uint8 [3])");
  tn_spec broken = actual_view;
  broken.rank = 1000;
  report.actual = &broken;
  EXPECT_EQ(message_of(), "layer: x: shapes differ (got an invalid specification)");
}

TEST(ErrorSink, AStatusThatIsNoneIsThePluginsFault) {
  ErrorSink sink("reader \"r\"");
  for (const tn_status status : {-1, TN_INTERNAL + 1, 12345}) {
    const Error error = error_of([&] { sink.check(status); });
    EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
    EXPECT_THAT(error.message(), HasSubstr("status " + std::to_string(status)));
  }
}

TEST(ErrorSink, TakesReportsFromManyThreads) {
  ErrorSink sink("layer");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) tn_fail(sink.get(), TN_INVALID, "x", "one of many");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(error_of([&] { sink.check(TN_INVALID); }).message(), "layer: x: one of many");
}

}  // namespace
}  // namespace tenon_tests
