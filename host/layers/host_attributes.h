// Attributes that every layer has without its plugin knowing:
//   parameter_name                  shares parameters by name; default: the layer's name
//   act                             type of a layer that is applied to the output
//   drop_rate                       probability that an element of the output is dropped, in training
//   param.<suffix>.learning_rate    multiplier of the learning rate for one parameter
//   param.<suffix>.decay            multiplier of the weight decay for one parameter
//   param.<suffix>.sparse           false: its gradient is dense, also where the layer allows rows
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/topology.h"
#include "host/plugins/registry.h"

namespace tenon {

struct HostAttributes {
  std::string act;  // empty: none
  double drop_rate = 0;
};

// Names of those above, but for param.*.
[[nodiscard]] std::vector<std::string> host_attribute_names();

// Sorts the attributes that the user gave: the type's own, checked, become layer.attributes, parameter_name becomes
// layer.parameter_name; of param.* only the names are checked. TN_INVALID names the attribute.
[[nodiscard]] HostAttributes take_attributes(Layer& layer, const LayerDescription& description);

// "param.weight.decay", split.
struct ParameterSetting {
  std::string suffix;
  std::string key;
};
// Nothing where the attribute `name` is not about one parameter.
[[nodiscard]] std::optional<ParameterSetting> parameter_setting(const std::string& name);
// Applies param.* to the parameters that the layer's plan declared. TN_INVALID names the attribute.
void apply_settings(Layer& layer);

}  // namespace tenon
