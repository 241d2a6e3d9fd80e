// The record in bytes: fields in order, little-endian, lists after their length. SPDX-License-Identifier: Apache-2.0
#include "host/training/checkpoint_record.h"

#include <bit>
#include <cereal/cereal.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <cmath>
#include <cstring>

#include "core/error.h"

namespace tenon::host {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

// cereal calls these archives for each value of the record, with its name. The input checks every length against the
// bytes that are left, which cereal's own archives do not.
class RecordOutput : public cereal::OutputArchive<RecordOutput, cereal::AllowEmptyClassElision> {
 public:
  explicit RecordOutput(std::string& to) : OutputArchive(this), to_(to) {}
  void put(const void* from, size_t bytes) { to_.append(static_cast<const char*>(from), bytes); }

 private:
  std::string& to_;
};

class RecordInput : public cereal::InputArchive<RecordInput, cereal::AllowEmptyClassElision> {
 public:
  RecordInput(const std::string& from, const std::string& file) : InputArchive(this), from_(from), file_(file) {}

  void begin(const char* field) { field_ = field; }
  void take(void* to, size_t bytes) {
    require(bytes);
    if (bytes != 0) std::memcpy(to, from_.data() + at_, bytes);
    at_ += bytes;
  }
  // Every element of a list has at least one byte.
  void check_length(uint64_t elements) const { require(elements); }
  void finish() const {
    if (at_ != from_.size()) fail_record("the record ends at byte ", at_, "; it has ", from_.size(), " bytes");
  }
  template <typename... Parts>
  [[noreturn]] void fail_record(const Parts&... parts) const {
    fail(TN_BAD_DATA, SubjectName{file_}, file_, ": damaged checkpoint: ", parts...);
  }

 private:
  void require(uint64_t bytes) const {
    if (bytes > from_.size() - at_)
      fail_record("field \"", field_, "\": expected at least ", bytes, " more bytes at byte ", at_, ", got ",
                  from_.size() - at_);
  }

  const std::string& from_;
  const std::string& file_;
  const char* field_ = "";
  size_t at_ = 0;
};

template <typename T>
using Number = std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, int>;

template <typename T, Number<T> = 0>
void CEREAL_SAVE_FUNCTION_NAME(RecordOutput& archive, const T& value) {
  archive.put(&value, sizeof value);
}
template <typename T, Number<T> = 0>
void CEREAL_LOAD_FUNCTION_NAME(RecordInput& archive, T& value) {
  archive.take(&value, sizeof value);
}
template <typename T>
void CEREAL_SAVE_FUNCTION_NAME(RecordOutput& archive, const cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}
template <typename T>
void CEREAL_LOAD_FUNCTION_NAME(RecordInput& archive, cereal::NameValuePair<T>& pair) {
  archive.begin(pair.name);
  archive(pair.value);
}
template <typename T>
void CEREAL_SAVE_FUNCTION_NAME(RecordOutput& archive, const cereal::SizeTag<T>& tag) {
  archive(static_cast<uint64_t>(tag.size));
}
template <typename T>
void CEREAL_LOAD_FUNCTION_NAME(RecordInput& archive, cereal::SizeTag<T>& tag) {
  uint64_t size = 0;
  archive(size);
  archive.check_length(size);
  tag.size = size;
}
template <typename T>
void CEREAL_SAVE_FUNCTION_NAME(RecordOutput& archive, const cereal::BinaryData<T>& data) {
  archive.put(data.data, data.size);
}
template <typename T>
void CEREAL_LOAD_FUNCTION_NAME(RecordInput& archive, cereal::BinaryData<T>& data) {
  archive.take(data.data, data.size);
}

}  // namespace

}  // namespace tenon::host

CEREAL_SETUP_ARCHIVE_TRAITS(tenon::host::RecordInput, tenon::host::RecordOutput)

