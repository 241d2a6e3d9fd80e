// A training that is compared with a record while it runs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/recorder.h"

namespace tenon::record {

class Comparison : public Recorder {
 public:
  // before: the record, borrowed. goes_on: also with other versions or another arithmetic.
  Comparison(Surroundings surroundings, const nlohmann::json& before, bool goes_on);

  // What differs first; empty: nothing so far.
  [[nodiscard]] const std::string& difference() const { return difference_; }
  // What differs, but need not have an effect.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }
  [[nodiscard]] int64_t updates() const { return updates_; }
  [[nodiscard]] int64_t compared() const { return compared_; }

 protected:
  void begun(const RecordedEvent& event) override;
  [[nodiscard]] bool is_due(const RunPlace& place) override;
  void take(nlohmann::json digest) override;
  void reached(Happening /*what*/) override {}
  void ended() override;

 private:
  // Ends the training, unless the text is empty.
  void differ(const std::string& text);
  // Says which samples, or after which update, and in which parameter, two digests part.
  [[nodiscard]] std::string parting(const nlohmann::json& then, const nlohmann::json& here) const;

  const nlohmann::json& before_;
  const bool goes_on_;
  std::map<RunPlace, nlohmann::json> digests_;  // of the record
  int64_t updates_ = 0, compared_ = 0;
  int64_t equal_ = -1;  // the last update after which digests were equal
  std::string difference_;
  std::vector<std::string> remarks_;
};

}  // namespace tenon::record
