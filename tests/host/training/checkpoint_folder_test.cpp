// The folder of checkpoints belongs to one training. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <tenon/tenon_topology.hpp>
#include <thread>

#include "tests/host/training/line_model.h"
#include "tests/support/fuzz/model_bytes.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class CheckpointFolder : public LineModel {
 protected:
  [[nodiscard]] TrainOptions saving(const std::string& folder, uint32_t start = TN_START_FRESH) const {
    TrainOptions options = training();
    options.passes = 2;
    options.checkpoint.emplace();
    options.checkpoint->folder = folder;
    options.checkpoint->every_batches = 1;
    options.checkpoint->keep = 100;
    options.checkpoint->start = start;
    return options;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) found.push_back(entry.path().filename());
    return found;
  }

  // The bytes of all parameters.
  static std::string values(const Parameters& parameters) {
    std::string bytes;
    for (const ParameterInfo& info : entries(parameters)) {
      const Array array = parameters.get(info.name);
      bytes.append(static_cast<const char*>(array.data), static_cast<size_t>(array.count()) * sizeof(float));
    }
    return bytes;
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "saves";
};

// ---- one training at a time

TEST_F(CheckpointFolder, IsRefusedToASecondTraining) {
  TrainOptions options = saving(path_);
  fs::create_directory_symlink("saves", folder_.path() / "link");
  int refused = 0;
  options.handler = [&](const Event& event) {
    if (event.kind() != TN_END_ITERATION || refused > 0) return;
    for (const uint32_t start : {TN_START_FRESH, TN_START_RESUME_OR_FRESH, TN_START_RESUME})
      for (const fs::path& name : {path_, folder_.path() / "link", folder_.path() / "saves" / ".." / "saves"}) {
        const auto other = [&] {
          const TrainOptions second = saving(name, start);
          EXPECT_THAT(refusal([&] { train(second); }, TN_IO),
                      AllOf(HasSubstr("a training has its folder alone"), HasSubstr("another call of this process")));
        };
        std::thread(other).join();
        other();
        ++refused;
      }
  };
  train(options);
  EXPECT_EQ(refused, 9);
  EXPECT_THAT(names(), testing::Not(testing::Contains(".training.lock")));
  train(saving(path_, TN_START_RESUME));  // free again
}

TEST_F(CheckpointFolder, StaysFreeAfterARefusal) {
  train(saving(path_));
  EXPECT_THAT(refusal([&] { train(saving(path_)); }, TN_INVALID), HasSubstr("the folder has checkpoints of another"));
  train(saving(path_, TN_START_RESUME));
}

// Where the file system has no locks, this rule alone keeps two trainings apart.
TEST_F(CheckpointFolder, FilesOfOthersAreNeitherReplacedNorRemoved) {
  TrainOptions options = saving(path_);
  options.checkpoint->keep = 1;
  options.handler = [&](const Event& event) {
    if (event.kind() == TN_END_ITERATION && event.pass() == 0 && event.batch() == 1) {
      std::ofstream(path_ / "checkpoint-0-0.safetensors") << "theirs";
      std::ofstream(path_ / "checkpoint-1-1.safetensors") << "theirs";
    }
  };
  EXPECT_THAT(refusal([&] { train(options); }, TN_IO),
              HasSubstr("checkpoint-1-1.safetensors: cannot create it: File exists"));
  EXPECT_THAT(names(), UnorderedElementsAre("checkpoint-0-0.safetensors", "checkpoint-0-3.safetensors",
                                            "checkpoint-1-1.safetensors"));
  EXPECT_EQ(fs::file_size(path_ / "checkpoint-1-1.safetensors"), 6U);
}

// ---- one value for every start

