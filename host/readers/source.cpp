// Readers that an application implements. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "host/readers/wrapper.h"

namespace tenon::host {

namespace {

constexpr char kSource[] = "the application's reader";

class SourceReader final : public CountingReader {
 public:
  explicit SourceReader(Source source) : source_(std::move(source)) {}

  [[nodiscard]] const std::vector<Slot>& slots() const override { return source_.slots; }
  [[nodiscard]] int64_t size() const override { return source_.size; }
  [[nodiscard]] bool indexed() const override { return source_.read_at != nullptr; }
  [[nodiscard]] std::string whole_reason() const override {
    if (!indexed()) return text(kSource, " cannot read samples by index");
    return source_.next && !source_.seek ? text(kSource, " cannot seek") : "";
  }

  int64_t next(SampleBlock& to, int64_t most) override {
    require_room(kSource, most);
    return given(source_.next ? in_order(to, most) : by_index(to, most));
  }

  void read_at(const int64_t* indices, int64_t count, SampleBlock& to) override {
    if (!indexed()) return Reader::read_at(indices, count, to);
    require_indices(kSource, indices, count, size());
    std::vector<ArrayView> values = arrays_to_lend(slots(), count);
    if (count <= 0) return;
    source_.read_at(indices, count, values);
    to.append(values, count, kSource);
  }

  void seek(int64_t pass, int64_t position) override {
    require_place(kSource, pass, position, size());
    if (source_.seek)
      source_.seek(pass, position);
    else if (source_.next)
      fail(TN_UNSUPPORTED, ComponentName{kSource}, "it cannot seek");
    place(pass, position);
  }

  void begin_pass(int64_t) override {}
  void cancel(bool) override {}

 private:
  int64_t in_order(SampleBlock& to, int64_t most) {
    std::vector<ArrayView> values = arrays_to_lend(slots(), 0);
    const int64_t count = source_.next(most, values);
    if (count < 0 || count > most)
      fail(TN_INVALID, ComponentName{kSource}, "it gave ", count, " samples; expected 0 to ", most);
    if (count == 0 && size() >= 0 && position() != size())
      fail(TN_INVALID, ComponentName{kSource}, "a pass ended after ", position(), " samples; expected ", size());
    if (size() >= 0 && count > size() - position())
      fail(TN_INVALID, ComponentName{kSource}, "it gave sample ", position() + count, " of a pass; expected ", size(),
           " samples");
    for (ArrayView& array : values) {
      if (array.storage == TN_RAGGED)
        array.samples = count;
      else
        array.shape[0] = count;
    }
    if (count > 0) to.append(values, count, kSource);
    return count;
  }

  int64_t by_index(SampleBlock& to, int64_t most) {
    const int64_t count = std::min(most, size() - position());
    indices_.resize(static_cast<size_t>(count));
    std::iota(indices_.begin(), indices_.end(), position());
    read_at(indices_.data(), count, to);
    return count;
  }

  Source source_;
  std::vector<int64_t> indices_;
};

}  // namespace

std::unique_ptr<Reader> open_source(Source source) {
  if (!source.next && !source.read_at) fail(TN_INVALID, ComponentName{kSource}, "it offers neither next nor read_at");
  if (source.size < -1 || (source.read_at && source.size < 0))
    fail(TN_INVALID, ComponentName{kSource}, "it says that it has ", source.size, " samples",
         source.read_at ? "; read_at needs to know how many there are" : "");
  return std::make_unique<SourceReader>(std::move(source));
}

}  // namespace tenon::host