namespace tenon::host {

namespace {

// Calls `field` with the name and the value of each field, in the order of the bytes.
template <typename Record, typename Field>
void for_each_field(Record& record, const Field& field) {
  auto& loop = record.loop;
  field("run", record.run);
  field("updates", record.updates);
  field("steps", record.steps);
  field("learning_rate", record.learning_rate);
  field("pass", loop.place.pass);
  field("batch", loop.place.batch);
  field("reader_pass", loop.place.reader_pass);
  field("reader_position", loop.place.reader_position);
  field("seconds", loop.seconds);
  field("sums.cost", loop.sums.cost);
  field("sums.samples", loop.sums.samples);
  field("sums.metrics", loop.sums.metrics);
  field("carried.samples", loop.carried.samples);
  field("carried.values", loop.carried.values);
}

// A list of at most one number.
std::vector<double> listed(const std::optional<double>& value) {
  return value ? std::vector{*value} : std::vector<double>();
}

// The same for the fields after `best`, which version 1 does not have. early_best: early_stop.best as a list.
template <typename Record, typename List, typename Field>
void for_each_later_field(Record& record, List& early_best, const Field& field) {
  auto& loop = record.loop;
  field("best.watched", record.best_watched);
  field("tests.batches", loop.tests.batches);
  field("early_stop.watched", loop.early_stop.watched);
  field("early_stop.best", early_best);
  field("early_stop.misses", loop.early_stop.misses);
  field("averaged", record.averaged);
  field("data.pass", loop.data.pass);
  field("data.xxh3", loop.data.xxh3);
}

// Refuses values that no training has.
void check(const CheckpointRecord& record, const RecordInput& input) {
  const auto at_least_0 = [&](const char* field, auto value) {
    if (!(value >= 0)) input.fail_record("field \"", field, "\": expected at least 0, got ", value);
  };
  const LoopState& loop = record.loop;
  at_least_0("learning_rate", record.learning_rate);
  if (record.steps > static_cast<uint64_t>(INT64_MAX))
    input.fail_record("field \"steps\": expected less than 2^63, got ", record.steps);
  if (!std::isfinite(record.learning_rate))
    input.fail_record("field \"learning_rate\": expected a finite number, got ", record.learning_rate);
  at_least_0("pass", loop.place.pass);
  at_least_0("batch", loop.place.batch);
  at_least_0("reader_pass", loop.place.reader_pass);
  at_least_0("reader_position", loop.place.reader_position);
  at_least_0("seconds", loop.seconds);
  at_least_0("sums.samples", loop.sums.samples);
  at_least_0("carried.samples", loop.carried.samples);
  at_least_0("tests.batches", loop.tests.batches);
  at_least_0("early_stop.misses", loop.early_stop.misses);
  at_least_0("data.pass", loop.data.pass);
  const std::string& digest = loop.data.xxh3;
  if (!digest.empty() && (digest.size() != 32 || digest.find_first_not_of("0123456789abcdef") != std::string::npos))
    input.fail_record("field \"data.xxh3\": expected 32 hexadecimal digits or none");
}

}  // namespace

const char* version_of(const CheckpointRecord& record) {
  return record.loop.sums.costs.empty() ? kCheckpointVersion : kCheckpointVersionOfCosts;
}

std::string encode(const CheckpointRecord& record, const std::string& version) {
  std::string bytes;
  RecordOutput output(bytes);
  const auto put = [&](const char* name, const auto& value) { output(cereal::make_nvp(name, value)); };
  for_each_field(record, put);
  put("best", listed(record.best));
  const std::vector<double> early_best = listed(record.loop.early_stop.best);
  for_each_later_field(record, early_best, put);
  put("tests.due", static_cast<uint64_t>(record.loop.tests.due ? 1 : 0));
  if ((version.empty() ? version_of(record) : version) == kCheckpointVersionOfCosts)
    put("sums.costs", record.loop.sums.costs);
  return bytes;
}

CheckpointRecord decode(const std::string& bytes, const std::string& file, const std::string& version) {
  CheckpointRecord record;
  RecordInput input(bytes, file);
  const auto take = [&](const char* name, auto& value) { input(cereal::make_nvp(name, value)); };
  const auto take_one = [&](const char* name, const std::vector<double>& list, std::optional<double>& to) {
    if (list.size() > 1) input.fail_record("field \"", name, "\": expected at most 1 number, got ", list.size());
    if (!list.empty()) to = list[0];
  };
  for_each_field(record, take);
  std::vector<double> best, early_best;
  take("best", best);
  if (version != kFirstCheckpointVersion) {
    for_each_later_field(record, early_best, take);
    uint64_t due = 0;
    take("tests.due", due);
    if (due > 1) input.fail_record("field \"tests.due\": expected 0 or 1, got ", due);
    record.loop.tests.due = due == 1;
  }
  if (version == kCheckpointVersionOfCosts) take("sums.costs", record.loop.sums.costs);
  input.finish();
  take_one("best", best, record.best);
  take_one("early_stop.best", early_best, record.loop.early_stop.best);
  check(record, input);
  return record;
}

}  // namespace tenon::host
