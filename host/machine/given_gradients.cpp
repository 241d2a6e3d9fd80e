// Gradients that the application gives, and those of data layers. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/nearest.h"
#include "core/error.h"
#include "host/machine/machine.h"
#include "host/machine/widening.h"

namespace tenon::host {

namespace {

// Throws TN_INVALID unless an array has the shape of `like`, and its type or one that widens to it. who: what the array
// is the gradient of.
void check_gradient(const std::string& who, const std::string& subject, const ArrayView& array, const ArrayView& like) {
  const bool fits = array.shape == like.shape && (array.dtype == like.dtype || widens(array.dtype, like.dtype));
  if (!fits || array.storage == TN_CSR)
    fail(TN_INVALID, SubjectName{subject}, "the gradient of ", who, ": expected ", dtype_name(like.dtype), " ",
         to_string(like.shape), ", got ", dtype_name(array.dtype), " ", to_string(array.shape));
  const bool empty = std::any_of(like.shape.begin(), like.shape.end(), [](int64_t extent) { return extent == 0; });
  if (array.data == nullptr && !empty) fail(TN_MISUSE, SubjectName{subject}, "the gradient of ", who, ": null data");
}

// Returns the number of the given gradient of an output.
size_t number_of_given(const CompiledModel& model, const LayerOutput& output) {
  const std::string name = output_name(output);
  const ValueId value = value_with_gradient(model.calls->graph(), model.lowered, output);
  const auto found = std::find_if(model.given.begin(), model.given.end(),
                                  [&](const GivenGradient& given) { return given.value == value; });
  if (value == kNoValue || found == model.given.end())
    fail(TN_NOT_FOUND, SubjectName{name}, "layer \"", name, "\" is no output of this machine with a gradient");
  return static_cast<size_t>(found - model.given.begin());
}

// Returns the number of a data layer that has a gradient.
size_t differentiated_feed(const std::vector<Feed>& feeds, const std::string& data_layer, bool has_gradients) {
  std::vector<std::string> names;
  for (const Feed& feed : feeds) names.push_back(feed.name);
  const auto found = std::find(names.begin(), names.end(), data_layer);
  if (found == names.end())
    fail(TN_NOT_FOUND, SubjectName{data_layer}, "there is no data layer \"", data_layer, "\"",
         base::suggestion(data_layer, names));
  if (!has_gradients)
    fail(TN_MISUSE, SubjectName{data_layer}, "this machine was made without gradients of data layers");
  const auto number = static_cast<size_t>(found - names.begin());
  const Feed& feed = feeds[number];
  if (!is_float(feed.spec.dtype) || feed.weights != kNoValue)
    fail(TN_INVALID, SubjectName{data_layer}, "data layer \"", data_layer, "\", ", to_string(feed.spec),
         ", has no gradient: only those of dense or ragged floats have one");
  if (feed.gradient == kNoValue)
    fail(TN_NOT_FOUND, SubjectName{data_layer}, "data layer \"", data_layer,
         "\" has no gradient in this machine: backward begins at nothing that depends on it");
  return number;
}

}  // namespace

void Machine::backward_from(const std::vector<LayerOutput>& outputs, const std::vector<ArrayView>& gradients) {
  check_backward();
  if (!first().options().given_gradients)
    fail(TN_MISUSE, "this machine was made without given gradients; its backward begins with the costs");
  DeviceMachine& machine = first();  // the only one: given gradients are not divided
  const std::vector<GivenGradient>& given = model().given;
  std::vector<const ArrayView*> by_number(given.size(), nullptr);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = output_name(outputs[i]);
    const size_t number = number_of_given(model(), outputs[i]);
    check_gradient("layer \"" + name + "\"", name, gradients[i], machine.described(given[number].gradient));
    if (by_number[number] != nullptr)
      fail(TN_INVALID, SubjectName{name}, "the gradient of layer \"", name, "\" is given twice");
    by_number[number] = &gradients[i];
  }
  if (samples() > 0) {
    for (size_t i = 0; i < by_number.size(); ++i) {
      auto* const to = static_cast<std::byte*>(model().calls->memory(given[i].gradient));
      const ArrayView like = machine.described(given[i].gradient);
      const uint64_t bytes = element_bytes(like);
      if (by_number[i] == nullptr)
        machine.access().zero(to, bytes);
      else
        machine.access().write_by(to, bytes, [&](std::byte* at) { copy_widened(*by_number[i], like.dtype, at); });
    }
  }
  run_backward();
}

void Machine::set_gradient(const std::string& parameter, const ArrayView& values) {
  require_updatable();
  if (!set()->has_values())
    fail(TN_MISUSE, "the machine can only be planned: its parameters have no values, they were only declared");
  step_.set(parameter, values);
}

void StepGradients::set(const std::string& parameter, const ArrayView& values) {
  const ParameterUse& use = parameter_with_gradient(machine_.model().lowered, parameter);
  if (machine_.model().sparse_gradient(use.gradient) != nullptr)
    fail_parameter(TN_INVALID, parameter, "parameter \"", parameter,
                   "\" has a row-sparse gradient; only dense ones can be set");
  if (updated_.contains(parameter))
    fail_parameter(TN_MISUSE, parameter, "parameter \"", parameter,
                   "\" has been updated in this step; end the step first");
  const ArrayView like = machine_.described(use.gradient);
  check_gradient("parameter \"" + parameter + "\"", parameter, values, like);
  if (!exist()) {
    machine_.zero_gradients();
    set_accumulated();
  }
  access().write_by(machine_.model().calls->memory(use.gradient), element_bytes(like),
                    [&](std::byte* to) { copy_widened(values, like.dtype, to); });
}

void StepGradients::set_rows(const std::string& parameter, const RowTerms& rows) {
  const ValueId value = parameter_with_gradient(machine_.model().lowered, parameter).gradient;
  const auto& gradients = machine_.model().sparse_gradients;
  const auto number = std::find_if(gradients.begin(), gradients.end(),
                                   [=](const auto& gradient) { return gradient->value() == value; });
  machine_.take_rows(static_cast<size_t>(number - gradients.begin()), rows.ids, rows.values.data());
  access().wait();
  set_accumulated();
}

ArrayView Machine::data_gradient(const std::string& data_layer) const {
  const size_t feed = differentiated_feed(feeds(), data_layer, first().options().data_gradients);
  if (values_ != Values::kDifferentiated)
    fail(TN_MISUSE, SubjectName{data_layer}, "the gradient of a data layer needs a backward since the last forward");
  return shards_.data_gradient(feed, data_layer);
}

}  // namespace tenon::host
