// SPDX-License-Identifier: Apache-2.0
#include "check/cases/drawn_attributes.h"

#include <tenon/attribute.h>

#include <algorithm>
#include <cmath>

namespace tenon::check {

namespace {

constexpr double kMostBound = 128;  // a bound of an integer beyond is none: a size would take too much memory

// Plausible values of a declared attribute, the default first; null stands for "not given".
std::vector<json> values_of(const json& attribute) {
  std::vector<json> result;
  if (!attribute.value("required", false)) result.emplace_back(nullptr);
  const json choices = attribute.value("choices", json::array());
  const auto bound = [&](const char* key, double otherwise) {
    return attribute.contains(key) && attribute.at(key).is_number() ? attribute.at(key).get<double>() : otherwise;
  };
  const double low = bound("minimum", -1e300), high = bound("maximum", 1e300);
  const auto fits = [&](double value) { return value >= low && value <= high; };
  const auto add_if = [&](bool fit, json value) {
    if (fit && std::find(result.begin(), result.end(), value) == result.end()) result.push_back(std::move(value));
  };
  switch (attribute.at("kind").get<int>()) {
    case TN_ATTR_BOOL:
      for (const bool value : {false, true}) add_if(value != attribute.value("initial", json(nullptr)), value);
      break;
    case TN_ATTR_INT:
      for (const int64_t value : {2, 3, 1, 4, 0, -1, 7}) add_if(fits(static_cast<double>(value)), value);
      for (const double value : {low, high}) add_if(std::abs(value) <= kMostBound, static_cast<int64_t>(value));
      break;
    case TN_ATTR_FLOAT:
      for (const double value : {0.5, 1.0, 2.0, 0.25, 1.5}) add_if(fits(value), value);
      break;
    case TN_ATTR_STRING:
      for (const json& choice : choices) add_if(true, choice);
      break;
    case TN_ATTR_INTS:
      for (const std::vector<int64_t>& list : {std::vector<int64_t>{1}, {2}, {0}, {2, 2}, {1, 2}, {0, 1}, {-1}})
        add_if(std::all_of(list.begin(), list.end(), [&](int64_t i) { return fits(static_cast<double>(i)); }), list);
      break;
    case TN_ATTR_FLOATS:
      for (const std::vector<double>& list : {std::vector<double>{0.5}, {0.5, 1.5}, {0.5, 1.5, 1.0, 0.75}})
        add_if(std::all_of(list.begin(), list.end(), fits), list);
      break;
    default:
      for (const json& choice : choices) add_if(true, json::array({choice}));
      break;
  }
  return result;
}

}  // namespace

std::vector<std::vector<json>> branch_values(const json& schema) {
  std::vector<std::vector<json>> result;
  for (const json& attribute : schema) {
    std::vector<json> values = values_of(attribute);
    const int kind = attribute.at("kind").get<int>();
    const auto is_inside = [&](const json& value) {
      return !value.is_number() ||
             (value != attribute.value("minimum", json()) && value != attribute.value("maximum", json()));
    };
    if (kind == TN_ATTR_INT) values.erase(std::remove_if(values.begin(), values.end(), is_inside), values.end());
    if (kind != TN_ATTR_INT && kind != TN_ATTR_BOOL && kind != TN_ATTR_STRING) values.clear();
    values.erase(std::remove(values.begin(), values.end(), json(nullptr)), values.end());
    values.erase(std::remove(values.begin(), values.end(), attribute.value("initial", json(nullptr))), values.end());
    result.push_back(std::move(values));
  }
  return result;
}

std::vector<json> drawn_attributes(const json& schema, std::mt19937_64& random) {
  std::vector<std::vector<json>> values;
  for (const json& attribute : schema) values.push_back(values_of(attribute));
  for (const auto& list : values)
    if (list.empty()) return {};  // a required text without choices: only its author can give it
  const auto set_of = [&](const std::vector<size_t>& choice) {
    json result = json::object();
    for (size_t i = 0; i < choice.size(); ++i)
      if (!values[i][choice[i]].is_null()) result[schema[i].at("name").get<std::string>()] = values[i][choice[i]];
    return result;
  };
  std::vector<json> result = {set_of(std::vector<size_t>(values.size()))};
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t k = 1; k < values[i].size(); ++k) {
      std::vector<size_t> choice(values.size());
      choice[i] = k;
      result.push_back(set_of(choice));
    }
  for (int drawn = 0; drawn < 24 && !values.empty(); ++drawn) {
    std::vector<size_t> choice;
    for (const auto& list : values) choice.push_back(random() % list.size());
    result.push_back(set_of(choice));
  }
  return result;
}

}  // namespace tenon::check
