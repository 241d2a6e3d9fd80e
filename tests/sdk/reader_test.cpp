// The C++ wrapper of readers: every storage, buffers that are too small, failures, passes.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum Slip : int64_t { kNoSlip, kWrongNumber, kWrongType, kWrongStorage, kMissing };

// A reader. Sample i holds [i, pass], i rows of two numbers, i % 3 sequences of 0, 1, ... rows, and i % 4 entries.
class Everything {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("test.everything", "samples of every storage");
    d.attribute(tn::int_attribute("samples", 10).doc("of all shards"));
    d.attribute(tn::ints_attribute("bad").doc("samples that cannot be read"));
    d.attribute(tn::int_attribute("code", TN_BAD_DATA).doc("why"));
    d.attribute(tn::int_attribute("slip", kNoSlip).doc("a mistake of the reader's author"));
  }

  explicit Everything(const tn::ReaderOpen& open)
      : shard_(open.shard()),
        samples_(open.attributes().integer("samples")),
        code_(open.attributes().integer("code")),
        slip_(open.attributes().integer("slip")) {
    if (open.attributes().has("bad")) bad_ = open.attributes().integers("bad");
    if (samples_ < 0) throw tn::Failure(TN_INVALID, open.path("here"), "fewer than none");
    slots_ = {{"dense", TN_I64, {2}},
              {"rows", TN_F32, {2}, -1, TN_RAGGED, 1},
              {"nested", TN_U8, {}, 7, TN_RAGGED, 2},
              {"sparse", TN_F32, {100}, -1, TN_CSR}};
  }

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return shard_.samples(samples_); }
  void read(int64_t index, tn::Samples& to) const {
    const int64_t sample = shard_.sample(index);
    if (std::find(bad_.begin(), bad_.end(), sample) != bad_.end()) fail(sample);
    to.dense<int64_t>(0)[0] = sample;
    to.dense<int64_t>(0)[1] = to.pass();
    const std::vector<float> rows(static_cast<size_t>(2 * sample), static_cast<float>(sample));
    to.rows(1, rows.data(), sample);
    const std::vector<int64_t> lengths = {0, 1, 2};
    const std::vector<uint8_t> inner(3, static_cast<uint8_t>(sample % 7));
    to.sequences(2, inner.data(), lengths.data(), sample % 3);
    const std::vector<int64_t> ids = {1, 5, 9};
    const std::vector<float> values = {0.5F, static_cast<float>(sample), 2};
    if (slip_ != kMissing) to.entries(3, ids.data(), values.data(), sample % 4);
    if (slip_ == kWrongNumber) to.dense<float>(4);
    if (slip_ == kWrongType) to.dense<float>(0);
    if (slip_ == kWrongStorage) to.rows(0, rows.data(), 0);
  }

 private:
  void fail(int64_t sample) const {
    if (code_ == 0) throw std::runtime_error("what a library threw");
    throw tn::Failure(static_cast<tn_status>(code_), "data.bin", "sample " + std::to_string(sample) + " is bad");
  }

  tn::Shard shard_;
  int64_t samples_, code_, slip_;
  std::vector<int64_t> bad_;
  std::vector<tn::ReaderSlot> slots_;
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.test.reader", "0.1.0", "a reader for tests", "Apache-2.0");
  plugin.reader<Everything>();
}

class ReaderWrapper : public ReaderTest {
 protected:
  ReaderWrapper() : ReaderTest("test.everything") { registry_.add(*tn::entry<describe>()); }
};

// Removes the number of the pass from samples, so that those of different passes are equal.
std::vector<Sample> without_pass(std::vector<Sample> samples) {
  for (Sample& sample : samples) sample[0].values.resize(sizeof(int64_t));
  return samples;
}

TEST_F(ReaderWrapper, EveryStorageInAnyRoom) {
  const auto reader = open({});
  ASSERT_EQ(reader->slots(), 4u);
  EXPECT_EQ(reader->slot(2).levels, 2u);
  EXPECT_EQ(reader->slot(2).index_limit, 7);
  EXPECT_THAT(reader->shape(3), ElementsAre(100));
  const std::vector<Sample> all = reader->all(3);
  ASSERT_EQ(all.size(), 10u);
  for (int64_t i = 0; i < 10; ++i) {
    const Sample& sample = all[static_cast<size_t>(i)];
    EXPECT_EQ(as<int64_t>(sample[0].values), (Ints{i, 0}));
    EXPECT_EQ(as<float>(sample[1].values), std::vector<float>(static_cast<size_t>(2 * i), static_cast<float>(i)));
    EXPECT_EQ(sample[2].lengths.size(), static_cast<size_t>(i % 3));
    EXPECT_EQ(sample[3].ids.size(), static_cast<size_t>(i % 4));
  }
  EXPECT_EQ(all[8][2].lengths, (Ints{0, 1}));
  EXPECT_EQ(all[8][2].values.size(), 1u);
  EXPECT_THAT(all[7][3].ids, ElementsAre(1, 5, 9));
  EXPECT_THAT(as<float>(all[7][3].values), ElementsAre(0.5F, 7, 2));
  for (const int64_t capacity : {1, 2, 100})
    EXPECT_TRUE(without_pass(reader->all(capacity)) == without_pass(all)) << capacity;
  reader->pass(0);
  EXPECT_TRUE(reader->read_at({9, 0, 9, 4}) == (std::vector<Sample>{all[9], all[0], all[9], all[4]}));
  check_shards({}, all, 3);
  check_shards({}, all, 11);
  EXPECT_TRUE(open({{"samples", int64_t{0}}})->all().empty());
}

