// SPDX-License-Identifier: Apache-2.0
#include "record/comparison.h"

#include <algorithm>

#include "record/differences.h"

namespace tenon::record {

using nlohmann::json;

Comparison::Comparison(Surroundings surroundings, const json& before, bool goes_on)
    : Recorder(std::move(surroundings)), before_(before), goes_on_(goes_on) {
  for (const json& digest : before.at("digests")) digests_[{digest.at("pass"), digest.at("batch")}] = digest;
}

void Comparison::differ(const std::string& text) {
  if (text.empty()) return;
  difference_ = text;
  surroundings().refuse(Fault::kDiffers, text);
}

void Comparison::begun(const RecordedEvent& /*event*/) {
  remarks_ = record::remarks(before_, record);
  for (const std::string& text : {version_difference(before_, record), arithmetic_difference(before_, record)}) {
    if (!goes_on_) differ(text);
    if (!text.empty()) remarks_.push_back(text);
  }
  differ(training_difference(before_, record));
  if (before_.at("parameters") != record.at("parameters")) differ("the parameters have other names or shapes");
}

bool Comparison::is_due(const RunPlace& place) {
  if (place != RunPlace{}) ++updates_;
  return digests_.contains(place);
}

void Comparison::take(json digest) {
  ++compared_;
  const json& then = digests_.at(place());
  const bool is_other_data = then.contains("data") && digest.contains("data") && then.at("data") != digest.at("data");
  if (is_other_data || then.at("xxh3") != digest.at("xxh3")) differ(parting(then, digest));
  equal_ = updates_;
}

std::string Comparison::parting(const json& then, const json& here) const {
  std::string at = std::to_string(updates_);
  if (place().batch > 0)
    at += " (pass " + std::to_string(place().pass + 1) + ", minibatch " + std::to_string(place().batch) + ")";
  const bool is_next = equal_ == updates_ - 1;
  if (then.value("data", "") != here.value("data", ""))
    return "the samples " +
           (is_next ? "of update " : "of the updates " + std::to_string(std::max<int64_t>(0, equal_) + 1) + " to ") +
           at;
  const std::string first =
      first_parameter(record.at("parameters"), then.at("each").get<std::string>(), here.at("each").get<std::string>());
  if (updates_ == 0) return "the values before the first update, first those of " + first;
  const std::string text = "the parameters after update " + at + ", first " + first;
  if (is_next) return text;
  return text + "; the digest before that, of " + (equal_ < 0 ? "no update" : "update " + std::to_string(equal_)) +
         ", is equal";
}

void Comparison::ended() {
  const json &then = before_.at("end").at("digest"), &here = record.at("end").at("digest");
  if (then.is_object() && here.is_object() && then.at("xxh3") != here.at("xxh3")) difference_ = parting(then, here);
  if (difference_.empty()) difference_ = curve_difference(before_, record);
  // Headers of model files state the versions of plugins.
  if (difference_.empty() && version_difference(before_, record).empty())
    difference_ = model_difference(before_, record);
}

}  // namespace tenon::record
