// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduling.h"

#include <string_view>

#include "cluster/access.h"

namespace tenon::cluster {

namespace {

constexpr size_t kLongestValue = 63;
constexpr std::string_view kLabelLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";

// Returns the toleration of "KEY[=VALUE][:EFFECT]", of a taint as kubectl writes it.
json toleration_of(const std::string& text, const cli::Options& options) {
  const size_t colon = text.rfind(':');
  const std::string taint = text.substr(0, colon), effect = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool has_value = taint.find('=') != std::string::npos;
  const auto [key, value] = label_of(has_value ? taint : taint + "=", "--toleration", options);
  if (colon != std::string::npos && effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute")
    options.fail("--toleration: expected NoSchedule, PreferNoSchedule or NoExecute behind \":\", got \"" + text + "\"");
  json toleration = {{"key", key}, {"operator", has_value ? "Equal" : "Exists"}};
  if (has_value) toleration["value"] = value;
  if (!effect.empty()) toleration["effect"] = effect;
  return toleration;
}

}  // namespace

std::pair<std::string, std::string> label_of(const std::string& text, const std::string& option,
                                             const cli::Options& options) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) options.fail(option + ": expected KEY=VALUE, got \"" + text + "\"");
  const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
  if ((key + value).find_first_not_of(kLabelLetters) != std::string::npos || value.size() > kLongestValue)
    options.fail(option + ": expected letters, digits, -, _ and ., got \"" + text + "\"");
  return {key, value};
}

Scheduling scheduling_of(const cli::ClusterArguments& cluster, const cli::Options& options) {
  Scheduling result;
  for (const std::string& name : cluster.pull_secrets) {
    check_name(name, "--pull-secret");
    result.pull_secrets.push_back(name);
  }
  for (const std::string& text : cluster.node_selectors)
    result.selector.insert(label_of(text, "--node-selector", options));
  for (const std::string& text : cluster.tolerations) result.tolerations.push_back(toleration_of(text, options));
  return result;
}

}  // namespace tenon::cluster
