// Programs that an updater may record, and programs that the host refuses with a reason.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

#include "core/program.h"
#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon::core;
using namespace tenon;

namespace {

// The states, program, scalars and grain that the next updater records.
struct Recording {
  std::function<void(ProgramWriter& writer, int32_t parameter, int32_t gradient)> body;
  std::vector<int32_t> scalars;  // inputs of the program, behind the parameter and the gradient
  int32_t grain = TN_GRAIN_ELEMENT;
  bool row_state = false;   // an input before the scalars
  bool late_state = false;  // declared after the program
};
const Recording* next_recording = nullptr;

struct Recorded {
  static void describe(tn::UpdaterDescription& d) { d.type("recorded", "what a test says"); }
  static void record(tn::UpdateRecorder&) {}
};

tn_status record(const tn_update_recorder* recorder) {
  if (next_recording->row_state && recorder->row_state(recorder->self, "v", 0) < 0) return TN_INVALID;
  ProgramWriter writer;
  const int32_t parameter = writer.input(TN_FULL), gradient = writer.input(TN_FULL);
  next_recording->body(writer, parameter, gradient);
  const Program program = writer.finish();
  const tn_program view = program.view();
  const tn_status status =
      recorder->program(recorder->self, &view, next_recording->scalars.data(),
                        static_cast<uint32_t>(next_recording->scalars.size()), next_recording->grain);
  if (next_recording->late_state && recorder->state(recorder->self, "late", 0) < 0) return TN_PLUGIN_FAULT;
  return status;
}

// Returns the message of the refusal, or "" if the host accepts the program.
std::string refusal(const Recording& recording, tn_status code) {
  tn_updater_type type = *tn::updater_type<Recorded>();
  type.record = record;
  const tn_updater_type* types[] = {&type};
  tn_plugin plugin = bare_plugin("test.recorded");
  plugin.updaters_count = 1;
  plugin.updaters = types;
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  host.add_plugin(&plugin);
  next_recording = &recording;
  try {
    (void)host.updater("recorded", {});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

const auto kDescent = [](ProgramWriter& writer, int32_t parameter, int32_t gradient) {
  writer.output(writer.apply(TN_OP_SUB, parameter, gradient));
};

TEST(UpdaterPrograms, ThatCanRunAreTaken) {
  EXPECT_EQ(refusal({kDescent, {}}, TN_OK), "");
  const auto scaled = [](ProgramWriter& writer, int32_t parameter, int32_t gradient) {
    writer.output(writer.apply(TN_OP_SUB, parameter, writer.apply(TN_OP_MUL, gradient, writer.input(TN_SCALAR))));
  };
  for (const int32_t scalar : {TN_SCALAR_LEARNING_RATE, TN_SCALAR_DECAY_MULTIPLIER})
    EXPECT_EQ(refusal({scaled, {scalar}}, TN_OK), "");
  EXPECT_EQ(refusal({scaled, {TN_SCALAR_ROW_ELEMENTS}, TN_GRAIN_ROW}, TN_OK), "");
}

TEST(UpdaterPrograms, HaveAllTheirStatesBefore) {
  const std::string said = refusal({kDescent, {}, TN_GRAIN_ELEMENT, false, true}, TN_PLUGIN_FAULT);
  EXPECT_NE(said.find("state \"late\" after the program"), std::string::npos) << said;
}

TEST(UpdaterPrograms, ThatDrawAreRefused) {
  for (const uint8_t extent : {TN_FULL, TN_SCALAR}) {
    const auto draws = [extent](ProgramWriter& writer, int32_t parameter, int32_t gradient) {
      writer.output(writer.apply(TN_OP_SUB, parameter, writer.apply(TN_OP_MUL, gradient, writer.uniform(0, extent))));
    };
    const std::string said = refusal({draws, {}, TN_GRAIN_TENSOR}, TN_UNSUPPORTED);
    EXPECT_NE(said.find("recorded"), std::string::npos) << said;
    EXPECT_NE(said.find("draws random numbers"), std::string::npos) << said;
  }
}

TEST(UpdaterPrograms, WithOtherInputsOrOutputsAreRefused) {
  const auto says = [](const Recording& recording, const std::string& part, tn_status code = TN_PLUGIN_FAULT) {
    const std::string said = refusal(recording, code);
    EXPECT_NE(said.find(part), std::string::npos) << said << "\nexpected: " << part;
  };
  says({kDescent, {TN_SCALAR_STEP}}, "has 2 inputs");
  says({[](ProgramWriter& writer, int32_t parameter, int32_t) { writer.output(parameter), writer.output(parameter); },
        {}},
       "has 2 outputs; expected 1");
  const auto with = [](uint8_t extent) {
    return [extent](ProgramWriter& writer, int32_t parameter, int32_t) {
      writer.input(extent);
      writer.output(parameter);
    };
  };
  says({with(TN_FULL), {TN_SCALAR_STEP}}, "input 2 has the wrong extent");
  says({with(TN_SCALAR), {TN_SCALAR_ROW_ELEMENTS + 1}}, "does not offer", TN_UNSUPPORTED);
  says({with(TN_SCALAR), {-1}}, "does not offer", TN_UNSUPPORTED);
  says({[](ProgramWriter& writer, int32_t, int32_t) { writer.output(writer.constant(0)); }, {}},
       "output 0 has the wrong extent");
}

// A program must not read values outside its grain.
TEST(UpdaterPrograms, BeyondTheirGrainAreRefused) {
  const auto mean = [](uint8_t to) {
    return [to](ProgramWriter& writer, int32_t parameter, int32_t gradient) {
      writer.output(writer.apply(TN_OP_SUB, parameter, writer.reduce(TN_OP_REDUCE_SUM, gradient, to)));
    };
  };
  const auto row_state = [](ProgramWriter& writer, int32_t parameter, int32_t) {
    const int32_t state = writer.input(TN_PER_ROW);
    writer.output(parameter);
    writer.output(state);
  };
  const auto row_elements = [](ProgramWriter& writer, int32_t parameter, int32_t) {
    writer.output(writer.apply(TN_OP_MUL, parameter, writer.input(TN_SCALAR)));
  };
  const auto says = [](const Recording& recording, const std::string& part) {
    const std::string said = refusal(recording, TN_PLUGIN_FAULT);
    EXPECT_NE(said.find(part), std::string::npos) << said << "\nexpected: " << part;
  };
  for (const int32_t grain : {TN_GRAIN_ELEMENT, TN_GRAIN_ROW})
    for (const uint8_t to : {TN_SCALAR, TN_PER_COLUMN}) says({mean(to), {}, grain}, "needs the grain of a tensor");
  says({mean(TN_PER_ROW), {}, TN_GRAIN_ELEMENT}, "needs the grain of a tensor");
  says({row_state, {}, TN_GRAIN_TENSOR, true}, "states per row need the grain of a row");
  says({row_state, {}, TN_GRAIN_ELEMENT, true}, "states per row need the grain of a row");
  says({row_elements, {TN_SCALAR_ROW_ELEMENTS}, TN_GRAIN_ELEMENT}, "needs the grain of a row");
  says({kDescent, {}, TN_GRAIN_TENSOR + 1}, "unknown grain 3");
  says({kDescent, {}, -1}, "unknown grain -1");
  EXPECT_EQ(refusal({mean(TN_PER_ROW), {}, TN_GRAIN_ROW}, TN_OK), "");
  EXPECT_EQ(refusal({mean(TN_SCALAR), {}, TN_GRAIN_TENSOR}, TN_OK), "");
  EXPECT_EQ(refusal({row_state, {}, TN_GRAIN_ROW, true}, TN_OK), "");
}

}  // namespace
}  // namespace tenon_tests
