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
  bool row_state = false;                    // an input before the scalars
  bool late_state = false;                   // declared after the program
  std::vector<const tn_state*> states = {};  // declared before all others; inputs of the program before the scalars
  bool second_program = false;
};
const Recording* next_recording = nullptr;

struct Recorded {
  static void describe(tn::UpdaterDescription& d) { d.type("recorded", "what a test says"); }
  static void record(tn::UpdateRecorder&) {}
};

tn_status record(const tn_update_recorder* recorder) {
  const tn_state by_row = {sizeof by_row, TN_PER_ROW, {}, TN_F32, 0, "v", 0};
  const tn_state late = {sizeof late, TN_FULL, {}, TN_F32, 0, "late", 0};
  for (const tn_state* state : next_recording->states)
    if (recorder->state(recorder->self, state) < 0) return TN_INVALID;
  if (next_recording->row_state && recorder->state(recorder->self, &by_row) < 0) return TN_INVALID;
  ProgramWriter writer;
  const int32_t parameter = writer.input(TN_FULL), gradient = writer.input(TN_FULL);
  next_recording->body(writer, parameter, gradient);
  const Program program = writer.finish();
  const tn_program view = program.view();
  const tn_update update = {sizeof update,
                            next_recording->grain,
                            &view,
                            next_recording->scalars.data(),
                            static_cast<uint32_t>(next_recording->scalars.size()),
                            0};
  tn_status status = recorder->program(recorder->self, &update);
  if (next_recording->second_program) status = recorder->program(recorder->self, &update);
  if (next_recording->late_state && recorder->state(recorder->self, &late) < 0) return TN_PLUGIN_FAULT;
  return status;
}

// Returns the message of the refusal, or "" if the host accepts the program.
std::string refusal(const Recording& recording, tn_status code) {
  tn_updater_type type = *tn::updater_type<Recorded>();
  type.record = record;
  const tn_updater_type* types[] = {&type};
  tn_plugin plugin = bare_plugin("tenon.test.recorded");
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

// Returns the refusal of an updater whose only state is `state`. record returns TN_INVALID then, which a reported fault
// outranks.
std::string refusal_of(const tn_state* state, tn_status code) {
  Recording recording = {kDescent, {}};
  recording.states = {state};
  return refusal(recording, code);
}

TEST(UpdaterPrograms, HaveStatesThatTheHostKeeps) {
  const auto with_state = [](ProgramWriter& writer, int32_t parameter, int32_t) {
    const int32_t state = writer.input(TN_FULL);
    writer.output(parameter), writer.output(state);
  };
  const tn_state sound = {sizeof sound, TN_FULL, {}, TN_F32, 0, "m", 0.5};
  Recording recording = {with_state, {}};
  recording.states = {&sound};
  EXPECT_EQ(refusal(recording, TN_OK), "");
  const auto says = [](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find("recorded"), std::string::npos) << "names the updater: " << said;
    EXPECT_NE(said.find(part), std::string::npos) << said << "\nexpected: " << part;
  };
  tn_state state = sound;
  for (const uint8_t extent : std::initializer_list<uint8_t>{TN_SCALAR, 4, 200}) {
    state.extent = extent;
    says(refusal_of(&state, TN_INVALID), "state \"m\" has extent " + std::to_string(extent) + "; expected TN_FULL");
  }
  state = sound;
  for (const auto& [dtype, name] : {std::pair(TN_F64, "float64"), {TN_BF16, "bfloat16"}, {TN_COMPUTE, "compute"}}) {
    state.dtype = dtype;
    says(refusal_of(&state, TN_INVALID), std::string("state \"m\" has type ") + name + "; expected float32");
  }
  state = sound;
  for (const char* name : {static_cast<const char*>(nullptr), ""}) {
    state.name = name;
    says(refusal_of(&state, TN_PLUGIN_FAULT), "state 0 has no name");
  }
  state = sound;
  state.size -= 1;  // without all of `initial`
  says(refusal_of(&state, TN_PLUGIN_FAULT), "state 0 is null or too short");
  says(refusal_of(nullptr, TN_PLUGIN_FAULT), "state 0 is null or too short");
  const tn_state other = {sizeof other, TN_FULL, {}, TN_F32, 0, "other", 0};
  recording.states = {&sound, &other, &sound};
  says(refusal(recording, TN_PLUGIN_FAULT), "state \"m\" is declared twice");
}