TEST_F(ReaderWrapper, PassesAreCountedAndSet) {
  const auto reader = open({{"samples", int64_t{2}}});
  const auto pass = [&] { return as<int64_t>(reader->all()[1][0].values)[1]; };
  EXPECT_EQ(pass(), 0);
  EXPECT_EQ(pass(), 1);
  reader->pass(41);
  EXPECT_EQ(pass(), 41);
  EXPECT_EQ(pass(), 42);
  reader->seek(1);
  EXPECT_EQ(as<int64_t>(reader->read_at({0})[0][0].values)[1], 43);
}

TEST_F(ReaderWrapper, SlipsOfItsAuthorAreNamed) {
  const auto said = [&](Slip slip) {
    const auto reader = open({{"slip", int64_t{slip}}});
    const Error error = error_of([&] { reader->next(9); });
    EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
    return error.message();
  };
  EXPECT_THAT(said(kWrongNumber), HasSubstr("slots: number 4 is written; there are 4"));
  EXPECT_THAT(said(kWrongType), HasSubstr("dense: is written as elements of 4 bytes; expected 8"));
  EXPECT_THAT(said(kWrongStorage), HasSubstr("dense: is written by the function of another storage"));
  EXPECT_THAT(said(kMissing), HasSubstr("sparse: is not written for every sample"));
}

TEST_F(ReaderWrapper, FailuresLoseNothing) {
  const auto numbers = [](const std::vector<Sample>& samples) {
    Ints result;
    for (const Sample& sample : samples) result.push_back(as<int64_t>(sample[0].values)[0]);
    return result;
  };
  const auto damaged = open({{"bad", Ints{0, 3, 4}}, {"samples", int64_t{6}}});
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(error_of([&] { damaged->next(9); }).code(), TN_BAD_DATA);
    EXPECT_EQ(numbers(damaged->next(1)), Ints{1});
    EXPECT_EQ(numbers(damaged->next(9)), Ints{2});
    EXPECT_EQ(damaged->position(), 3);
    EXPECT_THAT(error_of([&] { damaged->next(9); }).message(), HasSubstr("data.bin: sample 3 is bad"));
    EXPECT_THAT(error_of([&] { damaged->next(9); }).message(), HasSubstr("data.bin: sample 4 is bad"));
    EXPECT_EQ(numbers(damaged->next(9)), Ints{5});
    EXPECT_TRUE(damaged->next(9).empty());
  }
  const auto broken = open({{"bad", Ints{2}}, {"code", int64_t{TN_IO}}});
  EXPECT_EQ(numbers(broken->next(1)), Ints{0});
  EXPECT_EQ(numbers(broken->next(9)), Ints{1});
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(error_of([&] { broken->next(9); }).code(), TN_IO);
    EXPECT_EQ(broken->position(), 2);
  }
  const auto thrown = open({{"bad", Ints{1}}, {"code", int64_t{0}}});
  EXPECT_EQ(numbers(thrown->next(9)), Ints{0});
  EXPECT_THAT(error_of([&] { thrown->next(9); }).message(), HasSubstr("what a library threw"));
  EXPECT_EQ(error_of([&] { thrown->read_at({0, 1}); }).code(), TN_PLUGIN_FAULT);
  const Error refused = refusal({{"samples", int64_t{-1}}});
  EXPECT_EQ(refused.code(), TN_INVALID);
  EXPECT_THAT(refused.message(), HasSubstr((folder_ / "here").string() + ": fewer than none"));
  const auto path = [](const char* directory, const char* name) {
    tn_reader_open open = {};
    open.directory = directory;
    return tn::ReaderOpen(open).path(name);
  };
  EXPECT_EQ(path(".", "a.csv"), "a.csv");
  EXPECT_EQ(path(".", "./b/a.csv"), "b/a.csv");
  EXPECT_EQ(path(".", "."), ".");
  EXPECT_EQ(path("./jobs", "../a.csv"), "jobs/../a.csv");
  EXPECT_EQ(path(".//", "a.csv"), "a.csv");
  EXPECT_EQ(path("", "./a.csv"), "a.csv");
  EXPECT_EQ(path(nullptr, "a.csv"), "a.csv");
  EXPECT_EQ(path(".hidden", "a.csv"), ".hidden/a.csv");
  EXPECT_EQ(path("jobs", "/./a.csv"), "/./a.csv");
}

}  // namespace
}  // namespace tenon_tests
