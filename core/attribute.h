// Attribute values and their static description, in owning form. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/attribute.h>

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/not_copied.h"

namespace tenon::core {

// An absent value. Its copy constructor is not trivial on purpose: libstdc++ 12 assumes that a variant of only scalars,
// strings and vectors is never valueless, and if a copy of one runs out of memory, it destroys a value that was never
// constructed.
struct Absent {
  Absent() = default;
  Absent(const Absent& /*other*/) noexcept {}                            // NOLINT(modernize-use-equals-default)
  Absent& operator=(const Absent& /*other*/) noexcept { return *this; }  // NOLINT(modernize-use-equals-default)
  bool operator==(const Absent&) const = default;
};

// Absent, bool, int, float, string, or a list of the last three.
using Value = std::variant<Absent, bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                           std::vector<std::string>>;
using Values = std::map<std::string, Value>;  // by attribute name

// Throws TN_INVALID for an unknown kind or a null pointer.
[[nodiscard]] Value value_from(const tn_value& value);
// Returns a view of `value`, which borrows it. Lists of texts also borrow entries that are appended to `strings`.
[[nodiscard]] tn_value view_of(const Value& value, std::vector<std::vector<const char*>>& strings);
[[nodiscard]] nlohmann::json to_json(const Value& value);
// Throws TN_INVALID for null, objects, mixed lists, and texts with a NUL, which plugins would read as the end of the
// text. A list of integers and floats is a list of floats.
[[nodiscard]] Value value_from_json(const nlohmann::json& value);
// Returns a value as text for messages: JSON, "nan" or "inf", cut after 80 bytes.
[[nodiscard]] std::string shown(const Value& value);

// The owning form of tn_attribute, made from a plugin's table or from its manifest.
struct Attribute {
  std::string name;
  std::string doc;
  int32_t kind = 0;
  bool required = false;
  Value initial;
  std::optional<double> minimum;
  std::optional<double> maximum;
  std::vector<std::string> choices;

  static Attribute from(const tn_attribute& attribute);
  bool operator==(const Attribute&) const = default;
};

// Checks `given` against `declared` and fills in defaults; returns the values in the order of `declared`. Errors name
// the attribute, the expected and the actual value; for an unknown name they suggest one. Accepts an int for a float
// and a single value for a list of its kind. word: what the messages call an attribute.
[[nodiscard]] std::vector<Value> resolve(const std::vector<Attribute>& declared, const Values& given,
                                         const char* word = "attribute");

// A tn_attributes over resolved values. Borrows `declared` and `values`. Not movable: the view points into this object.
class AttributesView : base::NotCopied {
 public:
  AttributesView(const std::vector<Attribute>& declared, const std::vector<Value>& values);
  [[nodiscard]] const tn_attributes* get() const { return &view_; }

 private:
  std::vector<tn_attribute> declared_;
  std::vector<const tn_attribute*> pointers_;
  std::vector<tn_value> values_;
  std::vector<std::vector<const char*>> strings_;
  tn_attributes view_ = {};
};

}  // namespace tenon::core
