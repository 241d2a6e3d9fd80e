// Wrappers that join several readers: chain, compose, interleave. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "host/readers/wrapper.h"

namespace tenon::host {

namespace {

void require_readers(const char* who, const Readers& of) {
  if (of.empty()) fail(TN_INVALID, ComponentName{who}, "no readers; expected at least 1");
  for (const auto& reader : of) {
    require_samples(who, *reader);
    require_start(who, *reader);
  }
}

// A reader in messages: 'reader 2 (slots "image", "label")'.
std::string name_of(const Readers& of, size_t number) {
  std::string slots;
  for (const Slot& slot : of[number]->slots()) slots += (slots.empty() ? "\"" : ", \"") + slot.name + "\"";
  return text("reader ", number + 1, " (slots ", slots, ")");
}

// Gives both slots the longer of their two lists of names. Fails if a number stands for different names in them.
void agree_on_names(const char* who, Slot& slot, Slot& other, size_t number) {
  if (slot.names != nullptr && other.names != nullptr) {
    const std::string differs = difference(*other.names, other.index_limit, *slot.names);
    const bool longer = !differs.empty() && difference(*slot.names, slot.index_limit, *other.names).empty();
    if (!differs.empty() && !longer)
      fail(TN_INVALID, ComponentName{who}, SubjectName{slot.name}, "slot \"", slot.name, "\" of reader ", number + 1,
           " has other names or columns than that of reader 1: ", differs,
           "; give both the names of a model, or the same vocabulary, labels, classes or columns");
    if (longer) slot.names = other.names;
  }
  if (slot.names == nullptr) slot.names = other.names;
  other.names = slot.names;
}

// Returns the slots of all readers, which must be equal. An index limit is the largest one, or -1 if one is unknown.
std::vector<Slot> common_slots(const char* who, const Readers& of) {
  std::vector<Slot> slots = of.front()->slots();
  for (size_t number = 1; number < of.size(); ++number) {
    const std::vector<Slot>& others = of[number]->slots();
    if (others.size() != slots.size())
      fail(TN_INVALID, ComponentName{who}, name_of(of, 0), " and ", name_of(of, number), " have different slots");
    for (size_t i = 0; i < slots.size(); ++i) {
      Slot& slot = slots[i];
      Slot other = others[i];
      const bool known = slot.index_limit >= 0 && other.index_limit >= 0;
      agree_on_names(who, slot, other, number);
      slot.index_limit = other.index_limit = known ? std::max(slot.index_limit, other.index_limit) : -1;
      if (!(slot == other))
        fail(TN_INVALID, ComponentName{who}, "slot ", i + 1, " is \"", slot.name, "\", ", slot_text(slot),
             ", in reader 1 and \"", other.name, "\", ", slot_text(other), ", in reader ", number + 1);
    }
  }
  return slots;
}

int64_t sum_of_sizes(const char* who, const Readers& of) {
  int64_t sum = 0;
  for (const auto& reader : of) {
    if (reader->size() < 0) return -1;
    sum = checked_add(sum, reader->size(), who);
  }
  return sum;
}

bool all_indexed(const Readers& of) {
  return std::all_of(of.begin(), of.end(), [](const auto& reader) { return reader->indexed(); });
}

// Returns why the first of the readers that cannot read parts of minibatches alone cannot; empty if all can.
std::string first_whole_reason(const Readers& readers) {
  for (const auto& reader : readers)
    if (std::string reason = reader->whole_reason(); !reason.empty()) return reason;
  return "";
}

// A reader made from several readers.
class JoinedReader : public CountingReader {
 public:
  [[nodiscard]] const std::vector<Slot>& slots() const final { return slots_; }
  void begin_pass(int64_t pass) final {
    for (const auto& reader : of_) reader->begin_pass(pass);
  }
  void cancel(bool on) final {
    for (const auto& reader : of_) reader->cancel(on);
  }
  [[nodiscard]] int64_t left_out() const override {
    int64_t sum = 0;
    for (const auto& reader : of_) {
      const int64_t count = reader->left_out();
      if (count < 0) return -1;
      sum += count;
    }
    return sum;
  }

 protected:
  explicit JoinedReader(Readers of) : of_(std::move(of)) { place(of_.front()->pass(), 0); }

  // Seeks each reader to its place; if one fails, seeks the others back.
  void seek_all(int64_t pass, const std::vector<int64_t>& places) {
    std::vector<std::pair<int64_t, int64_t>> left;
    try {
      for (size_t i = 0; i < of_.size(); ++i) {
        left.emplace_back(of_[i]->pass(), of_[i]->position());
        of_[i]->seek(pass, places[i]);
      }
    } catch (const Error&) {
      for (size_t i = 0; i + 1 < left.size(); ++i) of_[i]->seek(left[i].first, left[i].second);
      throw;
    }
  }

