// Takes the options of the host out of an updater's attributes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/attribute.h"

namespace tenon::host {

using namespace core;

// Reads the attributes whose names begin with `prefix`, and removes each one that it has read. A key is the rest of the
// name. TN_INVALID names the attribute.
class UpdaterAttributes {
 public:
  struct Range {
    double least = 0, most = std::numeric_limits<double>::infinity();
  };

  explicit UpdaterAttributes(Values& attributes, std::string prefix = "")
      : attributes_(attributes), prefix_(std::move(prefix)) {}

  // Each returns `otherwise` if the attribute is missing; without `otherwise`, a missing one is refused.
  double number(const std::string& key, Range range, std::optional<double> otherwise = {});
  int64_t whole(const std::string& key, int64_t least, std::optional<int64_t> otherwise = {});
  bool flag(const std::string& key, bool otherwise);
  std::string choice(const std::string& key, std::span<const char* const> choices, const char* otherwise);

  // Lists are never empty; one entry without a list is a list of one. Missing ones are refused.
  std::vector<int64_t> wholes(const std::string& key);
  std::vector<double> numbers(const std::string& key, double least);
  std::vector<std::string> texts(const std::string& key);

  [[nodiscard]] bool has(const std::string& key) const { return attributes_.contains(prefix_ + key); }
  // The keys that are not read yet.
  [[nodiscard]] std::vector<std::string> rest() const;
  // A reader of the attributes below `key`.
  [[nodiscard]] UpdaterAttributes below(const std::string& key) const {
    return UpdaterAttributes(attributes_, prefix_ + key + ".");
  }

  [[nodiscard]] std::string name(const std::string& key) const { return prefix_ + key; }
  // Throws TN_INVALID: attribute "name": message.
  [[noreturn]] void bad(const std::string& key, const std::string& message) const;

 private:
  [[nodiscard]] std::optional<Value> take(const std::string& key);
  [[nodiscard]] Value required(const std::string& key);

  Values& attributes_;
  std::string prefix_;
};

}  // namespace tenon::host
