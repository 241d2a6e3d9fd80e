// The record of a checkpoint: what is written is read; damage is an error that names the field. Its bytes are not
// trusted. SPDX-License-Identifier: Apache-2.0
#include "host/training/checkpoint_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using testing::AllOf;
using testing::HasSubstr;

CheckpointRecord example() {
  CheckpointRecord record;
  record.run = R"({"seed": 3})";
  record.updates = 12;
  record.steps = 11;
  record.learning_rate = 0.1;
  record.loop.place = {2, 5, 7, 40};
  record.loop.seconds = 1.5;
  record.loop.sums = {-3.25, 40, {{1, 2.5}, {}, {1e300}}, {}};
  record.loop.carried.samples = 2;
  record.loop.carried.values = {{std::byte{1}, std::byte{255}}, {}};
  record.best = -0.75;
  record.best_watched = "test cost min";
  record.averaged = 9;
  record.loop.tests = {3, true};
  record.loop.early_stop = {"auc max", 0.5, 2};
  record.loop.data = {7, "0123456789abcdef0123456789abcdef"};
  return record;
}

TEST(CheckpointRecord, IsReadAsWritten) {
  const CheckpointRecord written = example(), read = decode(encode(written), "file");
  EXPECT_EQ(read.run, written.run);
  EXPECT_EQ(read.updates, 12U);
  EXPECT_EQ(read.steps, 11U);
  EXPECT_EQ(read.learning_rate, 0.1);
  EXPECT_EQ(read.loop.place, (TrainingPlace{2, 5, 7, 40}));
  EXPECT_EQ(read.loop.seconds, 1.5);
  EXPECT_EQ(read.loop.sums.cost, -3.25);
  EXPECT_EQ(read.loop.sums.samples, 40);
  EXPECT_EQ(read.loop.sums.metrics, written.loop.sums.metrics);
  EXPECT_EQ(read.loop.carried.samples, 2);
  EXPECT_EQ(read.loop.carried.values, written.loop.carried.values);
  EXPECT_EQ(read.best, -0.75);
  EXPECT_EQ(read.best_watched, "test cost min");
  EXPECT_EQ(read.averaged, 9U);
  EXPECT_EQ(read.loop.tests.batches, 3);
  EXPECT_TRUE(read.loop.tests.due);
  EXPECT_EQ(read.loop.early_stop.watched, "auc max");
  EXPECT_EQ(read.loop.early_stop.best, 0.5);
  EXPECT_EQ(read.loop.early_stop.misses, 2);
  EXPECT_EQ(read.loop.data.pass, 7);
  EXPECT_EQ(read.loop.data.xxh3, "0123456789abcdef0123456789abcdef");
  CheckpointRecord none = example();
  none.best.reset();
  EXPECT_EQ(decode(encode(none), "file").best, std::nullopt);
}

// docs/checkpoints.md states the order and the bytes.
TEST(CheckpointRecord, HasTheDocumentedBytes) {
  CheckpointRecord record;
  record.run = "{}";
  record.updates = 0x0102030405060708;
  const std::string bytes = encode(record);
  EXPECT_EQ(bytes.substr(0, 18), std::string("\2\0\0\0\0\0\0\0{}\x08\x07\x06\x05\x04\x03\x02\x01", 18));
  constexpr size_t kFirst = 8 + 2 + 8 * 13 + 8;  // the text, 13 numbers and lengths, and the length of best
  EXPECT_EQ(bytes.size(), kFirst + 8 * 9) << "9 numbers and lengths";
  EXPECT_EQ(decode(bytes.substr(0, kFirst), "file", "1").updates, record.updates) << "version 1 ends with best";
  EXPECT_EQ(error_of([&] { static_cast<void>(decode(bytes, "file", "1")); }).code(), TN_BAD_DATA);
}

TEST(CheckpointRecord, CutAnywhereIsRefused) {
  const std::string whole = encode(example());
  for (size_t size = 0; size < whole.size(); ++size) {
    const Error error = error_of([&] { static_cast<void>(decode(whole.substr(0, size), "cut.safetensors")); });
    ASSERT_EQ(error.code(), TN_BAD_DATA) << size;
    ASSERT_THAT(error.what(), AllOf(HasSubstr("cut.safetensors: damaged checkpoint: field \""), HasSubstr("expected at "
                                                                                                          "least")));
    ASSERT_EQ(error.subject(), "cut.safetensors");
  }
  const Error longer = error_of([&] { static_cast<void>(decode(whole + "x", "long")); });
  EXPECT_EQ(longer.code(), TN_BAD_DATA);
  EXPECT_THAT(longer.what(), HasSubstr("the record ends at byte " + std::to_string(whole.size()) + "; it has " +
                                       std::to_string(whole.size() + 1) + " bytes"));
}

