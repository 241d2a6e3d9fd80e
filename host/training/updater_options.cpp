// SPDX-License-Identifier: Apache-2.0
#include "host/training/updater_options.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "core/error.h"

namespace tenon::host {

namespace {

constexpr const char* kSchedule = "schedule.";

double take_number(Values& attributes, const std::string& name, double otherwise, double least) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return otherwise;
  double number = NAN;
  if (const auto* f = std::get_if<double>(&found->second)) number = *f;
  if (const auto* i = std::get_if<int64_t>(&found->second)) number = static_cast<double>(*i);
  if (!std::isfinite(number) || number < least)
    fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": expected a number of at least ", least, ", got ",
         shown(found->second));
  attributes.erase(found);
  return number;
}

Schedule take_schedule(Values& attributes) {
  const std::map<std::string, Schedule::Kind> kinds = {{"constant", Schedule::Kind::kConstant},
                                                       {"step", Schedule::Kind::kStep},
                                                       {"exponential", Schedule::Kind::kExponential},
                                                       {"polynomial", Schedule::Kind::kPolynomial},
                                                       {"cosine", Schedule::Kind::kCosine}};
  Schedule schedule;
  const std::string name = std::string(kSchedule) + "type";
  if (const auto found = attributes.find(name); found != attributes.end()) {
    const auto* text = std::get_if<std::string>(&found->second);
    const auto kind = text == nullptr ? kinds.end() : kinds.find(*text);
    std::vector<std::string> known;
    for (const auto& [each, value] : kinds) known.push_back(each);
    if (kind == kinds.end())
      fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": unknown schedule ", shown(found->second),
           suggestion(text == nullptr ? "" : *text, known));
    schedule.kind = kind->second;
    attributes.erase(found);
  }
  const auto take = [&](const char* key, double otherwise, double least) {
    return take_number(attributes, kSchedule + std::string(key), otherwise, least);
  };
  schedule.steps = take("steps", 0, 1);
  schedule.rate = take("rate", 0.1, 0);
  schedule.power = take("power", 1, 0);
  schedule.end = take("end", 0, 0);
  schedule.warm_up = take("warm_up", 0, 0);
  if (schedule.kind != Schedule::Kind::kConstant && schedule.steps == 0)
    fail(TN_INVALID, SubjectName{"schedule.steps"},
         "attribute \"schedule.steps\" is missing: this schedule needs a number of steps");
  return schedule;
}

}  // namespace

double Schedule::factor(uint64_t step) const {
  const auto t = static_cast<double>(step);
  if (t <= warm_up) return t / warm_up;
  const double u = t - warm_up;
  const double v = kind == Kind::kConstant ? 0 : std::min(u / steps, 1.0);
  switch (kind) {
    case Kind::kConstant:
      return 1;
    case Kind::kStep:
      return std::pow(rate, std::floor(u / steps));
    case Kind::kExponential:
      return std::pow(rate, u / steps);
    case Kind::kPolynomial:
      return end + (1 - end) * std::pow(1 - v, power);
    case Kind::kCosine:
      return end + (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * v));
  }
  return 1;
}

UpdaterOptions UpdaterOptions::take(Values& attributes) {
  UpdaterOptions options;
  options.schedule = take_schedule(attributes);
  options.clip_norm = take_number(attributes, "clip_norm", 0, 0);
  options.clip_value = take_number(attributes, "clip_value", 0, 0);
  options.l1 = take_number(attributes, "l1", 0, 0);
  options.l2 = take_number(attributes, "l2", 0, 0);
  return options;
}

std::vector<std::string> UpdaterOptions::names() {
  return {"clip_norm",
          "clip_value",
          "l1",
          "l2",
          "schedule.type",
          "schedule.steps",
          "schedule.rate",
          "schedule.power",
          "schedule.end",
          "schedule.warm_up"};
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
  for (const tn_program_output& output : program.outputs)
    writer.output(values[static_cast<size_t>(output.value)], output.dtype);
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
