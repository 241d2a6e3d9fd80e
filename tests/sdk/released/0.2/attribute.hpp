/* Tenon SDK for C++17: declaring and reading attributes. SPDX-License-Identifier: MIT */
#ifndef TENON_ATTRIBUTE_HPP
#define TENON_ATTRIBUTE_HPP

#include <tenon/attribute.h>

#include <tenon/base.hpp>
#include <vector>

namespace tn {

// The declaration of one attribute, made by the functions below: int_attribute("size").required().at_least(1)
// .doc("number of outputs"). Strings are borrowed for ever: give literals.
class Attribute {
 public:
  Attribute() = default;
  Attribute(int32_t kind, const char* name) {
    table_.size = sizeof table_;
    table_.kind = kind;
    table_.name = name;
    table_.doc = "";
  }

  Attribute& required() {
    table_.flags |= TN_ATTR_REQUIRED;
    return *this;
  }
  // Bounds are inclusive; for a list they apply to each entry.
  Attribute& at_least(double minimum) {
    table_.has_range |= 1u;
    table_.minimum = minimum;
    return *this;
  }
  Attribute& at_most(double maximum) {
    table_.has_range |= 2u;
    table_.maximum = maximum;
    return *this;
  }
  // The allowed texts, at most kMostChoices.
  Attribute& one_of(std::initializer_list<const char*> choices) {
    if (choices.size() > kMostChoices) throw std::length_error("an attribute has too many choices");
    uint32_t count = 0;
    for (const char* choice : choices) choices_[count++] = choice;
    choices_[count] = nullptr;
    return *this;
  }
  // One line: meaning, unit.
  Attribute& doc(const char* line) {
    table_.doc = line;
    return *this;
  }
  Attribute& initial(const tn_value& value) {
    table_.initial = value;
    return *this;
  }

  // For C; points into the attribute, which must not be moved afterwards.
  tn_attribute get() const&& = delete;
  tn_attribute get() const& {
    tn_attribute table = table_;
    table.choices = choices_[0] == nullptr ? nullptr : choices_;
    return table;
  }

  static constexpr size_t kMostChoices = 15;

 private:
  tn_attribute table_ = {};
  const char* choices_[kMostChoices + 1] = {};
};

// Values, as a default or for a layer inside an expansion. Texts are borrowed.
inline tn_value bool_value(bool value) {
  tn_value result = {};
  result.kind = TN_ATTR_BOOL;
  result.count = 1;
  result.as.i = value ? 1 : 0;
  return result;
}
inline tn_value int_value(int64_t value) {
  tn_value result = {};
  result.kind = TN_ATTR_INT;
  result.count = 1;
  result.as.i = value;
  return result;
}
inline tn_value float_value(double value) {
  tn_value result = {};
  result.kind = TN_ATTR_FLOAT;
  result.count = 1;
  result.as.f = value;
  return result;
}
inline tn_value string_value(const char* value) {
  tn_value result = {};
  result.kind = TN_ATTR_STRING;
  result.count = 1;
  result.as.s = value;
  return result;
}

// Declarations, with a default, or without one for an attribute that is required or may be absent.
inline Attribute bool_attribute(const char* name) { return {TN_ATTR_BOOL, name}; }
inline Attribute bool_attribute(const char* name, bool initial) {
  return Attribute(TN_ATTR_BOOL, name).initial(bool_value(initial));
}
inline Attribute int_attribute(const char* name) { return {TN_ATTR_INT, name}; }
inline Attribute int_attribute(const char* name, int64_t initial) {
  return Attribute(TN_ATTR_INT, name).initial(int_value(initial));
}
inline Attribute float_attribute(const char* name) { return {TN_ATTR_FLOAT, name}; }
inline Attribute float_attribute(const char* name, double initial) {
  return Attribute(TN_ATTR_FLOAT, name).initial(float_value(initial));
}
inline Attribute string_attribute(const char* name) { return {TN_ATTR_STRING, name}; }
inline Attribute string_attribute(const char* name, const char* initial) {
  return Attribute(TN_ATTR_STRING, name).initial(string_value(initial));
}
inline Attribute ints_attribute(const char* name) { return {TN_ATTR_INTS, name}; }
inline Attribute floats_attribute(const char* name) { return {TN_ATTR_FLOATS, name}; }
inline Attribute strings_attribute(const char* name) { return {TN_ATTR_STRINGS, name}; }

// Values checked by the host. Reading an attribute that is absent, undeclared or of another kind throws tn::Failure,
// TN_PLUGIN_FAULT; has() tells if an optional one is present. Borrowed like the tn_attributes.
class Attributes {
 public:
  explicit Attributes(const tn_attributes* attributes) : attributes_(attributes) {}

  bool has(const char* name) const { return tn_find(attributes_, name) != nullptr; }
  bool flag(const char* name) const { return find(name, TN_ATTR_BOOL).as.i != 0; }
  int64_t integer(const char* name) const { return find(name, TN_ATTR_INT).as.i; }
  double number(const char* name) const { return find(name, TN_ATTR_FLOAT).as.f; }
  const char* text(const char* name) const { return find(name, TN_ATTR_STRING).as.s; }
  std::vector<int64_t> integers(const char* name) const {
    const tn_value& value = find(name, TN_ATTR_INTS);
    return {value.as.ints, value.as.ints + value.count};
  }
  std::vector<double> numbers(const char* name) const {
    const tn_value& value = find(name, TN_ATTR_FLOATS);
    return {value.as.floats, value.as.floats + value.count};
  }
  std::vector<std::string> texts(const char* name) const {
    const tn_value& value = find(name, TN_ATTR_STRINGS);
    return {value.as.strings, value.as.strings + value.count};
  }
  const tn_attributes* get() const { return attributes_; }

 private:
  const tn_value& find(const char* name, int32_t kind) const {
    const tn_value* value = tn_find(attributes_, name);
    if (value == nullptr || value->kind != kind)
      throw Failure(TN_PLUGIN_FAULT, name,
                    "the plugin reads attribute \"" + std::string(name) + "\", which is absent or of another kind");
    return *value;
  }

  const tn_attributes* attributes_;
};

namespace detail {

// Declared attributes with the tables that point to them.
template <uint32_t kCapacity>
class AttributeList {
 public:
  void add(const Attribute& attribute) { tables_.add(attributes_.add(attribute).get()); }
  const tn_attribute* const* data() const { return tables_.data(); }
  uint32_t count() const { return tables_.count(); }

 private:
  List<Attribute, kCapacity> attributes_;
  List<tn_attribute, kCapacity> tables_;
};

}  // namespace detail

}  // namespace tn
#endif
