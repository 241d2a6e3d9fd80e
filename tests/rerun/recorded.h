// A small job on a table whose rows are read in order, its records, and what a schema asks for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "rerun/verb.h"
#include "tests/host/cli/calls.h"

namespace tenon_tests {

using nlohmann::json;
using tenon::rerun::kDiffers;
using tenon::rerun::run_rerun;
using testing::HasSubstr;
using testing::Not;

class RecordedTest : public CallTest {
 protected:
  static constexpr int kRows = 80, kBatch = 8, kUpdates = kRows / kBatch;  // of a pass

  void SetUp() override {
    CallTest::SetUp();
    write_table("table.csv");
    write("job.toml", table_job());
  }
  // changed: the row of which a digit is another; -1: none.
  void write_table(const std::string& name, int changed = -1) const {
    std::string text = "a,b,y\n";
    for (int i = 0; i < kRows; ++i)
      text += "0." + std::to_string(100 + 7 * i % 800) + ",0." + std::to_string(100 + 13 * i % 800) + ",0." +
              std::to_string(i % 7 + (i == changed ? 2 : 1)) + "\n";
    write(name, text);
  }
  static std::string table_job() {
    return R"(passes = 3
seed = 3
save = "table.safetensors"
updater = { type = "adam", learning_rate = 0.01 }
layer = [{ name = "hidden", type = "fc", inputs = ["x"], size = 4, act = "tanh" },
         { name = "score", type = "fc", inputs = ["hidden"], size = 1 },
         { name = "cost", type = "square_error", inputs = ["score", "y"] }]
[reader.train]
type = "csv"
files = ["table.csv"]
columns = ["x = a, b: f32", "y: f32"]
batch = 8
)";
  }
  static Outcome train(Arguments arguments) {
    arguments.insert(arguments.begin(), "job.toml");
    return done(run_train, arguments);
  }
  [[nodiscard]] json record_of(const std::string& folder) const { return json::parse(read(folder + "/record.json")); }
  void write_record(const std::string& folder, const json& record) const {
    std::filesystem::create_directories(path(folder));
    write(folder + "/record.json", record.dump());
  }
  // Expects that a rerun finds the same model; returns what it prints.
  static std::string same(Arguments arguments) {
    const Outcome outcome = call(run_rerun, arguments);
    EXPECT_EQ(outcome.exit, kDone) << outcome.out << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("the same model: "));
    return outcome.out;
  }
  // Expects that it finds a difference; returns the last line.
  static std::string difference(const Arguments& arguments) {
    const Outcome outcome = call(run_rerun, arguments);
    EXPECT_EQ(outcome.exit, kDiffers) << outcome.out << outcome.error;
    EXPECT_EQ(outcome.error, "");
    return lines_of(outcome.out).back();
  }
};

// Checks values against the part of JSON Schema that docs/record.schema.json uses.
class Schema {
 public:
  explicit Schema(json schema) : schema_(std::move(schema)) {}

  // Returns the first fault, with its place; empty if there is none.
  [[nodiscard]] std::string fault(const json& value) const { return fault(schema_, value, "record"); }

 private:
  static bool is_of(const std::string& type, const json& value) {
    if (type == "integer") return value.is_number_integer();
    return type == (value.is_number() ? "number" : value.type_name());
  }
  [[nodiscard]] std::string fault(const json& rule, const json& value, const std::string& place) const {
    if (rule.contains("$ref"))
      return fault(schema_.at(json::json_pointer(rule.at("$ref").get<std::string>().substr(1))), value, place);
    for (const auto& [word, wanted] : rule.items())
      if (std::string text = fault_of(rule, word, wanted, value, place); !text.empty()) return text;
    return "";
  }
  [[nodiscard]] std::string fault_of(const json& rule, const std::string& word, const json& wanted, const json& value,
                                     const std::string& place) const {
    const std::string wrong = place + ": " + word + " " + wanted.dump() + ", got " + value.dump();
    if (word == "const") return value == wanted ? "" : wrong;
    if (word == "enum") return std::count(wanted.begin(), wanted.end(), value) > 0 ? "" : wrong;
    if (word == "minimum") return value >= wanted ? "" : wrong;
    if (word == "pattern") return std::regex_search(value.get<std::string>(), std::regex(wanted)) ? "" : wrong;
    if (word == "type") {
      const json types = wanted.is_array() ? wanted : json::array({wanted});
      const auto fits = [&](const json& type) { return is_of(type, value); };
      return std::any_of(types.begin(), types.end(), fits) ? "" : wrong;
    }
    if (word == "oneOf") {
      const auto fits = [&](const json& one) { return fault(one, value, place).empty(); };
      return std::count_if(wanted.begin(), wanted.end(), fits) == 1 ? "" : wrong;
    }
    if (word == "items" && value.is_array())
      for (size_t i = 0; i < value.size(); ++i)
        if (std::string text = fault(wanted, value[i], place + "[" + std::to_string(i) + "]"); !text.empty())
          return text;
    if (!value.is_object()) return "";
    if (word == "required")
      for (const json& name : wanted)
        if (!value.contains(name)) return place + ": lacks " + name.dump();
    if (word == "properties")
      for (const auto& [name, part] : wanted.items())
        if (value.contains(name))
          if (std::string text = fault(part, value.at(name), place + "." + name); !text.empty()) return text;
    if (word == "additionalProperties")
      for (const auto& [name, part] : value.items()) {
        if (rule.contains("properties") && rule.at("properties").contains(name)) continue;
        if (wanted == false) return place + ": unknown member " + name;
        if (std::string text = fault(wanted, part, place + "." + name); !text.empty()) return text;
      }
    return "";
  }

  const json schema_;
};

}  // namespace tenon_tests
