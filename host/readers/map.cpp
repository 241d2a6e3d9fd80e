// Wrappers that change the slots: map and choose. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/attribute.h"
#include "host/readers/wrapper.h"

namespace tenon::host {

namespace {

// Replaces each sample by one that the application's function computes from it.
class Map final : public Wrapper {
 public:
  Map(std::shared_ptr<Reader> of, std::vector<Slot> slots, MapFunction function,
      const std::shared_ptr<Allocator>& allocator)
      : Wrapper(std::move(of)),
        slots_(std::move(slots)),
        function_(std::move(function)),
        read_(of_->slots(), allocator),
        picked_(of_->slots(), allocator),
        made_(slots_, allocator) {}

  [[nodiscard]] const std::vector<Slot>& slots() const override { return slots_; }
  [[nodiscard]] int64_t batch() const override { return of_->batch(); }
  [[nodiscard]] bool indexed() const override { return of_->indexed(); }
  [[nodiscard]] std::string whole_reason() const override {
    const std::string reason = of_->whole_reason();
    return reason.empty() && batch() > 0 ? "map gets whole minibatches" : reason;
  }

  // If the function throws, read_ keeps the samples for the next call.
  int64_t next(SampleBlock& to, int64_t most) override {
    if (used_ == made_.samples()) {
      if (read_.samples() == 0 && followed([&] { return of_->next(read_, most); }) == 0) {
        follow(0);
        return 0;
      }
      made_.clear();
      used_ = 0;
      apply(read_, made_);
      read_.clear();
    }
    const int64_t count = std::min(most, made_.samples() - used_);
    if (count == made_.samples()) {
      to.take(made_);
    } else {
      to.append(made_, used_, count);
      used_ += count;
    }
    follow(made_.samples() - used_);
    return count;
  }

  PartRead next_part(SampleBlock& to, int64_t most, const MinibatchPart& part) override {
    if (batch() > 0) return Reader::next_part(to, most, part);
    drop_held();
    return part_or_stay([&] {
      picked_.clear();
      const PartRead read = of_->next_part(picked_, most, part);
      apply(picked_, to);
      return read;
    });
  }

  void read_at(const int64_t* indices, int64_t count, SampleBlock& to) override {
    picked_.clear();
    of_->read_at(indices, count, picked_);
    apply(picked_, to);
  }

  void seek(int64_t pass, int64_t position) override {
    of_->seek(pass, position);
    read_.clear();
    made_.clear();
    used_ = 0;
    place(pass, position);
  }

 private:
  void apply(const SampleBlock& from, SampleBlock& to) {
    if (from.samples() == 0) return;
    std::vector<ArrayView> lent = arrays_to_lend(slots_, from.samples());
    function_(from.views(), from.samples(), lent);
    to.append(lent, from.samples(), "map");
  }

  std::vector<Slot> slots_;
  MapFunction function_;
  SampleBlock read_, picked_;  // used by next, by read_at and next_part
  SampleBlock made_;
  int64_t used_ = 0;  // samples of made_ already returned
};

// Keeps some of the slots, under new names.
class Choose final : public Wrapper {
 public:
  Choose(std::shared_ptr<Reader> of, std::vector<size_t> numbers, std::vector<Slot> slots,
         const std::shared_ptr<Allocator>& allocator)
      : Wrapper(std::move(of)),
        numbers_(std::move(numbers)),
        slots_(std::move(slots)),
        reads_parts_(of_->whole_reason().empty()),
        ahead_(of_, allocator),
        picked_(of_->slots(), allocator) {}

  [[nodiscard]] const std::vector<Slot>& slots() const override { return slots_; }
  [[nodiscard]] int64_t batch() const override { return of_->batch(); }
  [[nodiscard]] bool indexed() const override { return of_->indexed(); }

  int64_t next(SampleBlock& to, int64_t most) override {
    if (!followed([&] { return ahead_.fill(most); })) {
      ahead_.begin();
      follow(0);
      return 0;
    }
    const int64_t count = std::min(most, ahead_.left());
    move(ahead_.block(), ahead_.used(), count, to);
    ahead_.use(count);
    follow(ahead_.left());
    return count;
  }

  PartRead next_part(SampleBlock& to, int64_t most, const MinibatchPart& part) override {
    if (!reads_parts_) return Reader::next_part(to, most, part);
    drop_held();
    return part_or_stay([&] {
      picked_.clear();
      const PartRead read = of_->next_part(picked_, most, part);
      move(picked_, 0, picked_.samples(), to);
      return read;
    });
  }

  void read_at(const int64_t* indices, int64_t count, SampleBlock& to) override {
    picked_.clear();
    of_->read_at(indices, count, picked_);
    move(picked_, 0, count, to);
  }

  void seek(int64_t pass, int64_t position) override {
    of_->seek(pass, position);
    ahead_.drop();
    place(pass, position);
  }

 private:
  // Copies nothing if all of `from` goes to an empty `to`.
  void move(SampleBlock& from, int64_t begin, int64_t count, SampleBlock& to) {
    const bool whole = to.samples() == 0 && count == from.samples();
    Mark mark(to);
    for (size_t i = 0; i < numbers_.size(); ++i) {
      Column& column = from.columns()[numbers_[i]];
      if (whole)
        to.columns()[i].take(column);
      else
        to.columns()[i].append(column, begin, count);
    }
    mark.keep();
  }

  std::vector<size_t> numbers_;  // of the slots of of_
  std::vector<Slot> slots_;
  bool reads_parts_;
  Ahead ahead_;
  SampleBlock picked_;  // used by read_at and next_part
};

}  // namespace

std::unique_ptr<Reader> map(std::shared_ptr<Reader> of, std::vector<Slot> slots, MapFunction function,
                            const std::shared_ptr<Allocator>& allocator) {
  return std::make_unique<Map>(std::move(of), std::move(slots), std::move(function), allocator);
}

std::unique_ptr<Reader> choose(std::shared_ptr<Reader> of, const std::vector<ChosenSlot>& slots,
                               const std::shared_ptr<Allocator>& allocator) {
  if (slots.empty()) fail(TN_INVALID, ComponentName{"choose"}, "no slots; expected at least 1");
  std::vector<size_t> numbers;
  std::vector<Slot> chosen;
  for (const ChosenSlot& choice : slots) {
    const size_t number = slot_number("choose", *of, choice.slot);
    if (std::find(numbers.begin(), numbers.end(), number) != numbers.end())
      fail(TN_INVALID, ComponentName{"choose"}, SubjectName{choice.slot}, "slot \"", choice.slot, "\" is chosen twice");
    if (choice.name.empty())
      fail(TN_INVALID, ComponentName{"choose"}, SubjectName{choice.slot}, "the new name of slot \"", choice.slot,
           "\" is empty");
    for (const Slot& other : chosen)
      if (other.name == choice.name)
        fail(TN_INVALID, ComponentName{"choose"}, "two slots are named \"", choice.name, "\"");
    numbers.push_back(number);
    chosen.push_back(of->slots()[number]);
    chosen.back().name = choice.name;
  }
  return std::make_unique<Choose>(std::move(of), std::move(numbers), std::move(chosen), allocator);
}

}  // namespace tenon::host
