// The digest of the data in a checkpoint: changed data is refused at a resume. SPDX-License-Identifier: Apache-2.0
#include "host/training/data/data_digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/host/training/line_model.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

class DataDigestTest : public LineModel {
 protected:
  // A training that stops after `stop` minibatches of 12.
  [[nodiscard]] TrainOptions begun(const TemporaryFolder& folder, Reader reader, int stop) {
    TrainOptions options = training();
    options.passes = 4;
    options.reader = std::move(reader);
    options.checkpoint.emplace();
    options.checkpoint->folder = folder.file("saves");
    options.handler = [this, stop, done = 0](const Event& event) mutable {
      if (event.kind() == TN_CHECKPOINT) written_ = event.checkpoint();
      if (event.kind() == TN_END_ITERATION && ++done == stop) event.stop();
    };
    train(options);
    return options;
  }
  [[nodiscard]] TrainOptions resumed(const TrainOptions& from, Reader reader, uint32_t start = TN_START_RESUME) {
    TrainOptions options = training();
    options.passes = 4;
    options.reader = std::move(reader);
    options.checkpoint = from.checkpoint;
    options.checkpoint->start = start;
    options.checkpoint->from = written_;
    return options;
  }
  std::string written_;  // by the training that was begun last
};

TEST_F(DataDigestTest, ChangedDataIsRefused) {
  for (const int stop : {1, 2, 3, 4, 7}) {
    const TemporaryFolder folder;
    const TrainOptions first = begun(folder, samples().shuffle(1).batch(kBatch), stop);
    TrainOptions changed = resumed(first, samples(0.5).shuffle(1).batch(kBatch));
    EXPECT_THAT(refusal([&] { train(changed); }, TN_INVALID), HasSubstr("the data of the reader has changed"));
    EXPECT_EQ(values(changed), (Floats{1, 0})) << "nothing was read";
    changed = resumed(first, samples(0.5).shuffle(1).batch(kBatch), TN_START_RESUME_INEXACTLY);
    train(changed);
    TrainOptions same = resumed(first, samples().shuffle(1).batch(kBatch));
    train(same);
    EXPECT_NE(values(changed), values(same));
  }
}

// The refusal leaves the reader where it was.
TEST_F(DataDigestTest, TheReaderGoesBack) {
  const TemporaryFolder folder;
  const TrainOptions first = begun(folder, samples().batch(kBatch), 4);
  TrainOptions changed = resumed(first, samples(2).batch(kBatch));
  EXPECT_THAT(refusal([&] { train(changed); }, TN_INVALID), HasSubstr("first minibatch of its pass 2"));
  EXPECT_EQ(changed.reader.position().pass, 0);
  EXPECT_EQ(changed.reader.position().samples, 0);
}

// A stream that cannot seek resumes only in the same process, where it is.
TEST_F(DataDigestTest, StreamsAreNotCompared) {
  const TemporaryFolder folder;
  const auto next = [given = 0](Sample& sample) mutable {
    sample.set("x", {static_cast<double>(given++)});
    return true;
  };
  TrainOptions first = training();
  first.pass_batches = 2;
  first.passes = 1;
  first.reader = host_.reader({{"x", TN_F32, {1}}}, next).batch(kBatch);
  first.checkpoint.emplace();
  first.checkpoint->folder = folder.file("saves");
  train(first);
  first.passes = 2;
  first.checkpoint->start = TN_START_RESUME;
  train(first);
}

using tenon::host::digest_of;
using tenon::host::SampleBlock;
using HostSlot = tenon::host::Slot;

class Digest : public testing::Test {
 protected:
  [[nodiscard]] static HostSlot slot(tn_dtype dtype, uint64_t bytes, int32_t storage, uint32_t levels) {
    HostSlot made;
    made.name = "s";
    made.dtype = dtype;
    made.bytes = bytes;
    made.storage = storage;
    made.levels = levels;
    if (storage == TN_CSR) made.shape = {100};
    return made;
  }
  [[nodiscard]] SampleBlock block(const HostSlot& of, const tenon::host::ArrayView& values, int64_t count) const {
    SampleBlock made({of}, allocator_);
    made.append({values}, count, "test");
    return made;
  }
  std::shared_ptr<tenon::core::Allocator> allocator_ = tenon::core::system_allocator();
};

TEST_F(Digest, DependsOnEveryValueAndOffset) {
  std::vector<float> values = {1, 2, 3, 4};
  std::vector<int64_t> outer = {0, 1, 2}, inner = {0, 1, 4}, ids = {0, 5, 6, 7};
  const auto dense = [&] { return digest_of(block(slot(TN_F32, 4, TN_DENSE, 0), {TN_F32, {4}, values.data()}, 4)); };
  const auto ragged = [&] {
    tenon::host::ArrayView view{TN_F32, {4}, values.data(), TN_RAGGED, 2, {outer.data(), inner.data()}};
    view.samples = 2;
    return digest_of(block(slot(TN_F32, 4, TN_RAGGED, 2), view, 2));
  };
  const auto sparse = [&] {
    tenon::host::ArrayView view{TN_F32, {2, 100}, values.data(), TN_CSR, 0, {inner.data(), nullptr}, ids.data()};
    view.samples = 2;
    return digest_of(block(slot(TN_F32, 4, TN_CSR, 0), view, 2));
  };
  const std::string before[] = {dense(), ragged(), sparse()};
  EXPECT_EQ(before[0], dense());
  EXPECT_EQ(before[0].size(), 32U);
  values[3] = 5;
  EXPECT_NE(before[0], dense());
  EXPECT_NE(before[1], ragged());
  EXPECT_NE(before[2], sparse());
  values[3] = 4;
  inner[1] = 2;
  EXPECT_NE(before[1], ragged());
  EXPECT_NE(before[2], sparse());
  inner[1] = 1;
  ids[3] = 8;
  EXPECT_NE(before[2], sparse());
}

// Memory after the last sample, such as that of an earlier minibatch, does not count.
TEST_F(Digest, DependsOnTheSamplesAlone) {
  const std::vector<float> values = {1, 2, 3, 4};
  SampleBlock longer = block(slot(TN_F32, 4, TN_DENSE, 0), {TN_F32, {4}, values.data()}, 4);
  const std::string whole = digest_of(longer);
  longer.truncate(3);
  EXPECT_NE(digest_of(longer), whole);
  EXPECT_EQ(digest_of(longer), digest_of(block(slot(TN_F32, 4, TN_DENSE, 0), {TN_F32, {3}, values.data()}, 3)));
}

}  // namespace
}  // namespace tenon_tests
