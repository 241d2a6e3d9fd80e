// The JSON of a note, as its reader needs it: in one array, for notes of dozens of plugins are read at each start.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/not_copied.h"

namespace tenon::host {

class NoteTree : base::NotCopied {
 public:
  enum class Kind : uint8_t { kNull, kBool, kInteger, kUnsigned, kFloat, kText, kList, kObject };
  struct Value {
    Kind kind = Kind::kNull;
    uint32_t parent = 0;    // index of the list or object that holds it; of the root its own
    uint32_t end = 0;       // index behind the values that it holds
    std::string_view key;   // in an object
    std::string_view text;  // of a text
    int64_t integer = 0;    // of a bool, of an integer; of kUnsigned, which is greater than INT64_MAX, its bits
    double number = 0;      // of a float, of an integer
  };

  // Parses untrusted text, which it copies. Throws TN_REFUSED, with the place in the text, if it is longer than
  // TN_NOTE_LIMIT, is no JSON, is nested deeper than 16 or has a key twice.
  explicit NoteTree(const std::string& note);

  [[nodiscard]] const Value& root() const { return values_.front(); }
  // Returns the value of a key of `object`, null if the key is absent.
  [[nodiscard]] const Value* find(const Value& object, std::string_view key) const;
  // Calls visit(value) for each entry of a list or object.
  template <typename Visit>
  void each(const Value& of, const Visit& visit) const {
    for (uint32_t at = index(of) + 1; at < of.end; at = values_[at].end) visit(values_[at]);
  }
  // Returns the place of a value for messages: "$.layers[0].type".
  [[nodiscard]] std::string path(const Value& value) const;
  [[nodiscard]] nlohmann::json json(const Value& value) const;

 private:
  friend class NoteParser;
  [[nodiscard]] uint32_t index(const Value& value) const { return static_cast<uint32_t>(&value - values_.data()); }

  std::vector<Value> values_;  // each list and object before the values that it holds
  std::vector<char> texts_;    // of as many bytes as the note from the beginning: views of it stay valid
};

// Returns the name of a value's kind in messages.
[[nodiscard]] const char* type_name(NoteTree::Kind kind);
// Throws TN_REFUSED with a place in the note: "its note at $.id: missing".
[[noreturn]] void refuse_note(const std::string& path, const std::string& reason);

}  // namespace tenon::host
