// SPDX-License-Identifier: Apache-2.0
#include "host/training/averages.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "host/training/sets.h"

namespace tenon::host {

// The values of all parameters, concatenated.
struct Averages::Restored {
  Buffer average, block, former;
};

namespace {

constexpr uint64_t kPiece = 16384;  // elements of a task

float* floats(const Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

void check(const AverageOptions& options) {
  const auto refuse = [](const char* option, const auto&... parts) {
    fail(TN_INVALID, SubjectName{option}, "average: ", option, " is ", parts...);
  };
  if (!(options.decay > 0 && options.decay <= 1)) refuse("decay", options.decay, "; expected a number in (0, 1]");
  if (options.window < 0) refuse("window", options.window, "; expected at least 0");
  if (options.window > 0 && options.decay != 1)
    refuse("window", options.window, ", and decay is ", options.decay, "; expected one of them");
  if (options.begin < 0) refuse("begin", options.begin, "; expected at least 0");
}

}  // namespace

Averages::Averages(std::shared_ptr<const ParameterSet> of, std::shared_ptr<ParameterSet> to,
                   const AverageOptions& options, const tn_parallel& pool)
    : of_(std::move(of)), to_(std::move(to)), options_(options), pool_(pool) {
  check(options_);
  check_receiver(*of_, *to_, "average");
  for (const ParameterEntry& entry : of_->entries()) {
    const float* const from = of_->address(entry);
    float* const into = to_->address(to_->find(entry.name));
    for (uint64_t at = 0; at < entry.count; at += kPiece)
      pieces_.push_back({from + at, into + at, total_ + at, std::min(kPiece, entry.count - at), entry.buffer});
    if (!entry.buffer) total_ += entry.count;
  }
  if (options_.window == 0) return;
  block_ = Buffer(to_->allocator(), total_ * sizeof(float));
  former_ = Buffer(to_->allocator(), total_ * sizeof(float));
  std::fill_n(floats(block_), total_, 0.0F);
  std::fill_n(floats(former_), total_, 0.0F);
}

Averages::Step Averages::step_of(uint64_t update) const {
  Step step;
  const auto begin = static_cast<uint64_t>(options_.begin);
  step.copy = update <= begin;
  if (step.copy) return step;
  const uint64_t t = update - begin;
  if (options_.window == 0) {
    step.keep = std::min(options_.decay, static_cast<double>(t - 1) / static_cast<double>(t));
  } else {
    const auto window = static_cast<uint64_t>(options_.window);
    const uint64_t in_block = (t - 1) % window + 1;
    step.keep = static_cast<double>(in_block - 1) / static_cast<double>(in_block);
    step.ends = in_block == window;
    const bool first = t <= window;
    if (!first && !step.ends) step.of_block = static_cast<double>(in_block) / static_cast<double>(in_block + window);
  }
  step.take = 1 - step.keep;
  return step;
}

void Averages::average(const Piece& piece, const Step& step) {
  if (step.copy || piece.buffer) {
    std::copy_n(piece.of, piece.count, piece.to);
    return;
  }
  float* const mean = options_.window == 0 ? piece.to : floats(block_) + piece.at;
  // A weight of 0 must not keep what is not finite.
  for (uint64_t i = 0; i < piece.count; ++i)
    mean[i] = step.keep == 0 ? piece.of[i]
                             : static_cast<float>(step.keep * static_cast<double>(mean[i]) +
                                                  step.take * static_cast<double>(piece.of[i]));
  if (options_.window == 0) return;
  float* const former = floats(former_) + piece.at;
  for (uint64_t i = 0; i < piece.count; ++i)
    piece.to[i] = step.of_block == 1 ? mean[i]
                                     : static_cast<float>(step.of_block * static_cast<double>(mean[i]) +
                                                          (1 - step.of_block) * static_cast<double>(former[i]));
  if (step.ends) std::copy_n(mean, piece.count, former);
}

void Averages::run(const Step& step) {
  of_->bring_home();
  to_->bring_home();
  struct Work {
    Averages& averages;
    const Step& step;
  } work{*this, step};
  const auto task = [](void* argument, int64_t index, int32_t) {
    const Work& given = *static_cast<const Work*>(argument);
    given.averages.average(given.averages.pieces_[static_cast<size_t>(index)], given.step);
  };
  pool_.for_each(pool_.self, static_cast<int64_t>(pieces_.size()), task, &work);
  to_->changed();
}

void Averages::begin() {
  seen_ = 0;
  Step copy;
  copy.copy = true;
  run(copy);
}

void Averages::update() {
  run(step_of(seen_ + 1));
  ++seen_;
}

nlohmann::json Averages::describe() const {
  return {{"decay", options_.decay}, {"window", options_.window}, {"begin", options_.begin}};
}

// NOLINTNEXTLINE(readability-non-const-parameter): the views write
std::vector<Updater::StateValues> Averages::views(float* average, float* block, float* former) const {
  std::vector<Updater::StateValues> result;
  uint64_t at = 0;
  for (const ParameterEntry& entry : of_->entries()) {
    if (entry.buffer) continue;
    float* const values = average == nullptr ? to_->change(entry.name) : average + at;
    result.push_back({"average", entry.name, entry.shape, values, entry.count});
    if (options_.window > 0) {
      result.push_back({"block", entry.name, entry.shape, block + at, entry.count});
      result.push_back({"former", entry.name, entry.shape, former + at, entry.count});
    }
    at += entry.count;
  }
  return result;
}

std::vector<Updater::StateValues> Averages::values() { return views(nullptr, floats(block_), floats(former_)); }

std::shared_ptr<Averages::Restored> Averages::read(const std::function<void(const Updater::StateValues&)>& read) const {
  auto restored = std::make_shared<Restored>();
  restored->average = Buffer(to_->allocator(), total_ * sizeof(float));
  restored->block = Buffer(to_->allocator(), block_.size());
  restored->former = Buffer(to_->allocator(), former_.size());
  for (const Updater::StateValues& each :
       views(floats(restored->average), floats(restored->block), floats(restored->former)))
    read(each);
  return restored;
}

void Averages::adopt(Restored& restored, uint64_t seen) {
  begin();  // the buffers
  for (const Piece& piece : pieces_)
    if (!piece.buffer) std::copy_n(floats(restored.average) + piece.at, piece.count, piece.to);
  to_->changed();
  block_ = std::move(restored.block);
  former_ = std::move(restored.former);
  seen_ = seen;
}

}  // namespace tenon::host
