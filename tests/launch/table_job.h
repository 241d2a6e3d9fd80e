// A job with a table, and its data. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon_tests {

inline std::string table_data() {
  std::string data = "item,rating\n";
  for (int i = 0; i < 60; ++i) data += std::to_string(i * 53 % 600) + "," + std::to_string(i % 5) + "\n";
  return data;
}

// 60 samples of data.csv in minibatches of 8. keys: those of the job before its tables, a line each.
inline std::string table_job(const std::string& keys) {
  return keys + R"(seed = 1
threads = 1
save = "model.safetensors"
tables = ["items.weight"]

[[layer]]
name = "vector"
type = "embedding"
inputs = ["item"]
vocabulary = 600
size = 4
parameter_name = "items"

[[layer]]
name = "prediction"
type = "fc"
inputs = ["vector"]
size = 1

[[layer]]
name = "cost"
type = "square_error"
inputs = ["prediction", "rating"]

[reader.train]
type = "csv"
files = ["data.csv"]
columns = ["item:i32<600", "rating"]
batch = 8

[updater]
type = "adam"
learning_rate = 0.1
)";
}

}  // namespace tenon_tests