TEST(UpdaterPrograms, HaveFloatsAsOutputs) {
  const auto logical = [](ProgramWriter& writer, int32_t parameter, int32_t gradient) {
    writer.output(writer.apply(TN_OP_LESS, parameter, gradient));
  };
  const std::string said = refusal({logical, {}}, TN_UNSUPPORTED);
  EXPECT_NE(said.find("program output 0 is no float; expected float32"), std::string::npos) << said;
  tn_state state = {sizeof state, TN_FULL, {}, TN_F32, 0, "Bad Name", 0};
  Recording recording = {kDescent, {}};
  recording.states = {&state};
  EXPECT_NE(refusal(recording, TN_PLUGIN_FAULT).find("lower case letters"), std::string::npos);
  state.name = "m", state.initial = 1e300;
  EXPECT_NE(refusal(recording, TN_PLUGIN_FAULT).find("which float32 does not hold"), std::string::npos);
  state.initial = 0, state.reserved2 = 4;
  EXPECT_NE(refusal(recording, TN_INVALID).find("reserved member of a tn_state is 4"), std::string::npos);
}

TEST(UpdaterPrograms, AreRecordedOnce) {
  Recording recording = {kDescent, {}};
  recording.second_program = true;
  const std::string said = refusal(recording, TN_PLUGIN_FAULT);
  EXPECT_NE(said.find("a second program"), std::string::npos) << said;
}

// The number of the update may be read as an integer, and nothing else.
TEST(UpdaterPrograms, ReadOneIntegerAlone) {
  const auto integer = [](uint8_t extent) {
    return [extent](ProgramWriter& writer, int32_t parameter, int32_t) {
      writer.input(extent, TN_INT);
      writer.output(parameter);
    };
  };
  EXPECT_EQ(refusal({integer(TN_SCALAR), {TN_SCALAR_STEP}}, TN_OK), "");
  const auto says = [](const Recording& recording) {
    const std::string said = refusal(recording, TN_PLUGIN_FAULT);
    EXPECT_NE(said.find("program input 2 has the wrong extent or kind"), std::string::npos) << said;
  };
  says({integer(TN_FULL), {TN_SCALAR_STEP}});
  says({integer(TN_SCALAR), {TN_SCALAR_LEARNING_RATE}});
  says({[](ProgramWriter& writer, int32_t parameter, int32_t) {
          writer.input(TN_SCALAR, TN_LOGICAL);
          writer.output(parameter);
        },
        {TN_SCALAR_STEP}});
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
    for (const uint8_t to : {TN_SCALAR, TN_PER_COLUMN})
      says({mean(to), {}, grain}, "needs the grain of a tensor or matrix");
  says({mean(TN_PER_ROW), {}, TN_GRAIN_ELEMENT}, "needs the grain of a tensor or matrix");
  says({row_state, {}, TN_GRAIN_TENSOR, true}, "states per row need the grain of a row or of a matrix");
  says({row_state, {}, TN_GRAIN_ELEMENT, true}, "states per row need the grain of a row or of a matrix");
  const auto column_state = [](ProgramWriter& writer, int32_t parameter, int32_t) {
    const int32_t state = writer.input(TN_PER_COLUMN);
    writer.output(parameter);
    writer.output(state);
  };
  const tn_state by_column = {sizeof by_column, TN_PER_COLUMN, {}, TN_F32, 0, "c", 0};
  for (const int32_t grain : {TN_GRAIN_ELEMENT, TN_GRAIN_ROW, TN_GRAIN_TENSOR, TN_GRAIN_MATRIX}) {
    Recording recording = {column_state, {}, grain};
    recording.states = {&by_column};
    if (grain == TN_GRAIN_MATRIX)
      EXPECT_EQ(refusal(recording, TN_OK), "");
    else
      says(recording, "states per column need the grain of a matrix");
  }
  for (const uint8_t to : {TN_SCALAR, TN_PER_COLUMN, TN_PER_ROW})
    EXPECT_EQ(refusal({mean(to), {}, TN_GRAIN_MATRIX}, TN_OK), "");
  EXPECT_EQ(refusal({row_state, {}, TN_GRAIN_MATRIX, true}, TN_OK), "");
  says({row_elements, {TN_SCALAR_ROW_ELEMENTS}, TN_GRAIN_ELEMENT}, "needs the grain of a row");
  says({kDescent, {}, TN_GRAIN_MATRIX + 1}, "unknown grain 4");
  says({kDescent, {}, -1}, "unknown grain -1");
  EXPECT_EQ(refusal({mean(TN_PER_ROW), {}, TN_GRAIN_ROW}, TN_OK), "");
  EXPECT_EQ(refusal({mean(TN_SCALAR), {}, TN_GRAIN_TENSOR}, TN_OK), "");
  EXPECT_EQ(refusal({row_state, {}, TN_GRAIN_ROW, true}, TN_OK), "");
}

}  // namespace
}  // namespace tenon_tests
