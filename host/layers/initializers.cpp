// SPDX-License-Identifier: Apache-2.0
#include "host/layers/initializers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/nearest.h"
#include "base/text.h"
#include "core/error.h"
#include "core/initializers/initializers.h"
#include "host/layers/host_attributes.h"

namespace tenon::host {

namespace {

constexpr const char* kInit = "init";
constexpr const char* kValue = "init_value";
constexpr const char* kLow = "init_low";
constexpr const char* kHigh = "init_high";
constexpr const char* kMean = "init_mean";
constexpr const char* kStd = "init_std";
constexpr const char* kBound = "init_bound";
constexpr const char* kGain = "init_gain";
constexpr const char* kNonlinearity = "init_nonlinearity";
constexpr const char* kSlope = "init_slope";
constexpr const char* kMode = "init_mode";
constexpr std::array kKeys{kValue, kLow, kHigh, kMean, kStd, kBound, kGain, kNonlinearity, kSlope, kMode};

constexpr const char* kFanIn = "fan_in";
constexpr const char* kFanOut = "fan_out";
constexpr std::array kFans{kFanIn, kFanOut, "fan_average"};

// The attributes of one parameter.
class Stated {
 public:
  Stated(const Values& given, std::string suffix, const Shape& shape)
      : given_(given), suffix_(std::move(suffix)), shape_(shape) {}

  // Whether there is any; most parameters have none.
  [[nodiscard]] bool any() const {
    const std::string prefix = name("");
    const auto next = given_.lower_bound(prefix);
    return next != given_.end() && next->first.starts_with(prefix);
  }
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
  [[nodiscard]] double gain(double otherwise) const;
  // The number of inputs or outputs, or the mean of both, of a matrix [inputs, outputs].
  [[nodiscard]] double fan(const char* mode) const {
    const double inputs = dimension(0), outputs = dimension(1);
    return mode == kFanIn ? inputs : mode == kFanOut ? outputs : (inputs + outputs) / 2;
  }
  // The one that init_mode names.
  [[nodiscard]] double stated_fan() const { return fan(one_of(kMode, kFans)); }
  // Refuses shapes without a row or a column.
  void check_two_dimensions() const {
    if (shape_.size() < 2)
      bad(kInit, shown(*find(kInit)), " needs at least two dimensions, and the parameter is ", to_string(shape_));
  }

 private:
  // The entry of `names` that `key` states, the first one if it is missing.
  template <size_t N>
  [[nodiscard]] const char* one_of(const char* key, const std::array<const char*, N>& names) const {
    const Value* const value = find(key);
    if (value == nullptr) return names[0];
    const auto* const given = std::get_if<std::string>(value);
    for (const char* name : names)
      if (given != nullptr && *given == name) return name;
    bad(key, "unknown ", shown(*value),
        base::suggestion(given == nullptr ? "" : *given, std::vector<std::string>(names.begin(), names.end())));
  }
  [[nodiscard]] double dimension(size_t number) const {
    if (shape_.size() != 2 || shape_[0].offset < 1 || shape_[1].offset < 1)
      bad(kInit, shown(*find(kInit)), " needs a matrix [inputs, outputs], and the parameter is ", to_string(shape_));
    return static_cast<double>(shape_[number].offset);
  }
  [[nodiscard]] std::string name(const char* key) const { return setting_name({suffix_, key}); }

