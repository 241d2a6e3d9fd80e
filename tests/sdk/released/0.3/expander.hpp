/* Tenon SDK for C++17: layers that take the place of a layer. SPDX-License-Identifier: MIT */
#ifndef TENON_EXPANDER_HPP
#define TENON_EXPANDER_HPP

#include <tenon/layer.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <tenon/attribute.hpp>
#include <tenon/base.hpp>
#include <vector>

namespace tn {

// An attribute of a layer inside an expansion: {"size", int_value(10)}.
struct Setting {
  const char* name;
  tn_value value;
};

class Expander {
 public:
  explicit Expander(const tn_expander& expander) : expander_(expander) {}

  Attributes attributes() const { return Attributes(expander_.attributes); }
  uint32_t inputs_count() const { return expander_.inputs_count; }
  Spec spec(uint32_t i) const {
    if (!has_input(i))
      throw std::invalid_argument("expand asks for input " + std::to_string(i) + ", which is not there");
    return Spec(*expander_.inputs[i]);
  }
  // False for an optional input that is not connected.
  bool has_input(uint32_t i) const { return i < expander_.inputs_count && expander_.inputs[i] != nullptr; }
  tn_ref input(uint32_t i) { return made(expander_.input(expander_.self, i)); }
  // Adds a layer; returns its first output. suffix: appended to its parameter name after a dot; null: none.
  tn_ref layer(const char* type, std::initializer_list<tn_ref> inputs, std::initializer_list<Setting> settings = {},
               const char* suffix = nullptr) {
    return layer(type, std::vector<tn_ref>(inputs), std::vector<Setting>(settings), suffix);
  }
  tn_ref layer(const char* type, const std::vector<tn_ref>& inputs, const std::vector<Setting>& settings,
               const char* suffix = nullptr) {
    std::vector<const char*> names;
    std::vector<tn_value> values;
    for (const Setting& setting : settings) {
      names.push_back(setting.name);
      values.push_back(setting.value);
    }
    tn_expansion_layer layer = {};
    layer.size = sizeof layer;
    layer.inputs_count = static_cast<uint32_t>(inputs.size());
    layer.type = type;
    layer.suffix = suffix;
    layer.inputs = inputs.data();
    layer.attributes_count = static_cast<uint32_t>(names.size());
    layer.attribute_names = names.data();
    layer.attribute_values = values.data();
    return made(expander_.layer(expander_.self, &layer));
  }
  // Output `number` of an added layer, given its first output.
  tn_ref output_of(tn_ref first, uint32_t number) { return made(expander_.output_of(expander_.self, first, number)); }
  void output(uint32_t port, tn_ref value) { check(expander_.output(expander_.self, port, value)); }

 protected:
  static tn_ref made(tn_ref ref) {
    if (ref < 0) throw Reported(TN_INVALID);  // the host reported the reason
    return ref;
  }

 private:
  const tn_expander& expander_;
};

}  // namespace tn
#endif
