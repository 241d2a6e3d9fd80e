// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/slot.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace tenon::cli {

using nlohmann::json;

static int32_t storage_of(const std::string& name) {
  return name == "csr" ? TN_CSR : name == "ragged" ? TN_RAGGED : TN_DENSE;
}

Slot slot_of(const json& described) {
  Slot slot;
  slot.name = described.at("name").get<std::string>();
  slot.dtype = described.at("dtype").get<std::string>();
  slot.shape = described.at("shape").get<std::vector<int64_t>>();
  slot.index_limit = described.at("index_limit").get<int64_t>();
  slot.storage = storage_of(described.value("storage", "dense"));
  slot.levels = described.value("levels", 0U);
  return slot;
}

std::string to_string(const Slot& slot) {
  std::string result = slot.storage == TN_CSR ? "sparse " : "";
  if (slot.storage == TN_RAGGED) result = slot.levels == 2 ? "sequences of sequences of " : "sequences of ";
  return result + slot.dtype + " " + base::to_string(slot.shape);
}

std::vector<std::string> names_of(const std::vector<Slot>& slots) {
  std::vector<std::string> result;
  for (const Slot& slot : slots) result.push_back(slot.name);
  return result;
}

}  // namespace tenon::cli