  // Reads and drops samples, to seek if the readers' places cannot be computed.
  void skip(const char* who, int64_t samples, const std::shared_ptr<Allocator>& allocator) {
    constexpr int64_t kPiece = 64;
    SampleBlock dropped(slots_, allocator);
    while (samples > 0) {
      dropped.clear();
      const int64_t count = next(dropped, std::min(samples, kPiece));
      if (count == 0) fail(TN_INVALID, ComponentName{who}, "the pass has ", samples, " samples less than the position");
      samples -= count;
    }
  }

  Readers of_;
  std::vector<Slot> slots_;
};

// ---- chain

class Chain final : public JoinedReader {
 public:
  Chain(Readers of, std::shared_ptr<Allocator> allocator)
      : JoinedReader(std::move(of)), allocator_(std::move(allocator)), size_(sum_of_sizes("chain", of_)) {
    slots_ = common_slots("chain", of_);
  }

  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] bool indexed() const override { return all_indexed(of_); }
  [[nodiscard]] std::string whole_reason() const override {
    const std::string reason = first_whole_reason(of_);
    return indexed() || !reason.empty() ? reason : "chain reads one reader after the other";
  }

  int64_t next(SampleBlock& to, int64_t most) override {
    require_room("chain", most);
    for (; current_ < of_.size(); ++current_)
      if (const int64_t count = next_of_current(to, most); count != 0) return given(count);
    current_ = 0;
    return given(0);
  }

  void read_at(const int64_t* indices, int64_t count, SampleBlock& to) override {
    if (!indexed()) Reader::read_at(indices, count, to);
    require_indices("chain", indices, count, size());
    Mark mark(to);
    for (int64_t i = 0; i < count;) {  // a run of indices of one reader at once
      size_t number = 0;
      int64_t before = 0;
      while (indices[i] - before >= of_[number]->size()) before += of_[number++]->size();
      inner_.clear();
      for (; i < count && indices[i] >= before && indices[i] - before < of_[number]->size(); ++i)
        inner_.push_back(indices[i] - before);
      of_[number]->read_at(inner_.data(), static_cast<int64_t>(inner_.size()), to);
    }
    mark.keep();
  }

  // The records of the readers follow one another, like their samples.
  [[nodiscard]] int64_t record(int64_t index) const override {
    int64_t before = 0;
    const Reader& of = at(index, &before);
    return before + of.record(index);
  }
  std::string text_of(int64_t index, const std::string& column) override {
    int64_t before = 0;
    Reader& of = at(index, &before);
    return of.text_of(index, column);
  }

  // Readers before the place are put at their end, and next reads their end of pass from there.
  void seek(int64_t pass, int64_t position) override {
    require_place("chain", pass, position, size());
    go_or_stay([this](int64_t to_pass, int64_t to) { go(to_pass, to); }, pass, position);
  }

 private:
  // Returns the reader of a sample, and makes *index its number there; *before: the records of the readers before it.
  Reader& at(int64_t& index, int64_t* before) const {
    if (size() < 0) fail(TN_UNSUPPORTED, ComponentName{"chain"}, "the number of samples of a reader is unknown");
    require_indices("chain", &index, 1, size());
    size_t number = 0;
    for (; index >= of_[number]->size(); ++number) {
      index -= of_[number]->size();
      *before += of_[number]->size() + std::max<int64_t>(of_[number]->left_out(), 0);
    }
    return *of_[number];
  }

  int64_t next_of_current(SampleBlock& to, int64_t most) {
    Reader& of = *of_[current_];
    return noticing(
        of, [&] { return of.next(to, most); }, [&] { place(pass(), position() + 1); });
  }

  void go(int64_t pass, int64_t position) {
    const int64_t known = size() < 0 ? 0 : position;
    std::vector<int64_t> places;
    int64_t left = known;
    for (const auto& reader : of_) {
      places.push_back(std::min(left, std::max<int64_t>(reader->size(), 0)));
      left -= places.back();
    }
    seek_all(pass, places);
    current_ = 0;
    place(pass, known);
    if (size() < 0) skip("chain", position, allocator_);
  }