// Any changed byte gives a record or an error, and never a large allocation.
TEST(CheckpointRecord, AnyChangedByteIsReadOrRefused) {
  const std::string whole = encode(example());
  int refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(value);
      const Error error = error_of([&] { static_cast<void>(decode(changed, "changed")); });
      ASSERT_TRUE(error.code() == TN_OK || error.code() == TN_BAD_DATA) << at << ": " << error.what();
      refused += error.code() == TN_OK ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(CheckpointRecord, LengthsAreBoundedByTheBytesLeft) {
  for (const uint64_t length : {uint64_t{1} << 20, uint64_t{1} << 40, UINT64_MAX}) {
    std::string bytes = encode(example());
    std::memcpy(bytes.data(), &length, sizeof length);
    const Error error = error_of([&] { static_cast<void>(decode(bytes, "file")); });
    EXPECT_EQ(error.code(), TN_BAD_DATA);
    EXPECT_THAT(error.what(), HasSubstr("field \"run\": expected at least " + std::to_string(length) + " more bytes"));
  }
  std::string bytes = encode(example());
  constexpr uint64_t kMetrics = uint64_t{1} << 50;
  std::memcpy(bytes.data() + sizeof(uint64_t) * 11 + example().run.size(), &kMetrics, sizeof kMetrics);
  const Error metrics = error_of([&] { static_cast<void>(decode(bytes, "file")); });
  EXPECT_THAT(metrics.what(), HasSubstr("field \"sums.metrics\": expected at least"));
}

// Every number with a sign is at least 0, and every flag 0 or 1, in a record of either version.
TEST(CheckpointRecord, NumbersThatNoTrainingHasAreRefused) {
  const auto refusal = [](const std::string& bytes, const char* version) {
    const Error error = error_of([&] { static_cast<void>(decode(bytes, "file", version)); });
    EXPECT_EQ(error.code(), TN_BAD_DATA) << version;
    return std::string(error.what());
  };
  const auto refused = [&](const std::function<void(CheckpointRecord&)>& change, const std::string& message) {
    for (const bool costs : {false, true}) {
      CheckpointRecord record = example();
      if (costs) record.loop.sums.costs = {1, 2};
      change(record);
      EXPECT_THAT(refusal(encode(record), version_of(record)), HasSubstr("field \"" + message));
    }
  };
  using Record = CheckpointRecord;
  for (const char* digest : {"0", "0123456789abcdef0123456789abcdeF", "\xff"})
    refused([&](Record& r) { r.loop.data.xxh3 = digest; }, "data.xxh3\": expected 32 hexadecimal digits or none");
  refused([](Record& r) { r.learning_rate = -0.5; }, "learning_rate\": expected at least 0, got -0.5");
  refused([](Record& r) { r.learning_rate = double{NAN}; }, "learning_rate\": expected at least 0, got nan");
  refused([](Record& r) { r.learning_rate = double{INFINITY}; }, "learning_rate\": expected a finite number");
  refused([](Record& r) { r.steps = uint64_t{1} << 63; }, "steps\": expected less than 2^63");
  refused([](Record& r) { r.loop.seconds = -1; }, "seconds\": expected at least 0, got -1");
  refused([](Record& r) { r.loop.seconds = double{NAN}; }, "seconds\": expected at least 0, got nan");
  const std::map<std::string, std::function<int64_t&(Record&)>> integers = {
      {"pass", [](Record& r) -> int64_t& { return r.loop.place.pass; }},
      {"batch", [](Record& r) -> int64_t& { return r.loop.place.batch; }},
      {"reader_pass", [](Record& r) -> int64_t& { return r.loop.place.reader_pass; }},
      {"reader_position", [](Record& r) -> int64_t& { return r.loop.place.reader_position; }},
      {"sums.samples", [](Record& r) -> int64_t& { return r.loop.sums.samples; }},
      {"carried.samples", [](Record& r) -> int64_t& { return r.loop.carried.samples; }},
      {"tests.batches", [](Record& r) -> int64_t& { return r.loop.tests.batches; }},
      {"early_stop.misses", [](Record& r) -> int64_t& { return r.loop.early_stop.misses; }},
      {"data.pass", [](Record& r) -> int64_t& { return r.loop.data.pass; }}};
  for (const auto& [name, of] : integers) {
    for (const int64_t number : {int64_t{-1}, INT64_MIN})
      refused([&of = of, number](Record& r) { of(r) = number; },
              name + "\": expected at least 0, got " + std::to_string(number));
    CheckpointRecord record = example();
    of(record) = 0;
    CheckpointRecord read = decode(encode(record), "file");
    EXPECT_EQ(of(read), 0) << name;
  }
  const std::string whole = encode(example());  // ends with tests.due
  for (const uint64_t due : {uint64_t{2}, uint64_t{256}, uint64_t{1} << 32, UINT64_MAX}) {
    std::string bytes = whole;
    std::memcpy(bytes.data() + bytes.size() - sizeof due, &due, sizeof due);
    EXPECT_THAT(refusal(bytes, version_of(example())),
                HasSubstr("field \"tests.due\": expected 0 or 1, got " + std::to_string(due)));
  }
  CheckpointRecord none = example();
  none.loop.tests.due = false;
  EXPECT_FALSE(decode(encode(none), "file").loop.tests.due);
}

TEST(CheckpointRecord, ListsOfAtMostOneNumber) {
  const std::string whole = encode(example());
  for (const auto& [name, number] : {std::pair{"best", -0.75}, {"early_stop.best", 0.5}}) {
    const auto bytes_of = [](auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
    std::string two = whole;  // a list of one number, then of two
    const size_t at = two.find(bytes_of(uint64_t{1}) + bytes_of(number));
    ASSERT_NE(at, std::string::npos);
    two.replace(at, sizeof(uint64_t), bytes_of(uint64_t{2}));
    two.insert(at + sizeof(uint64_t), bytes_of(3.5));
    EXPECT_THAT(error_of([&] { static_cast<void>(decode(two, "file")); }).what(),
                HasSubstr("field \"" + std::string(name) + "\": expected at most 1 number, got 2"));
  }
}

}  // namespace

}  // namespace tenon_tests
