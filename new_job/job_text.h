// The text of a job file: comments, and values of TOML. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::new_job {

// Returns a text as a value of TOML.
[[nodiscard]] std::string toml_text(const std::string& text);
// Returns texts as an array of TOML.
[[nodiscard]] std::string toml_texts(const std::vector<std::string>& texts);
// Returns a number in a few digits, as comments show it.
[[nodiscard]] std::string shown(double number);
// Returns a number as a value of TOML: a float with all its digits.
[[nodiscard]] std::string toml_number(double number);
// Returns "1 row", "2 rows".
[[nodiscard]] std::string counted(int64_t count, const std::string& one);
// Returns a share in per cent, "12.5 %".
[[nodiscard]] std::string per_cent(int64_t part, int64_t all);

class JobText {
 public:
  // Adds a comment in lines of at most 100 characters. indent: of its lines, in spaces.
  void comment(const std::string& text, size_t indent = 0);
  void line(const std::string& text = "") { text_ += text + "\n"; }
  void key(const std::string& name, const std::string& value) { line(name + " = " + value); }
  // Adds a [[layer]] after an empty line. comment: above it; "": none. attributes: keys and values of TOML.
  void layer(const std::string& comment, const std::string& name, const std::string& type,
             const std::vector<std::string>& inputs,
             const std::vector<std::pair<std::string, std::string>>& attributes = {});
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace tenon::new_job
