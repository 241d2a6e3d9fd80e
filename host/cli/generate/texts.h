// The texts that ids stand for, of `tenon generate`. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::cli {

// The texts that ids stand for: names of a data layer, or numbers if it has none.
class Texts {
 public:
  // separator: between the names in a text.
  Texts(const Parameters& parameters, std::string layer, std::string separator);

  // Returns the id of a name, -1 for "". option: for the message.
  [[nodiscard]] int64_t id(const std::string& option, const std::string& name) const;
  // Cuts a prompt at the separator or, without one, into the longest names.
  [[nodiscard]] std::vector<int64_t> ids(const std::string& prompt) const;
  // Returns the text of an id, which control characters do not leave. first: of the text.
  [[nodiscard]] std::string text(int64_t id, bool first) const;

 private:
  [[nodiscard]] size_t longest_at(const std::string& prompt, size_t at) const;

  std::string layer_, separator_;
  std::vector<std::string> names_;
  std::map<std::string, int64_t> ids_;
  size_t longest_ = 1;
};

// Prompts as ids, concatenated.
struct Prompts {
  std::vector<int64_t> ids, ends{0};

  Prompts(const Texts& texts, const std::vector<std::string>& prompts);
  [[nodiscard]] Feed feed(const std::string& layer) const;
  // The text of a prompt with the ids of a result after it, without end_id.
  [[nodiscard]] std::string text(const Texts& texts, size_t prompt, const std::vector<int64_t>& more,
                                 int64_t end_id) const;
};

}  // namespace tenon::cli
