// Lets every allocation and every call on a file fail in turn, alone or with all calls after it, in each step of a job.
// Checks that an error has the status of the fault, that the step succeeds when it is repeated with the same objects,
// that the job yields the same results as without a fault, and that no memory, open file or partial file remains. There
// are thousands of points of failure: a run tries some, from an offset that it prints; TENON_FAULTS=all tries all.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>

#include "tests/support/failing_calls.h"
#include "tests/support/faults_job.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int64_t entries_of(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

// An allocator of an application. While armed, counts calls and returns null for call `first`, or with `for_good` for
// all calls from `first` on.
class FailingAllocator {
 public:
  FailingAllocator() {
    table_.size = sizeof table_;
    table_.self = this;
    table_.allocate = [](void* self, uint64_t bytes, uint64_t alignment) {
      return static_cast<FailingAllocator*>(self)->allocate(bytes, alignment);
    };
    table_.release = [](void* self, void* memory, uint64_t bytes) {
      static_cast<FailingAllocator*>(self)->held -= static_cast<int64_t>(bytes);
      std::free(memory);
    };
  }
  [[nodiscard]] const tn_allocator* table() const { return &table_; }

  std::atomic<int64_t> calls = 0, held = 0, first = INT64_MAX;
  std::atomic<bool> armed = false, for_good = false;

 private:
  void* allocate(uint64_t bytes, uint64_t alignment) {
    if (armed) {
      const int64_t number = calls++;
      if (for_good ? number >= first : number == first) return nullptr;
    }
    void* const memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory != nullptr) held += static_cast<int64_t>(bytes);
    return memory;
  }

  tn_allocator table_ = {};
};

enum class Source { kAllocator, kMemory, kFiles };

struct Fault {
  Source source = Source::kMemory;
  int64_t first = INT64_MAX;
  bool for_good = false;
};

// The result of a step with a fault.
struct Attempt {
  int64_t calls = 0;
  tn_status status = TN_OK;
  std::string message;
};

Attempt attempt(FaultsJob& job, FailingAllocator& allocator, Step step, const Fault& fault) {
  Attempt result;
  job.prepare(step);
  std::optional<FailingCalls> failing;
  if (fault.source == Source::kAllocator) {
    allocator.calls = 0;
    allocator.first = fault.first;
    allocator.for_good = fault.for_good;
    allocator.armed = true;
  } else {
    failing.emplace(fault.source == Source::kMemory ? Calls::kMemory : Calls::kFiles, fault.first, fault.for_good);
  }
  std::exception_ptr thrown;
  try {
    job.run(step);
  } catch (...) {
    thrown = std::current_exception();
  }
  result.calls = failing ? failing->calls() : allocator.calls.load();
  failing.reset();
  allocator.armed = false;
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    result.status = error.code();
    result.message = error.what();
  } catch (const std::bad_alloc&) {
    result.status = TN_OUT_OF_MEMORY;
    result.message = "std::bad_alloc";
  } catch (const std::exception& error) {
    result.status = TN_INTERNAL;
    result.message = error.what();
  }
  return result;
}

using MakeJob = std::unique_ptr<FaultsJob> (*)(const std::string& folder, const tn_allocator* allocator);

struct Kind {
  const char* name;
  void (*write)(const std::string& folder);
  MakeJob make;
};
// Without this function, the name of each test contains addresses.
void PrintTo(const Kind& kind, std::ostream* to) { *to << kind.name; }

