// What the pod of the launcher and those who fetch its results leave for each other, in a folder of its temporary
// files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace tenon::launch {

class Handover {
 public:
  // Creates the folder.
  Handover();

  // {"exit", "files"} after the training. Throws std::runtime_error if the disk is full.
  void write(const nlohmann::json& results) const;
  [[nodiscard]] std::optional<nlohmann::json> read() const;

  // Somebody waits for them.
  void hold() const;
  // Returns how long ago somebody has last held them; empty: nobody has.
  [[nodiscard]] std::optional<std::chrono::seconds> held() const;

  // Somebody has them.
  void take() const;
  [[nodiscard]] bool are_taken() const;

 private:
  const std::filesystem::path folder_;
};

}  // namespace tenon::launch
