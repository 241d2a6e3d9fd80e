// Writes jobs for small tables and trains them, in a folder of its own. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "new_job/verb.h"
#include "tests/host/cli/calls.h"

namespace tenon_tests {

using tenon::new_job::run_new_job;

class NewJobTest : public CallTest {
 protected:
  // Returns numbers that follow from `seed` like random ones, from 0 to below 1.
  static double drawn(uint64_t seed) {
    uint64_t z = (seed + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return static_cast<double>((z ^ z >> 31) >> 11) / 9007199254740992.0;
  }
  // Writes a table of `rows` records; row(i): the text of record i.
  void table(const std::string& name, const std::string& header, int rows,
             const std::function<std::string(uint64_t)>& row) const {
    std::string text = header + "\n";
    for (int i = 0; i < rows; ++i) text += row(static_cast<uint64_t>(i)) + "\n";
    write(name, text);
  }
  // Returns the job that the verb prints.
  static std::string job_of(Arguments arguments) {
    arguments.insert(arguments.end(), {"--output", "-"});
    return done(run_new_job, arguments).out;
  }
  // Writes the job to new.toml and trains it unchanged; returns the value of a metric on the rows held out.
  [[nodiscard]] double trained(Arguments arguments, const std::string& metric) const {
    arguments.insert(arguments.end(), {"--output", "new.toml"});
    const Outcome made = done(run_new_job, arguments);
    EXPECT_THAT(made.out, testing::HasSubstr("next: tenon train new.toml"));
    const Outcome outcome = done(run_train, {"new.toml", "--log-format", "json"});
    double value = -1;
    for (const nlohmann::json& event : parsed(outcome.out))
      if (event["event"] == "test") value = event["test"]["metrics"].value(metric, -1.0);
    EXPECT_TRUE(exists("new.safetensors")) << outcome.error;
    return value;
  }
};

}  // namespace tenon_tests