class Faults : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    // The library remembers the last hosts that ended; from now on another one takes the place of the oldest.
    for (int i = 0; i < 64; ++i) (void)tenon::Host(tenon::HostOptions{1, {folder_.path().string()}, nullptr, {}});
    GetParam().write(folder_.path().string());
    const auto job = make_job();
    job->states = &states_;
    for (const Step step : kSteps) {
      job->prepare(step);
      job->run(step);
      if (step == Step::kHost) plugins_ = job->plugins();
    }
    undisturbed_ = job->products();
    model_ = content_of(job->model_path());
    host_ = job->host();
    ASSERT_FALSE(undisturbed_.predictions.empty());
  }

  // Runs a whole job with a fault in step `at`.
  Attempt disturbed(Step at, const Fault& fault) {
    Attempt result;
    const auto job = make_job();
    // Finding plugins takes longest, so jobs with a fault after Step::kPlan share one host, in the state that earlier
    // faults left.
    const bool own_host = at <= Step::kPlan;
    if (!own_host) job->use(host_);
    for (const Step step : kSteps) {
      if (step == Step::kHost && !own_host) continue;
      if (step == at) {
        result = attempt(*job, allocator_, step, fault);
        if (result.status == TN_OK && step == Step::kHost && job->plugins() != plugins_) {
          // An unreadable plugin is not a failure of the host: the host lists it with the reason.
          EXPECT_THAT(job->plugins(), ::testing::HasSubstr("\"refused\""));
        } else if (result.status == TN_OK) {
          continue;
        }
        if (step == Step::kTrain) {
          EXPECT_TRUE(states_.contains(job->state())) << "parameters of an incomplete update: " << result.message;
        }
        if (step == Step::kSave) check_saved(job->model_path(), true);
      }
      job->prepare(step);
      job->run(step);
      if (step == Step::kSave) check_saved(job->model_path(), false);
    }
    EXPECT_EQ(job->products().plan, undisturbed_.plan);
    EXPECT_TRUE(job->products() == undisturbed_);
    return result;
  }

  void check_saved(const fs::path& path, bool may_be_old) const {
    const std::string found = content_of(path);
    EXPECT_TRUE(found == model_ || (may_be_old && found == "the model before")) << found.size() << " bytes";
    EXPECT_EQ(entries_of(path.parent_path()), 1);
  }

  static void check_status(const Fault& fault, const Attempt& attempt) {
    if (attempt.status == TN_OK) return;
    const bool files = fault.source == Source::kFiles;
    EXPECT_EQ(attempt.status, files ? TN_IO : TN_OUT_OF_MEMORY) << attempt.message;
  }

  // Lets every `stride`-th call of a step fail in turn, alone and with all calls after it; returns the number of
  // faults.
  int64_t fail_in_turn(Step step, Source source, int64_t stride, int64_t offset) {
    const int64_t calls = disturbed(step, {source, INT64_MAX, false}).calls;
    int64_t points = 0;
    for (int64_t first = stride > 1 ? offset % stride : 0; first < calls; first += stride)
      for (const bool for_good : {false, true}) {
        const Fault fault = {source, first, for_good};
        SCOPED_TRACE(std::string(kStepNames[static_cast<size_t>(step)]) + ": call " + std::to_string(first) + " of " +
                     std::to_string(calls) + (for_good ? " and all after it" : ""));
        const int64_t held = blocks_held(), bytes = allocator_.held, files = entries_of("/proc/self/fd");
        ++points;
        const Attempt result = disturbed(step, fault);
        check_status(fault, result);
        EXPECT_EQ(allocator_.held, bytes);
        EXPECT_EQ(entries_of("/proc/self/fd"), files);
        // Memory that libraries allocate once and keep is not a leak: a repetition must not hold more.
        if (blocks_held() > held) {
          const int64_t before = blocks_held();
          (void)disturbed(step, fault);
          EXPECT_LE(blocks_held(), before) << "blocks of memory are left: " << result.message;
        }
        if (HasFailure()) return points;
      }
    return points;
  }

  void fail_everywhere(Source source, int64_t wanted);

  [[nodiscard]] std::unique_ptr<FaultsJob> make_job() {
    return GetParam().make(folder_.path().string(), allocator_.table());
  }

  const tenon_tests::TemporaryFolder folder_;
  FailingAllocator allocator_;
  Products undisturbed_;
  std::set<std::string> states_;
  std::string model_, plugins_;
  std::optional<Host> host_;  // of the job without faults; destroyed before the allocator
};

int64_t number_from(const char* variable, int64_t otherwise) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? otherwise : std::atoll(given);
}

// wanted: the approximate number of calls of a step that fail.
void Faults::fail_everywhere(Source source, int64_t wanted) {
  const char* const which = std::getenv("TENON_FAULTS");
  const bool all = which != nullptr && std::string(which) == "all";
  const int64_t offset = number_from("TENON_FAULTS_OFFSET", 0);
  int64_t tried = 0, points = 0;
  for (const Step step : kSteps) {
    const int64_t calls = disturbed(step, {source, INT64_MAX, false}).calls;
    const int64_t here = step == Step::kHost ? std::max<int64_t>(1, wanted / 4) : wanted;  // takes longest
    const int64_t stride = all ? 1 : std::max<int64_t>(1, calls / here);
    const int64_t done = fail_in_turn(step, source, stride, offset);
    std::cout << "  " << kStepNames[static_cast<size_t>(step)] << ": " << 2 * calls << " points of failure, " << done
              << " tried\n";
    points += 2 * calls;
    tried += done;
    if (HasFailure()) break;
  }
  std::cout << points << " points of failure, " << tried << " tried";
  if (tried < points) std::cout << " (TENON_FAULTS_OFFSET=" << offset << " tries the same, TENON_FAULTS=all all)";
  std::cout << std::endl;
  RecordProperty("points", static_cast<int>(points));
}

TEST_P(Faults, MemoryOfTheApplication) { fail_everywhere(Source::kAllocator, 1000); }
TEST_P(Faults, Memory) { fail_everywhere(Source::kMemory, 24); }
TEST_P(Faults, Files) { fail_everywhere(Source::kFiles, 12); }

INSTANTIATE_TEST_SUITE_P(Jobs, Faults,
                         ::testing::Values(Kind{"Images", write_image_job, image_job},
                                           Kind{"Words", write_word_job, word_job}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tenon_tests
