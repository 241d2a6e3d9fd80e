// The conformance kit in GoogleTest: every failed check becomes a failure of the test. Include it in one test program
// that links Tenon::check and GoogleTest.
//
//   TEST(Swish, KeepsTheRules) { tenon::check::expect_conforming({SWISH_FILE}); }
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_CHECK_GTEST_HPP
#define TENON_CHECK_GTEST_HPP

#include <gtest/gtest.h>

#include <tenon/check.hpp>

namespace tenon::check {

// Runs the checks and adds a failure for each that fails. Returns the report.
inline Report expect_conforming(const Options& options) {
  Report report = run(options);
  for (const Result& result : report.results)
    EXPECT_NE(result.outcome, Outcome::kFailed) << result.kind << " " << result.component << ", check " << result.check
                                                << ": " << result.message << "\n  " << reproduce(report, result);
  EXPECT_GT(report.count(Outcome::kPassed), 0) << report.file << ": no check has passed";
  return report;
}

}  // namespace tenon::check
#endif
