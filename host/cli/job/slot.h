// Slots of readers, as the library describes them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::cli {

// A slot of a reader, or a data layer of a model file.
struct Slot {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;  // of one sample; of one row if storage is TN_RAGGED
  int64_t index_limit = -1;
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;
  bool named = false;  // its integers stand for names, numbered like those that the reader was opened with
};

// Reads the description of a reader's slot, or of a data layer in a model file, which omits keys that are not for dense
// layers.
[[nodiscard]] Slot slot_of(const nlohmann::json& described);
// "float32 [3]", "sequences of int64 []", "sparse float32 [1000]"
[[nodiscard]] std::string to_string(const Slot& slot);

[[nodiscard]] std::vector<std::string> names_of(const std::vector<Slot>& slots);

}  // namespace tenon::cli