  std::shared_ptr<Allocator> allocator_;
  int64_t size_;
  size_t current_ = 0;
  std::vector<int64_t> inner_;
};

// ---- compose

class Compose final : public JoinedReader {
 public:
  Compose(Readers of, const std::shared_ptr<Allocator>& allocator) : JoinedReader(std::move(of)) {
    for (size_t number = 0; number < of_.size(); ++number) {
      const int64_t size = of_[number]->size();
      if (size_ >= 0 && size >= 0 && size != size_)
        fail(TN_INVALID, ComponentName{"compose"}, name_of(of_, sized_), " has ", size_, " samples and ",
             name_of(of_, number), " has ", size);
      if (size >= 0) {
        size_ = size;
        sized_ = number;
      }
      add_slots(number);
      ahead_.emplace_back(of_[number], allocator);
      chosen_.emplace_back(of_[number]->slots(), allocator);
    }
  }

  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] bool indexed() const override { return all_indexed(of_); }
  [[nodiscard]] std::string whole_reason() const override { return first_whole_reason(of_); }

  int64_t next(SampleBlock& to, int64_t most) override {
    require_room("compose", most);
    catch_up();
    size_t going = 0;
    for (Ahead& ahead : ahead_) going += ahead.fill(most) ? 1 : 0;
    if (going == 0) {
      for (Ahead& ahead : ahead_) ahead.begin();
      return given(0);
    }
    if (going < ahead_.size()) {
      size_t over = 0, goes_on = 0;
      while (ahead_[over].left() > 0) ++over;
      while (ahead_[goes_on].left() == 0) ++goes_on;
      fail(TN_BAD_DATA, ComponentName{"compose"}, name_of(of_, over), " ended after ", position(), " samples of pass ",
           pass() + 1, "; ", name_of(of_, goes_on), " goes on");
    }
    int64_t count = most;
    for (const Ahead& ahead : ahead_) count = std::min(count, ahead.left());
    Mark mark(to);
    size_t column = 0;
    for (const Ahead& ahead : ahead_)
      for (const Column& from : ahead.block().columns()) to.columns()[column++].append(from, ahead.used(), count);
    mark.keep();
    for (Ahead& ahead : ahead_) ahead.use(count);
    return given(count);
  }

  PartRead next_part(SampleBlock& to, int64_t most, const MinibatchPart& part) override {
    const bool is_ahead =
        std::any_of(of_.begin(), of_.end(), [this](const auto& reader) { return reader->position() != position(); });
    if (is_ahead) seek(pass(), position());
    return part_or_stay([&] {
      Mark mark(to);
      PartRead read;
      size_t column = 0;
      for (size_t i = 0; i < of_.size(); ++i) {
        chosen_[i].clear();
        read = of_[i]->next_part(chosen_[i], most, part);
        for (const Column& from : chosen_[i].columns()) to.columns()[column++].append(from, 0, from.samples());
      }
      mark.keep();
      return read;
    });
  }

  void read_at(const int64_t* indices, int64_t count, SampleBlock& to) override {
    require_indices("compose", indices, count, size());
    Mark mark(to);
    size_t column = 0;
    for (size_t i = 0; i < of_.size(); ++i) {
      chosen_[i].clear();
      of_[i]->read_at(indices, count, chosen_[i]);
      for (const Column& from : chosen_[i].columns()) to.columns()[column++].append(from, 0, count);
    }
    mark.keep();
  }

  [[nodiscard]] int64_t left_out() const override { return of_.front()->left_out(); }
  [[nodiscard]] int64_t record(int64_t index) const override { return of_.front()->record(index); }
  // The first reader that has the column answers.
  std::string text_of(int64_t index, const std::string& column) override {
    for (size_t i = 0; i + 1 < of_.size(); ++i) try {
        return of_[i]->text_of(index, column);
      } catch (const Error& error) {
        if (error.code() != TN_NOT_FOUND) throw;
      }
    return of_.back()->text_of(index, column);
  }

  void seek(int64_t pass, int64_t position) override {
    require_place("compose", pass, position, size());
    seek_all(pass, std::vector<int64_t>(of_.size(), position));
    for (Ahead& ahead : ahead_) ahead.drop();
    place(pass, position);
  }

 private:
  // Drops in the other readers the samples that are damaged in one reader.
  void catch_up() {
    int64_t furthest = position();
    for (const Ahead& ahead : ahead_)
      if (!ahead.ended()) furthest = std::max(furthest, ahead.position());
    for (Ahead& ahead : ahead_)
      while (!ahead.ended() && ahead.position() < furthest && ahead.fill(furthest - ahead.position()))
        ahead.use(std::min(ahead.left(), furthest - ahead.position()));
    place(pass(), furthest);
  }

