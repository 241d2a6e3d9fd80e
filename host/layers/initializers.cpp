// SPDX-License-Identifier: Apache-2.0
#include "host/layers/initializers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "host/layers/host_attributes.h"

namespace tenon::host {

namespace {

constexpr const char* kInit = "init";
constexpr const char* kValue = "init_value";
constexpr const char* kLow = "init_low";
constexpr const char* kHigh = "init_high";
constexpr const char* kMean = "init_mean";
constexpr const char* kStd = "init_std";
constexpr const char* kGain = "init_gain";
constexpr std::array kNumbers{kValue, kLow, kHigh, kMean, kStd, kGain};

// The attributes of one parameter.
class Stated {
 public:
  Stated(const Values& given, std::string suffix, const Shape& shape)
      : given_(given), suffix_(std::move(suffix)), shape_(shape) {}

  [[nodiscard]] const Value* find(const char* key) const {
    const auto found = given_.find(name(key));
    return found == given_.end() ? nullptr : &found->second;
  }

  template <typename... Parts>
  [[noreturn]] void bad(const char* key, const Parts&... parts) const {
    fail(TN_INVALID, SubjectName{name(key)}, "attribute \"", name(key), "\": ", parts...);
  }

  // A number that float32, the type of stored values, can hold.
  [[nodiscard]] double number(const char* key, std::optional<double> otherwise = {}) const {
    const Value* const value = find(key);
    if (value == nullptr && !otherwise) bad(kInit, shown(*find(kInit)), " needs \"", name(key), "\"");
    if (value == nullptr) return *otherwise;
    double number = 0;
    if (const auto* f = std::get_if<double>(value))
      number = *f;
    else if (const auto* i = std::get_if<int64_t>(value))
      number = static_cast<double>(*i);
    else
      bad(key, "expected a number, got ", shown(*value));
    if (!(std::abs(number) <= std::numeric_limits<float>::max())) bad(key, number, " is not a finite float32");
    return number;
  }
  [[nodiscard]] double at_least_0(const char* key, std::optional<double> otherwise = {}) const {
    const double result = number(key, otherwise);
    if (result < 0) bad(key, result, " is negative");
    return result;
  }
  [[nodiscard]] double gain(double otherwise) const { return at_least_0(kGain, otherwise); }

  // Rows and columns of the parameter, [fan_in, fan_out].
  [[nodiscard]] double fan_in() const { return fan(0); }
  [[nodiscard]] double fan_sum() const { return fan(0) + fan(1); }

 private:
  [[nodiscard]] double fan(size_t dimension) const {
    if (shape_.size() != 2 || shape_[0].offset < 1 || shape_[1].offset < 1)
      bad(kInit, shown(*find(kInit)), " needs a matrix [inputs, outputs], and the parameter is ", to_string(shape_));
    return static_cast<double>(shape_[dimension].offset);
  }
  [[nodiscard]] std::string name(const char* key) const { return setting_name({suffix_, key}); }

  const Values& given_;
  const std::string suffix_;
  const Shape& shape_;
};

tn_initializer uniform_within(double limit) { return {TN_INIT_UNIFORM, 0, -limit, limit}; }
tn_initializer normal_around_0(double deviation) { return {TN_INIT_NORMAL, 0, 0, deviation}; }

tn_initializer constant(const Stated& stated) { return {TN_INIT_CONSTANT, 0, stated.number(kValue), 0}; }
tn_initializer uniform(const Stated& stated) {
  const double low = stated.number(kLow), high = stated.number(kHigh);
  if (low > high) stated.bad(kLow, low, " is above init_high, which is ", high);
  return {TN_INIT_UNIFORM, 0, low, high};
}
tn_initializer normal(const Stated& stated) {
  return {TN_INIT_NORMAL, 0, stated.number(kMean, 0), stated.at_least_0(kStd)};
}
// X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
tn_initializer xavier_uniform(const Stated& stated) {
  return uniform_within(stated.gain(1) * std::sqrt(6 / stated.fan_sum()));
}
tn_initializer xavier_normal(const Stated& stated) {
  return normal_around_0(stated.gain(1) * std::sqrt(2 / stated.fan_sum()));
}
// K. He et al., "Delving deep into rectifiers", 2015.
tn_initializer kaiming_uniform(const Stated& stated) {
  return uniform_within(stated.gain(std::numbers::sqrt2) * std::sqrt(3 / stated.fan_in()));
}
tn_initializer kaiming_normal(const Stated& stated) {
  return normal_around_0(stated.gain(std::numbers::sqrt2) / std::sqrt(stated.fan_in()));
}

struct Rule {
  const char* name;
  const char* keys[2];  // of its numbers; null: none
  tn_initializer (*make)(const Stated& stated);
};
constexpr Rule kRules[] = {{"constant", {kValue, nullptr}, constant},
                           {"uniform", {kLow, kHigh}, uniform},
                           {"normal", {kMean, kStd}, normal},
                           {"xavier_uniform", {kGain, nullptr}, xavier_uniform},
                           {"xavier_normal", {kGain, nullptr}, xavier_normal},
                           {"kaiming_uniform", {kGain, nullptr}, kaiming_uniform},
                           {"kaiming_normal", {kGain, nullptr}, kaiming_normal}};

const Rule& rule_of(const Stated& stated, const Value& value) {
  std::vector<std::string> names;
  for (const Rule& rule : kRules) names.emplace_back(rule.name);
  const auto* const name = std::get_if<std::string>(&value);
  if (name == nullptr) stated.bad(kInit, "expected the name of an initializer, got ", shown(value));
  const auto found = std::find(names.begin(), names.end(), *name);
  if (found == names.end()) stated.bad(kInit, "unknown initializer \"", *name, "\"", suggestion(*name, names));
  return kRules[static_cast<size_t>(found - names.begin())];
}

}  // namespace

std::vector<std::string> initializer_keys() {
  std::vector<std::string> keys{kInit};
  keys.insert(keys.end(), kNumbers.begin(), kNumbers.end());
  return keys;
}

std::optional<tn_initializer> stated_initializer(const Values& given, const std::string& suffix, const Shape& shape) {
  const Stated stated(given, suffix, shape);
  const Value* const init = stated.find(kInit);
  const Rule* const rule = init == nullptr ? nullptr : &rule_of(stated, *init);
  for (const char* key : kNumbers) {
    if (stated.find(key) == nullptr) continue;
    if (rule == nullptr) stated.bad(key, "needs \"", setting_name({suffix, kInit}), "\", which names the initializer");
    if (key != rule->keys[0] && key != rule->keys[1])
      stated.bad(key, "the initializer \"", rule->name, "\" has no such number; it has ", rule->keys[0],
                 rule->keys[1] == nullptr ? "" : text(" and ", rule->keys[1]));
  }
  if (rule == nullptr) return std::nullopt;
  return rule->make(stated);
}

}  // namespace tenon::host
