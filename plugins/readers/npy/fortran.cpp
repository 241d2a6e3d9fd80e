// SPDX-License-Identifier: Apache-2.0
#include "fortran.h"

#include <algorithm>
#include <cstring>

namespace tenon::npy {

FortranSamples::FortranSamples(const Header& header, uint64_t offset, uint64_t sample_bytes, uint64_t most,
                               const tn_memory* memory, const volatile int32_t* cancel)
    : shape_(header.shape),
      offset_(offset),
      sample_bytes_(sample_bytes),
      width_(tn_dtype_bytes(header.dtype)),
      most_(std::max<uint64_t>(most / sample_bytes, 1)),
      memory_(memory),
      cancel_(cancel) {}

const uint8_t* FortranSamples::sample(files::Source& source, int64_t number) {
  const int64_t distance = number - last_;
  if (number < first_ || number >= first_ + count_) {
    const bool in_order = distance > 0 && distance == distance_;
    const auto all = static_cast<uint64_t>(shape_[0]);
    count_ = 0;  // in case the read fails
    first_ = most_ >= all ? 0 : number;
    const uint64_t count = std::min(most_ >= all || (in_order && static_cast<uint64_t>(distance) < most_) ? most_ : 1,
                                    all - static_cast<uint64_t>(first_));
    if (window_.size() < count * sample_bytes_) window_ = files::Block(memory_, count * sample_bytes_);
    gather(source, static_cast<int64_t>(count));
    count_ = static_cast<int64_t>(count);
  }
  last_ = number;
  distance_ = distance;
  return window_.data() + static_cast<uint64_t>(number - first_) * sample_bytes_;
}

// Copies the values at one place of each of `count` samples, from `from` on in the file, to `to` in each of the window.
template <typename T>
void FortranSamples::gather_column(files::Source& source, uint64_t from, uint64_t to, int64_t count) {
  // Values of the next column are near enough to read them with these only if most of what lies between is needed.
  const bool dense = 2 * count >= shape_[0];
  const char* value = source.view(from, static_cast<size_t>(count) * sizeof(T), dense).data();
  uint8_t* place = window_.data() + to;
  for (int64_t i = 0; i < count; ++i, value += sizeof(T), place += sample_bytes_) std::memcpy(place, value, sizeof(T));
}

// Element (n, i, j, k) of an array [N, I, J, K] is number n + N (i + I (j + J k)) of the file.
void FortranSamples::gather(files::Source& source, int64_t count) {
  std::vector<int64_t> at(shape_.size(), 0);  // of the value in its sample
  for (uint64_t to = 0; to < sample_bytes_; to += width_) {
    files::check_cancel(cancel_, source.path());
    int64_t column = 0;
    for (size_t d = shape_.size(); d-- > 1;) column = column * shape_[d] + at[d];
    const uint64_t from = offset_ + static_cast<uint64_t>(column * shape_[0] + first_) * width_;
    if (width_ == 1) gather_column<uint8_t>(source, from, to, count);
    if (width_ == 2) gather_column<uint16_t>(source, from, to, count);
    if (width_ == 4) gather_column<uint32_t>(source, from, to, count);
    if (width_ == 8) gather_column<uint64_t>(source, from, to, count);
    for (size_t d = shape_.size(); d-- > 1 && ++at[d] == shape_[d];) at[d] = 0;
  }
}

}  // namespace tenon::npy