  void add_slots(size_t number) {
    for (const Slot& slot : of_[number]->slots()) {
      for (size_t other = 0; other < number; ++other)
        for (const Slot& taken : of_[other]->slots())
          if (taken.name == slot.name)
            fail(TN_INVALID, ComponentName{"compose"}, name_of(of_, other), " and ", name_of(of_, number),
                 " both have a slot \"", slot.name, "\"; rename one with choose");
      slots_.push_back(slot);
    }
  }

  std::vector<Ahead> ahead_;
  std::vector<SampleBlock> chosen_;  // used by read_at and next_part
  int64_t size_ = -1;
  size_t sized_ = 0;  // a reader of that size
};

// ---- interleave

class Interleave final : public JoinedReader {
 public:
  Interleave(Readers of, std::shared_ptr<Allocator> allocator)
      : JoinedReader(std::move(of)), allocator_(std::move(allocator)), size_(sum_of_sizes("interleave", of_)) {
    slots_ = common_slots("interleave", of_);
    for (const auto& reader : of_) ahead_.emplace_back(reader, allocator_);
  }

  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] std::string whole_reason() const override {
    return "interleave takes the samples of its readers in turn";
  }

  int64_t next(SampleBlock& to, int64_t most) override {
    require_room("interleave", most);
    int64_t count = 0;
    for (size_t over = 0; count < most && over < ahead_.size();) {
      Ahead& ahead = ahead_[turn_];
      if (count > 0 && ahead.left() == 0) break;  // returns samples before a read that may fail
      const auto readers = static_cast<int64_t>(ahead_.size());
      if (fill(ahead, most / readers + (most % readers != 0 ? 1 : 0))) {
        try {
          to.append(ahead.block(), ahead.used(), 1);
        } catch (...) {
          if (count == 0) throw;
          break;  // returns the samples so far; the next call fails
        }
        ahead.use(1);
        given(1);
        ++count;
        over = 0;
      } else {
        ++over;
      }
      turn_ = (turn_ + 1) % ahead_.size();
    }
    if (count > 0) return count;
    for (Ahead& ahead : ahead_) ahead.begin();
    turn_ = 0;
    return given(0);
  }

  void seek(int64_t pass, int64_t position) override {
    require_place("interleave", pass, position, size());
    go_or_stay([this](int64_t to_pass, int64_t to) { go(to_pass, to); }, pass, position);
  }

 private:
  bool fill(Ahead& ahead, int64_t most) {
    return noticing(
        *of_[turn_], [&] { return ahead.fill(most); },
        [&] {  // a damaged sample has had its turn
          place(pass(), position() + 1);
          turn_ = (turn_ + 1) % ahead_.size();
        });
  }

  void go(int64_t pass, int64_t position) {
    const int64_t known = size() < 0 ? 0 : position;
    const int64_t rounds = full_rounds(known);
    int64_t left = known - given_in(rounds);
    size_t turn = 0;
    std::vector<int64_t> places;
    for (size_t i = 0; i < of_.size(); ++i) {
      const int64_t size = std::max<int64_t>(of_[i]->size(), 0);
      places.push_back(std::min(rounds, size));
      if (left == 0 || size <= rounds) continue;
      ++places.back();
      --left;
      turn = (i + 1) % of_.size();
    }
    seek_all(pass, places);
    for (Ahead& ahead : ahead_) ahead.drop();
    turn_ = turn;
    place(pass, known);
    if (size() < 0) skip("interleave", position, allocator_);
  }

  // The number of samples in `rounds` rounds.
  [[nodiscard]] int64_t given_in(int64_t rounds) const {
    int64_t sum = 0;
    for (const auto& reader : of_) sum += std::min(rounds, std::max<int64_t>(reader->size(), 0));
    return sum;
  }
  // The largest number of rounds with at most `samples` samples.
  [[nodiscard]] int64_t full_rounds(int64_t samples) const {
    int64_t low = 0, high = samples;  // the reader with the most samples gives one in each
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      if (given_in(middle) <= samples)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  std::shared_ptr<Allocator> allocator_;
  int64_t size_;
  std::vector<Ahead> ahead_;
  size_t turn_ = 0;
};

}  // namespace

std::unique_ptr<Reader> chain(Readers of, std::shared_ptr<Allocator> allocator) {
  require_readers("chain", of);
  return std::make_unique<Chain>(std::move(of), std::move(allocator));
}

std::unique_ptr<Reader> compose(Readers of, const std::shared_ptr<Allocator>& allocator) {
  require_readers("compose", of);
  return std::make_unique<Compose>(std::move(of), allocator);
}

std::unique_ptr<Reader> interleave(Readers of, std::shared_ptr<Allocator> allocator) {
  require_readers("interleave", of);
  return std::make_unique<Interleave>(std::move(of), std::move(allocator));
}

}  // namespace tenon::host