  const Values& given_;
  const std::string suffix_;
  const Shape& shape_;
};

// The factor that keeps the variance of what passes the nonlinearity, as torch.nn.init.calculate_gain has it.
double Stated::gain(double otherwise) const {
  constexpr const char* kLeaky = "leaky_relu";
  constexpr std::array kNames{"linear", "sigmoid", "tanh", "relu", kLeaky, "selu"};
  constexpr double kGains[] = {1, 1, 5.0 / 3, std::numbers::sqrt2, 0, 0.75};
  if (find(kNonlinearity) == nullptr) {
    if (find(kSlope) != nullptr) bad(kSlope, "is of \"", name(kNonlinearity), "\" = \"", kLeaky, "\" alone");
    return at_least_0(kGain, otherwise);
  }
  if (find(kGain) != nullptr) bad(kGain, "\"", name(kNonlinearity), "\" replaces it");
  const char* const which = one_of(kNonlinearity, kNames);
  if (which == kLeaky) {
    const double slope = number(kSlope, 0.01);
    return std::sqrt(2 / (1 + slope * slope));
  }
  if (find(kSlope) != nullptr) bad(kSlope, "is of \"", name(kNonlinearity), "\" = \"", kLeaky, "\" alone");
  return kGains[std::find(kNames.begin(), kNames.end(), which) - kNames.begin()];
}

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
tn_initializer truncated_normal(const Stated& stated) {
  const double bound = stated.number(kBound, 2);
  if (bound <= 0) stated.bad(kBound, bound, " is not above 0");
  return {kInitTruncatedNormal, 0, stated.at_least_0(kStd), bound};
}
// X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
tn_initializer xavier_uniform(const Stated& stated) {
  return uniform_within(stated.gain(1) * std::sqrt(3 / stated.fan(kFans[2])));
}
tn_initializer xavier_normal(const Stated& stated) {
  return normal_around_0(stated.gain(1) * std::sqrt(1 / stated.fan(kFans[2])));
}
// K. He et al., "Delving deep into rectifiers", 2015.
tn_initializer kaiming_uniform(const Stated& stated) {
  return uniform_within(stated.gain(std::numbers::sqrt2) * std::sqrt(3 / stated.stated_fan()));
}
tn_initializer kaiming_normal(const Stated& stated) {
  return normal_around_0(stated.gain(std::numbers::sqrt2) / std::sqrt(stated.stated_fan()));
}

tn_initializer orthogonal(const Stated& stated) {
  stated.check_two_dimensions();
  return {kInitOrthogonal, 0, stated.gain(1), 0};
}

struct Rule {
  const char* name;
  std::array<const char*, 4> keys;  // null: none
  tn_initializer (*make)(const Stated& stated);
};
constexpr Rule kRules[] = {{"constant", {kValue}, constant},
                           {"uniform", {kLow, kHigh}, uniform},
                           {"normal", {kMean, kStd}, normal},
                           {"truncated_normal", {kStd, kBound}, truncated_normal},
                           {"xavier_uniform", {kGain, kNonlinearity, kSlope}, xavier_uniform},
                           {"xavier_normal", {kGain, kNonlinearity, kSlope}, xavier_normal},
                           {"kaiming_uniform", {kGain, kNonlinearity, kSlope, kMode}, kaiming_uniform},
                           {"kaiming_normal", {kGain, kNonlinearity, kSlope, kMode}, kaiming_normal},
                           {"orthogonal", {kGain, kNonlinearity, kSlope}, orthogonal}};

const Rule& rule_of(const Stated& stated, const Value& value) {
  std::vector<std::string> names;
  for (const Rule& rule : kRules) names.emplace_back(rule.name);
  const auto* const name = std::get_if<std::string>(&value);
  if (name == nullptr) stated.bad(kInit, "expected the name of an initializer, got ", shown(value));
  const auto found = std::find(names.begin(), names.end(), *name);
  if (found == names.end()) stated.bad(kInit, "unknown initializer \"", *name, "\"", base::suggestion(*name, names));
  return kRules[static_cast<size_t>(found - names.begin())];
}

}  // namespace

std::vector<std::string> initializer_keys() {
  std::vector<std::string> keys{kInit};
  keys.insert(keys.end(), kKeys.begin(), kKeys.end());
  return keys;
}

std::optional<tn_initializer> stated_initializer(const Values& given, const std::string& suffix, const Shape& shape) {
  const Stated stated(given, suffix, shape);
  if (!stated.any()) return std::nullopt;
  const Value* const init = stated.find(kInit);
  const Rule* const rule = init == nullptr ? nullptr : &rule_of(stated, *init);
  for (const char* key : kKeys) {
    if (stated.find(key) == nullptr) continue;
    if (rule == nullptr) stated.bad(key, "needs \"", setting_name({suffix, kInit}), "\", which names the initializer");
    if (std::find(rule->keys.begin(), rule->keys.end(), key) != rule->keys.end()) continue;
    std::string known;
    for (const char* each : rule->keys)
      if (each != nullptr) base::append(known, each);
    stated.bad(key, "the initializer \"", rule->name, "\" has no such key; it has ", known);
  }
  if (rule == nullptr) return std::nullopt;
  return rule->make(stated);
}

}  // namespace tenon::host
