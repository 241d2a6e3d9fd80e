// Native kernels that copy a range of rows for each sequence, for rules of rows that no recorded body has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <tenon/kernel.hpp>

namespace tenon::sequences {

struct Range {
  int64_t begin, end;  // rows of the input
};

// The kernel of a layer whose input 0 has the rows, and whose output 0 the chosen ones of each sequence, of a ragged
// dimension of the rule TN_ROWS_DATA; its derivative goes back to the rows. Ranges has these functions:
//   static void describe(tn::KernelDescription& d);  // names the kernel
//   static bool supports(const tn::KernelSite& site);
//   explicit Ranges(const tn::KernelSite& site);
//   int64_t sequences(const tn::Call& call) const;
//   int64_t rows(const tn::Call& call) const;  // of the input
//   Range at(const tn::Call& call, int64_t sequence) const;  // in the order of the rows, without overlaps
template <typename Ranges>
class RangesKernel {
 public:
  static void describe(tn::KernelDescription& d) {
    Ranges::describe(d);
    d.compute(TN_F32);
    d.compute(TN_F64);
  }
  static bool supports(const tn::KernelSite& site, int32_t&) { return Ranges::supports(site); }
  static void query(const tn::KernelSite& site, tn::KernelNeeds& needs) {
    for (uint32_t i = 0; i < site->inputs_count; ++i)
      if (site.has_input(i)) needs.read_input(i);
  }

  RangesKernel(const tn::KernelSite& site, int32_t direction)
      : ranges_(site),
        backward_(direction == TN_BACKWARD),
        inputs_(site->inputs_count),
        row_bytes_(row_bytes(site.input(0), site.output(0), site->compute)) {}

  // Forward: inputs -> output, offsets, count. Backward: inputs, -, gradient of the output -> gradient of input 0.
  void run(const tn::Call& call) const {
    const int64_t sequences = ranges_.sequences(call);
    if (backward_) return give_back(call, sequences);
    const uint8_t* const from = tn_data(call.input(0));
    uint8_t* const to = tn_data(call.output(0));
    auto* const offsets = call.out<int64_t>(1);
    offsets[0] = 0;
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      const Range range = ranges_.at(call, sequence);
      copy(to, offsets[sequence], from, range.begin, range.end - range.begin);
      offsets[sequence + 1] = offsets[sequence] + range.end - range.begin;
    }
    call.out<int64_t>(2)[0] = offsets[sequences];
  }

 private:
  // Of a row of the output, whose dimensions are the last ones of the input.
  static int64_t row_bytes(const tn::Spec& input, const tn::Spec& output, tn_dtype compute) {
    int64_t bytes = tn_dtype_bytes(input.dtype() == TN_COMPUTE ? compute : input.dtype());
    for (int32_t i = 1; i < output.rank(); ++i) bytes *= output[i].offset;
    return bytes;
  }
  void copy(uint8_t* to, int64_t to_row, const uint8_t* from, int64_t from_row, int64_t rows) const {
    if (rows * row_bytes_ == 0) return;
    std::memcpy(to + to_row * row_bytes_, from + from_row * row_bytes_, static_cast<size_t>(rows * row_bytes_));
  }
  void give_back(const tn::Call& call, int64_t sequences) const {
    uint8_t* const to = tn_data(call.output(0));
    if (to == nullptr) return;
    const uint8_t* const given = tn_data(call.input(inputs_ + 1));
    std::fill_n(to, ranges_.rows(call) * row_bytes_, uint8_t{0});
    int64_t row = 0;
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      const Range range = ranges_.at(call, sequence);
      copy(to, range.begin, given, row, range.end - range.begin);
      row += range.end - range.begin;
    }
  }

  Ranges ranges_;
  bool backward_;
  uint32_t inputs_;
  int64_t row_bytes_;
};

}  // namespace tenon::sequences