TEST_F(CheckpointFolder, ResumeOrFreshBeginsAnewWithoutACheckpoint) {
  const auto begins = [&](uint32_t start) {
    TrainOptions options = saving(path_, start);
    std::string from = "none";
    options.handler = [&](const Event& event) {
      if (event.kind() == TN_BEGIN_TRAINING) from = event.checkpoint();
    };
    train(options);
    return from;
  };
  for (const uint32_t start : {TN_START_RESUME_OR_FRESH, TN_START_RESUME_INEXACTLY_OR_FRESH}) {
    fs::remove_all(path_);
    EXPECT_EQ(begins(start), "") << "no folder";
    EXPECT_EQ(begins(start), path_ / "checkpoint-2-0.safetensors");
    fs::remove_all(path_);
    fs::create_directory(path_);
    EXPECT_EQ(begins(start), "") << "an empty folder";
    fs::remove_all(path_);
    fs::create_directory(path_);
    std::ofstream(path_ / ".checkpoint-0-5.safetensors.0123abcd-12-0.tmp") << "half";
    std::ofstream(path_ / "best.safetensors") << "of a killed training";
    std::ofstream(path_ / ".training.lock") << "1 2 3 4\n";
    EXPECT_EQ(begins(start), "") << "what a kill before the first checkpoint leaves";
    EXPECT_EQ(begins(start), path_ / "checkpoint-2-0.safetensors");
  }
  EXPECT_THAT(refusal([&] { train(saving(folder_.path() / "absent", TN_START_RESUME)); }, TN_NOT_FOUND),
              HasSubstr("no checkpoint to resume from"));
  EXPECT_FALSE(fs::exists(folder_.path() / "absent"));
  TrainOptions named = saving(folder_.path() / "absent", TN_START_RESUME_OR_FRESH);
  named.checkpoint->from = folder_.file("absent.safetensors");
  EXPECT_THAT(refusal([&] { train(named); }, TN_NOT_FOUND), HasSubstr("absent.safetensors"));
  EXPECT_FALSE(fs::exists(folder_.path() / "absent"));
}

// ---- checkpoints that cannot be read

TEST_F(CheckpointFolder, ACheckpointThatCannotBeReadNamesTheOneBefore) {
  train(saving(path_));
  const fs::path newest = path_ / "checkpoint-2-0.safetensors";
  const std::string before = "; the checkpoint before it is " + (path_ / "checkpoint-1-3.safetensors").string();
  const auto refused = [&](const char* what, tn_status code) {
    for (const uint32_t start : {TN_START_RESUME, TN_START_RESUME_OR_FRESH})
      EXPECT_THAT(refusal([&] { train(saving(path_, start)); }, code),
                  AllOf(HasSubstr(newest.string()), testing::EndsWith(before)))
          << what;
    fs::remove_all(newest);
  };
  std::ofstream(newest, std::ios::app) << "x";
  refused("damaged", TN_BAD_DATA);
  std::ofstream{newest};
  refused("empty", TN_BAD_DATA);
  ASSERT_EQ(mkfifo(newest.c_str(), 0600), 0);
  refused("a FIFO", TN_INVALID);
  fs::create_symlink(newest, newest);
  refused("a loop of links", TN_IO);
  fs::create_symlink("absent", newest);
  refused("a link to nothing", TN_NOT_FOUND);
  fs::create_directory(newest);
  refused("a folder", TN_INVALID);
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) std::ofstream(entry.path()) << "damaged";
  EXPECT_THAT(refusal([&] { train(saving(path_, TN_START_RESUME_OR_FRESH)); }, TN_BAD_DATA),
              HasSubstr("the checkpoint before it is"))
      << "all are damaged: not a reason to begin anew";
}

// What only the loop takes of a record is checked, too, before the parameters get their values.
TEST_F(CheckpointFolder, ARecordOfAnotherTrainingChangesNothing) {
  train(saving(path_));
  const fs::path file = path_ / "checkpoint-2-0.safetensors";
  const std::string sound = file_bytes(file), record = checkpoint_record(sound);
  const auto number_at = [&](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, &record.at(at), sizeof value);
    return value;
  };
  // docs/checkpoints.md has the fields.
  const size_t metrics = 8 * 11 + number_at(0);
  ASSERT_EQ(number_at(metrics), 1U);
  const size_t carried = metrics + 16 + 8 * number_at(metrics + 8);
  const auto number = [](uint64_t value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto refused = [&](const std::string& changed, const char* message) {
    std::ofstream(file, std::ios::binary) << with_record(sound, changed);
    const TrainOptions options = saving(path_, TN_START_RESUME);
    const std::string before = values(options.parameters);
    EXPECT_THAT(refusal([&] { train(options); }, TN_BAD_DATA),
                AllOf(HasSubstr(file.string() + ": "), HasSubstr(message)));
    EXPECT_EQ(values(options.parameters), before) << message;
  };
  refused(std::string(record).replace(carried, 8, number(uint64_t{1} << 40)),
          "carried states of 1099511627776 samples");
  refused(std::string(record).replace(carried + 8, 8, number(1) + number(3) + "abc"), "1 carried states");
  refused(std::string(record).replace(metrics, 8, number(2) + number(0)), "sums of 2 metrics; expected 1");
  std::ofstream(file, std::ios::binary) << with_record(sound, record);
  train(saving(path_, TN_START_RESUME));
}

}  // namespace

}  // namespace tenon_tests
