// Host attributes, which every layer has and its plugin does not see:
//   parameter_name                  shares parameters by name; default: the layer's name
//   act                             type of a layer that is applied to the output
//   drop_rate                       probability that an element of the output is dropped, in training
//   coefficient                     of a cost: training descends its mean times this number; default: 1
//   param.<suffix>.rate_multiplier  multiplier of the learning rate for one parameter
//   param.<suffix>.decay_multiplier multiplier of the weight decay for one parameter
//   param.<suffix>.init, init_*     first values of one parameter or buffer (host/layers/initializers.h)
//   param.<suffix>.name             the full name of one parameter or buffer; default: <parameter_name>.<suffix>
//   param.<suffix>.sparse           false: its gradient is dense, even if the layer allows a row-sparse one
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/topology.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

struct HostAttributes {
  std::string act;  // empty: none
  double drop_rate = 0;
  std::optional<double> coefficient;
};

inline constexpr const char* kParameterName = "parameter_name";
inline constexpr const char* kNameKey = "name";  // of param.<suffix>.name

// Refuses the name of a layer that is not UTF-8: names are written to model files and messages.
void check_layer_name(const std::string& name);

// Returns the names of the host attributes except param.*.
[[nodiscard]] std::vector<std::string> host_attribute_names();

// Splits the user's attributes in layer.given. Those of the type are checked and become layer.attributes,
// parameter_name becomes layer.parameter_name, and the others are returned. Of param.* only the names are
// checked: apply_settings needs the parameters. TN_INVALID names the attribute.
[[nodiscard]] HostAttributes take_attributes(Layer& layer, const LayerDescription& description);

// The parts of a name such as "param.weight.decay_multiplier": suffix "weight", key "decay_multiplier".
struct ParameterSetting {
  std::string suffix;
  std::string key;
};
// Returns nothing if the attribute `name` is not of that form.
[[nodiscard]] std::optional<ParameterSetting> parameter_setting(const std::string& name);
// The reverse of parameter_setting.
[[nodiscard]] std::string setting_name(const ParameterSetting& setting);
// Returns the full name of the parameter or buffer `suffix` of a layer with the attributes `given`. TN_INVALID names
// the attribute.
[[nodiscard]] std::string full_name(const Values& given, const std::string& parameter_name, const std::string& suffix);
// Returns the attributes with the settings of the parameter `before` as those of `now`.
[[nodiscard]] Values with_renamed_settings(const Values& given, const std::string& before, const std::string& now);
// Whether an attribute of this name is one of the host, param.* included.
[[nodiscard]] bool is_host_attribute(const std::string& name);
// Applies param.* to the parameters and buffers that the layer's plan has declared. TN_INVALID names the attribute.
void apply_settings(Layer& layer);

}  // namespace tenon::host
