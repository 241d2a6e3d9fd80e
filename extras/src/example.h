// tf.train.Example, by the wire format of protocol buffers. SPDX-License-Identifier: Apache-2.0
//
//   Example  { Features features = 1 }
//   Features { map<string, Feature> feature = 1 }: entries { string key = 1; Feature value = 2 }
//   Feature  { oneof: BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3 }
//   lists    { repeated value = 1 }, of numbers packed or not
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "slots.h"

namespace extras {

// The fields of a message, one after the other. Throws Unfit for bytes that are no message.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool next() {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    number_ = tag >> 3;
    wire_ = static_cast<int>(tag & 7);
    if (wire_ == 0)
      value_ = varint();
    else if (wire_ == 1 || wire_ == 5)
      bytes_ = take(wire_ == 1 ? 8 : 4);
    else if (wire_ == 2)
      bytes_ = take(varint());
    else
      throw Unfit{"is not a tf.train.Example: unknown wire type " + std::to_string(wire_)};
    return true;
  }
  // Whether the present field has this number and wire type (0 varint, 2 bytes, 5 four bytes).
  [[nodiscard]] bool is(uint64_t number, int wire) const { return number_ == number && wire_ == wire; }
  [[nodiscard]] uint64_t value() const { return value_; }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }

  // Removes a number in base 128, the lowest 7 bits first, from the begin of the rest.
  uint64_t varint() {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      result |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return result;
    }
    throw Unfit{"is not a tf.train.Example: a number of more than 64 bits"};
  }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) throw Unfit{"is not a tf.train.Example: it ends within a field"};
    const std::string_view result = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return result;
  }
  std::string_view rest_, bytes_;
  uint64_t number_ = 0, value_ = 0;
  int wire_ = 0;
};

// Calls use(name, feature) for each feature; of a name that comes twice the last one counts, as in maps.
template <typename Use>
void each_feature(std::string_view example, const Use& use) {
  for (Fields outer(example); outer.next();) {
    if (!outer.is(1, 2)) continue;
    for (Fields features(outer.bytes()); features.next();) {
      if (!features.is(1, 2)) continue;
      std::string_view name, feature;
      for (Fields entry(features.bytes()); entry.next();) {
        if (entry.is(1, 2)) name = entry.bytes();
        if (entry.is(2, 2)) feature = entry.bytes();
      }
      use(name, feature);
    }
  }
}

enum class FeatureKind { kNone, kBytes, kFloats, kIntegers };

// The kind of a feature, and the bytes of its list.
inline std::pair<FeatureKind, std::string_view> list_of(std::string_view feature) {
  std::pair<FeatureKind, std::string_view> result = {FeatureKind::kNone, {}};
  for (Fields fields(feature); fields.next();)
    for (const uint64_t kind : {1, 2, 3})
      if (fields.is(kind, 2)) result = {static_cast<FeatureKind>(kind), fields.bytes()};
  return result;
}

// Call use(value) for each value of a list.
template <typename Use>
void each_text(std::string_view list, const Use& use) {
  for (Fields fields(list); fields.next();)
    if (fields.is(1, 2)) use(fields.bytes());
}
template <typename Use>
void each_integer(std::string_view list, const Use& use) {
  for (Fields fields(list); fields.next();) {
    if (fields.is(1, 0)) use(static_cast<int64_t>(fields.value()));
    if (!fields.is(1, 2)) continue;
    for (Fields packed(fields.bytes()); !packed.empty();) use(static_cast<int64_t>(packed.varint()));
  }
}
template <typename Use>
void each_float(std::string_view list, const Use& use) {
  const auto number = [](std::string_view bytes) {
    float result = 0;
    std::memcpy(&result, bytes.data(), sizeof result);
    return result;
  };
  for (Fields fields(list); fields.next();) {
    if (fields.is(1, 5)) use(number(fields.bytes()));
    if (!fields.is(1, 2)) continue;
    if (fields.bytes().size() % sizeof(float) != 0) throw Unfit{"is not a tf.train.Example: it ends within a float"};
    for (size_t i = 0; i < fields.bytes().size(); i += sizeof(float)) use(number(fields.bytes().substr(i)));
  }
}

}  // namespace extras
