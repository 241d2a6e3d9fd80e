// Names in job and model files that were changed. Files of earlier versions keep the old names and are read by these
// tables; whatever is written has the new ones. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/attribute.h"

namespace tenon::host {

using namespace core;

struct Rename {
  const char* before;
  const char* now;
};

// Keys of the host attributes param.<suffix>.<key>.
inline constexpr Rename kParameterKeyRenames[] = {{"learning_rate", "rate_multiplier"}, {"decay", "decay_multiplier"}};

// A former layer type, which is now another type with an attribute.
struct TypeRename {
  const char* before;
  const char* now;
  const char* attribute;
  int64_t value;
};
inline constexpr TypeRename kLayerTypeRenames[] = {
    {"split2", "split", "parts", 2}, {"split3", "split", "parts", 3}, {"split4", "split", "parts", 4}};

// Returns the present name of a layer type.
[[nodiscard]] std::string present_layer_type(const std::string& type);
// Replaces a former layer type by the present one and adds the attribute that the former name stands for. TN_INVALID if
// that is given as well.
void rename_layer_type(std::string& type, Values& attributes);
// The same for all layers of a topology in JSON, which may be malformed. A given attribute remains.
void rename_layer_types(nlohmann::json& topology);

}  // namespace tenon::host
