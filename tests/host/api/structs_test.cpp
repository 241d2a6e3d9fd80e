// Structs that begin with their size, made by applications of other versions.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

namespace {

class Structs : public testing::Test {
 protected:
  Structs() {
    tn_host_options options = {};
    options.size = sizeof options;
    EXPECT_EQ(tn_host_create(&options, &host_, nullptr), TN_OK);
    error_.size = sizeof error_;
  }
  ~Structs() override { tn_host_release(host_); }

  tn_status make_data(const tn_data_options* options) { return tn_data_create(host_, options, &layer_, &error_); }

  tn_host* host_ = nullptr;
  tn_error error_ = {};
  tn_layer layer_ = {};
};

tn_data_options floats(const char* name, size_t size) {
  tn_data_options options = {};
  options.size = static_cast<uint32_t>(size);
  options.name = name;
  options.dtype = TN_F32;
  options.index_limit = -1;
  return options;
}

// Fields that a newer header appends are accepted if they are 0, and refused otherwise.
TEST_F(Structs, OfNewerHeaders) {
  struct {
    tn_data_options known;
    uint64_t later;
  } newer = {floats("x", 0), 0};
  newer.known.size = sizeof newer;
  EXPECT_EQ(make_data(&newer.known), TN_OK) << error_.message;
  newer.known.name = "y";
  for (const uint64_t set : {uint64_t{1}, uint64_t{1} << 63}) {
    newer.later = set;
    EXPECT_EQ(make_data(&newer.known), TN_UNSUPPORTED);
    EXPECT_THAT(error_.message, testing::HasSubstr("sets a field that this version does not know"));
  }
}

TEST_F(Structs, WithoutASizeAreMisuse) {
  const tn_data_options unset = floats("x", 0), huge = floats("x", 1 << 20);
  EXPECT_EQ(make_data(&unset), TN_MISUSE);
  EXPECT_EQ(make_data(&huge), TN_MISUSE);
}

// A result of an application that was built with older headers gets what its struct has, and nothing behind it; one of
// newer headers learns from `size` what was filled.
TEST_F(Structs, OfOlderAndNewerHeadersGetWhatTheyHave) {
  struct {
    tn_host_counters counters;
    unsigned char behind[16];
  } result;
  for (uint32_t size = offsetof(tn_host_counters, bytes_now); size <= sizeof result; size += 8) {
    std::memset(&result, 0x5a, sizeof result);
    result.counters.size = size;
    ASSERT_EQ(tn_host_inspect(host_, &result.counters, &error_), TN_OK) << error_.message;
    const size_t filled = std::min<size_t>(size, sizeof result.counters);
    EXPECT_EQ(result.counters.size, filled);
    EXPECT_GT(result.counters.threads, 0);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&result);
    EXPECT_NE(bytes[filled - 1], 0x5a);
    for (size_t at = filled; at < sizeof result; ++at) EXPECT_EQ(bytes[at], 0x5a) << at << " of " << size;
  }
  for (const uint32_t size : {0U, 1U << 20}) {
    result.counters.size = size;
    EXPECT_EQ(tn_host_inspect(host_, &result.counters, &error_), TN_MISUSE) << size;
  }
}

// A message that is too long is cut and ends with a NUL within its field.
TEST_F(Structs, LongMessagesAreCut) {
  struct {
    tn_error error;
    char behind[16];
  } guarded = {};
  std::memset(guarded.behind, 'z', sizeof guarded.behind);
  guarded.error.size = sizeof guarded.error;
  const std::string type(5000, 'x');
  tn_updater updater = {};
  EXPECT_NE(tn_updater_create(host_, type.c_str(), nullptr, 0, &updater, &guarded.error), TN_OK);
  EXPECT_EQ(strnlen(guarded.error.message, sizeof guarded.error.message), sizeof guarded.error.message - 1);
  EXPECT_EQ(std::string(guarded.behind, sizeof guarded.behind), std::string(sizeof guarded.behind, 'z'));
}

}  // namespace
