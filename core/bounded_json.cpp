// SPDX-License-Identifier: Apache-2.0
#include "core/bounded_json.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/not_copied.h"

namespace tenon::core {

namespace {

// Builds a value from the events of the parser, which ends where one of them returns false. The library's own parser
// with a callback looks at all values of an array whenever an object in it ends.
class BoundedJson : base::NotCopied {
 public:
  explicit BoundedJson(nlohmann::json& root) : root_(root) {}

  bool null() { return add(nullptr) != nullptr; }
  bool boolean(bool value) { return add(value) != nullptr; }
  bool number_integer(int64_t value) { return add(value) != nullptr; }
  bool number_unsigned(uint64_t value) { return add(value) != nullptr; }
  bool number_float(double value, const std::string&) { return add(value) != nullptr; }
  bool string(std::string& value) { return add(std::move(value)) != nullptr; }
  bool binary(nlohmann::json::binary_t&) { return false; }  // not of JSON
  bool start_object(size_t) { return open(nlohmann::json::value_t::object); }
  bool key(std::string& name) {
    name_ = std::move(name);
    return true;
  }
  bool end_object() { return close(); }
  bool start_array(size_t) { return open(nlohmann::json::value_t::array); }
  bool end_array() { return close(); }
  static bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  // Returns the place of the value; null if there are too many.
  template <typename Value>
  nlohmann::json* add(Value&& value) {
    if (++values_ > kMostJsonValues) return nullptr;
    nlohmann::json* const to = open_.empty() ? &root_ : open_.back()->is_array() ? element() : &(*open_.back())[name_];
    *to = nlohmann::json(std::forward<Value>(value));
    return to;
  }
  nlohmann::json* element() { return &open_.back()->emplace_back(nullptr); }
  bool open(nlohmann::json::value_t type) {
    if (open_.size() >= kMostJsonLevels) return false;
    nlohmann::json* const to = add(type);
    if (to != nullptr) open_.push_back(to);
    return to != nullptr;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  nlohmann::json& root_;
  std::vector<nlohmann::json*> open_;  // the arrays and objects around the next value; each is the last of that before
  std::string name_;                   // of the next member of an object
  size_t values_ = 0;
};

}  // namespace

nlohmann::json bounded_json(const std::string& text) {
  nlohmann::json root;
  BoundedJson events(root);
  if (!nlohmann::json::sax_parse(text, &events)) return nlohmann::json::value_t::discarded;
  return root;
}

}  // namespace tenon::core
