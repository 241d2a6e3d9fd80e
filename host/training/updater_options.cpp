// SPDX-License-Identifier: Apache-2.0
#include "host/training/updater_options.h"

#include <algorithm>
#include <limits>

namespace tenon::host {

UpdaterOptions UpdaterOptions::take(Values& attributes) {
  UpdaterOptions options;
  options.schedule = Schedule::take(attributes);
  UpdaterAttributes reader(attributes);
  options.clip_norm = reader.number("clip_norm", {}, 0);
  options.clip_value = reader.number("clip_value", {}, 0);
  options.l1 = reader.number("l1", {}, 0);
  options.l2 = reader.number("l2", {}, 0);
  return options;
}

std::vector<std::string> UpdaterOptions::names() {
  std::vector<std::string> names = {"clip_norm", "clip_value", "l1", "l2"};
  for (std::string& name : Schedule::names()) names.push_back(std::move(name));
  return names;
}

Program with_options(const Program& program, const UpdaterOptions& options, size_t states,
                     std::vector<int32_t>& scalars) {
  ProgramWriter writer;
  std::vector<int32_t> inputs;
  for (const tn_program_input& input : program.inputs) inputs.push_back(writer.input(input.extent, input.kind));
  const auto scalar = [&](int32_t which) {
    const auto known = std::find(scalars.begin(), scalars.end(), which);
    if (known != scalars.end()) return inputs[2 + states + static_cast<size_t>(known - scalars.begin())];
    scalars.push_back(which);
    inputs.push_back(writer.input(TN_SCALAR));
    return inputs.back();
  };
  const auto both = [&](uint16_t op, int32_t a, int32_t b) { return writer.apply(op, a, b); };
  // 0 in place of a denormal: a state that decays would become one and stay it, and arithmetic on it is slow.
  const auto settled = [&](int32_t state) {
    const int32_t size = writer.apply(TN_OP_ABS, state);
    const int32_t below = both(TN_OP_LESS, size, writer.constant(std::numeric_limits<float>::min()));
    return writer.apply(TN_OP_SELECT, below, writer.constant(0), state);
  };
  const int32_t parameter = inputs[0];
  int32_t gradient = inputs[1];
  if (options.clip_norm > 0) gradient = both(TN_OP_MUL, gradient, scalar(kScalarClip));
  if (options.clip_value > 0) {
    gradient = both(TN_OP_MIN, gradient, writer.constant(options.clip_value));
    gradient = both(TN_OP_MAX, gradient, writer.constant(-options.clip_value));
  }
  if (options.l1 > 0 || options.l2 > 0) {
    int32_t decay = both(TN_OP_MUL, parameter, writer.constant(options.l2));
    if (options.l1 > 0) {
      const int32_t zero = writer.constant(0);
      const int32_t below =
          writer.apply(TN_OP_SELECT, both(TN_OP_LESS, parameter, zero), writer.constant(-options.l1), zero);
      const int32_t sign =
          writer.apply(TN_OP_SELECT, both(TN_OP_LESS, zero, parameter), writer.constant(options.l1), below);
      decay = options.l2 > 0 ? both(TN_OP_ADD, decay, sign) : sign;
    }
    gradient = both(TN_OP_ADD, gradient, both(TN_OP_MUL, decay, scalar(TN_SCALAR_DECAY_MULTIPLIER)));
  }
  std::vector<int32_t> given(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(program.inputs.size()));
  given[1] = gradient;
  const std::vector<int32_t> values = writer.inline_program(program, given);
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const int32_t value = values[static_cast<size_t>(program.outputs[i].value)];
    writer.output(i == 0 ? value : settled(value), program.outputs[i].dtype);
  }
  return writer.finish();
}

Program sum_of_squares() {
  ProgramWriter writer;
  const int32_t gradient = writer.input(TN_FULL);
  writer.output(writer.reduce(TN_OP_REDUCE_SUM, writer.apply(TN_OP_MUL, gradient, gradient), TN_SCALAR));
  return writer.finish();
}

Program clip_factor(double limit) {
  ProgramWriter writer;
  const int32_t total = writer.reduce(TN_OP_REDUCE_SUM, writer.input(TN_FULL), TN_SCALAR);
  const int32_t share = writer.apply(TN_OP_DIV, writer.constant(limit), writer.apply(TN_OP_SQRT, total));
  writer.output(writer.apply(TN_OP_MIN, writer.constant(1), share));
  return writer.finish();
}

}  // namespace tenon::host
